//! Assembles a [`Summary`] from what the ledger holds of a run.

use std::collections::HashMap;
use std::hash::Hash;

use judge::{Metrics, median, series_interval};
use ledger::{
    AdviceRow, ClientsRow, CounterRow, FactRow, FailedAt, HistogramRow, LedgerError, LookRow,
    PointId, PointRow, ReachedRow, RunRow, RunView, SliceRow, StatementRow, StreamRow, StretchRow,
    TargetId, TargetRow, TrialId, TrialRow, TrialValues, UsageRow, Validity,
};

use crate::advice::ActivitySummary;
use crate::by_trial::ByTrial;
use crate::call_values::{EVALUATIONS, ValueFigures};
use crate::capacity::CapacitySummary;
use crate::compare::Contest;
use crate::counters::CounterFigures;
use crate::figures::Figures;
use crate::grade::{Grade, counted as counted_trials};
use crate::groups::GroupFigures;
use crate::ladder::measured;
use crate::limits::LimitsSummary;
use crate::littles_law::{LawViolation, violation};
use crate::metrics::metrics;
use crate::modes::modes;
use crate::point_summary::{PointSummary, TargetSummary};
use crate::sample_spread::SampleSpread;
use crate::scaling::scalings;
use crate::slices::{counted, drifts, thirds};
use crate::streams::StreamFigures;
use crate::stretches::StretchFigures;
use crate::summary::{CallSummary, InTrial, RequirementSummary, Summary};
use crate::trial_summary::{TrialSummary, at_point};
use crate::verdicts::{Judged, judge, stored};

impl Summary {
    /// Sums a run up.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub fn of(view: RunView) -> Result<Summary, LedgerError> {
        let parts = Parts::of(&view);
        let metrics = parts.metrics.clone();
        let point_index = index_of(view.points.iter().map(|(id, _)| *id));
        let target_index = index_of(view.targets.iter().map(|(id, _)| *id));
        let trials = trial_summaries(&view, &point_index, &target_index, &parts)?;
        let mut points = Vec::with_capacity(view.points.len());
        for (index, (_, row)) in view.points.iter().enumerate() {
            let here: Vec<&TrialSummary> = at_point(&trials, index).iter().collect();
            points.push(point_summary(row, &here, &view, &parts)?);
        }
        judge_drifts(&view.run, &mut points, &trials);
        let trial_index = index_of(trials.iter().map(|trial| trial.id));
        let mut events = in_trials(view.events, &trial_index, |row| row.trial_id);
        events.sort_by_key(|one| (one.trial, one.row.ordinal));
        let requirements = placed(view.requirements, &point_index, |row| row.point_id);
        let looks = view.points.iter().map(|(id, _)| looks_at(*id, &view.looks)).collect();
        let contest = view.comparison.map(|row| Contest { row, looks });
        let probes = placed(view.probes, &point_index, |row| row.point_id).collect();
        let capacity = view.search.map(|row| CapacitySummary::of(row, probes, &points));
        let facts = view.targets.iter().map(|(id, _)| facts_of(*id, &view.facts));
        let facts: Vec<Vec<(String, String)>> = facts.collect();
        let place = |point: PointId| point_index.get(&point).copied();
        let at = |target: TargetId| target_index.get(&target).copied();
        let rungs: Vec<_> = placed(view.rungs, &target_index, |row| row.target_id).collect();
        let calls = placed(view.calls, &point_index, |row| row.point_id);
        let calls = calls.filter_map(|(point, row)| {
            Some(CallSummary { point, target: at(row.target_id)?, row })
        });
        let targets: Vec<TargetRow> = view.targets.into_iter().map(|(_, row)| row).collect();
        let counts = (targets.len(), points.len());
        let carried = placed(view.carried, &point_index, |row| row.point_id);
        let carried = carried.filter_map(|(point, row)| Some((point, at(row.target_id)?, row)));
        let known = stored(&view.verdicts, &metrics, place, at)?;
        let once = crate::starts::of_targets(&facts, &trials);
        let ladder = measured(&rungs, &targets);
        let contested = contest.as_ref();
        let anew = || judge(&view.run, &metrics, contested, &ladder, counts, &once, &trials);
        let Judged { comparisons, rung_comparisons } = known.unwrap_or_else(anew);
        Ok(Summary {
            id: view.id,
            uid: view.uid,
            comparisons,
            rung_comparisons,
            capacity,
            littles_law: broken_laws(&view.clients, &point_index, &trials),
            scalings: scalings(targets.len(), &points, &trials, view.run.confidence),
            modes: modes(metrics.named(&view.run.primary_metric), counts, &trials),
            metrics,
            contest,
            facts,
            run: view.run,
            suite: view.suite,
            fingerprint: view.fingerprint,
            findings: in_trials(view.findings, &trial_index, |row| row.trial_id),
            events,
            slow: in_trials(view.slow, &trial_index, |row| row.trial_id),
            requirements: requirements
                .map(|(point, row)| RequirementSummary { point, row })
                .collect(),
            carried: carried.collect(),
            calls: calls.collect(),
            floors: view.floors,
            rungs,
            profiles: placed(view.profiles, &target_index, |row| row.target_id).collect(),
            targets,
            points,
            trials,
        })
    }
}

/// The metrics of a run, and the rows that belong to its trials.
struct Parts<'view> {
    metrics: Metrics,
    histograms: ByTrial<'view, HistogramRow>,
    slices: ByTrial<'view, SliceRow>,
    values: ByTrial<'view, TrialValues>,
    counters: ByTrial<'view, CounterRow>,
    streams: ByTrial<'view, StreamRow>,
    stretches: ByTrial<'view, StretchRow>,
    reached: ByTrial<'view, ReachedRow>,
    usage: ByTrial<'view, UsageRow>,
    statements: ByTrial<'view, StatementRow>,
    advice: ByTrial<'view, AdviceRow>,
}

impl<'view> Parts<'view> {
    fn of(view: &'view RunView) -> Parts<'view> {
        Parts {
            metrics: metrics(&view.program_figures),
            histograms: ByTrial::new(&view.histograms, |row| row.trial_id),
            slices: ByTrial::new(&view.slices, |row| row.trial_id),
            values: ByTrial::new(&view.values, |row| row.trial_id),
            counters: ByTrial::new(&view.counters, |row| row.trial_id),
            streams: ByTrial::new(&view.streams, |row| row.trial_id),
            stretches: ByTrial::new(&view.stretches, |row| row.trial_id),
            reached: ByTrial::new(&view.reached, |row| row.trial_id),
            usage: ByTrial::new(&view.usage, |row| row.trial_id),
            statements: ByTrial::new(&view.statements, |row| row.trial_id),
            advice: ByTrial::new(&view.advice, |row| row.trial_id),
        }
    }

    fn values(&self, trial: TrialId) -> impl Iterator<Item = (&'view str, &'view [f64])> {
        self.values.of(trial).iter().map(|row| (&row.name[..], &row.values[..]))
    }
}

fn usage(rows: &[&UsageRow]) -> judge::limits::Figures {
    let mut figures = judge::limits::Figures::default();
    for row in rows {
        // Figures of a newer loadline are skipped.
        figures.set(&row.name, row.value);
    }
    figures
}

/// Rows with the index of what they belong to, where that is known.
fn placed<Id: Hash + Eq, Row>(
    rows: Vec<Row>,
    index: &HashMap<Id, usize>,
    id: fn(&Row) -> Id,
) -> impl Iterator<Item = (usize, Row)> {
    rows.into_iter().filter_map(move |row| Some((*index.get(&id(&row))?, row)))
}

fn in_trials<Row>(
    rows: Vec<Row>,
    index: &HashMap<TrialId, usize>,
    id: fn(&Row) -> TrialId,
) -> Vec<InTrial<Row>> {
    placed(rows, index, id).map(|(trial, row)| InTrial { trial, row }).collect()
}

/// The place of each id.
pub(crate) fn index_of<Id: Hash + Eq>(ids: impl Iterator<Item = Id>) -> HashMap<Id, usize> {
    ids.enumerate().map(|(index, id)| (id, index)).collect()
}

/// Where Little's law is broken, over all valid trials and their groups of clients.
fn broken_laws(
    clients: &[ClientsRow],
    point_index: &HashMap<PointId, usize>,
    trials: &[TrialSummary],
) -> Vec<LawViolation> {
    let mut at: HashMap<usize, Vec<&ClientsRow>> = HashMap::new();
    for row in clients {
        if let Some(point) = point_index.get(&row.point_id) {
            at.entry(*point).or_default().push(row);
        }
    }
    let mut found = Vec::new();
    // Without a latency for each operation (with only a sample, for example) the law doesn't apply.
    let applies = |trial: &TrialSummary| trial.is_valid() && trial.has_all_latencies();
    for (index, trial) in trials.iter().enumerate().filter(|(_, trial)| applies(trial)) {
        for row in at.get(&trial.point).into_iter().flatten() {
            found.extend(violation(index, &trial.groups, row, trial.row.measured_ns));
        }
    }
    found
}

/// Valid rounds at each look at a point.
fn looks_at(point: PointId, looks: &[LookRow]) -> Vec<u32> {
    looks.iter().filter(|look| look.point_id == point).map(|look| look.rounds).collect()
}

/// The build facts of a target.
fn facts_of(target: TargetId, facts: &[FactRow]) -> Vec<(String, String)> {
    let own = facts.iter().filter(|fact| fact.target_id == target);
    own.map(|fact| (fact.name.clone(), fact.value.clone())).collect()
}

fn trial_summaries(
    view: &RunView,
    point_index: &HashMap<PointId, usize>,
    target_index: &HashMap<TargetId, usize>,
    parts: &Parts<'_>,
) -> Result<Vec<TrialSummary>, LedgerError> {
    let rounds: HashMap<_, _> = view.rounds.iter().map(|(id, row)| (*id, row)).collect();
    let mut summaries = Vec::with_capacity(view.trials.len());
    for (id, row) in &view.trials {
        let place = || {
            let round = rounds.get(&row.round_id)?;
            let point = *point_index.get(&round.point_id)?;
            Some((round.ordinal, point, *target_index.get(&row.target_id)?))
        };
        // Foreign keys rule out trials without round or target; one would belong nowhere.
        let Some((round, point, target)) = place() else { continue };
        let (counted, slices_measured_again) = counted(row, parts.slices.of(*id));
        let histograms = parts.histograms.of(*id);
        let values = ValueFigures::merged(parts.values(*id));
        summaries.push(TrialSummary {
            id: *id,
            point,
            round,
            target,
            figures: Figures::of_trial(row, histograms, parts.streams.of(*id), &values)?,
            stream_groups: StreamFigures::by_clients(parts.streams.of(*id), &[row])?,
            groups: GroupFigures::by_operation(histograms)?,
            values,
            counters: CounterFigures::merged(&[(parts.counters.of(*id), row.operations)]),
            slices_measured_again,
            thirds: thirds(&counted),
            usage: usage(parts.usage.of(*id)),
            statements: parts.statements.of(*id).iter().copied().cloned().collect(),
            row: row.clone(),
        });
    }
    Ok(summaries)
}

fn point_summary(
    row: &PointRow,
    here: &[&TrialSummary],
    view: &RunView,
    parts: &Parts<'_>,
) -> Result<PointSummary, LedgerError> {
    let measured = |target: usize| here.iter().any(|trial| trial.target == target);
    let wanted: Vec<usize> = (0..view.targets.len()).filter(|target| measured(*target)).collect();
    // Trials are in the order of rounds.
    let rounds: Vec<_> = here.chunk_by(|a, b| a.round == b.round).collect();
    let with = |round: &[&TrialSummary], validity: Validity| {
        round.iter().filter(|trial| trial.row.validity == validity).count()
    };
    let whole = |round: &&&[&TrialSummary]| with(round, Validity::Valid) == wanted.len();
    let disturbed = |round: &&&[&TrialSummary]| {
        with(round, Validity::Invalid) == 0 && with(round, Validity::Disturbed) > 0
    };
    let slices =
        here.iter().map(|trial| parts.slices.of(trial.id)).filter(|slices| slices.len() > 1);
    let longest = |slices: &[&SliceRow]| slices.iter().map(|slice| slice.duration_ns).max();
    let slice_ns: Vec<u64> = slices.filter_map(longest).collect();
    let finished = here.iter().filter(|trial| trial.row.measured_ns > 0);
    let measured_ns: Vec<u64> = finished.map(|trial| trial.row.measured_ns).collect();
    let mut targets = Vec::with_capacity(wanted.len());
    for target in &wanted {
        targets.push(target_summary(*target, here, &view.run, parts)?);
    }
    Ok(PointSummary {
        row: row.clone(),
        rounds: rounds.len(),
        valid_rounds: rounds.iter().filter(whole).count(),
        disturbed_rounds: rounds.iter().filter(disturbed).count(),
        measured_ns: median_ns(&measured_ns),
        slice_ns: median_ns(&slice_ns),
        targets,
    })
}

fn target_summary(
    target: usize,
    here: &[&TrialSummary],
    run: &RunRow,
    parts: &Parts<'_>,
) -> Result<TargetSummary, LedgerError> {
    let all: Vec<&TrialSummary> =
        here.iter().copied().filter(|trial| trial.target == target).collect();
    let counted = counted_trials(&all);
    let rows: Vec<&TrialRow> = counted.iter().map(|trial| &trial.row).collect();
    let histograms: Vec<&[&HistogramRow]> =
        counted.iter().map(|trial| parts.histograms.of(trial.id)).collect();
    let counters: Vec<_> =
        counted.iter().map(|trial| (parts.counters.of(trial.id), trial.row.operations)).collect();
    let streams: Vec<&StreamRow> =
        counted.iter().flat_map(|trial| parts.streams.of(trial.id)).copied().collect();
    let stretches: Vec<&StretchRow> =
        counted.iter().flat_map(|trial| parts.stretches.of(trial.id)).copied().collect();
    let interval = |of: &dyn Fn(&Figures) -> Option<f64>| {
        let values: Vec<f64> = counted.iter().filter_map(|trial| of(&trial.figures)).collect();
        series_interval(&values, run.confidence)
    };
    let primary = parts.metrics.named(&run.primary_metric);
    let sum = |of: fn(&TrialRow) -> u64| all.iter().map(|trial| of(&trial.row)).sum();
    let number = |of: fn(&TrialRow) -> bool| all.iter().filter(|trial| of(&trial.row)).count();
    let values = ValueFigures::merged(counted.iter().flat_map(|trial| parts.values(trial.id)));
    let figures = Figures::of_trials(&rows, &histograms, &streams, &values)?;
    let has_samples = values.iter().any(|one| one.name == EVALUATIONS);
    let samples = if has_samples { SampleSpread::of(&histograms)? } else { None };
    Ok(TargetSummary {
        target,
        trials: all.len(),
        valid_trials: number(|trial| trial.validity == Validity::Valid),
        grade: Grade::of(&all),
        disturbed_trials: number(|trial| trial.validity == Validity::Disturbed),
        overloaded_trials: number(|trial| trial.overloaded && trial.validity != Validity::Invalid),
        failed_starts: number(|trial| trial.failed_at == Some(FailedAt::Start)),
        slices_measured_again: all.iter().map(|trial| trial.slices_measured_again).sum(),
        rate: interval(&|figures| figures.rate_per_s),
        primary: primary.and_then(|primary| interval(&|figures| figures.value(primary))),
        groups: GroupFigures::by_clients(&histograms.concat(), &figures)?,
        figures,
        stream_groups: StreamFigures::by_clients(&streams, &rows)?,
        stretches: StretchFigures::of(&stretches)?,
        measured_ns: rows.iter().map(|trial| trial.measured_ns).sum(),
        rate_ns: rows.iter().map(|trial| trial.rate_ns).sum(),
        values,
        samples,
        counters: CounterFigures::merged(&counters),
        drift: None,
        limits: LimitsSummary::of(&all, &parts.reached),
        activity: ActivitySummary::of(&all, &parts.statements, &parts.advice),
        operations_of_all: sum(|trial| trial.operations),
        wrong_of_all: sum(|trial| trial.wrong),
        wrong_outside: sum(|trial| trial.wrong_outside),
        refused_of_all: sum(|trial| trial.refused),
        missing_of_all: sum(|trial| trial.missing),
        unchecked_of_all: sum(|trial| trial.unchecked),
    })
}

/// Judges drift as one family: of many targets and points, some drift by chance.
fn judge_drifts(run: &RunRow, points: &mut [PointSummary], trials: &[TrialSummary]) {
    let mut rounds = Vec::new();
    for (index, point) in points.iter().enumerate() {
        for target in &point.targets {
            let here = at_point(trials, index)
                .iter()
                .filter(|trial| trial.target == target.target && trial.is_valid());
            rounds.push(here.filter_map(|trial| trial.thirds).collect());
        }
    }
    let targets = points.iter_mut().flat_map(|point| &mut point.targets);
    for (target, drift) in targets.zip(drifts(run, &rounds)) {
        target.drift = drift;
    }
}

fn median_ns(values: &[u64]) -> Option<u64> {
    let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
    median(&values).map(|value| value as u64)
}
