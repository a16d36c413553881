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
//! | `rows` | the tables as structs, and their typed ids |
//! | `word_columns` | the words that columns may hold: states, validities, kinds |
//! | `schema` | migrations, and the ledgers that are refused |
//! | `open`, `write`, `read` | the three things done with a ledger |
//! | `runs` | the list of runs, and the progress of one |
//! | `json` | columns that hold JSON |
//! | `histogram` | latency histograms as blobs and percentiles |
//! | `sensor_series`, `chunk` | the samples of sensors, ten seconds of a series to a row |
//! | `streams` | the updates of streams |
//! | `event` | events that ran against targets |
//! | `tables`, `merge` | the tables of a run, copied from another ledger or deleted |
//! | `comparison` | the parameters and looks of a comparison, and the build facts of targets |
//! | `cost` | system calls of an operation, and floors of the host |
//! | `history` | the runs of one suite, oldest first |
//! | `search` | searches for the highest load, and the groups of clients |
//! | `hlog` | latencies as an HdrHistogram interval log |
//! | `ladder` | rungs, decisions about them, profiles |
//! | `export` | a run as tables for other programs |
//! | `columnar` | the same as Parquet files (feature `parquet`) |
//! | `program_figure` | figures that a suite's programs report |
//! | `process` | whether the process that left a run `running` is still there |

mod chunk;
#[cfg(feature = "parquet")]
mod columnar;
mod comparison;
mod cost;
mod error;
mod event;
mod export;
mod histogram;
mod history;
mod hlog;
mod json;
mod ladder;
mod merge;
mod open;
mod process;
mod program_figure;
mod read;
mod rows;
mod runs;
mod schema;
mod search;
mod sensor_series;
mod streams;
mod tables;
mod word_columns;
mod write;

pub use chunk::{CHUNK_NS, SamplePoint};
#[cfg(feature = "parquet")]
pub use columnar::ColumnarError;
pub use comparison::{ComparisonRow, FactRow, FigureRow, LookRow};
pub use cost::{CallRow, FloorRow};
pub use error::LedgerError;
pub use event::EventRow;
pub use export::{Cell, EXPORTS, Export};
pub use hdrhistogram::Histogram;
pub use histogram::{BLOB_LIMIT_BYTES, decode, encode};
pub use history::PastRun;
pub use ladder::{Decision, ProfileRow, RungRow};
pub use merge::Merged;
pub use open::Ledger;
pub use process::ProcessMark;
pub use program_figure::ProgramFigureRow;
pub use read::{RunView, TrialValues};
pub use rows::{
    CounterRow, FindingRow, FingerprintId, FingerprintRow, HistogramRow, PointId, PointRow,
    ReachedRow, RequirementRow, RoundId, RoundRow, RunId, RunRow, SLOW_LIMIT, SeriesId, SeriesRow,
    SliceRow, SlowRow, SuiteId, SuiteRow, TargetId, TargetRow, TrialId, TrialRow, UNFINISHED,
    UsageRow, ValueRow,
};
pub use runs::{RunKind, RunLine, SoFar};
pub use schema::SCHEMA_VERSION;
pub use search::{ClientsRow, ProbeRow, SearchRow};
pub use sensor_series::SampleWriter;
pub use streams::StreamRow;
pub use word_columns::{
    ArrivalsKind, Better, DataState, FailedAt, HistogramKind, RequirementOutcome, RunState,
    Validity,
};
