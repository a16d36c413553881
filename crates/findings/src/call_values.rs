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
}

impl ValueFigures {
    /// Those of these values by name, of one trial or of several taken together, in the order in
    /// which names first come.
    pub fn merged<'a>(rows: impl Iterator<Item = (&'a str, &'a [f64])>) -> Vec<ValueFigures> {
        let mut all: Vec<(&str, Vec<f64>)> = Vec::new();
        for (name, some) in rows {
            match all.iter_mut().find(|(known, _)| *known == name) {
                None => all.push((name, some.to_vec())),
                Some((_, values)) => values.extend(some),
            }
        }
        all.into_iter().filter_map(|(name, values)| ValueFigures::of(name, &values)).collect()
    }

    fn of(name: &str, values: &[f64]) -> Option<ValueFigures> {
        Some(ValueFigures {
            name: name.to_owned(),
            count: values.len() as u64,
            min: values.iter().copied().reduce(f64::min)?,
            median: judge::median(values)?,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            max: values.iter().copied().reduce(f64::max)?,
        })
    }
}
