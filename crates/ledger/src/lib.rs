//! The ledger: the SQLite file that keeps every run.
//!
//! The schema is public and people query it by hand (docs/ledger.md explains every column), so
//! the row types here *are* the schema: plain data, one struct per table, one field per column,
//! units in the names. No other crate speaks SQL, and this one depends on nothing of ours.
//!
//! A measured run writes while reports and the live view read: the file is in WAL mode, so that
//! a reader never waits for the writer nor the writer for a reader. What is committed outlives a
//! killed process; [`Ledger::begin_batch`] and [`Ledger::commit_batch`] bound how much isn't yet.
//!
//! | file | what it holds |
//! |---|---|
//! | `table` | the macro by which a table is written down once: struct, SQL, documentation |
//! | `rows` | the tables |
//! | `cause` | what disturbed a slice or a trial |
//! | `ids`, `word_columns` | typed ids, and the words that columns may hold |
//! | `schema` | what a new ledger is made of, the views in SQL, and the versions that are refused |
//! | `open`, `write`, `read` | the three things done with a ledger |
//! | `runs` | the list of runs, and the progress of one |
//! | `histogram`, `streams`, `stretches` | distributions of times as blobs and percentiles |
//! | `sensor_series`, `chunk` | the samples of sensors, ten seconds of a series to a row |
//! | `merge` | runs copied from another ledger, or deleted |
//! | `figure` | metrics of trials, and the figures that suites declare |
//! | `history` | the runs of one suite, oldest first |
//! | `hlog` | latencies as an HdrHistogram interval log |
//! | `ladder` | decisions about rungs |
//! | `export` | a run as tables for other programs |
//! | `columnar` | the same as Parquet files (feature `parquet`) |
//! | `process` | whether the process that left a run `running` is still there |

mod cause;
mod chunk;
#[cfg(feature = "parquet")]
mod columnar;
#[cfg(test)]
mod document;
mod error;
mod export;
mod figure;
mod histogram;
mod history;
mod hlog;
mod ids;
mod ladder;
mod merge;
mod open;
mod process;
mod read;
mod rows;
mod runs;
mod schema;
mod sensor_series;
mod streams;
mod stretches;
mod table;
mod word_columns;
mod write;

pub use cause::{Cause, CauseKind, MAX_PROGRAMS, Program};
pub use chunk::{CHUNK_NS, SamplePoint};
#[cfg(feature = "parquet")]
pub use columnar::ColumnarError;
pub use error::LedgerError;
pub use export::{Cell, EXPORTS, Export};
pub use figure::FigureRow;
pub use hdrhistogram::Histogram;
pub use histogram::{BLOB_LIMIT_BYTES, decode, encode};
pub use history::PastRun;
pub use ids::{FingerprintId, PointId, RoundId, RunId, SeriesId, SuiteId, TargetId, TrialId};
pub use merge::Merged;
pub use open::{Ledger, make_directory};
pub use process::ProcessMark;
pub use read::{RunView, TrialValues};
pub use rows::{
    AdviceRow, CallRow, CarriedRow, ClientsRow, ComparisonRow, CounterRow, EventRow, FactRow,
    FindingRow, FingerprintRow, FloorRow, HistogramRow, LookRow, PointRow, ProbeRow, ProfileRow,
    ProgramFigureRow, ReachedRow, RequirementRow, RoundRow, RunRow, RungRow, SLOW_LIMIT, SearchRow,
    SeriesRow, SliceRow, SlowRow, StatementRow, StreamRow, StretchRow, SuiteRow, TargetRow,
    TrialRow, UNFINISHED, UsageRow, ValueRow, VerdictRow,
};
pub use runs::{Conclusion, RunLine, SoFar};
pub use schema::SCHEMA_VERSION;
pub use sensor_series::SampleWriter;
pub use word_columns::{
    ArrivalsKind, Better, DataState, Decision, FailedAt, HistogramKind, RequirementOutcome,
    RunKind, RunState, Validity,
};
