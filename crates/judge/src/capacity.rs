//! Search for the highest load that meets its requirements: the next load to try, and the bracket
//! that the tries so far leave.
//!
//! Loads are doubled until one breaks, or halved until one holds (from what was answered of the
//! load that broke, where that is less), then the gap is bisected on the log scale down to the
//! stated precision. Whether a load holds is itself estimated from figures that vary, so each try
//! is repeated until its outcome is clear, and it may stay unclear: then the edge lies near it, and
//! the gaps below and above are narrowed separately (mutilate's `--search` and fio's
//! `latency_target` are similar, but decide by one figure).

/// The outcome of one load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Every requirement held.
    Yes,
    /// One was broken.
    No,
    /// Undecided: the load is too near to the edge.
    Unclear,
}

/// One load that was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Try {
    /// The load.
    pub load: f64,
    /// Its outcome.
    pub held: Held,
    /// What was carried of it, in the same unit, where loads are rates and it is known.
    pub answered: Option<f64>,
}

/// How loads are searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The first load.
    pub from: f64,
    /// No load under this is tried.
    pub least: f64,
    /// No load above this is tried.
    pub most: f64,
    /// The gap that is narrow enough: 0.02 is 2 %.
    pub precision: f64,
    /// Whether loads are whole numbers, such as connections.
    pub whole: bool,
}

/// The bracket of the highest load that holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// The highest load that clearly held below every one that broke.
    pub held: Option<f64>,
    /// The lowest load that clearly broke.
    pub broken: Option<f64>,
}

/// Loads tried at most: doubling from 1 to beyond 10^9 and halving to a thousandth takes fewer.
const MAX_TRIES: usize = 60;

/// The part of what was answered of a load that broke that is tried next: an overloaded target
/// answers about what it carries.
const OF_ANSWERED: f64 = 0.9;

/// Loads that stay unclear above one that held, of which each is twice the one before: beyond eight
/// times what held, on a host on which nothing is clear, no higher load would be.
const MAX_UNCLEAR: usize = 3;

impl Capacity {
    /// Returns the bracket that these tries leave.
    pub fn of(tries: &[Try]) -> Capacity {
        let loads =
            |held: Held| tries.iter().filter(move |one| one.held == held).map(|one| one.load);
        let broken = loads(Held::No).reduce(f64::min);
        let below = |load: &f64| broken.is_none_or(|broken| *load < broken);
        Capacity { held: loads(Held::Yes).filter(below).reduce(f64::max), broken }
    }
}

impl Search {
    /// Returns the load to try next; `None` when the gap is narrow enough, the ends are reached,
    /// or 60 loads were tried.
    pub fn next(&self, tries: &[Try]) -> Option<f64> {
        if tries.len() >= MAX_TRIES {
            return None;
        }
        if tries.is_empty() {
            return Some(self.fitted(self.from));
        }
        let Capacity { held, broken } = Capacity::of(tries);
        let inside = |load: &f64| {
            held.is_none_or(|held| *load > held) && broken.is_none_or(|broken| *load < broken)
        };
        let unclear = tries.iter().filter(|one| one.held == Held::Unclear).map(|one| one.load);
        let unclear: Vec<f64> = unclear.filter(inside).collect();
        let lowest_unclear = unclear.iter().copied().reduce(f64::min);
        let highest_unclear = unclear.iter().copied().reduce(f64::max);
        let below = lowest_unclear.or(broken).or(held);
        let above = highest_unclear.or(held).or(broken);
        let is_new = |load: &f64| tries.iter().all(|one| one.load != *load);
        match (held, broken) {
            (None, _) => {
                let half = below? / 2.0;
                let answered = tries.last().and_then(|one| one.answered);
                let lower = answered.map(|rate| rate * OF_ANSWERED).filter(|rate| *rate > 0.0);
                Some(self.fitted(lower.map_or(half, |lower| lower.min(half)))).filter(is_new)
            }
            (Some(held), None) if unclear.len() >= MAX_UNCLEAR => {
                let below = below.filter(|below| below / held > 1.0 + self.precision)?;
                Some(self.fitted((held * below).sqrt())).filter(is_new)
            }
            (Some(_), None) => Some(self.fitted(above? * 2.0)).filter(is_new),
            (Some(held), Some(broken)) => {
                let mut gaps = [(held, below?), (above?, broken)];
                // The wider first. Where its middle is one of its ends, the other may have room.
                gaps.sort_by(|a, b| (b.1 / b.0).total_cmp(&(a.1 / a.0)));
                let wide = gaps.into_iter().filter(|(low, high)| high / low > 1.0 + self.precision);
                wide.map(|(low, high)| self.fitted((low * high).sqrt())).find(is_new)
            }
        }
    }

    fn fitted(&self, load: f64) -> f64 {
        let load = if self.whole { load.round() } else { load };
        load.clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const SEARCH: Search =
        Search { from: 1_000.0, least: 1.0, most: 1e9, precision: 0.02, whole: false };

    fn searched(search: &Search, mut answer: impl FnMut(f64) -> Held) -> (Capacity, usize) {
        let mut tries = Vec::new();
        while let Some(load) = search.next(&tries) {
            tries.push(Try { load, held: answer(load), answered: None });
        }
        (Capacity::of(&tries), tries.len())
    }

    #[test]
    fn the_search_goes_down_to_what_was_answered_and_not_by_halves() {
        let tried = |load, answered| Try { load, held: Held::No, answered };
        assert_eq!(SEARCH.next(&[tried(1_000.0, Some(80.0))]), Some(72.0));
        assert_eq!(SEARCH.next(&[tried(1_000.0, Some(900.0))]), Some(500.0));
        for unknown in [None, Some(0.0)] {
            assert_eq!(SEARCH.next(&[tried(1_000.0, unknown)]), Some(500.0));
        }
    }

    #[test]
    fn the_edge_is_found_within_the_precision_from_any_start() {
        for from in [1.0, 500.0, 81_234.0, 5e6] {
            let edge = |load: f64| if load <= 81_234.0 { Held::Yes } else { Held::No };
            let (found, tries) = searched(&Search { from, ..SEARCH }, edge);
            let (held, broken) = (found.held.unwrap(), found.broken.unwrap());
            assert!(held <= 81_234.0 && 81_234.0 < broken, "{found:?}");
            assert!(broken / held <= 1.021 && tries < 30, "{found:?} in {tries}");
        }
    }

    #[test]
    fn what_is_unclear_lies_between_the_ends_that_are_clear() {
        let fuzzy = |load: f64| match load {
            load if load < 95_000.0 => Held::Yes,
            load if load > 105_000.0 => Held::No,
            _ => Held::Unclear,
        };
        let (found, tries) = searched(&SEARCH, fuzzy);
        let (held, broken) = (found.held.unwrap(), found.broken.unwrap());
        assert!((90_000.0..95_000.0).contains(&held), "{found:?}");
        assert!((105_000.0..110_000.0).contains(&broken) && tries < 30, "{found:?} in {tries}");
    }

    #[test]
    fn the_gap_below_loads_that_stay_unclear_is_narrowed() {
        let starts = |load: f64| if load <= 5_000.0 { Held::Yes } else { Held::Unclear };
        let (found, tries) = searched(&SEARCH, starts);
        let held = found.held.expect("it holds at some");
        assert!((4_900.0..=5_000.0).contains(&held) && found.broken.is_none(), "{found:?}");
        assert!(tries < 14, "{tries}");
    }

    #[test]
    fn ends_that_are_never_reached_stay_open() {
        let most = Search { most: 64_000.0, ..SEARCH };
        let (found, _) = searched(&most, |_| Held::Yes);
        assert_eq!(found, Capacity { held: Some(64_000.0), broken: None });
        let (found, _) = searched(&SEARCH, |_| Held::No);
        assert_eq!(found, Capacity { held: None, broken: Some(1.0) });
        assert!(searched(&SEARCH, |_| Held::Unclear).1 <= MAX_TRIES);
    }

    #[test]
    fn whole_loads_end_with_neighbours() {
        let search = Search { from: 1.0, whole: true, precision: 0.0, ..SEARCH };
        let (found, _) = searched(&search, |load| if load <= 37.0 { Held::Yes } else { Held::No });
        assert_eq!(found, Capacity { held: Some(37.0), broken: Some(38.0) });
    }

    #[test]
    fn a_gap_without_room_does_not_end_the_search_of_the_other() {
        let search = Search { from: 1.0, whole: true, precision: 0.0, ..SEARCH };
        let answer = |load: f64| match load {
            1.0 | 7.0 => Held::Yes,
            8.0.. => Held::No,
            _ => Held::Unclear,
        };
        let (found, _) = searched(&search, answer);
        assert_eq!(found, Capacity { held: Some(7.0), broken: Some(8.0) });
    }

    #[test]
    fn one_wrong_answer_moves_the_edge_and_never_hangs() {
        let mut random = Random::new(4);
        for _ in 0..200 {
            let lying = |load: f64| match (load <= 50_000.0, random.below(10)) {
                (_, 0) => Held::Unclear,
                (true, 1) | (false, 2..) => Held::No,
                _ => Held::Yes,
            };
            let (found, tries) = searched(&SEARCH, lying);
            assert!(tries <= MAX_TRIES);
            assert!(found.held.zip(found.broken).is_none_or(|(held, broken)| held < broken));
        }
    }
}
