//! The histogram of one figure in one second.

use super::tally::Counted;

/// What a histogram counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// From the moment a request was due to its answer.
    Latency,
    /// From its sending to its answer; kept for scheduled requests only.
    Service,
    /// From the moment it was due and a slot free to its sending; kept for scheduled requests only.
    Lag,
    /// From the making of a value to the receipt of its update, where updates say when they were
    /// made.
    Staleness,
}

/// Every figure, in the order of a recorder's table.
pub(super) const FIGURES: [Figure; 4] =
    [Figure::Latency, Figure::Service, Figure::Lag, Figure::Staleness];

/// One figure of one operation in one second of the run's clock.
#[derive(Clone, Debug)]
pub struct Interval {
    /// What it counts.
    pub figure: Figure,
    /// Which group of clients, as an index into the point's.
    pub group: usize,
    /// Which operation, as an index into the service's.
    pub operation: usize,
    /// Seconds since the zero of the run's clock.
    pub second: u64,
    /// Nanoseconds.
    pub histogram: Counted,
}
