//! Which groups a record belongs to, and how they follow its changes. One gate stands before all
//! changes of records that belong to groups: a change holds it until every group has followed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Time;
use crate::protocol::{Bits, Value};

/// A group, as its records know it.
pub(super) trait Follower: Send + Sync {
    /// What it is called.
    fn name(&self) -> &Arc<str>;

    /// Whether it has been destroyed.
    fn is_gone(&self) -> bool;

    /// Takes these fields over, as one event.
    fn mirror(&self, now: Time, changes: Vec<(usize, Value)>);
}

/// The lock that is held during each change of a record of one service that belongs to a group.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<()>>);

impl Gate {
    pub(super) fn pass(&self) -> MutexGuard<'_, ()> {
        // It guards nothing of its own that a panic elsewhere could break.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The groups that a record belongs to.
pub(super) struct Membership {
    gate: Gate,
    /// The groups, each with the place of the record's fields.
    groups: Mutex<Vec<(usize, Weak<dyn Follower>)>>,
}

impl Membership {
    pub(super) fn new(gate: &Gate) -> Self {
        Self { gate: gate.clone(), groups: Mutex::default() }
    }

    /// Adds a group in which the record's fields begin at `at`.
    pub(super) fn join(&self, at: usize, group: Weak<dyn Follower>) {
        self.lock().push((at, group));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Weak<dyn Follower>)>> {
        // A list is whole between any two calls: a panic elsewhere can't break it.
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pass(&self) -> MutexGuard<'_, ()> {
        self.gate.pass()
    }

    pub(super) fn groups(&self) -> Vec<(usize, Arc<dyn Follower>)> {
        let mut all = self.lock();
        all.retain(|(_, group)| group.upgrade().is_some_and(|group| !group.is_gone()));
        all.iter().filter_map(|(at, group)| Some((*at, group.upgrade()?))).collect()
    }
}

/// A group, and the new values of its fields.
type GroupChange = (Arc<dyn Follower>, Vec<(usize, Value)>);

/// Changes of records that their groups have yet to follow: one event for each group.
#[derive(Default)]
pub(super) struct GroupChanges(BTreeMap<Arc<str>, GroupChange>);

impl GroupChanges {
    /// Adds what has changed in a record.
    pub(super) fn add(&mut self, membership: &Membership, changed: &Bits, nodes: &[Value]) {
        if changed.is_empty() {
            return;
        }
        for (at, group) in membership.groups() {
            let (_, changes) =
                self.0.entry(Arc::clone(group.name())).or_insert((group, Vec::new()));
            changes.extend(changed.iter().map(|bit| (at + bit, nodes[bit].clone())));
        }
    }

    /// Has the groups follow.
    pub(super) fn apply(self, now: Time) {
        for (group, changes) in self.0.into_values() {
            group.mirror(now, changes);
        }
    }
}
