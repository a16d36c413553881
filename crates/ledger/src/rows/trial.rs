//! What belongs to one trial.

use std::collections::BTreeMap;

use crate::cause::Cause;
use crate::ids::TrialId;
use crate::table::rows;
use crate::word_columns::{HistogramKind, Validity};

/// The most slow requests that one trial keeps.
pub const SLOW_LIMIT: usize = 64;

rows! {
    /// One stretch of a trial between two changes of target.
    ///
    /// A cause of disturbance is a JSON object of its `kind`, and how much it was, `least` and
    /// `most`: the same in a slice, a range in a trial. `foreign` (other programs; `foreign_ticks`
    /// where that is known from clock ticks only, `unassigned` where the target's is among it) are
    /// shares of the time of the run's cores, `steal` of a core's, `pauses` and `wait` of the
    /// slice, and `quota` of the quota's periods; `pause` is in nanoseconds, `swap` in pages.
    /// `target` is whose thread waited, the generator's without one. `programs` are those that used
    /// most CPU time: `name` (null for what no reading saw) and `cores` (null where they may have
    /// used others than the run's).
    slice: SliceRow {
        /// The trial.
        trial_id: TrialId,
        /// Its number in the trial, from 0.
        ordinal: u32,
        /// When it started.
        start_ns: u64,
        /// Its duration.
        duration_ns: u64,
        /// Operations completed in it.
        operations: u64,
        /// CPU time of the target in it.
        server_cpu_ns: Option<u64>,
        /// CPU time of the generator in it.
        generator_cpu_ns: Option<u64>,
        /// Whether it counts, as in `trial`.
        validity: Validity,
        /// What disturbed it, also where the suite ignores that: a JSON array of causes, empty when
        /// nothing did.
        causes: Vec<Cause> as Json,
    }
    key "trial_id, ordinal"

    /// One distribution of times, with its percentiles.
    ///
    /// Every trial has the row of all clients and all operations. Seconds are kept of each
    /// operation of each group of clients; targets take turns, so a second holds a part of each.
    histogram: HistogramRow {
        /// The trial.
        trial_id: TrialId,
        /// The clients' name in the suite; `''` = all of them.
        clients: String,
        /// The operation; `''` = all of them.
        operation: String,
        /// `latency` = completion − scheduled time; `service` = completion − send; `lag` = send −
        /// max(scheduled time, moment a slot was free).
        kind: HistogramKind,
        /// Which second since the run started, from 0; NULL = the whole trial.
        second: Option<u32>,
        /// Number of values.
        count: u64,
        /// Least value; NULL, as all that follow, when it holds none.
        min_ns: Option<u64>,
        /// Arithmetic mean.
        mean_ns: Option<f64>,
        /// Median.
        p50_ns: Option<u64>,
        /// 90th percentile.
        p90_ns: Option<u64>,
        /// 95th percentile.
        p95_ns: Option<u64>,
        /// 99th percentile.
        p99_ns: Option<u64>,
        /// 99.9th percentile.
        p999_ns: Option<u64>,
        /// Greatest value.
        max_ns: Option<u64>,
        /// The histogram itself in nanoseconds: HdrHistogram's V2 encoding, compressed (its
        /// libraries in other languages read it). Of a whole trial it has three digits, of a second
        /// two; the columns before it come from three.
        data: Vec<u8>,
    }
    unique "trial_id, clients, operation, kind, ifnull(second, -1)"

    /// One answer that was wrong, or a refusal, as evidence.
    ///
    /// Not every such answer becomes one: the lab stores a few per trial, and `trial.wrong` and
    /// `trial.refused` count all.
    finding: FindingRow with id {
        /// The trial.
        trial_id: TrialId,
        /// When the answer came.
        at_ns: u64,
        /// The operation.
        operation: String,
        /// The key requested.
        key: String,
        /// The expected answer, perhaps cut.
        expected: Vec<u8>,
        /// The received answer, perhaps cut.
        received: Vec<u8>,
        /// The difference, or how it refuses, in words.
        note: String,
    }
    index "trial_id"

    /// The streams of one group of clients in one trial.
    stream: StreamRow {
        /// The trial.
        trial_id: TrialId,
        /// The clients' name in the suite.
        clients: String,
        /// Number of streams.
        streams: u64,
        /// Updates of all of them.
        updates: u64,
        /// Values that the target had and that did not come, by the count that values carry.
        missed: u64,
        /// Those of them that the target reported as left out.
        merged: u64,
        /// Updates of the stream that got the fewest.
        least_updates: u64,
        /// Fairness, the evenness of updates over streams, 1/streams to 1 (Jain's index); NULL
        /// without an update.
        fairness: Option<f64>,
        /// From the making of a value to its receipt: the median; NULL, as what follows, where
        /// updates don't say when they were made.
        staleness_p50_ns: Option<u64>,
        /// The 99th percentile.
        staleness_p99_ns: Option<u64>,
        /// The greatest.
        staleness_max_ns: Option<u64>,
        /// The distribution, as in `histogram.data`.
        staleness: Vec<u8>,
    }
    key "trial_id, clients"

    /// One stretch of a schedule in one trial.
    ///
    /// It is one of several rates, a tenth of a trace, or else all of it. What a request became
    /// counts in the stretch in which it was due; a target falls behind where more become due than
    /// it answers (docs/suites.md).
    stretch: StretchRow {
        /// The trial.
        trial_id: TrialId,
        /// The clients' name in the suite.
        clients: String,
        /// Its place in the schedule, from 0.
        ordinal: u32,
        /// What it asks for, in words: `1.5k/s`, `5k/s in bursts`, `tenth 3`.
        name: String,
        /// How long it lasted, in all slices together.
        length_ns: u64,
        /// Requests that became due in it.
        offered: u64,
        /// Requests that were answered while it lasted, whenever they were due.
        answered: u64,
        /// The fewest that waited for a slot at once in its second half; of slices, in that in
        /// which most did.
        waited: u64,
        /// Whether the target fell behind in it.
        overloaded: bool,
        /// Wrong answers to what was due in it.
        wrong: u64,
        /// What the target refused of it.
        refused: u64,
        /// What was not answered before its time-out.
        missing: u64,
        /// The median of its latencies; NULL, as what follows, where the schedule has but one
        /// stretch, or more than 64.
        latency_p50_ns: Option<u64>,
        /// The 99th percentile.
        latency_p99_ns: Option<u64>,
        /// The distribution, as in `histogram.data`.
        latency: Option<Vec<u8>>,
    }
    key "trial_id, clients, ordinal"

    /// One event of the suite that happened in a trial.
    ///
    /// What an `[[event]]` did to the trial's target, each time; those of slices that were set
    /// aside too. The lab keeps the first 10,000 of a trial.
    event: EventRow {
        /// The trial.
        trial_id: TrialId,
        /// Its place among the events of the trial, from 0, in the order in which they began.
        ordinal: u32,
        /// When it began.
        at_ns: u64,
        /// Its duration: the time for which the target was stopped, or the command ran; of a signal
        /// its sending.
        took_ns: u64,
        /// Its name in the suite, or else its action.
        name: String,
        /// The action: `stop for 200 ms`, `SIGHUP`, or the words of a command.
        action: String,
        /// The exit code of a command; NULL where there was none, or it ended otherwise.
        exit_status: Option<i32>,
        /// Why it failed, which makes the trial invalid; NULL when it didn't.
        failure: Option<String>,
    }
    key "trial_id, ordinal"

    /// One of the slowest requests of a trial, at most 64.
    slow: SlowRow {
        /// The trial.
        trial_id: TrialId,
        /// When its answer came, or its time-out.
        at_ns: u64,
        /// Its latency, from the scheduled time on.
        latency_ns: u64,
        /// The clients' name in the suite.
        clients: String,
        /// The operation.
        operation: String,
    }
    index "trial_id, latency_ns"

    /// One figure that a call measured itself, such as what a batch printed.
    ///
    /// Every figure is kept, so that any statistic can be made of them later.
    value: ValueRow {
        /// The trial.
        trial_id: TrialId,
        /// Its place among the trial's figures, from 0, in the order in which they came.
        ordinal: u32,
        /// Its name in the suite or of the call.
        name: String,
        /// The figure, in whatever unit the call measures in.
        value: f64,
    }
    key "trial_id, ordinal"

    /// One metric of a trial.
    ///
    /// Computed once, when the trial is stored. `trials` has those of every trial as columns; a
    /// metric that isn't there was unseen.
    figure: TrialFigureRow {
        /// The trial.
        trial_id: TrialId,
        /// Its name in suites: `rate_per_s`, `latency.p99`, or a figure that the suite declares.
        name: String,
        /// Its value, in the metric's unit; of what calls reported, their mean.
        value: f64,
    }
    key "trial_id, name"

    /// A counter of a service in a trial.
    ///
    /// A counter that could not be read around every slice that counts has no row: it is unseen.
    /// How it went second by second is in the series of the sensor `service`.
    counter: CounterRow {
        /// The trial.
        trial_id: TrialId,
        /// Its name, as the service writes it: `evictions`, `http_requests_total{code="200"}`.
        name: String,
        /// Whether it only grows.
        grows: bool,
        /// Its growth over the trial's counted slices when it grows, else where it stood after the
        /// last of them.
        value: f64,
    }
    key "trial_id, name"

    /// One usage figure of both sides and the host in a trial's measured slices.
    ///
    /// Each is read right before and right after every slice. The names with their units and
    /// meanings stand in [limits.md](limits.md); a figure that isn't there was unseen. Totals stay
    /// totals: `value / operations` is the cost of an operation.
    usage: UsageRow {
        /// The trial.
        trial_id: TrialId,
        /// Its name, which ends in its unit where it has one: `server_voluntary_switches`.
        name: String,
        /// Its value.
        value: f64,
    }
    key "trial_id, name"

    /// One limit that a trial reached.
    reached: ReachedRow {
        /// The trial.
        trial_id: TrialId,
        /// Its rank, from 1: what gives way first.
        rank: u32,
        /// The limit in one word, see [limits.md](limits.md).
        code: String,
        /// The share of the time, the cores or the answers that it accounts for.
        strength: f64,
        /// The figures that show it, in words.
        evidence: String,
    }
    key "trial_id, rank"

    /// One statement that a target executed while a trial measured it.
    ///
    /// Of targets that say what their connections do, PostgreSQL for one, which is asked ten times
    /// a second within slices. Kept are the ten statements in which most connections were.
    statement: StatementRow {
        /// The trial.
        trial_id: TrialId,
        /// Its rank, from 1: that in which most connections were.
        rank: u32,
        /// The statement, perhaps cut.
        text: String,
        /// How many connections were in it on average.
        active: f64,
        /// Where they stood: a JSON object of the class of a wait and its event
        /// (`IO/DataFileRead`), or `running`, each with how many connections on average.
        waits: BTreeMap<String, f64> as Json,
        /// How the target executes it, a line for each step: executed once when the trial had
        /// ended; NULL where it was not asked.
        plan: Option<String>,
    }
    key "trial_id, rank"

    /// One advice on what would help a target, as its dialect reads what it saw in a trial.
    advice: AdviceRow {
        /// The trial.
        trial_id: TrialId,
        /// Its rank, from 1: what would help most.
        rank: u32,
        /// What would help, in one word, see [conditions.md](conditions.md#advice-on-postgresql).
        code: String,
        /// The class of waits that took most of the connections' time, or `running`.
        wait: String,
        /// The share of their time that it took.
        share: f64,
        /// What shows it, in words.
        evidence: String,
        /// The rank of the statement that it is about; NULL where it is about none.
        statement: Option<u32>,
        /// What to do.
        help: String,
    }
    key "trial_id, rank"
}

// They hold no number that could be unequal to itself.
impl Eq for EventRow {}
impl Eq for FindingRow {}
impl Eq for SlowRow {}
