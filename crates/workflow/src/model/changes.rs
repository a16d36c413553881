//! What changed at which change number, so that a client that is behind gets only that.
//!
//! The changes are a log in the order of their numbers, not numbers at each node: a client a few
//! changes behind costs those few, however large the tree, and nodes stay small. Each is noted with
//! the state that its node showed then: states that came and went between two looks are there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::node::NodeId;
use super::state::Displayed;

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

/// What was shown one after another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed<N> {
    /// Nodes with the states that they came to, in order.
    pub states: Vec<(N, Displayed)>,
    /// How many changes before these are not remembered.
    pub missed: u32,
}

impl<N> Default for Passed<N> {
    fn default() -> Self {
        Self { states: Vec::new(), missed: 0 }
    }
}

/// A change.
#[derive(Clone, Copy, Debug)]
struct Noted {
    no: u32,
    id: NodeId,
    /// None where no node has changed: its number is another node's from here on, and with the
    /// root's every number is.
    aspect: Option<Aspect>,
    /// The state that the node showed then.
    shown: Displayed,
}

/// The log of changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    all: VecDeque<Noted>,
    /// The number before the oldest of `all`.
    forgotten: u32,
    /// The number of each suite's next change when its calendar last moved.
    pub(super) calendars: BTreeMap<NodeId, u32>,
}

impl Changes {
    /// Notes a change.
    pub(super) fn note(&mut self, no: u32, id: NodeId, aspect: Aspect, shown: Displayed) {
        self.push(Noted { no, id, aspect: Some(aspect), shown });
    }

    /// Notes that the number of a deleted node is another node's behind this change, or, with the
    /// root's, that every number is.
    pub(super) fn given_again(&mut self, no: u32, id: NodeId) {
        self.push(Noted { no, id, aspect: None, shown: Displayed::Unknown });
    }

    /// The oldest of too many goes.
    fn push(&mut self, noted: Noted) {
        if self.all.len() == LIMIT
            && let Some(oldest) = self.all.pop_front()
        {
            self.forgotten = oldest.no;
        }
        self.all.push_back(noted);
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
        let mut nodes: BTreeMap<NodeId, Changed> = BTreeMap::new();
        for Noted { id, aspect, .. } in self.behind(no) {
            if let Some(aspect) = aspect {
                nodes.entry(*id).or_default().note(*aspect);
            }
        }
        Some(nodes)
    }

    /// The states that nodes have shown one after another since this number, as far as they are
    /// remembered. The first of a node may be the one that it had before.
    pub(super) fn passed_since(&self, no: u32) -> Passed<NodeId> {
        let (mut states, mut given_again) = (Vec::new(), HashSet::new());
        for Noted { id, aspect, shown, .. } in self.behind(no).rev() {
            match aspect {
                None if *id == NodeId::ROOT => break,
                None => {
                    given_again.insert(*id);
                }
                Some(_) if given_again.contains(id) => {}
                Some(_) => states.push((*id, *shown)),
            }
        }
        states.reverse();
        let mut last = HashMap::new();
        states.retain(|(id, shown)| last.insert(*id, *shown) != Some(*shown));
        Passed { states, missed: self.forgotten.saturating_sub(no) }
    }

    fn behind(&self, no: u32) -> impl DoubleEndedIterator<Item = &Noted> {
        self.all.range(self.all.partition_point(|known| known.no <= no)..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(changes: &mut Changes, no: u32, aspect: Aspect) {
        changes.note(no, NodeId::ROOT, aspect, Displayed::Queued);
    }

    #[test]
    fn changes_since_a_number_are_those_behind_it_and_old_ones_are_forgotten() {
        let mut changes = Changes::default();
        note(&mut changes, 1, Aspect::State);
        note(&mut changes, 2, Aspect::Attribute(3));
        let all = changes.since(0).expect("remembered");
        assert!(all[&NodeId::ROOT].has(Aspect::State) && all[&NodeId::ROOT].places.contains(&3));
        let last = changes.since(1).expect("remembered");
        assert!(!last[&NodeId::ROOT].has(Aspect::State) && !last[&NodeId::ROOT].has(Aspect::Order));
        assert!(changes.since(2).is_some_and(|none| none.is_empty()));
        for no in 3..LIMIT as u32 + 3 {
            note(&mut changes, no, Aspect::Any);
        }
        assert_eq!(changes.since(1), None);
        assert!(changes.since(2).is_some_and(|all| all[&NodeId::ROOT].has(Aspect::State)));
        changes.forget(LIMIT as u32 + 2);
        assert_eq!(changes.since(LIMIT as u32 + 1), None);
    }
    #[test]
    fn states_since_a_number_are_all_that_a_node_has_shown_in_their_order() {
        use Displayed::{Active, Complete, Queued, Submitted};
        let [a, b] = [1, 2].map(|index| NodeId::of_index(index).expect("a number"));
        let mut changes = Changes::default();
        let mut no = 0;
        let mut note = |changes: &mut Changes, id, shown| {
            no += 1;
            changes.note(no, id, Aspect::State, shown);
        };
        let shown = [(a, Submitted), (a, Submitted), (b, Queued), (a, Active), (a, Complete)];
        shown.into_iter().for_each(|(id, shown)| note(&mut changes, id, shown));
        let states = |changes: &Changes, no| changes.passed_since(no).states;
        let all = [(a, Submitted), (b, Queued), (a, Active), (a, Complete)];
        assert_eq!(states(&changes, 0), all);
        assert_eq!(states(&changes, 3), all[2..]);
        assert!(states(&changes, 5).is_empty());
        // The number of a deleted node is another's.
        changes.given_again(5, a);
        note(&mut changes, a, Queued);
        assert_eq!(states(&changes, 0), [(b, Queued), (a, Queued)]);
        changes.given_again(6, NodeId::ROOT);
        note(&mut changes, b, Active);
        assert_eq!(states(&changes, 0), [(b, Active)]);
        for _ in 0..LIMIT {
            note(&mut changes, a, Active);
        }
        let passed = changes.passed_since(2);
        assert_eq!(passed, Passed { states: vec![(a, Active)], missed: 5 });
    }
}
