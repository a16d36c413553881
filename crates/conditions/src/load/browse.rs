//! Browses: all that a folder shows in a range of times, and whether it is right.

use std::ops::Range;

use load::{Op, Outcome, Took};

use super::made::Made;
use super::written::wrong_answer;

/// An object as it is read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) channel: u32,
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) values: Vec<f32>,
}

/// What a folder shows in these intervals, by channel and time.
fn right(made: &Made, folder: u32, intervals: Range<u32>) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for channel in 0..made.spec.channels {
        for interval in intervals.clone() {
            let (since, until) = made.times(folder, channel, interval);
            // A long object is shown in several intervals.
            if shown.last().is_none_or(|last| (last.channel, last.since) != (channel, since)) {
                let begin = made.begin(folder, channel, interval);
                let values = made.floats(folder, channel, begin).collect();
                shown.push(Shown { channel, since, until, values });
            }
        }
    }
    shown
}

/// The outcome of a browse that has found these objects, in any order.
pub(super) fn outcome(
    op: Op,
    made: &Made,
    folder: u32,
    intervals: Range<u32>,
    mut found: Vec<Shown>,
    took: Took,
) -> Outcome {
    found.sort_by_key(|one| (one.channel, one.since));
    let right = right(made, folder, intervals.clone());
    let outcome = match differs(&found, &right) {
        None => Outcome::right(),
        Some((found, right)) => {
            let key = format!("folder {folder}, intervals {intervals:?}");
            wrong_answer(op, &key, &format!("{right:?}"), &format!("{found:?}"))
        }
    };
    Outcome { took: Some(took), ..outcome }
}

/// The first object that is another one than it should be, and what it should be.
fn differs<'a>(
    found: &'a [Shown],
    right: &'a [Shown],
) -> Option<(Option<&'a Shown>, Option<&'a Shown>)> {
    let both = (0..found.len().max(right.len())).map(|place| (found.get(place), right.get(place)));
    let mut both = both.filter(|(found, right)| found != right);
    both.next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::spec::Spec;
    use super::*;

    fn made(long: &str) -> Made {
        let spec = json!({ "folders": 2, "channels": 11, "intervals": 8, "fields": 3, "long": long,
                           "browse": 4, "since": 3 });
        Made::new(serde_json::from_value::<Spec>(spec).expect("a workload"), 7)
    }

    #[test]
    fn a_browse_reads_its_intervals_and_none_beyond_the_last() {
        let made = made("none");
        let (folder, intervals) = made.browsed(5);
        assert!(folder < 2);
        assert_eq!((intervals.clone(), made.range(&intervals)), (2..6, (20, 60)));
        assert_eq!(right(&made, folder, intervals).len(), 44);
        assert_eq!(right(&made, 1, 7..8).len(), 11);
    }

    #[test]
    fn a_long_object_is_there_once_and_each_other_one_in_its_interval() {
        for long in ["infinite", "scattered"] {
            let made = made(long);
            for folder in 0..2 {
                let shown = right(&made, folder, 2..6);
                assert!(shown.is_sorted_by_key(|one| (one.channel, one.since)), "{shown:?}");
                let lengths = shown.iter().filter(|one| one.until - one.since != 10).count();
                assert!((1..=4).contains(&lengths), "{long}: {shown:?}");
            }
        }
    }

    #[test]
    fn what_is_changed_missing_or_more_is_noticed() {
        let made = made("none");
        let right = right(&made, 0, 0..4);
        assert_eq!(differs(&right, &right), None);
        let wrong = |change: fn(&mut Vec<Shown>)| {
            let mut found = right.clone();
            change(&mut found);
            differs(&found, &right).is_some()
        };
        assert!(wrong(|all| drop(all.pop())));
        assert!(wrong(|all| all.push(all[0].clone())));
        assert!(wrong(|all| all[3].until += 1));
        assert!(wrong(|all| all[3].values[2] += 1.0));
    }
}
