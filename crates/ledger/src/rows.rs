//! The tables as structs: one field per column, units in the names.
//!
//! Points in time, named `…_ns`, count from the start of the run on its monotonic clock;
//! the wall-clock time of the start is in [`RunRow::started_at`]. `None` means *unseen*: the host
//! or the target didn't let the lab see it.

use std::fmt;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde_json::{Map, Value};

use crate::word_columns::{
    DataState, FailedAt, HistogramKind, RequirementOutcome, RunState, Validity,
};

/// Defines the typed id of a table's rows.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(i64);

        impl $name {
            /// The number itself, as stored.
            pub fn get(self) -> i64 {
                self.0
            }
        }

        impl From<i64> for $name {
            fn from(id: i64) -> Self {
                Self(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                i64::column_result(value).map(Self)
            }
        }
    };
}

id! {
    /// A row of `suite`.
    SuiteId
}
id! {
    /// A row of `fingerprint`.
    FingerprintId
}
id! {
    /// A row of `run`; it only counts up.
    RunId
}
id! {
    /// A row of `target`.
    TargetId
}
id! {
    /// A row of `point`.
    PointId
}
id! {
    /// A row of `round`.
    RoundId
}
id! {
    /// A row of `trial`.
    TrialId
}
id! {
    /// A row of `series`.
    SeriesId
}

/// The reason of a trial that was begun and not yet (or never) measured to its end.
pub const UNFINISHED: &str = "unfinished";

/// A suite file as it was when it ran. Equal files are one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteRow {
    /// SHA-256 of the text, in hex.
    pub hash: String,
    /// Where it was read from, for people.
    pub path: String,
    /// Its title.
    pub title: String,
    /// Its claims, printed in every report.
    pub claims: Vec<String>,
    /// Its compromises, printed in every report.
    pub compromises: Vec<String>,
    /// The whole TOML text.
    pub text: String,
}

/// The fingerprint of host and build. Equal ones are one row.
#[derive(Debug, Clone, PartialEq)]
pub struct FingerprintRow {
    /// SHA-256 of the JSON, in hex.
    pub hash: String,
    /// The facts by name.
    pub json: Map<String, Value>,
}

/// One run of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// The suite that ran.
    pub suite_id: SuiteId,
    /// The host and build it ran on.
    pub fingerprint_id: FingerprintId,
    /// The command line, as typed.
    pub command: String,
    /// The version of loadline.
    pub version: String,
    /// The seed that everything random follows from. SQLite's integers are signed, so a query by
    /// hand shows seeds from 2^63 on as negative.
    pub seed: u64,
    /// When it started: RFC 3339, wall clock.
    pub started_at: String,
    /// When it ended; `None` while it runs and for ever if it was killed.
    pub ended_at: Option<String>,
    /// Its state. A run that was read is `Interrupted` when it was left `running` by a
    /// process that is gone.
    pub state: RunState,
    /// A remark of the user, or why it failed.
    pub note: Option<String>,
    /// Settings beside the suite's text (`--set`): dotted keys and values as TOML writes them.
    pub settings: Vec<(String, String)>,
    /// The metric that carries verdicts, by its name in suites: `rate_per_s`.
    pub primary_metric: String,
    /// Differences up to this fraction are called the same: 0.02 is ±2 %.
    pub same_within: f64,
    /// Confidence of intervals and verdicts: 0.95.
    pub confidence: f64,
}

/// A target of a run, measured or skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRow {
    /// The run.
    pub run_id: RunId,
    /// Its place in the suite, from 0; comparisons are about the first.
    pub ordinal: u32,
    /// Its name in the suite.
    pub name: String,
    /// Its description in one line: the command and version, or the address.
    pub description: String,
    /// Why it wasn't measured; `None` when it was.
    pub skipped: Option<String>,
}

/// One combination of the sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct PointRow {
    /// The run.
    pub run_id: RunId,
    /// Its place in the sweep, from 0.
    pub ordinal: u32,
    /// Its label, for people: `cache/get  16 conns · depth 16 · closed`.
    pub label: String,
    /// Its keys, for programs: the swept dotted keys and `workload.operation`.
    pub keys: Map<String, Value>,
}

/// All targets of one point, started fresh and measured alternately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundRow {
    /// The run.
    pub run_id: RunId,
    /// The point.
    pub point_id: PointId,
    /// Its number at this point, from 1.
    pub ordinal: u32,
    /// The seed of its workload and of the order of its slices; see [`RunRow::seed`].
    pub seed: u64,
    /// When it started, in ns since the run started.
    pub started_ns: u64,
}

/// One target's slices in one round.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRow {
    /// The round.
    pub round_id: RoundId,
    /// The target.
    pub target_id: TargetId,
    /// Whether it may be compared.
    pub validity: Validity,
    /// Why it isn't valid; `None` when it is.
    pub reason: Option<String>,
    /// Whether the data were warm.
    pub state: DataState,
    /// When its target was started, in ns since the run started.
    pub started_ns: u64,
    /// The measured time, all slices together.
    pub measured_ns: u64,
    /// Operations completed in the measured phase, right or wrong.
    pub operations: u64,
    /// Operations whose answer was wrong.
    pub wrong: u64,
    /// Operations not answered before their time-out.
    pub missing: u64,
    /// Keys requested and not found, where the workload allows it.
    pub misses: u64,
    /// Keys requested and found; `None` when the workload has no such thing.
    pub hits: Option<u64>,
    /// The busiest generator thread's share of time not spent in empty polls, 0 to 1.
    pub generator_busy: Option<f64>,
    /// CPU time of the target's process group in the measured phase.
    pub server_cpu_ns: Option<u64>,
    /// Its part in user space.
    pub server_user_ns: Option<u64>,
    /// Its part in the kernel.
    pub server_system_ns: Option<u64>,
    /// The most resident memory of the target's process group.
    pub server_rss_bytes: Option<u64>,
    /// CPU time of the generator in the measured phase.
    pub generator_cpu_ns: Option<u64>,
    /// Its part in user space.
    pub generator_user_ns: Option<u64>,
    /// Its part in the kernel.
    pub generator_system_ns: Option<u64>,
    /// The most resident memory of the generator.
    pub generator_rss_bytes: Option<u64>,
    /// The duration of preparing the data; `None` when nothing was prepared.
    pub prepare_ns: Option<u64>,
    /// The duration of the warm-up; `None` when there was no warm-up.
    pub warmup_ns: Option<u64>,
    /// Whether the load became steady in a warm-up that waited for it; `None` when its length was
    /// fixed beforehand.
    pub stationary: Option<bool>,
    /// The time from the start of such a warm-up until it was steady; `None` besides when it never
    /// was.
    pub steady_after_ns: Option<u64>,
    /// Whether the backlog grew through the measured phase. That is a result, not a fault.
    pub overloaded: bool,
    /// Requests that a schedule made due in the measured phase; `None` without a schedule.
    pub offered: Option<u64>,
    /// The most requests that were due and had no free slot; `None` without a schedule.
    pub backlog_most: Option<u64>,
    /// The phase in which the target failed; `None` when it didn't.
    pub failed_at: Option<FailedAt>,
    /// Operations of those completed whose answers were not checked.
    pub unchecked: u64,
    /// Elements of the values that came or were written; `None` where values have no elements.
    pub elements: Option<u64>,
    /// The bytes of these elements.
    pub payload_bytes: Option<u64>,
    /// Bytes that the generator's sockets have brought; `None` where it has none.
    pub received_bytes: Option<u64>,
    /// Bytes that they have taken.
    pub sent_bytes: Option<u64>,
    /// How evenly updates are spread over all streams, 0 to 1; `None` without streams.
    pub fairness: Option<f64>,
    /// Staleness of updates, over all groups of clients: the median; `None` without
    /// updates that say when they were made.
    pub staleness_p50_ns: Option<u64>,
    /// The 99th percentile of that.
    pub staleness_p99_ns: Option<u64>,
    /// The oldest.
    pub staleness_max_ns: Option<u64>,
    /// The resources that target and load share, in words; `None` when it wasn't measured.
    pub shared: Option<String>,
}

impl TrialRow {
    /// A trial that has begun: invalid because unfinished, so that it is never compared if the
    /// process dies before [`crate::Ledger::set_trial`] writes what was measured.
    pub fn unfinished(
        round_id: RoundId,
        target_id: TargetId,
        state: DataState,
        started_ns: u64,
    ) -> TrialRow {
        TrialRow {
            round_id,
            target_id,
            validity: Validity::Invalid,
            reason: Some(UNFINISHED.to_owned()),
            state,
            started_ns,
            measured_ns: 0,
            operations: 0,
            wrong: 0,
            missing: 0,
            misses: 0,
            hits: None,
            generator_busy: None,
            server_cpu_ns: None,
            server_user_ns: None,
            server_system_ns: None,
            server_rss_bytes: None,
            generator_cpu_ns: None,
            generator_user_ns: None,
            generator_system_ns: None,
            generator_rss_bytes: None,
            prepare_ns: None,
            warmup_ns: None,
            stationary: None,
            steady_after_ns: None,
            overloaded: false,
            offered: None,
            backlog_most: None,
            failed_at: None,
            unchecked: 0,
            elements: None,
            payload_bytes: None,
            received_bytes: None,
            sent_bytes: None,
            fairness: None,
            staleness_p50_ns: None,
            staleness_p99_ns: None,
            staleness_max_ns: None,
            shared: None,
        }
    }
}

/// One stretch of a trial between two changes of target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceRow {
    /// The trial.
    pub trial_id: TrialId,
    /// Its number in the trial, from 0.
    pub ordinal: u32,
    /// When it started, in ns since the run started.
    pub start_ns: u64,
    /// Its duration.
    pub duration_ns: u64,
    /// Operations completed in it.
    pub operations: u64,
    /// CPU time of the target in it.
    pub server_cpu_ns: Option<u64>,
    /// CPU time of the generator in it.
    pub generator_cpu_ns: Option<u64>,
    /// Whether it counts.
    pub validity: Validity,
    /// Why it isn't valid; `None` when it is.
    pub reason: Option<String>,
}

/// One latency histogram, with its percentiles. Built by [`HistogramRow::of`].
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramRow {
    /// The trial.
    pub trial_id: TrialId,
    /// The clients' name in the suite; empty = all of them.
    pub clients: String,
    /// The operation; empty = all of them.
    pub operation: String,
    /// Its quantity.
    pub kind: HistogramKind,
    /// Which second since the run started, from 0; `None` = the whole trial.
    pub second: Option<u32>,
    /// Number of values.
    pub count: u64,
    /// Least value; `None`, as all that follow, when it holds none.
    pub min_ns: Option<u64>,
    /// Arithmetic mean.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 95th percentile; `None` besides in rows from before version 11 of the schema.
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// Greatest value.
    pub max_ns: Option<u64>,
    /// The histogram: HdrHistogram V2 + DEFLATE, in nanoseconds.
    pub data: Vec<u8>,
}

/// One answer that was wrong, as evidence. Not every wrong answer becomes one: the lab stores a
/// few per trial, and the trial counts all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingRow {
    /// The trial.
    pub trial_id: TrialId,
    /// When the answer came, in ns since the run started.
    pub at_ns: u64,
    /// The operation.
    pub operation: String,
    /// The key requested.
    pub key: String,
    /// The expected answer, perhaps cut.
    pub expected: Vec<u8>,
    /// The received answer, perhaps cut.
    pub received: Vec<u8>,
    /// The difference, in words.
    pub note: String,
}

/// The most slow requests that one trial keeps.
pub const SLOW_LIMIT: usize = 64;

/// One of the slowest requests of a trial: at most [`SLOW_LIMIT`] are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRow {
    /// The trial.
    pub trial_id: TrialId,
    /// When its answer came, or its time-out, in ns since the run started.
    pub at_ns: u64,
    /// Its latency, from the scheduled time on.
    pub latency_ns: u64,
    /// The clients' name in the suite.
    pub clients: String,
    /// The operation.
    pub operation: String,
}

/// One figure that a call measured itself, such as what a batch printed. Every one is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueRow {
    /// The trial.
    pub trial_id: TrialId,
    /// Its place among the trial's figures, from 0, in the order in which they came.
    pub ordinal: u32,
    /// Its name in the suite or of the call.
    pub name: String,
    /// The figure, in whatever unit the call measures in.
    pub value: f64,
}

/// A counter of a service in a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterRow {
    /// The trial.
    pub trial_id: TrialId,
    /// Its name, as the service writes it.
    pub name: String,
    /// Whether it only grows.
    pub grows: bool,
    /// Its growth over the trial's counted slices when it grows, else where it stood after the
    /// last of them.
    pub value: f64,
}

/// One usage figure of both sides and the host in a trial's measured slices.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    /// The trial.
    pub trial_id: TrialId,
    /// Its name, which ends in its unit where it has one.
    pub name: String,
    /// Its value.
    pub value: f64,
}

/// One limit that a trial reached.
#[derive(Debug, Clone, PartialEq)]
pub struct ReachedRow {
    /// The trial.
    pub trial_id: TrialId,
    /// Its rank, from 1: the first limit.
    pub rank: u32,
    /// The limit, in one word.
    pub code: String,
    /// The share of the time, the cores or the answers that it accounts for.
    pub strength: f64,
    /// The figures that show it, in words.
    pub evidence: String,
}

/// The outcome of one requirement at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct RequirementRow {
    /// The run.
    pub run_id: RunId,
    /// The point.
    pub point_id: PointId,
    /// The requirement, as in the suite: `latency.p99 < 1ms`.
    pub expression: String,
    /// The metric's value at this point, in the metric's unit; `None` when it wasn't seen.
    pub value: Option<f64>,
    /// Its outcome.
    pub outcome: RequirementOutcome,
}

/// One series of values over the time of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRow {
    /// The run.
    pub run_id: RunId,
    /// The target that it is of; `None` is the host.
    pub target_id: Option<TargetId>,
    /// The sensor.
    pub sensor: String,
    /// Its name within the sensor: `cpu0.user`.
    pub name: String,
    /// The unit of its values: `fraction`, `cores`, `count`, `bytes`, `ns`, `per_s` or
    /// `bytes_per_s`.
    pub unit: String,
}
