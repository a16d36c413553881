//! The metrics of a run: the judge's, and the figures that its suite declares.

use judge::{Direction, Metric, Metrics, Unit};
use ledger::{Better, ProgramFigureRow};

/// The metrics of a run whose suite declares these figures. What a ledger says and no suite could
/// is left out.
pub fn metrics(declared: &[ProgramFigureRow]) -> Metrics {
    let reported = |row: &ProgramFigureRow| {
        let direction = match row.better {
            Better::Higher => Direction::HigherIsBetter,
            Better::Lower => Direction::LowerIsBetter,
        };
        let unit = Unit::of_word(&row.unit).unwrap_or(Unit::Number);
        Metric::reported(&row.name, direction, unit).ok()
    };
    Metrics::with_reported(declared.iter().filter_map(reported).collect())
}
