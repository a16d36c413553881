//! A run, down to its trials.

use serde_json::{Map, Value};

use crate::cause::Cause;
use crate::ids::{FingerprintId, PointId, RoundId, RunId, SuiteId, TargetId};
use crate::table::rows;
use crate::word_columns::{DataState, FailedAt, RunState, Validity};

rows! {
    /// A suite file as it was when it ran. Equal files are one row.
    suite: SuiteRow with id {
        /// SHA-256 of `text`, in hex.
        hash: String,
        /// Where it was read from, for people.
        path: String,
        /// Its title.
        title: String,
        /// Its claims, printed in every report: a JSON array of text.
        claims: Vec<String> as Json,
        /// Its compromises, printed in every report: a JSON array of text.
        compromises: Vec<String> as Json,
        /// The whole TOML text.
        text: String,
    }
    unique "hash"

    /// What the host and the build were. Equal ones are one row.
    fingerprint: FingerprintRow with id {
        /// SHA-256 of `json`, in hex.
        hash: String,
        /// The facts by name: a JSON object.
        json: Map<String, Value> as Json,
    }
    unique "hash"

    /// One run of a suite.
    run: RunRow with id {
        /// The suite that ran.
        suite_id: SuiteId,
        /// The host and build it ran on.
        fingerprint_id: FingerprintId,
        /// The command line, as typed.
        command: String,
        /// The version of loadline.
        version: String,
        /// The seed that everything random follows from; seeds from 2^63 on look negative.
        seed: u64 as Bits,
        /// When it started: RFC 3339, wall clock.
        started_at: String,
        /// When it ended; NULL while it runs, and for ever if it was killed.
        ended_at: Option<String>,
        /// `running`, `finished`, `interrupted` or `failed`. `loadline` shows a `running` run as
        /// interrupted when the process that writes it is gone; a query by hand sees `running`.
        state: RunState,
        /// A remark of the user, or why it failed.
        note: Option<String>,
        /// Settings beside the suite's text (`--set`): a JSON array of pairs of a dotted key and
        /// the value as TOML writes it.
        settings: Vec<(String, String)> as Json,
        /// The metric that carries verdicts, by its name in suites: `rate_per_s`.
        primary_metric: String,
        /// Differences up to this fraction are called the same: 0.02 is ±2 %.
        same_within: f64,
        /// Confidence of intervals and verdicts: 0.95.
        confidence: f64,
    }
    also {
        /// Its identity, 32 hex digits: the same in every ledger that holds the run, while `id` is
        /// this ledger's.
        uid: String,
        /// The process that writes it.
        pid: u32,
        /// The namespace of that number.
        pid_namespace: String,
        /// The boot of the host that it was on.
        boot_id: String,
        /// When that process started, in clock ticks since boot.
        process_started_ticks: u64,
        /// What came of it, as its report said when it ended: `unmeasured`, `broken`, `worse`,
        /// `cant_tell` or `fine`; NULL where none was made.
        outcome: Option<String>,
        /// The conclusion of that report.
        conclusion: Option<String>
    }
    unique "uid"

    /// A target of a run, measured or skipped.
    target: TargetRow with id {
        /// The run.
        run_id: RunId,
        /// Its place in the suite, from 0; comparisons are of the first against the others.
        ordinal: u32,
        /// Its name in the suite.
        name: String,
        /// Its description in one line: the command and version, or the address.
        description: String,
        /// Why it wasn't measured; NULL when it was.
        skipped: Option<String>,
    }
    unique "run_id, ordinal"
    unique "run_id, name"

    /// One combination of the sweep.
    point: PointRow with id {
        /// The run.
        run_id: RunId,
        /// Its place in the sweep, from 0.
        ordinal: u32,
        /// Its label, for people: `cache/get  16 conns · depth 16 · closed`.
        label: String,
        /// Its keys, for programs: a JSON object of the swept dotted keys and `workload.operation`.
        keys: Map<String, Value> as Json,
    }
    unique "run_id, ordinal"

    /// All targets of a point, started fresh and measured alternately.
    round: RoundRow with id {
        /// The run.
        run_id: RunId,
        /// The point.
        point_id: PointId,
        /// Its number at this point, from 1.
        ordinal: u32,
        /// The seed of its workload and of the order of its slices, as in `run`.
        seed: u64 as Bits,
        /// When it started.
        started_ns: u64,
    }
    unique "point_id, ordinal"
    index "run_id"

    /// One target's slices in one round.
    trial: TrialRow with id {
        /// The round.
        round_id: RoundId,
        /// The target.
        target_id: TargetId,
        /// `valid`, `disturbed` or `invalid`: whether it may be compared.
        validity: Validity,
        /// Why it is invalid; `unfinished` while it is being measured, and for ever if the run was
        /// killed meanwhile. NULL when it isn't.
        reason: Option<String>,
        /// What disturbed those of its slices that count, each kind once, also where the suite
        /// ignores that: a JSON array of causes, as in `slice`.
        causes: Vec<Cause> as Json,
        /// `cold` or `warm` data.
        state: DataState,
        /// When its target was started.
        started_ns: u64,
        /// The measured time, all slices together.
        measured_ns: u64,
        /// What operations are divided by for their rate: the measured time; of closed loops a
        /// longer one, so that first answers, which wait behind no other, don't raise the rate.
        rate_ns: u64,
        /// Operations completed in the measured phase: right, wrong, or refused.
        operations: u64,
        /// Operations whose answer was wrong.
        wrong: u64,
        /// Operations that the target refused in good order, as with too much to do.
        refused: u64,
        /// Operations not answered before their time-out.
        missing: u64,
        /// Keys requested and not found, where the workload allows it.
        misses: u64,
        /// Keys requested and found; NULL when the workload has no such thing.
        hits: Option<u64>,
        /// The busiest generator thread's share of time not spent in empty polls, 0 to 1.
        generator_busy: Option<f64>,
        /// CPU time in the measured phase of the target's process group and of what descends from
        /// it in other groups.
        server_cpu_ns: Option<u64>,
        /// Its part in user space.
        server_user_ns: Option<u64>,
        /// Its part in the kernel.
        server_system_ns: Option<u64>,
        /// The most resident memory of these processes.
        server_rss_bytes: Option<u64>,
        /// CPU time of the generator in the measured phase.
        generator_cpu_ns: Option<u64>,
        /// Its part in user space.
        generator_user_ns: Option<u64>,
        /// Its part in the kernel.
        generator_system_ns: Option<u64>,
        /// The most resident memory of the generator.
        generator_rss_bytes: Option<u64>,
        /// The duration of preparing the data; NULL when nothing was prepared.
        prepare_ns: Option<u64>,
        /// The duration of the warm-up; NULL when there was none.
        warmup_ns: Option<u64>,
        /// Whether the load became steady in a warm-up that waited for it (`warm_up = "detect"`);
        /// NULL when its length was fixed beforehand.
        stationary: Option<bool>,
        /// The time from the start of such a warm-up until the load was steady; NULL besides when
        /// it never was.
        steady_after_ns: Option<u64>,
        /// Whether the target was overloaded (docs/suites.md), by its schedule or a stretch of it.
        /// That is a result, not a fault.
        overloaded: bool,
        /// Requests that a schedule made due in the measured phase; NULL without a schedule.
        offered: Option<u64>,
        /// The time in which the schedule made them due: the measured time without that in which
        /// the last were answered. NULL without a schedule.
        schedule_ns: Option<u64>,
        /// The most requests that were due and had no free slot; NULL without a schedule.
        backlog_most: Option<u64>,
        /// The phase in which the target failed: `start`, `prepare`, `warm-up` or `measure`; NULL
        /// when it didn't.
        failed_at: Option<FailedAt>,
        /// Wrong answers outside the measured phase: while preparing and warming up, and in slices
        /// that were measured again.
        wrong_outside: u64,
        /// Operations, of those completed, whose answers were not checked.
        unchecked: u64,
        /// Elements of the values that came or were written; NULL where values have no elements.
        elements: Option<u64>,
        /// The bytes of these elements.
        payload_bytes: Option<u64>,
        /// Bytes that the generator's sockets have brought; NULL where it has none.
        received_bytes: Option<u64>,
        /// Bytes that they have taken.
        sent_bytes: Option<u64>,
        /// How evenly updates are spread over all streams, 0 to 1; NULL without streams.
        fairness: Option<f64>,
        /// The resources that target and load share on the host, in words; NULL when it wasn't
        /// measured.
        shared: Option<String>,
    }
    unique "round_id, target_id"
    index "target_id"
}

/// The reason of a trial that was begun and not yet (or never) measured to its end.
pub const UNFINISHED: &str = "unfinished";

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
            ..TrialRow::default()
        }
    }
}
