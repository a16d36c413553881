//! Figures that calls measured themselves, by name: what a batch printed, for one.

use ledger::ValueSummary;

/// The figures of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueFigures {
    /// Their name.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// The greatest.
    pub max: f64,
}

impl ValueFigures {
    /// Those of several trials taken together, in the order in which names first come.
    pub(crate) fn merged<'a>(rows: impl Iterator<Item = &'a ValueSummary>) -> Vec<ValueFigures> {
        let mut all: Vec<ValueFigures> = Vec::new();
        for row in rows {
            let ValueSummary { count, min, mean, max, .. } = *row;
            match all.iter_mut().find(|one| one.name == row.name) {
                None => all.push(ValueFigures { name: row.name.clone(), count, min, mean, max }),
                Some(one) => {
                    let sum = one.mean * one.count as f64 + mean * count as f64;
                    one.count += count;
                    one.mean = sum / one.count as f64;
                    (one.min, one.max) = (one.min.min(min), one.max.max(max));
                }
            }
        }
        all
    }
}
