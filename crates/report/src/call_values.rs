//! Figures that calls measured themselves, by name: what a batch printed, or how long a step took.

use ledger::TrialValues;

use crate::number::{bytes, duration, plain};

/// The figures of one name.
#[derive(Debug, Clone, PartialEq)]
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
    /// Those of several trials taken together, in the order in which names first come.
    pub(crate) fn merged<'a>(rows: impl Iterator<Item = &'a TrialValues>) -> Vec<ValueFigures> {
        let mut all: Vec<(&str, Vec<f64>)> = Vec::new();
        for row in rows {
            match all.iter_mut().find(|(name, _)| *name == row.name) {
                None => all.push((&row.name, row.values.clone())),
                Some((_, values)) => values.extend(&row.values),
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

/// A figure's name, and how its values are written: where its name says that it is in nanoseconds
/// or bytes, the unit is shown with the values and not in the name.
pub(crate) fn shown(name: &str) -> (String, fn(f64) -> String) {
    let name = crate::escape::one_line(name);
    match (name.strip_suffix("_ns"), name.strip_suffix("_bytes")) {
        (Some(name), _) => (name.to_owned(), time),
        (_, Some(name)) => (name.to_owned(), bytes),
        (None, None) => (name, plain),
    }
}

/// A time; below a microsecond with the digits that a duration has no room for.
fn time(ns: f64) -> String {
    if ns < 1000.0 { format!("{} ns", plain(ns)) } else { duration(ns) }
}
