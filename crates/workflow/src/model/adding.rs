//! Why a node can't be added to a tree.

/// The most levels below `/`.
pub const DEPTH_LIMIT: usize = 256;

/// Why a node can't be added.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddError {
    /// A child of this name is there.
    #[error("{0} already has a child of this name")]
    Duplicate(String),
    /// This kind of node can't be in that one.
    #[error("{parent} can't contain {child}")]
    Kind {
        /// The kind of the node around it.
        parent: &'static str,
        /// The kind of the node.
        child: &'static str,
    },
    /// Too many levels.
    #[error("more than {DEPTH_LIMIT} levels")]
    Depth,
    /// All numbers of nodes are used.
    #[error("more nodes than can be numbered")]
    Full,
}
