//! What changed at which change number, so that a client that is behind gets only that.
//!
//! The changes are a log in the order of their numbers, not numbers at each node: a client a few
//! changes behind costs those few, however large the tree, and nodes stay small.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::node::NodeId;

/// How many changes are remembered; who is further behind takes the whole text.
const LIMIT: usize = 1 << 16;

/// What of a node has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aspect {
    /// Anything but its children.
    Any,
    /// The state, or since when it has it.
    State,
    /// Whether it is suspended.
    Suspended,
    /// The state of begin and requeue.
    Default,
    /// The flags.
    Flags,
    /// The job's particulars.
    Job,
    /// The number of a task's last alias.
    AliasNumber,
    /// The value of the attribute of this place.
    Attribute(u16),
    /// Attributes were added, deleted, or defined in another way.
    Attributes,
    /// The order of the children.
    Order,
    /// Children were added or deleted.
    Children,
    /// Of the server: whether it is halted.
    Server,
    /// Of the server: the users' variables.
    Variables,
}

impl Aspect {
    const fn bit(self) -> u16 {
        1 << match self {
            Self::Any => 0,
            Self::State => 1,
            Self::Suspended => 2,
            Self::Default => 3,
            Self::Flags => 4,
            Self::Job => 5,
            Self::Attribute(_) => 6,
            Self::Attributes => 7,
            Self::Order => 8,
            Self::Children => 9,
            Self::Server => 10,
            Self::Variables => 11,
            Self::AliasNumber => 12,
        }
    }
}

/// What of one node has changed since a number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changed {
    aspects: u16,
    /// The places of attributes whose values have changed.
    pub places: BTreeSet<u16>,
}

impl Changed {
    fn note(&mut self, aspect: Aspect) {
        self.aspects |= aspect.bit();
        if let Aspect::Attribute(place) = aspect {
            self.places.insert(place);
        }
    }

    /// Whether this has changed. Children, their order and the number of aliases are no part of
    /// [`Aspect::Any`].
    #[must_use]
    pub const fn has(&self, aspect: Aspect) -> bool {
        let bits = match aspect {
            Aspect::Order | Aspect::Children | Aspect::AliasNumber => aspect.bit(),
            _ => aspect.bit() | Aspect::Any.bit(),
        };
        self.aspects & bits != 0
    }
}

/// The log of changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    all: VecDeque<(u32, NodeId, Aspect)>,
    /// The number before the oldest of `all`.
    forgotten: u32,
    /// The number of each suite's next change when its calendar last moved.
    pub(super) calendars: BTreeMap<NodeId, u32>,
}

impl Changes {
    /// Notes a change; the oldest of too many goes.
    pub(super) fn note(&mut self, no: u32, id: NodeId, aspect: Aspect) {
        if self.all.len() == LIMIT
            && let Some((oldest, ..)) = self.all.pop_front()
        {
            self.forgotten = oldest;
        }
        self.all.push_back((no, id, aspect));
    }

    /// Forgets all up to this number.
    pub(super) fn forget(&mut self, no: u32) {
        self.forgotten = no;
        self.all.clear();
    }

    /// The nodes that have changed after this number; `None` when that is not remembered any more.
    pub(super) fn since(&self, no: u32) -> Option<BTreeMap<NodeId, Changed>> {
        if no < self.forgotten {
            return None;
        }
        let from = self.all.partition_point(|(known, ..)| *known <= no);
        let mut nodes: BTreeMap<NodeId, Changed> = BTreeMap::new();
        for (_, id, aspect) in self.all.range(from..) {
            nodes.entry(*id).or_default().note(*aspect);
        }
        Some(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_since_a_number_are_those_behind_it_and_old_ones_are_forgotten() {
        let mut changes = Changes::default();
        changes.note(1, NodeId::ROOT, Aspect::State);
        changes.note(2, NodeId::ROOT, Aspect::Attribute(3));
        let all = changes.since(0).expect("remembered");
        assert!(all[&NodeId::ROOT].has(Aspect::State) && all[&NodeId::ROOT].places.contains(&3));
        let last = changes.since(1).expect("remembered");
        assert!(!last[&NodeId::ROOT].has(Aspect::State) && !last[&NodeId::ROOT].has(Aspect::Order));
        assert!(changes.since(2).is_some_and(|none| none.is_empty()));
        for no in 3..LIMIT as u32 + 3 {
            changes.note(no, NodeId::ROOT, Aspect::Any);
        }
        assert_eq!(changes.since(1), None);
        assert!(changes.since(2).is_some_and(|all| all[&NodeId::ROOT].has(Aspect::State)));
        changes.forget(LIMIT as u32 + 2);
        assert_eq!(changes.since(LIMIT as u32 + 1), None);
    }
}
