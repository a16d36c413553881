//! Figures that calls measured themselves, by name: what a batch printed, or how long a step took.

use serde::Serialize;

/// The figure of a trial in which connections broke under the load and were made again: how many.
pub const CONNECTIONS_BROKEN: &str = "connections_broken";

/// What every run of a batch reports of its process.
pub const OF_RUNS: [&str; 4] = ["wall_ns", "user_ns", "system_ns", "peak_bytes"];

/// What operations in a process report of their samples.
pub const EVALUATIONS: &str = "evaluations_per_sample";

/// What the reason says for which a trial is invalid whose target refused more than is allowed.
pub const OPERATIONS_REFUSED: &str = "operations were refused";
/// The same of one.
pub const OPERATION_REFUSED: &str = "operation was refused";

/// The same of what prepares a target.
pub const WRITES_REFUSED: &str = "writes refused while preparing";

/// Whether a trial is invalid for this reason because its target refused more than is allowed.
pub fn is_of_refusals(reason: &str) -> bool {
    [OPERATIONS_REFUSED, OPERATION_REFUSED, WRITES_REFUSED].iter().any(|one| reason.contains(one))
}

/// The figures of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueFigures {
    /// Their name.
    pub name: String,
    /// Their number.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// Their median.
    pub median: f64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// The greatest.
    pub max: f64,
    /// Each of them in order, where there are ten at most. Where there are more, and each trial has
    /// the same number of at most ten: the median over trials of the first, of the second, and so
    /// on. Else empty.
    pub in_order: Vec<f64>,
}

/// The most values that are shown each.
const MOST_SHOWN: usize = 10;

impl ValueFigures {
    /// Those of these values by name, of one trial or of several taken together, in the order in
    /// which names first come.
    pub fn merged<'a>(rows: impl Iterator<Item = (&'a str, &'a [f64])>) -> Vec<ValueFigures> {
        let mut all: Vec<(&str, Vec<&[f64]>)> = Vec::new();
        for (name, some) in rows {
            match all.iter_mut().find(|(known, _)| *known == name) {
                None => all.push((name, vec![some])),
                Some((_, parts)) => parts.push(some),
            }
        }
        all.into_iter().filter_map(|(name, parts)| ValueFigures::of(name, &parts)).collect()
    }

    /// Those of the values of trials.
    fn of(name: &str, trials: &[&[f64]]) -> Option<ValueFigures> {
        let values = &trials.concat();
        Some(ValueFigures {
            name: name.to_owned(),
            count: values.len() as u64,
            min: values.iter().copied().reduce(f64::min)?,
            median: judge::median(values)?,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            max: values.iter().copied().reduce(f64::max)?,
            in_order: if values.len() <= MOST_SHOWN { values.clone() } else { medians(trials) },
        })
    }
}

/// The median over trials of what is at each place of them; none where they differ in length, have
/// one value each, or more than can be shown.
fn medians(trials: &[&[f64]]) -> Vec<f64> {
    let length = trials[0].len();
    if !(2..=MOST_SHOWN).contains(&length) || trials.iter().any(|trial| trial.len() != length) {
        return Vec::new();
    }
    let at = |place: usize| trials.iter().map(|trial| trial[place]).collect::<Vec<_>>();
    (0..length).filter_map(|place| judge::median(&at(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(trials: &[&[f64]]) -> Vec<f64> {
        let rows = trials.iter().map(|values| ("load_ns", *values));
        ValueFigures::merged(rows).remove(0).in_order
    }

    #[test]
    fn few_values_are_all_kept_and_of_more_the_median_of_each_place() {
        assert_eq!(in_order(&[&[3.0, 1.0], &[2.0]]), [3.0, 1.0, 2.0]);
        let [low, middle, high] = [[1.0, 50.0, 7.0, 7.0], [2.0, 40.0, 8.0, 8.0], [9.0; 4]];
        assert_eq!(in_order(&[&high, &low, &middle]), [2.0, 40.0, 8.0, 8.0]);
        assert_eq!(in_order(&[&high, &low, &middle[..3]]), [0.0; 0]);
        assert_eq!(in_order(&[&[1.0; 11]]), [0.0; 0]);
        assert_eq!(in_order(&[&[1.0][..]; 11]), [0.0; 0]);
    }
}
