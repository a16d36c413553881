//! Reading a ledger: everything of one run in plain data.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use rusqlite::{OptionalExtension, Params, Row, params};

use crate::comparison::{ComparisonRow, FactRow, LookRow};
use crate::cost::{CALLS, CallRow, FLOORS, FloorRow, call_row, floor_row};
use crate::error::LedgerError;
use crate::event::{EVENTS, EventRow, event_row};
use crate::json::{json, object};
use crate::ladder::{PROFILES, ProfileRow, RUNGS, RungRow, profile_row, rung_row};
use crate::open::Ledger;
use crate::process::ProcessMark;
use crate::program_figure::ProgramFigureRow;
use crate::rows::{
    CounterRow, FindingRow, FingerprintRow, HistogramRow, PointId, PointRow, ReachedRow,
    RequirementRow, RoundId, RoundRow, RunId, RunRow, SliceRow, SlowRow, SuiteRow, TargetId,
    TargetRow, TrialId, TrialRow, UsageRow, ValueRow,
};
use crate::search::{self, ClientsRow, ProbeRow, SearchRow};
use crate::streams::{STREAMS, StreamRow, stream_row};
use crate::word_columns::RunState;

/// Everything of one run that reports need, in plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// Its identity: the same in every ledger that holds it.
    pub uid: String,
    /// The run.
    pub run: RunRow,
    /// Its suite.
    pub suite: SuiteRow,
    /// Its host and build.
    pub fingerprint: FingerprintRow,
    /// The figures that its suite says its programs report, in order.
    pub program_figures: Vec<ProgramFigureRow>,
    /// Its targets, in the suite's order.
    pub targets: Vec<(TargetId, TargetRow)>,
    /// Its points, in the sweep's order.
    pub points: Vec<(PointId, PointRow)>,
    /// Its rounds, by point and number.
    pub rounds: Vec<(RoundId, RoundRow)>,
    /// Its trials, by point, round and target.
    pub trials: Vec<(TrialId, TrialRow)>,
    /// Its slices, by trial and number.
    pub slices: Vec<SliceRow>,
    /// Its whole-trial histograms; those by second are left in the ledger.
    pub histograms: Vec<HistogramRow>,
    /// Its wrong answers, in the order in which they came.
    pub findings: Vec<FindingRow>,
    /// Events that ran against its targets, by trial and number.
    pub events: Vec<EventRow>,
    /// Its slowest requests, by trial, the slowest first.
    pub slow: Vec<SlowRow>,
    /// Figures that its calls measured themselves, by trial and name.
    pub values: Vec<TrialValues>,
    /// Counters of its services, by trial and name.
    pub counters: Vec<CounterRow>,
    /// Updates of streams, by trial and clients.
    pub streams: Vec<StreamRow>,
    /// Usage figures of its trials, by trial and name.
    pub usage: Vec<UsageRow>,
    /// The limits that its trials reached, by trial and rank.
    pub reached: Vec<ReachedRow>,
    /// System calls that were counted, by point, target and side.
    pub calls: Vec<CallRow>,
    /// The floors of its host.
    pub floors: Vec<FloorRow>,
    /// Those of its targets that are rungs, in their order.
    pub rungs: Vec<RungRow>,
    /// Where CPU time went, by point, target and profile.
    pub profiles: Vec<ProfileRow>,
    /// Its requirements, by point.
    pub requirements: Vec<RequirementRow>,
    /// Its parameters, if it is a comparison.
    pub comparison: Option<ComparisonRow>,
    /// When a comparison was looked at, by point and rounds.
    pub looks: Vec<LookRow>,
    /// Its parameters, if it is a search for the highest load.
    pub search: Option<SearchRow>,
    /// The loads that a search tried, in order.
    pub probes: Vec<ProbeRow>,
    /// Its groups of clients, by point and name.
    pub clients: Vec<ClientsRow>,
    /// Build facts of its targets, by target and name.
    pub facts: Vec<FactRow>,
}

/// The figures of one name that the calls of one trial measured themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialValues {
    /// The trial.
    pub trial_id: TrialId,
    /// Their name.
    pub name: String,
    /// The figures, in the order in which they came; at least one.
    pub values: Vec<f64>,
}

impl Ledger {
    /// Everything of one run, as it was at one moment even while it is being written.
    ///
    /// Fails when there is no such run.
    pub fn run_view(&self, id: RunId) -> Result<RunView, LedgerError> {
        self.run_view_of(id, 0..=u32::MAX)
    }

    /// The same without its slowest requests, which are a third of the rows of a large run and of
    /// no use to a report that shows none.
    ///
    /// Fails when there is no such run.
    pub fn run_view_without_slow(&self, id: RunId) -> Result<RunView, LedgerError> {
        self.view(id, 0..=u32::MAX, false)
    }

    /// The same, with slow requests, figures of calls, counters and usage of these points only, by
    /// their place in the sweep: most rows of a large run are such, and no page has room for all.
    /// Figures that comparisons are about are those of every point.
    ///
    /// Fails when there is no such run.
    pub fn run_view_of(
        &self,
        id: RunId,
        detailed: RangeInclusive<u32>,
    ) -> Result<RunView, LedgerError> {
        self.view(id, detailed, true)
    }

    fn view(
        &self,
        id: RunId,
        detailed: RangeInclusive<u32>,
        with_slow: bool,
    ) -> Result<RunView, LedgerError> {
        let detailed = (id, *detailed.start(), *detailed.end());
        // One read transaction is one snapshot; inside a batch there is one already.
        let snapshot = match self.in_batch() {
            true => None,
            false => Some(self.connection.unchecked_transaction()?),
        };
        let (uid, run) = self
            .connection
            .query_row("SELECT * FROM run WHERE id = ?1", [id], |row| {
                Ok((row.get("uid")?, run_row(row)?))
            })
            .optional()?
            .ok_or(LedgerError::NoSuchRun(id))?;
        let suite = self.connection.query_row(
            "SELECT * FROM suite WHERE id = ?1",
            [run.suite_id],
            suite_row,
        )?;
        let fingerprint = self.connection.query_row(
            "SELECT * FROM fingerprint WHERE id = ?1",
            [run.fingerprint_id],
            |row| Ok(FingerprintRow { hash: row.get("hash")?, json: object(row, "json")? }),
        )?;
        let view = RunView {
            id,
            uid,
            run,
            suite,
            fingerprint,
            program_figures: self.program_figures(id)?,
            targets: self.rows(TARGETS, [id], target_row)?,
            points: self.rows(POINTS, [id], point_row)?,
            rounds: self.rows(ROUNDS, [id], round_row)?,
            trials: self.rows(TRIALS, [id], trial_row)?,
            slices: self.rows(SLICES, [id], slice_row)?,
            histograms: self.rows(HISTOGRAMS, [id], histogram_row)?,
            findings: self.rows(FINDINGS, [id], finding_row)?,
            events: self.rows(EVENTS, [id], event_row)?,
            slow: if with_slow { self.slow(detailed)? } else { Vec::new() },
            values: trial_values(self.rows(VALUES, detailed, value_row)?),
            counters: self.rows(COUNTERS, detailed, counter_row)?,
            streams: self.rows(STREAMS, [id], stream_row)?,
            usage: self.rows(USAGE, detailed, usage_row)?,
            reached: self.rows(REACHED, [id], reached_row)?,
            calls: self.rows(CALLS, [id], call_row)?,
            floors: self.rows(FLOORS, [id], floor_row)?,
            rungs: self.rows(RUNGS, [id], rung_row)?,
            profiles: self.rows(PROFILES, [id], profile_row)?,
            requirements: self.rows(REQUIREMENTS, [id], requirement_row)?,
            comparison: self.comparison(id)?,
            looks: self.rows(LOOKS, [id], look_row)?,
            search: self.search(id)?,
            probes: self.rows(search::PROBES, [id], search::probe_row)?,
            clients: self.rows(search::CLIENTS, [id], search::clients_row)?,
            facts: self.rows(FACTS, [id], fact_row)?,
        };
        drop(snapshot);
        Ok(view)
    }

    fn slow(&self, detailed: (RunId, u32, u32)) -> Result<Vec<SlowRow>, LedgerError> {
        let mut all = self.rows(SLOW, detailed, slow_row)?;
        for own in all.chunk_by_mut(|a, b| a.trial_id == b.trial_id) {
            own.sort_by_key(|slow| (Reverse(slow.latency_ns), slow.at_ns));
        }
        Ok(all)
    }

    /// The slices of one trial, in order.
    pub fn slices(&self, trial: TrialId) -> Result<Vec<SliceRow>, LedgerError> {
        let sql = "SELECT * FROM slice WHERE trial_id = ?1 ORDER BY ordinal";
        self.rows(sql, params![trial], slice_row)
    }

    /// The histograms by second of one trial, in order; `second` is set in all of them.
    pub fn seconds(&self, trial: TrialId) -> Result<Vec<HistogramRow>, LedgerError> {
        self.rows(
            "SELECT * FROM histogram WHERE trial_id = ?1 AND second IS NOT NULL
             ORDER BY second, clients, operation, kind",
            params![trial],
            histogram_row,
        )
    }

    /// Every figure that the calls of one trial measured themselves, in the order in which they
    /// came.
    pub fn values(&self, trial: TrialId) -> Result<Vec<ValueRow>, LedgerError> {
        let sql = "SELECT * FROM value WHERE trial_id = ?1 ORDER BY ordinal";
        self.rows(sql, params![trial], value_row)
    }

    /// The rows of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<Vec<T>>>()?)
    }
}

pub(crate) const TARGETS: &str = "SELECT * FROM target WHERE run_id = ?1 ORDER BY ordinal";
pub(crate) const POINTS: &str = "SELECT * FROM point WHERE run_id = ?1 ORDER BY ordinal";
pub(crate) const ROUNDS: &str = "SELECT round.* FROM round JOIN point ON point.id = round.point_id
    WHERE round.run_id = ?1 ORDER BY point.ordinal, round.ordinal";
pub(crate) const TRIALS: &str = "SELECT trial.* FROM trial
    JOIN round ON round.id = trial.round_id
    JOIN point ON point.id = round.point_id
    JOIN target ON target.id = trial.target_id
    WHERE round.run_id = ?1 ORDER BY point.ordinal, round.ordinal, target.ordinal";
// The rows of trials come in the order of rounds and targets: that is the order in which SQLite
// finds them, so that it has nothing to sort.
const SLICES: &str = "SELECT slice.* FROM slice
    JOIN trial ON trial.id = slice.trial_id
    JOIN round ON round.id = trial.round_id
    WHERE round.run_id = ?1 ORDER BY round.id, trial.target_id, slice.ordinal";
const HISTOGRAMS: &str = "SELECT histogram.* FROM histogram
    JOIN trial ON trial.id = histogram.trial_id
    JOIN round ON round.id = trial.round_id
    WHERE round.run_id = ?1 AND histogram.second IS NULL
    ORDER BY round.id, trial.target_id, clients, operation, kind";
const FINDINGS: &str = "SELECT finding.* FROM finding
    JOIN trial ON trial.id = finding.trial_id
    JOIN round ON round.id = trial.round_id
    WHERE round.run_id = ?1 ORDER BY finding.id";
const SLOW: &str = "SELECT slow.* FROM slow
    JOIN trial ON trial.id = slow.trial_id
    JOIN round ON round.id = trial.round_id
    JOIN point ON point.id = round.point_id
    WHERE round.run_id = ?1 AND point.ordinal BETWEEN ?2 AND ?3
    ORDER BY round.id, trial.target_id";
const VALUES: &str = "SELECT value.* FROM value
    JOIN trial ON trial.id = value.trial_id
    JOIN round ON round.id = trial.round_id
    JOIN point ON point.id = round.point_id
    WHERE round.run_id = ?1 AND (
        point.ordinal BETWEEN ?2 AND ?3
        OR value.name = (SELECT primary_metric FROM run WHERE id = ?1)
        OR value.name IN (SELECT name FROM program_figure WHERE run_id = ?1)
    )
    ORDER BY round.id, trial.target_id, value.ordinal";
// These rows are numerous: looking up a column by its name would take as long as reading it.
const COUNTERS: &str = "SELECT trial_id, name, grows, value FROM counter
    JOIN trial ON trial.id = counter.trial_id
    JOIN round ON round.id = trial.round_id
    JOIN point ON point.id = round.point_id
    WHERE round.run_id = ?1 AND point.ordinal BETWEEN ?2 AND ?3
    ORDER BY round.id, trial.target_id, counter.name";
const USAGE: &str = "SELECT trial_id, name, value FROM usage
    JOIN trial ON trial.id = usage.trial_id
    JOIN round ON round.id = trial.round_id
    JOIN point ON point.id = round.point_id
    WHERE round.run_id = ?1 AND point.ordinal BETWEEN ?2 AND ?3
    ORDER BY round.id, trial.target_id, usage.name";
const REACHED: &str = "SELECT reached.* FROM reached
    JOIN trial ON trial.id = reached.trial_id
    JOIN round ON round.id = trial.round_id
    WHERE round.run_id = ?1 ORDER BY round.id, trial.target_id, rank";
const REQUIREMENTS: &str = "SELECT requirement.* FROM requirement
    JOIN point ON point.id = requirement.point_id
    WHERE requirement.run_id = ?1 ORDER BY point.ordinal, requirement.rowid";
const LOOKS: &str = "SELECT look.* FROM look JOIN point ON point.id = look.point_id
    WHERE look.run_id = ?1 ORDER BY point.ordinal, look.rounds";
const FACTS: &str = "SELECT fact.* FROM fact JOIN target ON target.id = fact.target_id
    WHERE target.run_id = ?1 ORDER BY target.ordinal, fact.name";

/// The present state of a run: one left `running` by a process that has ended was interrupted.
pub(crate) fn effective_state(row: &Row<'_>) -> rusqlite::Result<RunState> {
    let state = row.get("state")?;
    let process = ProcessMark {
        pid: row.get("pid")?,
        pid_namespace: row.get("pid_namespace")?,
        boot_id: row.get("boot_id")?,
        started_ticks: row.get("process_started_ticks")?,
    };
    Ok(match state {
        RunState::Running if process.is_gone() => RunState::Interrupted,
        _ => state,
    })
}

pub(crate) fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        suite_id: row.get("suite_id")?,
        fingerprint_id: row.get("fingerprint_id")?,
        command: row.get("command")?,
        version: row.get("version")?,
        seed: row.get::<_, i64>("seed")?.cast_unsigned(),
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
        state: effective_state(row)?,
        note: row.get("note")?,
        settings: json(row, "settings")?,
        primary_metric: row.get("primary_metric")?,
        same_within: row.get("same_within")?,
        confidence: row.get("confidence")?,
    })
}

fn suite_row(row: &Row<'_>) -> rusqlite::Result<SuiteRow> {
    Ok(SuiteRow {
        hash: row.get("hash")?,
        path: row.get("path")?,
        title: row.get("title")?,
        claims: json(row, "claims")?,
        compromises: json(row, "compromises")?,
        text: row.get("text")?,
    })
}

pub(crate) fn target_row(row: &Row<'_>) -> rusqlite::Result<(TargetId, TargetRow)> {
    let target = TargetRow {
        run_id: row.get("run_id")?,
        ordinal: row.get("ordinal")?,
        name: row.get("name")?,
        description: row.get("description")?,
        skipped: row.get("skipped")?,
    };
    Ok((row.get("id")?, target))
}

pub(crate) fn point_row(row: &Row<'_>) -> rusqlite::Result<(PointId, PointRow)> {
    let point = PointRow {
        run_id: row.get("run_id")?,
        ordinal: row.get("ordinal")?,
        label: row.get("label")?,
        keys: object(row, "keys")?,
    };
    Ok((row.get("id")?, point))
}

pub(crate) fn round_row(row: &Row<'_>) -> rusqlite::Result<(RoundId, RoundRow)> {
    let round = RoundRow {
        run_id: row.get("run_id")?,
        point_id: row.get("point_id")?,
        ordinal: row.get("ordinal")?,
        seed: row.get::<_, i64>("seed")?.cast_unsigned(),
        started_ns: row.get("started_ns")?,
    };
    Ok((row.get("id")?, round))
}

pub(crate) fn trial_row(row: &Row<'_>) -> rusqlite::Result<(TrialId, TrialRow)> {
    let trial = TrialRow {
        round_id: row.get("round_id")?,
        target_id: row.get("target_id")?,
        validity: row.get("validity")?,
        reason: row.get("reason")?,
        state: row.get("state")?,
        started_ns: row.get("started_ns")?,
        measured_ns: row.get("measured_ns")?,
        operations: row.get("operations")?,
        wrong: row.get("wrong")?,
        missing: row.get("missing")?,
        misses: row.get("misses")?,
        hits: row.get("hits")?,
        generator_busy: row.get("generator_busy")?,
        server_cpu_ns: row.get("server_cpu_ns")?,
        server_user_ns: row.get("server_user_ns")?,
        server_system_ns: row.get("server_system_ns")?,
        server_rss_bytes: row.get("server_rss_bytes")?,
        generator_cpu_ns: row.get("generator_cpu_ns")?,
        generator_user_ns: row.get("generator_user_ns")?,
        generator_system_ns: row.get("generator_system_ns")?,
        generator_rss_bytes: row.get("generator_rss_bytes")?,
        prepare_ns: row.get("prepare_ns")?,
        warmup_ns: row.get("warmup_ns")?,
        stationary: row.get("stationary")?,
        steady_after_ns: row.get("steady_after_ns")?,
        overloaded: row.get("overloaded")?,
        offered: row.get("offered")?,
        backlog_most: row.get("backlog_most")?,
        failed_at: row.get("failed_at")?,
        unchecked: row.get("unchecked")?,
        elements: row.get("elements")?,
        payload_bytes: row.get("payload_bytes")?,
        received_bytes: row.get("received_bytes")?,
        sent_bytes: row.get("sent_bytes")?,
        fairness: row.get("fairness")?,
        staleness_p50_ns: row.get("staleness_p50_ns")?,
        staleness_p99_ns: row.get("staleness_p99_ns")?,
        staleness_max_ns: row.get("staleness_max_ns")?,
        shared: row.get("shared")?,
    };
    Ok((row.get("id")?, trial))
}

fn usage_row(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    Ok(UsageRow { trial_id: row.get(0)?, name: row.get(1)?, value: row.get(2)? })
}

fn look_row(row: &Row<'_>) -> rusqlite::Result<LookRow> {
    Ok(LookRow {
        run_id: row.get("run_id")?,
        point_id: row.get("point_id")?,
        rounds: row.get("rounds")?,
    })
}

fn fact_row(row: &Row<'_>) -> rusqlite::Result<FactRow> {
    Ok(FactRow {
        target_id: row.get("target_id")?,
        name: row.get("name")?,
        value: row.get("value")?,
    })
}

fn reached_row(row: &Row<'_>) -> rusqlite::Result<ReachedRow> {
    Ok(ReachedRow {
        trial_id: row.get("trial_id")?,
        rank: row.get("rank")?,
        code: row.get("code")?,
        strength: row.get("strength")?,
        evidence: row.get("evidence")?,
    })
}

fn slice_row(row: &Row<'_>) -> rusqlite::Result<SliceRow> {
    Ok(SliceRow {
        trial_id: row.get("trial_id")?,
        ordinal: row.get("ordinal")?,
        start_ns: row.get("start_ns")?,
        duration_ns: row.get("duration_ns")?,
        operations: row.get("operations")?,
        server_cpu_ns: row.get("server_cpu_ns")?,
        generator_cpu_ns: row.get("generator_cpu_ns")?,
        validity: row.get("validity")?,
        reason: row.get("reason")?,
    })
}

fn histogram_row(row: &Row<'_>) -> rusqlite::Result<HistogramRow> {
    Ok(HistogramRow {
        trial_id: row.get("trial_id")?,
        clients: row.get("clients")?,
        operation: row.get("operation")?,
        kind: row.get("kind")?,
        second: row.get("second")?,
        count: row.get("count")?,
        min_ns: row.get("min_ns")?,
        mean_ns: row.get("mean_ns")?,
        p50_ns: row.get("p50_ns")?,
        p90_ns: row.get("p90_ns")?,
        p95_ns: row.get("p95_ns")?,
        p99_ns: row.get("p99_ns")?,
        p999_ns: row.get("p999_ns")?,
        max_ns: row.get("max_ns")?,
        data: row.get("data")?,
    })
}

fn finding_row(row: &Row<'_>) -> rusqlite::Result<FindingRow> {
    Ok(FindingRow {
        trial_id: row.get("trial_id")?,
        at_ns: row.get("at_ns")?,
        operation: row.get("operation")?,
        key: row.get("key")?,
        expected: row.get("expected")?,
        received: row.get("received")?,
        note: row.get("note")?,
    })
}

fn slow_row(row: &Row<'_>) -> rusqlite::Result<SlowRow> {
    Ok(SlowRow {
        trial_id: row.get("trial_id")?,
        at_ns: row.get("at_ns")?,
        latency_ns: row.get("latency_ns")?,
        clients: row.get("clients")?,
        operation: row.get("operation")?,
    })
}

fn value_row(row: &Row<'_>) -> rusqlite::Result<ValueRow> {
    Ok(ValueRow {
        trial_id: row.get("trial_id")?,
        ordinal: row.get("ordinal")?,
        name: row.get("name")?,
        value: row.get("value")?,
    })
}

/// Figures by trial and name, in the order in which names first come.
fn trial_values(rows: Vec<ValueRow>) -> Vec<TrialValues> {
    let mut all: Vec<TrialValues> = Vec::new();
    let mut first = 0;
    for ValueRow { trial_id, name, value, .. } in rows {
        if all.last().is_some_and(|last| last.trial_id != trial_id) {
            first = all.len();
        }
        match all[first..].iter_mut().find(|one| one.name == name) {
            Some(one) => one.values.push(value),
            None => all.push(TrialValues { trial_id, name, values: vec![value] }),
        }
    }
    all
}

fn counter_row(row: &Row<'_>) -> rusqlite::Result<CounterRow> {
    Ok(CounterRow {
        trial_id: row.get(0)?,
        name: row.get(1)?,
        grows: row.get(2)?,
        value: row.get(3)?,
    })
}

fn requirement_row(row: &Row<'_>) -> rusqlite::Result<RequirementRow> {
    Ok(RequirementRow {
        run_id: row.get("run_id")?,
        point_id: row.get("point_id")?,
        expression: row.get("expression")?,
        value: row.get("value")?,
        outcome: row.get("outcome")?,
    })
}
