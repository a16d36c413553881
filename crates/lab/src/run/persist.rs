//! A run in the ledger: one transaction per round, so that a run killed in the middle leaves
//! every finished round readable.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice;

use findings::{Figures, ValueFigures};
use hdrhistogram::Histogram;
use judge::{Direction, Metrics};
use ledger::{
    ArrivalsKind, Better, CallRow, ClientsRow, ComparisonRow, CounterRow, DataState, EventRow,
    FactRow, FindingRow, FingerprintRow, FloorRow, HistogramKind, HistogramRow, Ledger,
    LedgerError, LookRow, PointId, PointRow, ProbeRow, ProfileRow, ProgramFigureRow, ReachedRow,
    RequirementOutcome, RoundId, RoundRow, RunId, RunRow, RunState, RungRow, SearchRow, SliceRow,
    SlowRow, StreamRow, SuiteRow, TargetId, TargetRow, TrialId, TrialRow, UsageRow, Validity,
    ValueRow,
};

use super::advised;
use super::require::Terms;
use super::required::{self, Place};
use super::strace::SystemCall;
use super::stretches;
use super::trial::Trial;
use crate::drive::{Figure, empty_histogram, fairness};
use crate::observe::{SeriesWriter, Watch, program_facts, sha256};
use crate::plan::{Arrivals, Plan, Point, Target, TargetKind};

/// Writes one run.
pub(super) struct RunWriter<'a> {
    ledger: &'a mut Ledger,
    run: RunId,
    metrics: Metrics,
    /// The metric that carries verdicts, by its name in suites.
    primary: String,
    targets: Vec<TargetId>,
    points: Vec<PointId>,
    recorder: SeriesWriter,
    /// This host's memory bandwidth of one thread, as it was last measured.
    pub(super) copy_bytes_per_s: f64,
    /// Its loopback's bandwidth for large messages, measured before each round that has those.
    pub(super) loopback_bytes_per_s: Option<f64>,
}

impl<'a> RunWriter<'a> {
    pub(super) fn begin(
        ledger: &'a mut Ledger,
        plan: &Plan,
        fingerprint: serde_json::Value,
        command: String,
        seed: u64,
    ) -> Result<Self, LedgerError> {
        ledger.begin_batch()?;
        let suite_id = ledger.add_suite(&SuiteRow {
            hash: sha256(plan.text.as_bytes()),
            path: plan.path.display().to_string(),
            title: plan.title.clone(),
            claims: plan.claims.clone(),
            compromises: plan.compromises.clone(),
            text: plan.text.clone(),
        })?;
        let hash = sha256(fingerprint.to_string().as_bytes());
        let json = match fingerprint {
            serde_json::Value::Object(json) => json,
            _ => serde_json::Map::new(),
        };
        let fingerprint_id = ledger.add_fingerprint(&FingerprintRow { hash, json })?;
        let run = ledger.add_run(&RunRow {
            suite_id,
            fingerprint_id,
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            started_at: jiff::Timestamp::now().to_string(),
            ended_at: None,
            state: RunState::Running,
            note: None,
            settings: plan.settings_as_text(),
            primary_metric: plan.rounds.primary.suite.to_string(),
            same_within: plan.rounds.same_within.fraction,
            confidence: plan.rounds.confidence(),
        })?;
        add_figures(ledger, run, &plan.metrics)?;
        let mut targets = Vec::new();
        for (ordinal, target) in (0..).zip(plan.targets()) {
            let row = TargetRow {
                run_id: run,
                ordinal,
                name: target.name.clone(),
                description: describe(target),
                skipped: target.skipped.clone(),
            };
            let target_id = ledger.add_target(&row)?;
            targets.push(target_id);
            if let Some(rung) = &target.rung {
                let (decision, reason) = rung.decision.clone().unzip();
                let note = rung.note.clone();
                ledger.add_rung(&RungRow { target_id, note, decision, reason })?;
            }
        }
        let mut points = Vec::new();
        for (ordinal, point) in (0..).zip(&plan.points) {
            points.push(add_point(ledger, run, ordinal, point)?);
        }
        add_comparison(ledger, run, plan)?;
        ledger.commit_batch()?;
        let names = plan.targets().iter().map(|target| target.name.clone());
        let recorder = SeriesWriter::new(run, names.zip(targets.iter().copied()));
        let (copy_bytes_per_s, loopback_bytes_per_s) = (0.0, None);
        let (metrics, primary) = (plan.metrics.clone(), plan.rounds.primary.suite.to_string());
        Ok(Self {
            ledger,
            run,
            metrics,
            primary,
            targets,
            points,
            recorder,
            copy_bytes_per_s,
            loopback_bytes_per_s,
        })
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// Writes a trial with its metrics, and checks the suite's expectations.
    fn trial(
        &mut self,
        round: RoundId,
        point: &Point,
        trial: &mut Trial,
    ) -> Result<(), LedgerError> {
        let target = self.targets[trial.target];
        let row = row(round, target, point, trial);
        let id = self.ledger.add_trial(&row)?;
        let histograms = self.histograms(id, point, trial)?;
        let streams = self.streams(id, point, trial)?;
        stretches::store(self.ledger, id, point, trial)?;
        self.evidence(id, point, trial)?;
        let reported =
            trial.figures.iter().map(|(name, value)| (&name[..], slice::from_ref(value)));
        let reported = ValueFigures::merged(reported);
        let histograms: Vec<_> = histograms.iter().collect();
        let streams: Vec<_> = streams.iter().collect();
        let figures = Figures::of_trial(&row, &histograms, &streams, &reported)?;
        for (name, value) in figures.stored(&self.metrics) {
            self.ledger.add_figure(id, &name, value)?;
        }
        trial.set_metrics(figures.seen(&self.metrics));
        let is_batch = matches!(point.targets[trial.target].kind, TargetKind::Batch(_));
        let runs = is_batch.then_some(trial.counts.operations);
        let needed = self.needed(point, trial);
        if trial.hold_reported(&needed, runs) & trial.hold_against(&point.expected) {
            return Ok(());
        }
        self.ledger.set_trial(id, &self::row(round, target, point, trial))
    }

    /// The reported figures that a trial is judged by: the primary one and, of the first target,
    /// those of its requirements.
    fn needed(&self, point: &Point, trial: &Trial) -> Vec<&str> {
        let required = |name: &str| {
            let mut all = point.requirements.iter().flat_map(|one| one.figure.names());
            trial.target == 0 && all.any(|figure| figure == name)
        };
        let names = self.metrics.reported().iter().map(|metric| &*metric.suite);
        names.filter(|name| *name == self.primary || required(name)).collect()
    }

    pub(super) fn begin_round(
        &mut self,
        point: usize,
        ordinal: u32,
        seed: u64,
        started_ns: u64,
    ) -> Result<RoundId, LedgerError> {
        let point_id = self.points[point];
        let row = RoundRow { run_id: self.run, point_id, ordinal, seed, started_ns };
        self.ledger.add_round(&row)
    }

    pub(super) fn end_round(
        &mut self,
        round: RoundId,
        point: &Point,
        trials: &mut [Trial],
        watch: &Watch,
    ) -> Result<(), LedgerError> {
        self.ledger.begin_batch()?;
        for trial in trials {
            self.trial(round, point, trial)?;
        }
        self.recorder.write(self.ledger, watch)?;
        self.ledger.commit_batch()
    }

    /// Writes the facts of each target's program, which exists by now.
    pub(super) fn facts(&mut self, plan: &Plan, exe: &Path) -> Result<(), LedgerError> {
        for (target, id) in plan.targets().iter().zip(&self.targets) {
            if target.skipped.is_some() {
                continue;
            }
            let known = target.facts.iter().cloned();
            for (name, value) in known.chain(program_facts(target, exe)) {
                self.ledger.add_fact(&FactRow { target_id: *id, name, value })?;
            }
        }
        Ok(())
    }

    /// Writes the parameters of a capacity search.
    pub(super) fn search(&mut self, row: &SearchRow) -> Result<(), LedgerError> {
        self.ledger.add_search(row)
    }

    /// Adds a point, which replaces all others from here on.
    pub(super) fn next_point(&mut self, point: &Point, ordinal: u32) -> Result<(), LedgerError> {
        self.points = vec![add_point(self.ledger, self.run, ordinal, point)?];
        Ok(())
    }

    /// Writes the outcome of the load that is the only point now.
    pub(super) fn probe(
        &mut self,
        load: f64,
        outcome: RequirementOutcome,
        reason: Option<String>,
    ) -> Result<(), LedgerError> {
        let point_id = self.points[0];
        self.ledger.add_probe(&ProbeRow { point_id, load, outcome, reason })
    }

    pub(super) fn look(&mut self, point: usize, rounds: u32) -> Result<(), LedgerError> {
        let point_id = self.points[point];
        self.ledger.add_look(&LookRow { run_id: self.run, point_id, rounds })
    }

    pub(super) fn requirements<'p>(
        &mut self,
        index: usize,
        point: &'p Point,
        trials: &[Trial],
        terms: Terms<'p>,
    ) -> Result<(), LedgerError> {
        let place = Place { run: self.run, point: self.points[index], targets: &self.targets };
        required::store(self.ledger, &place, point, trials, terms)
    }

    /// Ends the run with its verdicts, however it ended. It ends also when it can't be judged.
    pub(super) fn end(&mut self, state: RunState, note: Option<&str>) -> Result<(), LedgerError> {
        if !self.ledger.in_batch() {
            self.ledger.begin_batch()?;
        }
        let judged = findings::store_verdicts(self.ledger, self.run);
        self.ledger.finish_run(self.run, state, &jiff::Timestamp::now().to_string(), note)?;
        judged
    }

    /// Writes what else was seen in a trial.
    fn evidence(&mut self, id: TrialId, point: &Point, trial: &Trial) -> Result<(), LedgerError> {
        for (ordinal, slice) in (0..).zip(&trial.slices) {
            self.ledger.add_slice(&SliceRow {
                trial_id: id,
                ordinal,
                start_ns: slice.start,
                duration_ns: slice.duration_ns,
                operations: slice.operations,
                server_cpu_ns: slice.server.map(|cpu| cpu.total_ns),
                generator_cpu_ns: Some(slice.generator.total_ns),
                validity: match slice.is_disturbed {
                    true => Validity::Disturbed,
                    false => Validity::Valid,
                },
                causes: slice.causes.clone(),
            })?;
        }
        self.limits(id, point, trial)?;
        advised::store(self.ledger, self.targets[trial.target], id, trial)?;
        for slow in trial.slowest.in_order() {
            self.ledger.add_slow(&SlowRow {
                trial_id: id,
                at_ns: slow.at,
                latency_ns: slow.latency_ns,
                clients: point.clients[slow.group].name.clone(),
                operation: point.workload.operations()[slow.operation].name.to_string(),
            })?;
        }
        for (ordinal, event) in (0..).zip(&trial.events) {
            self.ledger.add_event(&EventRow {
                trial_id: id,
                ordinal,
                at_ns: event.at,
                took_ns: event.took_ns,
                name: event.name.clone(),
                action: event.action.clone(),
                exit_status: event.exit_status,
                failure: event.failure.clone(),
            })?;
        }
        for (ordinal, (name, value)) in (0..).zip(&trial.figures) {
            let (name, value) = (name.clone(), *value);
            self.ledger.add_value(&ValueRow { trial_id: id, ordinal, name, value })?;
        }
        for (name, grows, value) in trial.counted() {
            let name = name.clone();
            self.ledger.add_counter(&CounterRow { trial_id: id, name, grows, value })?;
        }
        for found in &trial.wrong_answers {
            self.ledger.add_finding(&FindingRow {
                trial_id: id,
                at_ns: found.at,
                operation: found.finding.operation.to_string(),
                key: String::from_utf8_lossy(&found.finding.key).into_owned(),
                expected: found.finding.expected.clone(),
                received: found.finding.received.clone(),
                note: found.finding.note.clone(),
            })?;
        }
        Ok(())
    }

    /// Writes where the CPU time of a target went at the first point.
    pub(super) fn profile(
        &mut self,
        target: usize,
        ordinal: u32,
        shares: Vec<(String, f64)>,
    ) -> Result<(), LedgerError> {
        let (point_id, target_id) = (self.points[0], self.targets[target]);
        for (function, share) in shares {
            let row = ProfileRow { point_id, target_id, ordinal, function, share };
            self.ledger.add_profile(&row)?;
        }
        Ok(())
    }

    /// Writes the host's floors.
    pub(super) fn floors<N: Into<String>>(
        &mut self,
        floors: Vec<(N, f64)>,
    ) -> Result<(), LedgerError> {
        for (name, value_ns) in floors {
            let (run_id, name) = (self.run, name.into());
            self.ledger.add_floor(&FloorRow { run_id, name, value_ns })?;
        }
        Ok(())
    }

    /// Writes the system calls of one side at one point.
    pub(super) fn calls(
        &mut self,
        point: usize,
        target: usize,
        operations: u64,
        of_generator: bool,
        calls: &[SystemCall],
    ) -> Result<(), LedgerError> {
        for call in calls {
            self.ledger.add_call(&CallRow {
                point_id: self.points[point],
                target_id: self.targets[target],
                of_generator,
                name: call.name.clone(),
                operations,
                calls: call.calls,
                errors: call.errors,
                system_ns: call.system_ns,
            })?;
        }
        Ok(())
    }

    /// Writes resource usage, and the limits reached.
    fn limits(&mut self, id: TrialId, point: &Point, trial: &Trial) -> Result<(), LedgerError> {
        if trial.measured_ns == 0 {
            return Ok(());
        }
        let mut figures = trial.usage.figures(trial, point, self.copy_bytes_per_s);
        figures.loopback_bytes_per_s = self.loopback_bytes_per_s;
        for (name, ..) in judge::limits::FIGURES {
            if let Some(value) = figures.get(name) {
                let name = (*name).to_owned();
                self.ledger.add_usage(&UsageRow { trial_id: id, name, value })?;
            }
        }
        for (rank, one) in (1..).zip(judge::limits::limits_reached(&figures)) {
            self.ledger.add_reached(&ReachedRow {
                trial_id: id,
                rank,
                code: one.limit.code.to_owned(),
                strength: one.strength,
                evidence: one.evidence,
            })?;
        }
        Ok(())
    }

    /// Writes the histogram of the whole trial, and those of each figure by group, operation and
    /// second; returns all but those by second.
    fn histograms(
        &mut self,
        id: TrialId,
        point: &Point,
        trial: &Trial,
    ) -> Result<Vec<HistogramRow>, LedgerError> {
        let whole = HistogramRow::of(id, "", "", HistogramKind::Latency, None, &trial.latency())?;
        self.ledger.add_histogram(&whole)?;
        let mut written = vec![whole];
        let mut sums: BTreeMap<_, Histogram<u64>> = BTreeMap::new();
        for interval in &trial.intervals {
            let second = u32::try_from(interval.second).ok();
            for second in [None, second] {
                let key = (interval.figure, interval.group, interval.operation, second);
                interval.histogram.add_to(sums.entry(key).or_insert_with(empty_histogram));
            }
        }
        for ((figure, group, operation, second), histogram) in &sums {
            let kind = match figure {
                Figure::Latency => HistogramKind::Latency,
                Figure::Service => HistogramKind::Service,
                Figure::Lag => HistogramKind::Lag,
                // It is written with the streams.
                Figure::Staleness => continue,
            };
            let clients = &point.clients[*group].name;
            let operation = &point.workload.operations()[*operation].name[..];
            let row = HistogramRow::of(id, clients, operation, kind, *second, histogram)?;
            self.ledger.add_histogram(&row)?;
            written.extend(second.is_none().then_some(row));
        }
        Ok(written)
    }
}

impl RunWriter<'_> {
    /// Writes and returns the streams of each group.
    fn streams(
        &mut self,
        id: TrialId,
        point: &Point,
        trial: &Trial,
    ) -> Result<Vec<StreamRow>, LedgerError> {
        let mut written = Vec::new();
        for sum in &trial.streams {
            let row = StreamRow {
                trial_id: id,
                clients: point.clients[sum.group].name.clone(),
                streams: sum.each.len() as u64,
                updates: sum.updates(),
                missed: sum.missed,
                merged: sum.merged,
                least_updates: sum.each.iter().copied().min().unwrap_or(0),
                fairness: fairness(sum.each.iter().copied()),
                staleness_p50_ns: None,
                staleness_p99_ns: None,
                staleness_max_ns: None,
                staleness: Vec::new(),
            };
            let staleness = trial.staleness(Some(sum.group));
            let row = row.with_staleness(&staleness)?;
            self.ledger.add_stream(&row)?;
            written.push(row);
        }
        Ok(written)
    }
}

/// Writes what a comparison fixes before its first round.
fn add_comparison(ledger: &mut Ledger, run: RunId, plan: &Plan) -> Result<(), LedgerError> {
    let Some(sequence) = &plan.rounds.sequence else { return Ok(()) };
    let (least_shown, least_shown_from) = sequence.least_shown.clone().unzip();
    ledger.add_comparison(&ComparisonRow {
        run_id: run,
        error: sequence.error,
        rounds_most: plan.rounds.at_most,
        factor: sequence.factor.clone(),
        least_shown,
        least_shown_from,
    })
}

/// Writes the figures that programs report.
fn add_figures(ledger: &mut Ledger, run_id: RunId, metrics: &Metrics) -> Result<(), LedgerError> {
    for (ordinal, metric) in (0..).zip(metrics.reported()) {
        let better = match metric.direction {
            Direction::HigherIsBetter => Better::Higher,
            Direction::LowerIsBetter => Better::Lower,
        };
        let (name, unit) = (metric.suite.to_string(), metric.unit.word().to_owned());
        ledger.add_program_figure(&ProgramFigureRow { run_id, ordinal, name, better, unit })?;
    }
    Ok(())
}

/// Writes a point with its client groups.
fn add_point(
    ledger: &mut Ledger,
    run_id: RunId,
    ordinal: u32,
    point: &Point,
) -> Result<PointId, LedgerError> {
    let keys = point.keys.clone().into_iter().collect();
    let row = PointRow { run_id, ordinal, label: point.label.clone(), keys };
    let id = ledger.add_point(&row)?;
    add_clients(ledger, id, point)?;
    Ok(id)
}

/// Writes the client groups of a point.
fn add_clients(ledger: &mut Ledger, point_id: PointId, point: &Point) -> Result<(), LedgerError> {
    for group in &point.clients {
        let (arrivals, think_ns) = match &group.arrivals {
            Arrivals::Closed => (ArrivalsKind::Closed, None),
            Arrivals::Think(pause) => (ArrivalsKind::Think, Some(pause.ns)),
            Arrivals::Steps => (ArrivalsKind::Steps, None),
            Arrivals::Open(_) => (ArrivalsKind::Schedule, None),
            Arrivals::Subscribe { .. } => (ArrivalsKind::Subscribe, None),
        };
        ledger.add_clients(&ClientsRow {
            point_id,
            name: group.name.clone(),
            connections: group.connections as u64,
            pipeline: group.pipeline as u64,
            threads: group.threads as u64,
            arrivals,
            think_ns,
        })?;
    }
    Ok(())
}

fn row(round: RoundId, target: TargetId, point: &Point, trial: &Trial) -> TrialRow {
    let server = trial.server.filter(|_| trial.measured_ns > 0);
    let server_split = server.and_then(crate::observe::Cpu::split_ns);
    let state = if trial.is_warm { DataState::Warm } else { DataState::Cold };
    let generator_split = trial.generator.split_ns();
    let seen = |count: u64| (count > 0).then_some(count);
    TrialRow {
        validity: trial.validity,
        reason: trial.reason.clone(),
        causes: trial.causes(),
        measured_ns: trial.measured_ns,
        rate_ns: trial.rate_ns,
        operations: trial.counts.operations,
        wrong: trial.counts.wrong,
        wrong_outside: trial.wrong_outside,
        refused: trial.counts.refused,
        missing: trial.counts.missing,
        misses: trial.counts.misses,
        unchecked: trial.counts.unchecked,
        hits: trial.hits(point),
        generator_busy: trial.busy(),
        server_cpu_ns: server.map(|cpu| cpu.total_ns),
        server_user_ns: server_split.map(|(user, _)| user),
        server_system_ns: server_split.map(|(_, system)| system),
        server_rss_bytes: trial.server_rss_bytes,
        generator_cpu_ns: Some(trial.generator.total_ns),
        generator_user_ns: generator_split.map(|(user, _)| user),
        generator_system_ns: generator_split.map(|(_, system)| system),
        generator_rss_bytes: trial.generator_rss_bytes,
        overloaded: trial.is_overloaded(),
        offered: (trial.pressure.offered > 0).then_some(trial.pressure.offered),
        schedule_ns: (trial.pressure.offered > 0).then_some(trial.pressure.schedule_ns),
        backlog_most: (trial.pressure.offered > 0).then_some(trial.pressure.backlog_most),
        failed_at: trial.failed_at,
        elements: seen(trial.counts.elements),
        payload_bytes: seen(trial.counts.payload_bytes),
        received_bytes: seen(trial.counts.received_bytes),
        sent_bytes: seen(trial.counts.sent_bytes),
        fairness: fairness(trial.updates_of_each()),
        prepare_ns: trial.prepare_ns,
        warmup_ns: trial.warmup_ns,
        stationary: trial.stationary,
        steady_after_ns: trial.steady_after_ns,
        shared: (trial.measured_ns > 0).then(|| super::limit_figures::shared(trial, point)),
        ..TrialRow::unfinished(round, target, state, trial.started)
    }
}

/// A target's description, in one line.
fn describe(target: &Target) -> String {
    let what = match &target.kind {
        TargetKind::Service(service, arguments) => {
            format!("serve {service} {}", arguments.join(" "))
        }
        TargetKind::Command(command) | TargetKind::Batch(command) => command.join(" "),
        TargetKind::Address(address) => address.to_string(),
        TargetKind::InProcess => format!("in process: {}", target.speaks.dialect.doc),
    };
    match &target.client {
        Some(client) if target.kind == TargetKind::InProcess => client.join(" "),
        Some(client) => format!("{what}; loaded by {}", client.join(" ")),
        None => what,
    }
}
