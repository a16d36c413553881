//! The tables as structs: one field per column, units in the names.
//!
//! Points in time, named `…_ns`, count from the start of the run on its monotonic clock;
//! the wall-clock time of the start is in [`RunRow::started_at`]. NULL (`None`) means *unseen*: the
//! host or the target didn't let the lab see it.

mod host;
mod questions;
mod run;
mod trial;

pub(crate) use host::ChunkRow;
pub use host::{CallRow, FloorRow, ProfileRow, SeriesRow};
pub use questions::{
    CarriedRow, ClientsRow, ComparisonRow, FactRow, LookRow, ProbeRow, ProgramFigureRow,
    RequirementRow, RungRow, SearchRow, VerdictRow,
};
pub use run::{
    FingerprintRow, PointRow, RoundRow, RunRow, SuiteRow, TargetRow, TrialRow, UNFINISHED,
};
pub(crate) use trial::TrialFigureRow;
pub use trial::{
    AdviceRow, CounterRow, EventRow, FindingRow, HistogramRow, ReachedRow, SLOW_LIMIT, SliceRow,
    SlowRow, StatementRow, StreamRow, StretchRow, UsageRow, ValueRow,
};

use crate::table::Table;

/// Every table, each after those that it refers to: the order in which they are made and merged.
pub(crate) fn tables() -> impl Iterator<Item = &'static Table> {
    [run::TABLES, trial::TABLES, questions::TABLES, host::TABLES].into_iter().flatten()
}
