//! Limits: where they are found.

use super::attribute::{Attribute, InLimit, Limit};
use super::node::NodeId;
use super::tree::Snapshot;

impl Snapshot {
    /// The limit of this name at a node.
    #[must_use]
    pub fn limit(&self, id: NodeId, name: &str) -> Option<&Limit> {
        self.node(id).attributes.iter().find_map(|attribute| match attribute {
            Attribute::Limit(limit) if limit.name == *name => Some(limit),
            _ => None,
        })
    }

    /// The node that has the limit which an inlimit of a node names: that of its path, or else the
    /// nearest upwards.
    #[must_use]
    pub fn limit_node(&self, id: NodeId, inlimit: &InLimit) -> Option<NodeId> {
        if !inlimit.path.is_empty() {
            let at = self.find_from(id, &inlimit.path)?;
            return self.limit(at, &inlimit.name).map(|_| at);
        }
        self.upwards(id).find(|id| self.limit(*id, &inlimit.name).is_some())
    }

    /// The limit that an inlimit of a node names.
    #[must_use]
    pub fn limit_of(&self, id: NodeId, inlimit: &InLimit) -> Option<&Limit> {
        self.limit(self.limit_node(id, inlimit)?, &inlimit.name)
    }
}
