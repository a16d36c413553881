//! The newest versions of a record, and what a subscriber gets of them.
//!
//! A subscriber's queue is a window onto the newest versions: a late one loses the oldest, and its
//! next update names the fields whose values were lost. Versions are kept once for all subscribers.

use std::collections::VecDeque;

use crate::protocol::{Bits, Type, Value, zeros};

/// What a record held at one time, and what was changed to get there.
#[derive(Debug)]
struct Version {
    changed: Bits,
    nodes: Vec<Value>,
}

/// When a field was changed in versions that are no longer kept: the last two times.
#[derive(Clone, Copy, Debug, Default)]
struct Dropped {
    last: u64,
    before: u64,
}

/// The versions that are kept, of which there is always one.
#[derive(Debug)]
pub(super) struct Versions {
    kept: VecDeque<Version>,
    /// The number of the newest.
    newest: u64,
    /// How many are wanted.
    depth: usize,
    dropped: Vec<Dropped>,
}

/// Where a subscriber is.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// The number of the version that was seen last.
    seen: u64,
    /// How many versions may wait to be seen.
    queue: usize,
    /// Whether nothing was seen at all.
    is_first: bool,
}

/// The difference between two versions, for a subscriber.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// What has changed since the last time.
    pub changed: Bits,
    /// What has changed more than once, so that values between were lost.
    pub overrun: Bits,
    /// How many versions were lost.
    pub lost: u64,
}

impl Cursor {
    /// The number of the version that was seen last.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }
}

impl Versions {
    pub(super) fn new(kind: &Type, nodes: Vec<Value>) -> Self {
        debug_assert_eq!(zeros(kind).len(), nodes.len());
        let dropped = vec![Dropped::default(); nodes.len()];
        let kept = VecDeque::from([Version { changed: Bits::new(), nodes }]);
        Self { kept, newest: 1, depth: 1, dropped }
    }

    /// What the record holds now.
    #[inline]
    pub(super) fn newest(&self) -> &[Value] {
        let version = self.kept.back().expect("one version is always kept");
        &version.nodes
    }

    /// What the newest version has changed, and what the record has held since then.
    pub(super) fn newest_change(&self) -> (&Bits, &[Value]) {
        let version = self.kept.back().expect("one version is always kept");
        (&version.changed, &version.nodes)
    }

    /// Adds a version, which `change` makes of the newest one, adding the bits of what it changes.
    /// Returns whether it has changed anything.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut [Value], &mut Bits)) -> bool {
        let mut next = if self.kept.len() < self.depth {
            Version { changed: Bits::new(), nodes: self.newest().to_vec() }
        } else {
            self.recycled()
        };
        change(&mut next.nodes, &mut next.changed);
        self.newest += 1;
        let is_changed = !next.changed.is_empty();
        self.kept.push_back(next);
        is_changed
    }

    /// The oldest version's memory, holding what the newest does.
    fn recycled(&mut self) -> Version {
        let mut version = self.kept.pop_front().expect("one version is always kept");
        let number = self.newest - self.kept.len() as u64;
        for bit in version.changed.iter() {
            let dropped = &mut self.dropped[bit];
            *dropped = Dropped { last: number, before: dropped.last };
        }
        version.changed.clear();
        if let Some(newest) = self.kept.back() {
            version.nodes.clone_from_slice(&newest.nodes);
        }
        version
    }

    /// Keeps as many versions as the longest queue needs.
    pub(super) fn keep(&mut self, depth: usize) {
        self.depth = depth.max(1);
        while self.kept.len() > self.depth {
            self.recycled();
        }
    }

    /// Drops the versions that no subscriber will be sent: those up to the version `seen`, and all
    /// but the newest `most`.
    pub(super) fn drop_unneeded(&mut self, seen: u64, most: usize) {
        while self.kept.len() > 1 && (self.kept.len() > most || self.oldest() <= seen) {
            self.recycled();
        }
    }

    /// The number of the oldest version that is kept.
    fn oldest(&self) -> u64 {
        self.newest + 1 - self.kept.len() as u64
    }

    /// A subscriber that has seen nothing and gets the newest version first.
    pub(super) fn cursor(&self, queue: usize) -> Cursor {
        Cursor { seen: self.newest - 1, queue: queue.max(1), is_first: true }
    }

    /// Whether there is something that `cursor` hasn't seen.
    pub(super) fn has_news(&self, cursor: &Cursor) -> bool {
        cursor.seen < self.newest
    }

    /// What `cursor` gets next of the fields in `wanted`, and what they are then.
    pub(super) fn next(&self, cursor: &mut Cursor, wanted: &Bits) -> Option<(Update, &[Value])> {
        while cursor.seen < self.newest {
            let oldest = self.oldest();
            let window = (self.newest + 1).saturating_sub(cursor.queue as u64);
            let target = (cursor.seen + 1).max(oldest).max(window);
            let mut update = Update::default();
            self.add_dropped(cursor.seen, oldest, &mut update);
            for number in (cursor.seen + 1).max(oldest)..=target {
                let mut again = self.kept[(number - oldest) as usize].changed.clone();
                let changed = again.clone();
                again.intersect(&update.changed);
                update.overrun.union(&again);
                update.changed.union(&changed);
            }
            debug_assert!((oldest..=self.newest).contains(&target), "{target} is kept");
            update.lost = target - cursor.seen - 1;
            cursor.seen = target;
            if std::mem::take(&mut cursor.is_first) {
                update = Update { changed: wanted.clone(), ..Update::default() };
            } else {
                update.changed.intersect(wanted);
                update.overrun.intersect(wanted);
            }
            if !update.changed.is_empty() {
                return Some((update, &self.kept[(target - oldest) as usize].nodes));
            }
        }
        None
    }

    /// What has changed after the version `seen` in versions that are no longer kept.
    fn add_dropped(&self, seen: u64, oldest: u64, update: &mut Update) {
        if seen + 1 >= oldest {
            return;
        }
        for (bit, dropped) in self.dropped.iter().enumerate() {
            if dropped.last > seen {
                update.changed.insert(bit);
            }
            if dropped.before > seen {
                update.overrun.insert(bit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::normative::{Parts, scalar};
    use super::*;
    use crate::protocol::Scalar;
    use proptest::prelude::*;

    fn set(versions: &mut Versions, bits: &[usize], value: i32) {
        versions.change(|nodes, changed| {
            for bit in bits {
                nodes[*bit] = Value::Int(value);
                changed.insert(*bit);
            }
        });
    }

    #[test]
    fn who_is_late_loses_the_oldest_and_is_told_so() {
        let kind = scalar(Scalar::Int, Parts::default());
        let mut versions = Versions::new(&kind, zeros(&kind));
        versions.keep(2);
        let wanted: Bits = [1, 3, 4].into_iter().collect();
        let mut cursor = versions.cursor(2);
        assert_eq!(versions.next(&mut cursor, &wanted).unwrap().0.changed, wanted);
        assert!(versions.next(&mut cursor, &wanted).is_none());
        set(&mut versions, &[1, 3], 1);
        set(&mut versions, &[1], 2);
        set(&mut versions, &[1], 3);
        set(&mut versions, &[4], 4);
        let (update, nodes) = versions.next(&mut cursor, &wanted).unwrap();
        assert_eq!((update.changed.iter().collect::<Vec<_>>(), update.lost), (vec![1, 3], 2));
        assert_eq!(update.overrun.iter().collect::<Vec<_>>(), [1]);
        assert_eq!((&nodes[1], &nodes[3]), (&Value::Int(3), &Value::Int(1)));
        let (update, nodes) = versions.next(&mut cursor, &wanted).unwrap();
        assert_eq!(update.changed.iter().collect::<Vec<_>>(), [4]);
        assert_eq!((&nodes[1], &nodes[4]), (&Value::Int(3), &Value::Int(4)));
        set(&mut versions, &[5], 5);
        assert!(versions.next(&mut cursor, &wanted).is_none(), "nobody asked for that field");
    }

    proptest! {
        /// A subscriber who merges what it gets ends with what the record holds, and hears of a
        /// field's change just once, as an overrun where the field changed more than once.
        #[test]
        fn nothing_is_lost_in_silence(
            queue in 1_usize..5, others in 1_usize..6,
            steps in prop::collection::vec(
                (prop::collection::btree_set(3_usize..6, 1..3), 0_u8..4), 1..60),
        ) {
            let kind = scalar(Scalar::Int, Parts::default());
            let mut versions = Versions::new(&kind, zeros(&kind));
            versions.keep(queue.max(others));
            let wanted: Bits = (3..6).collect();
            let mut cursor = versions.cursor(queue);
            versions.next(&mut cursor, &wanted).unwrap();
            let mut seen = [0; 6];
            let mut changes: [Vec<i32>; 6] = Default::default();
            let rest = (Default::default(), u8::MAX);
            for (step, (bits, reads)) in (1..).zip(steps.iter().chain([&rest])) {
                let bits: Vec<_> = bits.iter().copied().collect();
                set(&mut versions, &bits, step);
                bits.iter().for_each(|bit| changes[*bit].push(step));
                for _ in 0..*reads {
                    let Some((update, nodes)) = versions.next(&mut cursor, &wanted) else { break };
                    for bit in update.changed.iter() {
                        let Value::Int(value) = nodes[bit] else { panic!("an int") };
                        let passed = |at: &&i32| seen[bit] < **at && **at <= value;
                        let count = changes[bit].iter().filter(passed).count();
                        prop_assert!(count > 0, "a change that was told before");
                        prop_assert_eq!(update.overrun.contains(bit), count > 1);
                        seen[bit] = value;
                    }
                }
            }
            let last = changes.map(|all| all.last().copied().unwrap_or_default());
            prop_assert_eq!(seen, last);
        }
    }
}
