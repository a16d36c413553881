//! One round: all targets of a point started fresh and prepared, then measured alternately in
//! shuffled slices, then stopped. Without slices each target is started, measured and stopped
//! before the next one, so that what a target does by itself takes nothing from the others.

use std::sync::Arc;

use ledger::FailedAt;
use load::Counters;
use rand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::options::RunError;
use super::progress::RunEvent;
use super::runner::Runner;
use super::target_run::TargetRun;
use super::trial::Trial;
use crate::deploy::{DeployError, Deployed};
use crate::drive::program::Program;
use crate::drive::{DriveError, LoadResult, Session, SessionConfig};
use crate::in_process::Assignment;
use crate::observe::{AdvisorMeter, CounterMeter, GroupMeter, Owner, Roots, group_members};
use crate::placeholders;
use crate::plan::{CountersOf, Point, Target, TargetKind};

/// Longer slices are shown second by second while they are measured.
const SHOWN_BY_SECOND_NS: u64 = 1_000_000_000;

/// The position in the run at which targets are started.
struct RoundPosition<'a> {
    point: usize,
    ordinal: u32,
    workload_round: u64,
    /// The targets that are started now.
    turn: &'a [usize],
}

impl Runner<'_> {
    /// Measures every target of a point once; the trials come in the order of the suite.
    pub(super) fn round(
        &mut self,
        point: usize,
        ordinal: u32,
        seed: u64,
    ) -> Result<Vec<Trial>, RunError> {
        let mut random = SmallRng::seed_from_u64(seed);
        let workload_round = random.next_u64();
        let mut target_runs = std::mem::take(&mut self.kept[point]);
        for target_run in &mut target_runs {
            target_run.trial = Trial::begin(target_run.trial.target, ordinal, self.now());
            target_run.trial.is_warm = true;
        }
        let mut trials = Vec::new();
        for turn in self.turns(point, &mut random) {
            let place = RoundPosition { point, ordinal, workload_round, turn: &turn };
            self.begin(&mut target_runs, &place, &mut random);
            self.measure(&mut target_runs, point, ordinal, &mut random);
            trials.extend(self.conclude(point, std::mem::take(&mut target_runs)));
        }
        trials.sort_by_key(|trial| trial.target);
        Ok(trials)
    }

    /// Returns the trials; stops the targets, unless they keep running.
    fn conclude(&mut self, point: usize, target_runs: Vec<TargetRun>) -> Vec<Trial> {
        let stopped = self.stopped();
        let mut trials = Vec::new();
        for mut target_run in target_runs {
            match stopped {
                true => target_run.trial.invalidate("interrupted"),
                false => {
                    target_run.hold_answered();
                    let advisor = target_run.advisor.as_ref();
                    target_run.trial.advised = advisor.and_then(AdvisorMeter::conclude);
                }
            }
            let here = &self.plan.points[point];
            target_run.trial.judge_answers(&here.requirements);
            let target = &here.targets[target_run.trial.target];
            if let TargetKind::Batch(_) = target.kind {
                target_run.trial.note_failed_runs();
            }
            if let Some(wrap) = &target.wrap {
                target_run.trial.invalidate(format!("its timings are those of {} too", wrap[0]));
            }
            trials.push(target_run.trial.clone());
            if self.plan.rounds.restart || target_run.session.is_none() {
                self.end(target_run);
            } else {
                self.kept[point].push(target_run);
            }
        }
        trials
    }

    /// The targets that run at the same time: all of them, or one after another where there are no
    /// slices.
    fn turns(&self, point: usize, random: &mut SmallRng) -> Vec<Vec<usize>> {
        let all = 0..self.plan.points[point].targets.len();
        if self.plan.rounds.slice.is_some() || !self.plan.rounds.restart {
            return vec![all.collect()];
        }
        let mut turns: Vec<Vec<usize>> = all.map(|index| vec![index]).collect();
        turns.shuffle(random);
        turns
    }

    /// Starts, prepares and warms up the targets at this position that don't run already.
    fn begin(
        &mut self,
        target_runs: &mut Vec<TargetRun>,
        place: &RoundPosition<'_>,
        random: &mut SmallRng,
    ) {
        let RoundPosition { point, ordinal, workload_round, turn } = *place;
        let here = &self.plan.points[point];
        let runs =
            |index: usize| target_runs.iter().any(|target_run| target_run.trial.target == index);
        let wanted = |(index, target): &(usize, &Target)| {
            target.is_measured() && turn.contains(index) && !runs(*index)
        };
        let mut order: Vec<(usize, &Target)> =
            here.targets.iter().enumerate().filter(wanted).collect();
        order.shuffle(random);
        for (index, target) in order {
            self.report_activity(point, ordinal, &format!("starting {}", target.name));
            let mut target_run = self.start(index, target, ordinal);
            if target_run.deployed.is_some() && !self.stopped() {
                self.report_activity(point, ordinal, &format!("preparing {}", target.name));
                self.make_ready(&mut target_run, point, target, workload_round);
            }
            if self.plan.rounds.stops_between && turn.len() > 1 {
                target_run.leave_turn(true);
            }
            target_runs.push(target_run);
        }
    }

    /// Closes a target's connections and stops it.
    pub(super) fn end(&mut self, mut target_run: TargetRun) {
        drop(target_run.session.take());
        drop(target_run.service.take());
        drop(target_run.advisor.take());
        if let Some(deployed) = target_run.deployed.take() {
            self.watch.leave(&deployed.name);
            self.deployer.stop(deployed);
        }
    }

    /// Stops the targets that ran from round to round.
    pub(super) fn stop_kept(&mut self) {
        for target_run in std::mem::take(&mut self.kept).into_iter().flatten() {
            self.end(target_run);
        }
    }

    pub(super) fn start(&mut self, index: usize, target: &Target, ordinal: u32) -> TargetRun {
        let mut trial = Trial::begin(index, ordinal, self.now());
        let stop = self.stop.clone();
        let stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
        let deployed = match self.deployer.deploy(target, &stopped) {
            Ok(deployed) => Some(deployed),
            Err(DeployError::Interrupted) => None,
            Err(error) => {
                trial.fail(FailedAt::Start, format!("at its start: {error}"));
                None
            }
        };
        let owner = deployed.as_ref().map_or(Owner::Unseen, |deployed| owner_of(target, deployed));
        let mut cpus = target.cpus.clone();
        if let Some(roots) = owner.roots() {
            self.watch.follow(&target.name, roots.clone());
            if let TargetKind::Address(_) = target.kind {
                cpus = crate::cpus::cpus_of(&group_members(roots.clone()));
            }
        }
        let meter = owner.roots().cloned().map(GroupMeter::new);
        let service = deployed.as_ref().and_then(|deployed| self.service(target, deployed));
        let (exe, stop) = (self.deployer.exe().to_owned(), Arc::clone(&self.stop));
        let (session, advisor, outside, measured, repeats) = (None, None, None, 0, 0);
        TargetRun {
            session,
            deployed,
            exe,
            stop,
            owner,
            meter,
            cpus,
            service,
            advisor,
            outside,
            trial,
            measured,
            repeats,
        }
    }

    /// The program that loads the target, where one does.
    fn program(
        &self,
        deployed: &Deployed,
        point: usize,
        target: &Target,
        round: u64,
    ) -> Result<Option<Program>, String> {
        let group = &self.plan.points[point].clients[0];
        let value = |name: &str| match name {
            "connections" => Some(group.connections.to_string()),
            "pipeline" => Some(group.pipeline.to_string()),
            "threads" => Some(group.threads.to_string()),
            name => deployed.value(name),
        };
        let complete = |text: &String| placeholders::complete(text, &value);
        let env = target.env.iter().map(|(name, text)| (name.clone(), complete(text)));
        let program = |command: Vec<String>, is_target: bool| Program {
            exe: self.deployer.exe().to_owned(),
            command,
            env: env.collect(),
            cpus: if is_target { &target.cpus } else { &group.cpus }.clone(),
            folder: self.deployer.folder_beside(&format!("{}-client", target.name)),
            is_target,
        };
        // {seconds} is filled in for each piece of load, and doubled braces with it.
        let fill = |argument: &String| placeholders::fill(argument, &value);
        let client = target.client.as_ref().map(|client| client.iter().map(fill).collect());
        if target.kind == TargetKind::InProcess {
            let command = client.map_or_else(|| self.assign(point, target, round), Ok)?;
            return Ok(Some(program(command, true)));
        }
        Ok(client.map(|client| program(client, false)))
    }

    /// Writes the assignment of an in-process evaluation, and returns its command line.
    fn assign(&self, point: usize, target: &Target, round: u64) -> Result<Vec<String>, String> {
        let settings = self.plan.settings_as_text();
        let assignment = Assignment {
            path: self.plan.path.clone(),
            text: self.plan.text.clone(),
            settings: settings.iter().map(|(key, value)| format!("{key}={value}")).collect(),
            point,
            target: target.name.clone(),
            round,
        };
        let folder = self.deployer.folder_beside(&format!("{}-client", target.name));
        let file = folder.join("assignment.json");
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, serde_json::json!(assignment).to_string()));
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        let exe = self.deployer.exe().display().to_string();
        let file = file.display().to_string();
        Ok(vec![exe, "in-process".to_owned(), file, "{seconds}".to_owned()])
    }

    /// Starts reading the target's own counters, where there is a way to.
    fn service(&self, target: &Target, deployed: &Deployed) -> Option<CounterMeter> {
        let (address, how): (_, Arc<dyn Counters>) = match &target.counters {
            CountersOf::Dialect => {
                let how = target.speaks.dialect.counters.filter(|_| deployed.batch.is_none())?;
                (deployed.address.clone(), Arc::new(how))
            }
            CountersOf::Page(host, path, make) => {
                let fill = |text| placeholders::complete(text, &|name| deployed.value(name));
                let host = fill(host);
                // Both were checked with the plan.
                let address = wire::Address::Internet(host.parse().ok()?);
                (address, make(&host, &fill(path)).ok()?)
            }
            CountersOf::Nowhere => return None,
        };
        CounterMeter::start(&target.name, address, how, self.watch.sink()).ok()
    }

    /// Connects, writes every key, and warms up; a failure becomes the trial's reason.
    pub(super) fn make_ready(
        &mut self,
        target_run: &mut TargetRun,
        point: usize,
        target: &Target,
        round: u64,
    ) {
        let here = &self.plan.points[point];
        self.keep_data(target_run, here, target, round);
        let Some(deployed) = &target_run.deployed else { return };
        let is_restored = deployed.is_restored;
        let program = match self.program(deployed, point, target, round) {
            Ok(program) => program,
            Err(problem) => {
                return target_run.trial.fail(FailedAt::Prepare, problem);
            }
        };
        let load = SessionConfig { program, ..self.load(here, deployed, target, round) };
        let outcome = Session::open(&load).and_then(|mut session| {
            let before = self.now();
            if !is_restored {
                let result = self.prepare(&mut session, target)?;
                target_run.trial.prepared(result, self.now() - before);
            }
            let before = self.now();
            if self.plan.rounds.warm_up.ns > 0 && !target_run.trial.has_failed() {
                self.warm_up(&mut session, &mut target_run.trial)?;
                target_run.trial.warmup_ns = Some(self.now() - before);
                target_run.trial.is_warm = true;
            }
            Ok(session)
        });
        match outcome {
            // A target that has failed is not measured.
            Ok(session) if !target_run.trial.has_failed() => {
                target_run.session = Some(session);
                target_run.advisor = target_run.deployed.as_ref().and_then(|deployed| {
                    let workload = Arc::clone(&here.workload.workload);
                    let advisor = workload.advisor(&target.speaks, &deployed.address)?;
                    AdvisorMeter::start(&target.name, advisor).ok()
                });
            }
            Ok(_) => {}
            Err(error) => target_run.fail(FailedAt::Prepare, &error),
        }
    }

    /// Writes what the workload prepares, and says how far it is.
    fn prepare(
        &mut self,
        session: &mut Session,
        target: &Target,
    ) -> Result<LoadResult, DriveError> {
        let target = &target.name;
        let mut passed = |begun, parts| self.report(&RunEvent::Preparing { target, begun, parts });
        session.prepare(&mut passed)
    }

    /// The point's load, by this program's own clients, of a target that has been started.
    fn load<'b>(
        &self,
        here: &'b Point,
        deployed: &'b Deployed,
        target: &'b Target,
        round: u64,
    ) -> SessionConfig<'b> {
        SessionConfig {
            program: None,
            address: &deployed.address,
            batch: deployed.batch.clone(),
            speaks: &target.speaks,
            workload: &here.workload,
            clients: &here.clients,
            round,
            clock_zero: self.clock_zero,
            stop: self.stop.clone(),
            live: Some(self.live_stats.clone()),
        }
    }

    /// Prepares a kept data set that doesn't exist yet: writes every key, stops the target
    /// gracefully, keeps its data folder, and starts it again on a copy.
    fn keep_data(&mut self, target_run: &mut TargetRun, here: &Point, target: &Target, round: u64) {
        let is_wanted = |deployed: &&Deployed| target.kept_data.is_some() && !deployed.is_restored;
        let Some(deployed) = target_run.deployed.as_ref().filter(is_wanted) else { return };
        let load = self.load(here, deployed, target, round);
        let before = self.now();
        let prepared =
            Session::open(&load).and_then(|mut session| self.prepare(&mut session, target));
        match prepared {
            Ok(result) => target_run.trial.prepared(result, self.now() - before),
            Err(error) => return target_run.fail(FailedAt::Prepare, &error),
        }
        drop(target_run.service.take());
        self.watch.leave(&target.name);
        let Some(deployed) = target_run.deployed.take() else { return };
        if target_run.trial.has_failed() || self.stopped() {
            return self.deployer.stop(deployed);
        }
        if let Err(error) = self.deployer.keep(target, deployed) {
            return target_run.trial.fail(FailedAt::Prepare, format!("keeping its data: {error}"));
        }
        let again = self.start(target_run.trial.target, target, target_run.trial.round);
        (target_run.deployed, target_run.owner) = (again.deployed, again.owner);
        (target_run.meter, target_run.service) = (again.meter, again.service);
        if let Some(reason) = again.trial.reason.filter(|_| target_run.deployed.is_none()) {
            target_run.trial.fail(FailedAt::Start, reason);
        }
    }

    fn measure(
        &mut self,
        target_runs: &mut [TargetRun],
        point: usize,
        ordinal: u32,
        random: &mut SmallRng,
    ) {
        let rounds = &self.plan.rounds;
        let here = &self.plan.points[point];
        let slice_ns = rounds.slice.unwrap_or(rounds.measure).ns;
        let slices = rounds.measure.ns.div_ceil(slice_ns);
        let take_turns = target_runs.iter().filter(|one| one.session.is_some()).count() > 1;
        for target_run in target_runs.iter_mut() {
            match take_turns {
                true => target_run.leave_turn(rounds.stops_between),
                false => target_run.outside = None,
            }
            target_run.measured = 0;
            target_run.repeats = if rounds.is_cold { 0 } else { slices.div_ceil(2) };
        }
        loop {
            let waits = |target_run: &TargetRun| {
                target_run.session.is_some() && target_run.measured < slices
            };
            let mut order: Vec<usize> =
                (0..target_runs.len()).filter(|i| waits(&target_runs[*i])).collect();
            if order.is_empty() {
                return;
            }
            order.shuffle(random);
            for index in order {
                if self.stopped() {
                    return;
                }
                let target_run = &mut target_runs[index];
                let done_ns = target_run.measured * slice_ns;
                let length_ns = slice_ns.min(rounds.measure.ns - done_ns);
                let name = &here.targets[target_run.trial.target].name;
                let number = target_run.measured + 1;
                let activity = format!("measuring {name}, slice {number} of {slices}");
                let (target, second) = (target_run.trial.target, self.now() / 1_000_000_000);
                let by_second = length_ns > SHOWN_BY_SECOND_NS;
                self.report_activity(point, ordinal, &activity);
                if by_second {
                    self.report(&RunEvent::SliceBegins { target, second });
                    self.live_stats.begin();
                }
                target_run.take_turn(rounds.stops_between);
                let start = self.now();
                let watch = &mut self.watch;
                let seen = target_run.slice(start, length_ns, here, watch, rounds.repeat_disturbed);
                if take_turns {
                    target_run.leave_turn(rounds.stops_between);
                }
                self.live_stats.end();
                if let Some(stats) = seen {
                    self.report(&RunEvent::SliceEnds(&stats));
                }
            }
        }
    }
}

/// Whose a target is: its group's where the lab has started it, else whose its address is.
fn owner_of(target: &Target, deployed: &Deployed) -> Owner {
    match (deployed.group(), &target.kind) {
        (Some(group), _) => Owner::Processes(Roots::Group(group)),
        (None, TargetKind::Address(address)) => Owner::of(address, target.medium),
        (None, _) => Owner::Unseen,
    }
}
