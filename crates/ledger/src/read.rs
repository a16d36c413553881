//! Reading a ledger: everything of one run in plain data.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use rusqlite::types::FromSql;
use rusqlite::{Params, Row as SqlRow, params};

use crate::error::LedgerError;
use crate::ids::{PointId, RoundId, RunId, TargetId, TrialId};
use crate::open::Ledger;
use crate::process::ProcessMark;
use crate::rows::{
    AdviceRow, CallRow, CarriedRow, ClientsRow, ComparisonRow, CounterRow, EventRow, FactRow,
    FindingRow, FingerprintRow, FloorRow, HistogramRow, LookRow, PointRow, ProbeRow, ProfileRow,
    ProgramFigureRow, ReachedRow, RequirementRow, RoundRow, RunRow, RungRow, SearchRow, SliceRow,
    SlowRow, StatementRow, StreamRow, StretchRow, SuiteRow, TargetRow, TrialRow, UsageRow,
    ValueRow, VerdictRow,
};
use crate::table::Row;
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
    /// Stretches of schedules, by trial, clients and place.
    pub stretches: Vec<StretchRow>,
    /// Usage figures of its trials, by trial and name.
    pub usage: Vec<UsageRow>,
    /// The limits that its trials reached, by trial and rank.
    pub reached: Vec<ReachedRow>,
    /// The statements that its targets executed, by trial and rank.
    pub statements: Vec<StatementRow>,
    /// What would help its targets, by trial and rank.
    pub advice: Vec<AdviceRow>,
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
    /// Which of its suite's named loads its targets carry, by point and name.
    pub carried: Vec<CarriedRow>,
    /// Its verdicts, if they were stored when it ended.
    pub verdicts: Vec<VerdictRow>,
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
        let (uid, run) = self.run(id)?;
        let view = RunView {
            id,
            uid,
            suite: self.only("WHERE id = ?1", [run.suite_id])?,
            fingerprint: self.only("WHERE id = ?1", [run.fingerprint_id])?,
            run,
            program_figures: self.program_figures(id)?,
            targets: self.all_with_ids(TARGETS, [id])?,
            points: self.all_with_ids(POINTS, [id])?,
            rounds: self.all_with_ids(ROUNDS, [id])?,
            trials: self.all_with_ids(TRIALS, [id])?,
            slices: self.of_trials("", "slice.ordinal", [id])?,
            histograms: self.of_trials("AND second IS NULL", "clients, operation, kind", [id])?,
            findings: self.all(FINDINGS, [id])?,
            events: self.of_trials("", "event.ordinal", [id])?,
            slow: if with_slow { self.slow(detailed)? } else { Vec::new() },
            values: trial_values(self.of_trials(VALUES_OF_POINTS, "value.ordinal", detailed)?),
            counters: self.of_trials(OF_POINTS, "name", detailed)?,
            streams: self.of_trials("", "clients", [id])?,
            stretches: self.of_trials("", "clients, stretch.ordinal", [id])?,
            usage: self.of_trials(OF_POINTS, "name", detailed)?,
            reached: self.of_trials("", "rank", [id])?,
            statements: self.of_trials(OF_POINTS, "rank", detailed)?,
            advice: self.of_trials("", "rank", [id])?,
            calls: self.of_points("target_id, side DESC, calls DESC, name", id)?,
            floors: self.all("WHERE run_id = ?1 ORDER BY name", [id])?,
            rungs: self.all(RUNGS, [id])?,
            profiles: self.of_points("target_id, profile.ordinal, share DESC", id)?,
            requirements: self.of_points("requirement.rowid", id)?,
            carried: self.of_points("carried.name, target_id", id)?,
            verdicts: self.all("WHERE run_id = ?1 ORDER BY ordinal", [id])?,
            comparison: self.all("WHERE run_id = ?1", [id])?.pop(),
            looks: self.of_points("rounds", id)?,
            search: self.all("WHERE run_id = ?1", [id])?.pop(),
            probes: self.of_points("load", id)?,
            clients: self.of_points("name", id)?,
            facts: self.all(FACTS, [id])?,
        };
        drop(snapshot);
        // They are written with the run, and a report begins with the first.
        if view.targets.is_empty() {
            let ledger = self.connection.path().unwrap_or_default().to_owned();
            return Err(LedgerError::NoTargets { ledger, run: id });
        }
        Ok(view)
    }

    fn slow(&self, detailed: (RunId, u32, u32)) -> Result<Vec<SlowRow>, LedgerError> {
        let mut all: Vec<SlowRow> = self.of_trials(OF_POINTS, "latency_ns", detailed)?;
        for own in all.chunk_by_mut(|a, b| a.trial_id == b.trial_id) {
            own.sort_by_key(|slow| (Reverse(slow.latency_ns), slow.at_ns));
        }
        Ok(all)
    }

    /// The slices of one trial, in order.
    pub fn slices(&self, trial: TrialId) -> Result<Vec<SliceRow>, LedgerError> {
        self.all("WHERE trial_id = ?1 ORDER BY ordinal", [trial])
    }

    /// The histograms by second of one trial, in order; `second` is set in all of them.
    pub fn seconds(&self, trial: TrialId) -> Result<Vec<HistogramRow>, LedgerError> {
        let rest = "WHERE trial_id = ?1 AND second IS NOT NULL
            ORDER BY second, clients, operation, kind";
        self.all(rest, [trial])
    }

    /// Every figure that the calls of one trial measured themselves, in the order in which they
    /// came.
    pub fn values(&self, trial: TrialId) -> Result<Vec<ValueRow>, LedgerError> {
        self.all("WHERE trial_id = ?1 ORDER BY ordinal", [trial])
    }

    /// A run and its identity, in its present state: one left `running` by a process that has ended
    /// was interrupted.
    pub(crate) fn run(&self, id: RunId) -> Result<(String, RunRow), LedgerError> {
        let sql = format!(
            "SELECT {}, uid, pid, pid_namespace, boot_id, process_started_ticks
             FROM run WHERE id = ?1",
            RunRow::TABLE.selected()
        );
        let found = self.rows(&sql, params![id], |row| {
            let run = RunRow::read(row, 0)?;
            Ok((row.get("uid")?, RunRow { state: effective_state(row)?, ..run }))
        })?;
        found.into_iter().next().ok_or(LedgerError::NoSuchRun(id))
    }

    /// The rows of a table that the rest of the query leaves.
    pub(crate) fn all<R: Row>(
        &self,
        rest: &str,
        params: impl Params,
    ) -> Result<Vec<R>, LedgerError> {
        let sql = format!("SELECT {} FROM {} {rest}", R::TABLE.selected(), R::TABLE.name);
        self.rows(&sql, params, |row| R::read(row, 0))
    }

    /// The same with their ids.
    pub(crate) fn all_with_ids<I: FromSql, R: Row>(
        &self,
        rest: &str,
        params: impl Params,
    ) -> Result<Vec<(I, R)>, LedgerError> {
        let (name, fields) = (R::TABLE.name, R::TABLE.selected());
        let sql = format!("SELECT {name}.id, {fields} FROM {name} {rest}");
        self.rows(&sql, params, |row| Ok((row.get(0)?, R::read(row, 1)?)))
    }

    /// The row of a table that the rest of the query leaves.
    fn only<R: Row>(&self, rest: &str, params: impl Params) -> Result<R, LedgerError> {
        let found = self.all(rest, params)?.pop();
        Ok(found.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    /// The rows of a table below trials that are of run ?1 and meet a condition. They come in the
    /// order of rounds and targets: that is the order in which SQLite finds them, so that it has
    /// nothing to sort.
    fn of_trials<R: Row>(
        &self,
        condition: &str,
        order: &str,
        params: impl Params,
    ) -> Result<Vec<R>, LedgerError> {
        let rest = format!(
            "JOIN trial ON trial.id = trial_id
             JOIN round ON round.id = trial.round_id
             WHERE round.run_id = ?1 {condition}
             ORDER BY round.id, trial.target_id, {order}"
        );
        self.all(&rest, params)
    }

    /// The rows of a table below the points of a run, point by point.
    fn of_points<R: Row>(&self, order: &str, run: RunId) -> Result<Vec<R>, LedgerError> {
        let rest = format!(
            "JOIN point ON point.id = point_id
             WHERE point.run_id = ?1 ORDER BY point.ordinal, {order}"
        );
        self.all(&rest, [run])
    }

    /// The rows of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&SqlRow<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<Vec<T>>>()?)
    }
}

pub(crate) const TARGETS: &str = "WHERE run_id = ?1 ORDER BY ordinal";
pub(crate) const POINTS: &str = "WHERE run_id = ?1 ORDER BY ordinal";
pub(crate) const ROUNDS: &str = "JOIN point ON point.id = point_id
    WHERE round.run_id = ?1 ORDER BY point.ordinal, round.ordinal";
pub(crate) const TRIALS: &str = "JOIN round ON round.id = round_id
    JOIN point ON point.id = round.point_id
    JOIN target ON target.id = target_id
    WHERE round.run_id = ?1 ORDER BY point.ordinal, round.ordinal, target.ordinal";
const FINDINGS: &str = "JOIN trial ON trial.id = trial_id
    JOIN round ON round.id = trial.round_id
    WHERE round.run_id = ?1 ORDER BY finding.id";
const RUNGS: &str = "JOIN target ON target.id = target_id
    WHERE target.run_id = ?1 ORDER BY target.ordinal";
const FACTS: &str = "JOIN target ON target.id = target_id
    WHERE target.run_id = ?1 ORDER BY target.ordinal, fact.name";

/// The condition of rows that are asked for by point.
const OF_POINTS: &str = "AND
    (SELECT ordinal FROM point WHERE point.id = round.point_id) BETWEEN ?2 AND ?3";
/// The same, and figures that comparisons are about of every point.
const VALUES_OF_POINTS: &str = "AND (
        (SELECT ordinal FROM point WHERE point.id = round.point_id) BETWEEN ?2 AND ?3
        OR value.name = (SELECT primary_metric FROM run WHERE id = ?1)
        OR value.name IN (SELECT name FROM program_figure WHERE run_id = ?1)
    )";

/// The present state of a run: one left `running` by a process that has ended was interrupted.
pub(crate) fn effective_state(row: &SqlRow<'_>) -> rusqlite::Result<RunState> {
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
