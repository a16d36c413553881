//! Other states of a tree: whether one is the same, a copy that shares no node, and one
//! whose nodes have just begun.

use super::attribute::Attribute;
use super::calendar::Calendar;
use super::node::{Node, NodeId};
use super::time::Instant;
use super::tree::Snapshot;

impl Snapshot {
    /// Whether a node, and all below it, is as it is in another state of the same tree. Calendars,
    /// which move by themselves, count for nothing.
    #[must_use]
    pub fn is_same_below(&self, other: &Self, id: NodeId) -> bool {
        let pairs = self.walk(id).map(Some).chain(std::iter::once(None));
        let others = other.walk(id).map(Some).chain(std::iter::once(None));
        pairs.zip(others).all(|(one, another)| match (one, another) {
            (Some(one), Some(another)) => {
                one == another && is_same(self.node(one), other.node(one))
            }
            (None, None) => true,
            _ => false,
        })
    }
}

impl Snapshot {
    /// The same state, of which no node is shared: what a snapshot would cost if nodes weren't
    /// copied by the first change of each.
    pub(crate) fn copied(&self) -> Self {
        let mut copy = self.clone();
        copy.arena = self.arena.copied();
        copy
    }

    /// The tree as it would be had the suites of a node begun now, and no task below it a try yet.
    #[must_use]
    pub fn begun(&self, id: NodeId, now: Instant) -> Self {
        let mut tree = self.clone();
        let suites: Vec<NodeId> = match self.suite(id) {
            Some(suite) => vec![suite],
            None => self.suites().collect(),
        };
        for suite in suites {
            let Some(node) = tree.arena.get_mut(suite) else { continue };
            let clock = node.attributes.iter().find_map(|one| match one {
                Attribute::Clock(clock) => Some(**clock),
                _ => None,
            });
            let start = clock.map_or(now, |clock| clock.start(now));
            let others =
                node.attributes.iter().filter(|one| !matches!(one, Attribute::Calendar(_)));
            let mut all: Vec<Attribute> = others.cloned().collect();
            all.push(Attribute::Calendar(Box::new(Calendar::begin(start, now))));
            (node.attributes, node.is_begun) = (all.into(), true);
        }
        for at in self.walk(id).filter(|at| self.node(*at).job.is_some()) {
            if let Some(node) = tree.arena.get_mut(at) {
                node.job = None;
            }
        }
        tree
    }
}

fn is_same(one: &Node, other: &Node) -> bool {
    let attributes = |node: &Node| -> Vec<Attribute> {
        let all = node.attributes.iter();
        all.filter(|one| !matches!(one, Attribute::Calendar(_))).cloned().collect()
    };
    (&one.name, one.kind, one.state, one.default)
        == (&other.name, other.kind, other.state, other.default)
        && (one.is_suspended, one.is_begun) == (other.is_suspended, other.is_begun)
        && (one.flags, one.since) == (other.flags, other.since)
        && one.job == other.job
        && (std::sync::Arc::ptr_eq(&one.attributes, &other.attributes)
            || attributes(one) == attributes(other))
}
