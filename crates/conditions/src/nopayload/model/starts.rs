//! The intervals of one payload list, by their starts: which one a moment finds, and what a new one
//! does to those that are there.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::moment::{Interval, Moment};

/// Where each interval of a list starts, and its number; sorted by start. Of several with one start
/// the last one that came is found, and is the last of them here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Starts(Vec<(Moment, u32)>);

/// What makes room for a new interval in a list that may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The places of those that start within the new one.
    within: Range<usize>,
    /// The one that ends now where the new one starts.
    pub(super) trimmed: Option<u32>,
    /// The one that goes on where the new one ends.
    pub(super) rest: Option<Rest>,
}

/// How an interval goes on after a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It started within the new one, and starts now where that one ends.
    Moved(u32),
    /// It started before the new one: a copy of it starts where that one ends.
    Copied(u32),
}

impl Starts {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers, by start.
    pub(super) fn ids(&self) -> impl ExactSizeIterator<Item = u32> + Clone {
        self.0.iter().map(|(_, id)| *id)
    }

    /// The numbers of those that start there, in the order in which they came.
    pub(super) fn at(&self, start: Moment) -> impl Iterator<Item = u32> {
        let from = self.0.partition_point(|(other, _)| *other < start);
        let same = self.0[from..].iter().take_while(move |(other, _)| *other == start);
        same.map(|(_, id)| *id)
    }

    /// The one that starts last of those that start by a moment.
    pub(super) fn latest(&self, at: Moment) -> Option<u32> {
        let after = self.0.partition_point(|(start, _)| *start <= at);
        Some(self.0[..after].last()?.1)
    }

    /// Puts one in, beside those that are there.
    pub(super) fn insert(&mut self, start: Moment, id: u32) {
        let place = self.0.partition_point(|(other, _)| *other <= start);
        self.0.insert(place, (start, id));
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, start: Moment, id: u32) {
        let from = self.0.partition_point(|(other, _)| *other < start);
        let place = self.at(start).position(|other| other == id);
        if let Some(place) = place {
            self.0.remove(from + place);
        }
    }

    /// How a new interval is given room, so that it is found at its moments, and at all others what
    /// was found before. `end` is where one of the list ends.
    pub(super) fn cut(&self, new: Interval, end: impl Fn(u32) -> Moment) -> Cut {
        let from = self.0.partition_point(|(start, _)| *start < new.start);
        let to = self.0.partition_point(|(start, _)| *start < new.end);
        // Of those that reach beyond the new one only this one was found there.
        let last = self.0[..to].last().map(|(_, id)| *id);
        let is_followed = self.0.get(to).is_some_and(|(start, _)| *start == new.end);
        let goes_on = last.filter(|id| !is_followed && end(*id) > new.end);
        let rest = goes_on.map(|id| if to > from { Rest::Moved(id) } else { Rest::Copied(id) });
        let before = self.0[..from].last().map(|(_, id)| *id);
        Cut { within: from..to, trimmed: before.filter(|id| end(*id) > new.start), rest }
    }

    /// Makes that room, and returns those that start in it.
    pub(super) fn clear(&mut self, cut: &Cut) -> Vec<u32> {
        self.0.drain(cut.within.clone()).map(|(_, id)| id).collect()
    }

    /// The one that a new interval meets in a list that is only added to. One that is open may
    /// follow the last one where that is open too.
    pub(super) fn met(&self, new: Interval, of: impl Fn(u32) -> Interval) -> Option<u32> {
        let place = self.0.partition_point(|(start, _)| *start < new.start);
        let after = self.0.get(place);
        if let Some((_, id)) = after.filter(|(start, _)| *start == new.start) {
            return Some(*id);
        }
        let before = self.0[..place].last();
        let follows = after.is_none() && new.is_open();
        let before = before.filter(|(_, id)| {
            let there = of(*id);
            there.end > new.start && !(follows && there.is_open())
        });
        before.or(after.filter(|(start, _)| *start < new.end)).map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    const MOMENTS: u64 = 24;

    fn at(place: u64) -> Moment {
        // Both halves matter.
        Moment::of(place / 5, place % 5 * 7)
    }

    fn interval(start: u64, end: u64) -> Interval {
        Interval { start: at(start), end: if end >= MOMENTS { Moment::OPEN } else { at(end) } }
    }

    /// A list as the model keeps it.
    #[derive(Default)]
    struct List {
        starts: Starts,
        rows: HashMap<u32, Interval>,
        /// What each copy is a copy of.
        source: HashMap<u32, u32>,
        made: u32,
    }

    impl List {
        fn add(&mut self, new: Interval) -> u32 {
            self.made += 1;
            self.rows.insert(self.made, new);
            self.starts.insert(new.start, self.made);
            self.made
        }

        fn attach(&mut self, new: Interval) -> u32 {
            let cut = self.starts.cut(new, |id| self.rows[&id].end);
            self.starts.clear(&cut);
            let rest = cut.rest.map(|rest| match rest {
                Rest::Moved(id) => (id, self.rows[&id].end),
                Rest::Copied(id) => {
                    self.made += 1;
                    let root = self.source.get(&id).copied().unwrap_or(id);
                    self.source.insert(self.made, root);
                    (self.made, self.rows[&id].end)
                }
            });
            if let Some((id, end)) = rest {
                self.rows.insert(id, Interval { start: new.end, end });
                self.starts.insert(new.end, id);
            }
            if let Some(id) = cut.trimmed {
                self.rows.get_mut(&id).expect("there").end = new.start;
            }
            self.add(new)
        }

        /// What is found, by the number that it had at first.
        fn found(&self, place: u64, is_strict: bool) -> Option<u32> {
            let id = self.starts.latest(at(place))?;
            let is_shown = !is_strict || self.rows[&id].end > at(place);
            is_shown.then(|| self.source.get(&id).copied().unwrap_or(id))
        }

        fn shown(&self) -> Vec<Option<u32>> {
            (0..MOMENTS).map(|place| self.found(place, true)).collect()
        }
    }

    #[test]
    fn an_interval_trims_those_around_it() {
        let mut list = List::default();
        let (a, b) = (list.attach(interval(0, 10)), list.attach(interval(10, 20)));
        let c = list.attach(interval(5, 15));
        let ids: Vec<_> = list.starts.ids().collect();
        assert_eq!(ids, [a, c, b]);
        let rows = [a, c, b].map(|id| list.rows[&id]);
        assert_eq!(rows, [interval(0, 5), interval(5, 15), interval(15, 20)]);
    }

    #[test]
    fn an_interval_within_another_splits_it_and_one_in_a_gap_changes_none() {
        let mut list = List::default();
        let (a, b) = (list.attach(interval(0, 10)), list.attach(interval(14, 20)));
        let c = list.attach(interval(3, 4));
        let d = list.attach(interval(11, 12));
        let shown = [0, 3, 4, 9, 10, 11, 12, 14].map(|place| list.found(place, true));
        assert_eq!(shown, [Some(a), Some(c), Some(a), Some(a), None, Some(d), None, Some(b)]);
        // The end is of no account where it isn't asked for.
        assert_eq!(list.found(13, false), Some(d));
    }

    #[test]
    fn a_list_that_is_only_added_to_takes_what_meets_none_and_an_open_one_after_an_open_one() {
        let mut list = List::default();
        let met =
            |list: &List, start, end| list.starts.met(interval(start, end), |id| list.rows[&id]);
        let a = list.add(interval(2, 5));
        assert_eq!(met(&list, 5, 9), None);
        assert_eq!(met(&list, 0, 2), None);
        for (start, end) in [(2, 3), (4, 9), (0, 3), (1, 99)] {
            assert_eq!(met(&list, start, end), Some(a), "[{start}, {end})");
        }
        let open = list.add(interval(9, 99));
        assert_eq!(met(&list, 12, 99), None);
        assert_eq!(met(&list, 12, 14), Some(open));
        assert_eq!(met(&list, 7, 99), Some(open));
        assert_eq!(met(&list, 7, 9), None);
    }

    /// Any intervals, overlapping as they like, and then what each attachment has to leave.
    #[test]
    fn an_attachment_is_found_at_its_moments_and_changes_no_other() {
        let seed = std::env::var("CONDITIONS_SEED").ok().and_then(|seed| seed.parse().ok());
        let seeds = seed.map_or(0..400, |seed: u64| seed..seed + 1);
        for seed in seeds {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut list = List::default();
            for step in 0..random.random_range(1..40) {
                let start = random.random_range(0..MOMENTS);
                let end = start + random.random_range(1..12);
                let new = interval(start, end);
                if random.random_ratio(1, 4) {
                    list.add(new);
                } else {
                    let mut expected = list.shown();
                    let id = list.attach(new);
                    let covered = start as usize..(end.min(MOMENTS)) as usize;
                    expected[covered].fill(Some(id));
                    assert_eq!(list.shown(), expected, "seed {seed}, step {step}, {new:?}");
                }
                let ends: Vec<_> = list.starts.ids().map(|id| list.rows[&id]).collect();
                assert!(ends.iter().all(Interval::is_valid), "seed {seed}: {ends:?}");
                for place in 0..MOMENTS {
                    // The naive way: all of them, the last of the latest.
                    let by = list.starts.ids().filter(|id| list.rows[id].start <= at(place));
                    let latest = by.max_by_key(|id| list.rows[id].start);
                    let source = latest.map(|id| list.source.get(&id).copied().unwrap_or(id));
                    assert_eq!(list.found(place, false), source, "seed {seed}, place {place}");
                }
                if random.random_ratio(1, 6) && list.starts.len() > 0 {
                    let place = random.random_range(0..list.starts.len());
                    let id = list.starts.ids().nth(place).expect("there");
                    list.starts.remove(list.rows[&id].start, id);
                }
            }
        }
    }
}
