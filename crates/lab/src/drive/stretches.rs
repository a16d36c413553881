//! What came of the requests of each stretch of a schedule. Data plane, but for the sums.

use load::Done;
use wire::Ns;

use super::lasting::Waited;
use super::tally::{Counted, Tally};

/// The latencies of a stretch by itself are kept of this many: they take 100 kB each and thread.
const MAX_TALLIES: usize = 64;

/// One stretch of a group's schedule, of all its threads, and of all slices where it is the whole
/// of each.
#[derive(Clone, Debug, Default)]
pub struct StretchSum {
    /// The group of clients, as an index into the point's.
    pub group: usize,
    /// Its place in the schedule, from 0.
    pub ordinal: usize,
    /// How long it lasted.
    pub length_ns: u64,
    /// What waited in it: of slices the sum, and in the one in which most did.
    pub waited: Waited,
    /// Requests that were answered while it lasted, whenever they were due.
    pub answered: u64,
    /// What became of those that became due in it.
    pub outcomes: Outcomes,
    /// Their latencies, where the schedule has several stretches.
    pub latencies: Vec<Counted>,
    /// Slices, and those of them in which more became due than was answered.
    pub slices: u32,
    /// See `slices`.
    pub overloaded_slices: u32,
}

/// What became of requests, as in [`super::Counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Operations answered wrongly.
    pub wrong: u64,
    /// Operations that the target refused in good order.
    pub refused: u64,
    /// Requests not answered in time.
    pub missing: u64,
}

impl Outcomes {
    fn add(&mut self, other: Self) {
        self.wrong += other.wrong;
        self.refused += other.refused;
        self.missing += other.missing;
    }
}

impl StretchSum {
    /// Whether requests became due faster than they were answered, in more than half of the slices:
    /// one may have had a stall that it did not last long enough to work off.
    pub fn is_overloaded(&self) -> bool {
        self.overloaded_slices > self.slices / 2
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.group, self.ordinal) == (other.group, other.ordinal)
    }

    fn add_outcomes(&mut self, other: Self) {
        self.answered += other.answered;
        self.outcomes.add(other.outcomes);
        self.latencies.extend(other.latencies);
    }
}

/// Adds those of another thread at the same time.
pub(super) fn add_thread(all: &mut Vec<StretchSum>, thread: Vec<StretchSum>) {
    for other in thread {
        match all.iter_mut().find(|one| one.is_same(&other)) {
            Some(one) => {
                one.waited.add(other.waited);
                one.length_ns = one.length_ns.max(other.length_ns);
                one.add_outcomes(other);
            }
            None => all.push(other),
        }
    }
}

/// Adds those of the next slice, of all threads.
pub(crate) fn add_slice(all: &mut Vec<StretchSum>, slice: Vec<StretchSum>) {
    for mut other in slice {
        other.slices = 1;
        other.overloaded_slices = u32::from(other.waited.is_overloaded());
        match all.iter_mut().find(|one| one.is_same(&other)) {
            Some(one) => {
                one.waited.offered += other.waited.offered;
                one.waited.fewest = one.waited.fewest.max(other.waited.fewest);
                one.length_ns += other.length_ns;
                one.slices += other.slices;
                one.overloaded_slices += other.overloaded_slices;
                one.add_outcomes(other);
            }
            None => all.push(other),
        }
    }
}

/// Counts what comes of each stretch in one thread, in one run of its schedule.
#[derive(Clone, Debug)]
pub(super) struct Stretches {
    start: Ns,
    /// When they end, ascending.
    ends: Vec<Ns>,
    answered: Vec<u64>,
    outcomes: Vec<Outcomes>,
    /// None where there is but one, whose latencies are those of the run, or too many.
    tallies: Vec<Tally>,
}

impl Stretches {
    pub(super) fn new(start: Ns, ends: Vec<Ns>) -> Self {
        let tallies = if (2..=MAX_TALLIES).contains(&ends.len()) { ends.len() } else { 0 };
        Self {
            start,
            answered: vec![0; ends.len()],
            outcomes: vec![Outcomes::default(); ends.len()],
            tallies: vec![Tally::new(); tallies],
            ends,
        }
    }

    /// The stretch at a time; the last one where none lasts any more.
    #[inline]
    fn due_in(&self, scheduled: Ns) -> usize {
        let index = self.ends.partition_point(|end| *end <= scheduled);
        index.min(self.ends.len().saturating_sub(1))
    }

    /// A request that was due at `scheduled` was answered at `now`.
    #[inline]
    pub(super) fn done(&mut self, now: Ns, scheduled: Ns, latency_ns: u64, done: &Done) {
        let index = self.ends.partition_point(|end| *end <= now);
        if let Some(answered) = self.answered.get_mut(index) {
            *answered += 1;
        }
        let (wrong, refused) = (u64::from(done.wrong), u64::from(done.refused));
        self.note(scheduled, latency_ns, Outcomes { wrong, refused, missing: 0 });
    }

    /// A request that was due at `scheduled` was given up, which is this many operations.
    #[inline]
    pub(super) fn missing(&mut self, scheduled: Ns, waited_ns: u64, times: u32) {
        let missing = u64::from(times);
        self.note(scheduled, waited_ns, Outcomes { missing, ..Outcomes::default() });
    }

    #[inline]
    fn note(&mut self, scheduled: Ns, latency_ns: u64, outcomes: Outcomes) {
        let index = self.due_in(scheduled);
        if let Some(tally) = self.tallies.get_mut(index) {
            tally.record(latency_ns);
        }
        if let Some(all) = self.outcomes.get_mut(index) {
            all.add(outcomes);
        }
    }

    /// What came of them, where this waited in them.
    pub(super) fn sums(mut self, group: usize, waited: &[Waited]) -> Vec<StretchSum> {
        let mut began = self.start;
        let mut sums = Vec::with_capacity(self.ends.len());
        for (ordinal, (end, waited)) in self.ends.iter().zip(waited).enumerate() {
            sums.push(StretchSum {
                group,
                ordinal,
                length_ns: end.saturating_sub(std::mem::replace(&mut began, *end)),
                waited: *waited,
                answered: self.answered[ordinal],
                outcomes: self.outcomes[ordinal],
                latencies: self
                    .tallies
                    .get_mut(ordinal)
                    .and_then(Tally::take)
                    .into_iter()
                    .collect(),
                ..StretchSum::default()
            });
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::empty_histogram;

    const MS: Ns = 1_000_000;

    fn done(wrong: u32) -> Done {
        Done { tag: 0, answers: 1, misses: 0, wrong, refused: 0 }
    }

    #[test]
    fn a_request_belongs_to_the_stretch_in_which_it_was_due_and_an_answer_to_that_in_which_it_came()
    {
        let mut stretches = Stretches::new(100 * MS, vec![200 * MS, 300 * MS]);
        stretches.done(150 * MS, 149 * MS, MS, &done(0));
        stretches.done(210 * MS, 199 * MS, 11 * MS, &done(1));
        stretches.done(250 * MS, 200 * MS, 50 * MS, &done(0));
        stretches.done(340 * MS, 299 * MS, 41 * MS, &done(0));
        stretches.missing(299 * MS, 1_000 * MS, 1);
        let waited = [7, 9].map(|offered| Waited { offered, ..Waited::default() });
        let sums = stretches.sums(3, &waited);
        let outcomes = |sum: &StretchSum| (sum.outcomes.wrong, sum.outcomes.missing);
        let longest = |sum: &StretchSum| {
            let mut histogram = empty_histogram();
            sum.latencies.iter().for_each(|one| one.add_to(&mut histogram));
            (histogram.len(), histogram.max() / MS)
        };
        let seen: Vec<_> = sums
            .iter()
            .map(|sum| (sum.group, sum.ordinal, sum.length_ns / MS, sum.waited.offered))
            .collect();
        assert_eq!(seen, [(3, 0, 100, 7), (3, 1, 100, 9)]);
        let answered: Vec<_> = sums.iter().map(|sum| sum.answered).collect();
        assert_eq!(answered, [1, 2], "the last answer came when both were over");
        assert_eq!(sums.iter().map(outcomes).collect::<Vec<_>>(), [(1, 0), (0, 1)]);
        assert_eq!(sums.iter().map(longest).collect::<Vec<_>>(), [(2, 11), (3, 1_000)]);
    }

    #[test]
    fn threads_add_up_stretch_by_stretch_and_slices_one_after_another() {
        let waited_of = |fewest| Waited {
            offered: 100,
            fewest,
            answered: [3, 2],
            grown: 1,
            roots: 1,
            ..Waited::default()
        };
        let of = |group, ordinal, fewest| {
            let waited = waited_of(fewest);
            StretchSum { group, ordinal, length_ns: 10, waited, answered: 90, ..Default::default() }
        };
        let mut threads = Vec::new();
        add_thread(&mut threads, vec![of(0, 0, 6), of(0, 1, 0)]);
        add_thread(&mut threads, vec![of(0, 0, 0), of(0, 1, 6)]);
        add_thread(&mut threads, vec![of(1, 0, 4)]);
        let waited: Vec<_> = threads.iter().map(|one| one.waited).collect();
        let both = Waited {
            offered: 200,
            fewest: 6,
            answered: [6, 4],
            grown: 2,
            roots: 1,
            ..Waited::default()
        };
        assert_eq!(waited, [both, both, waited_of(4)], "not the 12 of two stretches");
        let mut slices = Vec::new();
        add_slice(&mut slices, vec![of(0, 0, 6)]);
        add_slice(&mut slices, vec![of(0, 0, 5)]);
        let [all] = &slices[..] else { panic!("{slices:?}") };
        assert_eq!((all.waited.offered, all.waited.fewest, all.answered), (200, 6, 180));
        assert_eq!((all.slices, all.overloaded_slices, all.length_ns), (2, 1, 20));
        assert!(!all.is_overloaded(), "one of two slices");
    }
}
