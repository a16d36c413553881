//! Who waits for what: from a node to the nodes whose expressions name it, from a limit to those
//! that take its tokens, and from a suite to the nodes that depend on its clock.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::node::NodeId;

/// The index from operands to the expressions that have them.
#[derive(Clone, Default, Debug)]
pub(super) struct Waiting {
    /// The nodes whose expressions name this one.
    pub(super) by_node: HashMap<NodeId, Vec<NodeId>>,
    /// The nodes that take tokens of a limit of this one.
    pub(super) by_limit: HashMap<NodeId, Vec<NodeId>>,
    /// The nodes that name something that isn't there.
    pub(super) missing: BTreeSet<NodeId>,
    /// The nodes that depend on time, by suite.
    pub(super) timed: HashMap<NodeId, BTreeSet<NodeId>>,
    /// The nodes that are looked at with the next minute: a change has woken too many.
    pub(super) left: Vec<NodeId>,
}

/// From how many waiters on those that are noted twice are taken out.
const MANY: usize = 64;

/// Notes a waiter for a node.
pub(super) fn add(map: &mut HashMap<NodeId, Vec<NodeId>>, key: NodeId, waiter: NodeId) {
    let waiters = map.entry(key).or_default();
    // A node notes all its operands at once, so that a second note is the last one.
    if waiters.last() == Some(&waiter) {
        return;
    }
    // It notes them again after a change, so that they are looked through when there is no room for
    // one more, and have room for as many again then: a note costs a few steps of such a look.
    if waiters.len() >= MANY && waiters.len() == waiters.capacity() {
        waiters.sort_unstable();
        waiters.dedup();
        waiters.reserve_exact(waiters.len());
    }
    waiters.push(waiter);
}

impl Waiting {
    /// The nodes that wait for one.
    pub(super) fn of(&self, operand: NodeId) -> &[NodeId] {
        self.by_node.get(&operand).map_or(&[], Vec::as_slice)
    }

    /// The nodes that take tokens of a limit of one.
    pub(super) fn of_limit(&self, holder: NodeId) -> &[NodeId] {
        self.by_limit.get(&holder).map_or(&[], Vec::as_slice)
    }

    /// The nodes of a suite that depend on time, in order.
    pub(super) fn timed_of(&self, suite: NodeId) -> impl Iterator<Item = NodeId> {
        self.timed.get(&suite).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: usize) -> Vec<NodeId> {
        (1..=count).map(|n| NodeId::of_index(n).expect("a number")).collect()
    }

    #[test]
    fn who_is_noted_again_and_again_is_not_kept_as_often() {
        let mut map = HashMap::new();
        for id in nodes(3).into_iter().cycle().take(10_000) {
            add(&mut map, NodeId::ROOT, id);
        }
        assert!(map[&NodeId::ROOT].len() <= 2 * MANY);
    }

    #[test]
    fn they_are_looked_through_once_as_many_have_come_again_whatever_their_number() {
        for count in [MANY - 1, MANY, 2 * MANY - 1, 2 * MANY, 1000] {
            let (mut map, ids, mut before, mut looks) = (HashMap::new(), nodes(count), 0, 0);
            for id in ids.iter().cycle().take(10 * count) {
                add(&mut map, NodeId::ROOT, *id);
                // One that was added made the list no longer: others were taken out.
                let len = map[&NodeId::ROOT].len();
                looks += usize::from(len <= before);
                before = len;
            }
            assert!(looks <= 10, "{count} waiters: {looks} looks");
        }
    }
}
