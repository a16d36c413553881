//! The nodes whose dependencies may hold now.

use super::super::node::NodeId;

/// How many nodes may be in it before those that are in it twice are taken out.
const FIRST: usize = 4096;

/// Nodes that a change has woken: each is looked at once, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Awake {
    /// Some of them more than once: to sort them in the end takes less than to look for each.
    all: Vec<NodeId>,
    /// How many they were when each was in it once.
    distinct: usize,
}

impl Awake {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn insert(&mut self, id: NodeId) {
        if self.all.len() >= FIRST.max(2 * self.distinct) {
            self.settle();
        }
        self.all.push(id);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes all out.
    pub(super) fn take(&mut self) -> Vec<NodeId> {
        self.settle();
        std::mem::take(self).all
    }

    fn settle(&mut self) {
        self.all.sort_unstable();
        self.all.dedup();
        self.distinct = self.all.len();
    }
}

#[cfg(test)]
mod tests {
    use super::{Awake, FIRST};
    use crate::model::node::NodeId;

    #[test]
    fn a_node_that_is_woken_often_is_in_it_once() {
        let mut awake = Awake::default();
        for _ in 0..10 * FIRST {
            awake.insert(NodeId::ROOT);
            assert!(awake.all.len() <= FIRST);
        }
        assert_eq!(awake.take(), [NodeId::ROOT]);
        assert!(awake.is_empty() && awake.take().is_empty());
    }
}
