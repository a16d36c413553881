//! One round: all targets of a point started fresh and prepared, then measured alternately in
//! shuffled slices, then stopped. Without slices each target is started, measured and stopped
//! before the next one, so that what a target does by itself takes nothing from the others.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ledger::FailedAt;
use load::Counters;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::events::{self, Subject};
use super::trial::{Slice, Trial};
use super::usage::{Processes, Window, each_once, generator_cpus};
use super::{Conductor, Glimpse, LOOKED_INTO_NS, News, RunError};
use crate::deploy::{DeployError, Deployed, Guard};
use crate::drive::program::Program;
use crate::drive::{Assignment, DriveError, Load, Piece, Session};
use crate::observe::{
    self, Cpu, Disturbance, GroupMeter, OwnCpu, ServiceMeter, Totals, Wait, Watch,
};
use crate::plan::{CountersOf, Event, Point, Target, TargetKind};

/// One target through a round. The session comes before the process, so that its connections are
/// closed before the target is stopped.
pub(super) struct Bench {
    pub(super) session: Option<Session>,
    pub(super) deployed: Option<Deployed>,
    /// Ends what events start, when the lab is killed.
    guard: Arc<Guard>,
    /// Set when the run is to stop.
    stop: Arc<AtomicBool>,
    meter: Option<GroupMeter>,
    /// Reads what the target counts itself.
    service: Option<ServiceMeter>,
    trial: Trial,
    /// Slices measured so far in this round.
    measured: u64,
    /// How many disturbed slices may still be measured again in this round.
    repeats: u64,
}

/// Where in the run a target begins.
struct Place<'a> {
    point: usize,
    ordinal: u32,
    workload_round: u64,
    /// The targets whose turn it is.
    turn: &'a [usize],
}

impl Conductor<'_> {
    /// Measures every target of a point once; the trials come in the order of the suite.
    pub(super) fn round(
        &mut self,
        point: usize,
        ordinal: u32,
        seed: u64,
    ) -> Result<Vec<Trial>, RunError> {
        let mut random = SmallRng::seed_from_u64(seed);
        let workload_round = random.next_u64();
        let mut benches = std::mem::take(&mut self.kept[point]);
        for bench in &mut benches {
            bench.trial = Trial::begin(bench.trial.target, ordinal, self.now());
            bench.trial.is_warm = true;
        }
        let mut trials = Vec::new();
        for turn in self.turns(point, &mut random) {
            let place = Place { point, ordinal, workload_round, turn: &turn };
            self.begin(&mut benches, &place, &mut random);
            self.measure(&mut benches, point, ordinal, &mut random);
            trials.extend(self.conclude(point, std::mem::take(&mut benches)));
        }
        trials.sort_by_key(|trial| trial.target);
        Ok(trials)
    }

    /// What targets showed; stops them, unless they run on.
    fn conclude(&mut self, point: usize, benches: Vec<Bench>) -> Vec<Trial> {
        let stopped = self.stopped();
        let mut trials = Vec::new();
        for mut bench in benches {
            if stopped {
                bench.trial.invalidate("interrupted");
            }
            let here = &self.plan.points[point];
            if let Some(wrap) = &here.targets[bench.trial.target].wrap {
                bench.trial.invalidate(format!("its timings are those of {} too", wrap[0]));
            }
            trials.push(bench.trial.clone());
            if self.plan.rounds.restart || bench.session.is_none() {
                self.end(bench);
            } else {
                self.kept[point].push(bench);
            }
        }
        trials
    }

    /// Which targets run at the same time: all of them, or one after another where there are no
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

    /// Starts, prepares and warms up every target whose turn it is and that does not run already.
    fn begin(&mut self, benches: &mut Vec<Bench>, place: &Place<'_>, random: &mut SmallRng) {
        let Place { point, ordinal, workload_round, turn } = *place;
        let here = &self.plan.points[point];
        let runs = |index: usize| benches.iter().any(|bench| bench.trial.target == index);
        let wanted = |(index, target): &(usize, &Target)| {
            target.skipped.is_none() && turn.contains(index) && !runs(*index)
        };
        let mut order: Vec<(usize, &Target)> =
            here.targets.iter().enumerate().filter(wanted).collect();
        order.shuffle(random);
        for (index, target) in order {
            self.tell(point, ordinal, &format!("starting {}", target.name));
            let mut bench = self.start(index, target, ordinal);
            if bench.deployed.is_some() && !self.stopped() {
                self.tell(point, ordinal, &format!("preparing {}", target.name));
                self.make_ready(&mut bench, point, target, workload_round);
            }
            benches.push(bench);
        }
    }

    /// Closes a target's connections and stops it.
    pub(super) fn end(&mut self, mut bench: Bench) {
        drop(bench.session.take());
        drop(bench.service.take());
        if let Some(deployed) = bench.deployed.take() {
            self.watch.leave(&deployed.name);
            self.deployer.stop(deployed);
        }
    }

    /// Stops what ran on from round to round.
    pub(super) fn stop_kept(&mut self) {
        for bench in std::mem::take(&mut self.kept).into_iter().flatten() {
            self.end(bench);
        }
    }

    pub(super) fn start(&mut self, index: usize, target: &Target, ordinal: u32) -> Bench {
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
        let group = deployed.as_ref().and_then(Deployed::group);
        if let Some(group) = group {
            self.watch.follow(&target.name, group);
        }
        let meter = group.map(GroupMeter::new);
        let service = deployed.as_ref().and_then(|deployed| self.service(target, deployed));
        let (guard, stop) = (Arc::clone(self.deployer.guard()), Arc::clone(&self.stop));
        let (session, measured, repeats) = (None, 0, 0);
        Bench { session, deployed, guard, stop, meter, service, trial, measured, repeats }
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
        let program = |command: Vec<String>, is_target: bool| Program {
            exe: self.deployer.exe().to_owned(),
            command,
            env: target.env.clone(),
            cpus: if is_target { &target.cpus } else { &group.cpus }.clone(),
            folder: self.deployer.folder_beside(&format!("{}-client", target.name)),
            is_target,
        };
        if target.kind == TargetKind::InProcess {
            let command = self.assign(point, target, round)?;
            return Ok(Some(program(command, true)));
        }
        let fill = |argument: &String| {
            let argument = deployed.fill(argument);
            let argument = argument.replace("{connections}", &group.connections.to_string());
            let argument = argument.replace("{pipeline}", &group.pipeline.to_string());
            argument.replace("{threads}", &group.threads.to_string())
        };
        let client = target.client.as_ref();
        Ok(client.map(|client| program(client.iter().map(fill).collect(), false)))
    }

    /// Writes down what a process of this program is to evaluate, and how it is told to.
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

    /// Begins to read what the target counts itself, where there is a way to.
    fn service(&self, target: &Target, deployed: &Deployed) -> Option<ServiceMeter> {
        let (address, how): (_, Arc<dyn Counters>) = match &target.counters {
            CountersOf::Dialect => {
                let how = target.dialect.counters.filter(|_| deployed.batch.is_none())?;
                (deployed.address.clone(), Arc::new(how))
            }
            CountersOf::Page(host, path) => {
                let host = deployed.fill(host);
                // Both were checked with the plan.
                let address = wire::Address::Internet(host.parse().ok()?);
                (address, Arc::new(load::http::Metrics::new(host, deployed.fill(path)).ok()?))
            }
            CountersOf::Nowhere => return None,
        };
        ServiceMeter::start(&target.name, address, how, self.watch.sink()).ok()
    }

    /// Connects, writes every key, and warms up; what goes wrong is the trial's reason.
    pub(super) fn make_ready(
        &mut self,
        bench: &mut Bench,
        point: usize,
        target: &Target,
        round: u64,
    ) {
        let here = &self.plan.points[point];
        self.keep_data(bench, here, target, round);
        let Some(deployed) = &bench.deployed else { return };
        let is_restored = deployed.is_restored;
        let program = match self.program(deployed, point, target, round) {
            Ok(program) => program,
            Err(problem) => {
                return bench.trial.fail(FailedAt::Prepare, problem);
            }
        };
        let load = Load { program, ..self.load(here, deployed, target, round) };
        let outcome = Session::open(&load).and_then(|mut session| {
            let before = self.now();
            if !is_restored {
                let piece = session.prepare()?;
                bench.trial.prepared(piece, self.now() - before);
            }
            let before = self.now();
            if self.plan.rounds.warm_up.ns > 0 && !bench.trial.has_failed() {
                self.warm_up(&mut session, &mut bench.trial)?;
                bench.trial.warmup_ns = Some(self.now() - before);
                bench.trial.is_warm = true;
            }
            Ok(session)
        });
        match outcome {
            // What has failed already is not measured.
            Ok(session) => bench.session = Some(session).filter(|_| !bench.trial.has_failed()),
            Err(error) => bench.fail(FailedAt::Prepare, &error),
        }
    }

    /// The point's load, by this program's own clients, of a target that has been started.
    fn load<'b>(
        &self,
        here: &'b Point,
        deployed: &'b Deployed,
        target: &Target,
        round: u64,
    ) -> Load<'b> {
        Load {
            program: None,
            address: &deployed.address,
            batch: deployed.batch.clone(),
            dialect: target.dialect,
            workload: &here.workload,
            clients: &here.clients,
            round,
            clock_zero: self.clock_zero,
            stop: self.stop.clone(),
            onlooker: Some(self.seconds.clone()),
        }
    }

    /// Prepares the data that a target keeps, where they are not kept yet: writes every key, stops
    /// it in good order, keeps what it leaves, and starts it again on a copy of that.
    fn keep_data(&mut self, bench: &mut Bench, here: &Point, target: &Target, round: u64) {
        let is_wanted = |deployed: &&Deployed| target.kept_data.is_some() && !deployed.is_restored;
        let Some(deployed) = bench.deployed.as_ref().filter(is_wanted) else { return };
        let load = self.load(here, deployed, target, round);
        let before = self.now();
        match Session::open(&load).and_then(|mut session| session.prepare()) {
            Ok(piece) => bench.trial.prepared(piece, self.now() - before),
            Err(error) => return bench.fail(FailedAt::Prepare, &error),
        }
        drop(bench.service.take());
        self.watch.leave(&target.name);
        let Some(deployed) = bench.deployed.take() else { return };
        if bench.trial.has_failed() || self.stopped() {
            return self.deployer.stop(deployed);
        }
        if let Err(error) = self.deployer.keep(target, deployed) {
            return bench.trial.fail(FailedAt::Prepare, format!("keeping its data: {error}"));
        }
        let again = self.start(bench.trial.target, target, bench.trial.round);
        (bench.deployed, bench.meter, bench.service) = (again.deployed, again.meter, again.service);
        if let Some(reason) = again.trial.reason.filter(|_| bench.deployed.is_none()) {
            bench.trial.fail(FailedAt::Start, reason);
        }
    }

    fn measure(
        &mut self,
        benches: &mut [Bench],
        point: usize,
        ordinal: u32,
        random: &mut SmallRng,
    ) {
        let rounds = &self.plan.rounds;
        let here = &self.plan.points[point];
        let slice_ns = rounds.slice.unwrap_or(rounds.measure).ns;
        let slices = rounds.measure.ns.div_ceil(slice_ns);
        for bench in benches.iter_mut() {
            bench.measured = 0;
            bench.repeats = if rounds.is_cold { 0 } else { slices.div_ceil(2) };
        }
        loop {
            let waits = |bench: &Bench| bench.session.is_some() && bench.measured < slices;
            let mut order: Vec<usize> =
                (0..benches.len()).filter(|i| waits(&benches[*i])).collect();
            if order.is_empty() {
                return;
            }
            order.shuffle(random);
            for index in order {
                if self.stopped() {
                    return;
                }
                let bench = &mut benches[index];
                let done_ns = bench.measured * slice_ns;
                let length_ns = slice_ns.min(rounds.measure.ns - done_ns);
                let name = &here.targets[bench.trial.target].name;
                let number = bench.measured + 1;
                let activity = format!("measuring {name}, slice {number} of {slices}");
                let (target, second) = (bench.trial.target, self.now() / 1_000_000_000);
                let looked_into = length_ns > LOOKED_INTO_NS;
                let begins = looked_into.then_some(News::Begins { target, second });
                self.say(point, ordinal, &activity, begins);
                if looked_into {
                    self.seconds.begin();
                }
                let start = self.now();
                let watch = &mut self.watch;
                let seen = bench.slice(start, length_ns, here, watch, rounds.repeat_disturbed);
                self.seconds.end();
                if let Some(glimpse) = seen {
                    self.say(point, ordinal, &activity, Some(News::Slice(&glimpse)));
                }
            }
        }
    }
}

impl Bench {
    /// Measures one slice, with the target's CPU time read right before and right after. Gives what
    /// it showed, unless it failed.
    fn slice(
        &mut self,
        start: wire::Ns,
        length_ns: u64,
        here: &Point,
        watch: &mut Watch,
        judged: bool,
    ) -> Option<Glimpse> {
        let counted = self.service.as_ref().map(ServiceMeter::read);
        let before = read(&mut self.meter);
        let written = self.meter.as_mut().and_then(GroupMeter::written_bytes);
        self.meter.iter_mut().for_each(GroupMeter::forget_peak);
        let (outcome, window) = self.piece(length_ns, &here.events, watch);
        let after = read(&mut self.meter);
        // What it held while it was loaded, which may be more than what is left of that.
        let peak_bytes = self.meter.as_mut().and_then(GroupMeter::peak_bytes);
        self.keep_largest(peak_bytes);
        let processes = self.processes(written, after.map(|(_, resident_bytes)| resident_bytes));
        let server = before.zip(after).map(|((before, _), (after, _))| after.since(before));
        self.keep_largest(after.map(|(_, resident_bytes)| resident_bytes));
        let piece = match outcome {
            Ok(piece) => piece,
            Err(error) => {
                self.fail(FailedAt::Measure, &error);
                return None;
            }
        };
        self.keep_largest(piece.cost.map(|cost| cost.peak_bytes));
        let exact = piece.cost.map(|cost| Cpu::exact(cost.user_ns, cost.system_ns));
        let server = exact.or(server);
        let broken = piece.trouble.is_some();
        if broken && let Some(how) = self.death() {
            self.trial.fail(FailedAt::Measure, how);
        }
        let counted = counted.zip(self.service.as_ref().map(ServiceMeter::read));
        let seen = self.disturbance(&window, server, &piece, here);
        let slice = Slice {
            counters: counted.and_then(|(before, after)| observe::between(&before, &after)),
            start,
            duration_ns: piece.duration_ns,
            operations: piece.counts.operations,
            server,
            generator: piece.generator,
            disturbed: seen.reason().filter(|_| judged),
        };
        let glimpse = Glimpse::of(self.trial.target, &slice, &piece);
        if slice.disturbed.is_some() && self.repeats > 0 && !broken {
            self.repeats -= 1;
            self.trial.set_aside(slice, piece);
        } else {
            self.measured += 1;
            self.trial.usage.add(&window, &seen, &processes);
            self.trial.add(slice, piece);
        }
        if broken {
            self.session = None;
        }
        Some(glimpse)
    }

    /// What was seen of the target's processes in a slice that has just ended.
    fn processes(&mut self, written: Option<u64>, resident_bytes: Option<u64>) -> Processes {
        let Some(meter) = &mut self.meter else { return Processes::default() };
        let written_now = meter.written_bytes();
        Processes {
            busiest_thread_ns: Some(meter.busiest_thread_ns()),
            runnable_threads: Some(meter.runnable_threads()),
            written_bytes: written_now.zip(written).map(|(now, then)| now.saturating_sub(then)),
            resident_bytes,
            descriptors: meter.descriptors(),
        }
    }

    /// Loads the target for so long while its events happen. Gives what was read around it.
    fn piece(
        &mut self,
        length_ns: u64,
        events: &[Event],
        watch: &mut Watch,
    ) -> (Result<Piece, DriveError>, Window) {
        let subject = self.deployed.as_ref().map(|deployed| Subject {
            name: deployed.name.clone(),
            group: deployed.group(),
            address: deployed.address.to_string(),
            guard: Arc::clone(&self.guard),
            stop: Arc::clone(&self.stop),
        });
        let (before, totals) = (watch.mark(), watch.totals());
        let Some((session, subject)) = self.session.as_mut().zip(subject) else {
            let totals = Totals::default();
            let window = Window { after: before.clone(), before, totals };
            return (Err(DriveError::Ended), window);
        };
        let clock_zero = watch.clock_zero();
        let (outcome, happened) = std::thread::scope(|scope| {
            let (end, over) = std::sync::mpsc::channel();
            let perform = move || events::perform(events, &subject, length_ns, clock_zero, &over);
            let events = (!events.is_empty()).then(|| scope.spawn(perform));
            let outcome = session.run(length_ns);
            drop(end);
            (outcome, events.and_then(|events| events.join().ok()))
        });
        let (after, totals) = (watch.mark(), watch.totals().since(&totals));
        self.trial.happened(happened.unwrap_or_default());
        (outcome, Window { before, after, totals })
    }

    /// Who else was at work during a slice.
    fn disturbance(
        &self,
        window: &Window,
        server: Option<Cpu>,
        piece: &Piece,
        here: &Point,
    ) -> Disturbance {
        let target = &here.targets[self.trial.target];
        let server_cores = each_once([&target.cpus[..]]).unwrap_or_else(crate::deploy::cpus_here);
        let load_cores = generator_cpus(&here.clients);
        let groups = here.clients.iter().map(|group| &group.cpus[..]);
        let cpus = each_once(groups.chain([&target.cpus[..]])).unwrap_or_default();
        let waits = [
            Wait {
                side: &target.name,
                waited_ns: server.map_or(0, |cpu| cpu.waited_ns),
                runnable: self.meter.as_ref().map_or(usize::MAX, GroupMeter::runnable_threads),
                cores: &server_cores,
            },
            Wait {
                side: "the generator",
                waited_ns: piece.generator.waited_ns,
                runnable: here.clients.iter().map(|group| group.threads).sum(),
                cores: &load_cores,
            },
        ];
        let server_ns = server.map(|cpu| cpu.total_ns);
        // The lab's own threads are in its process; a program is not.
        let counted_ns = piece.cost.map_or(0, |cost| cost.user_ns + cost.system_ns);
        let clients_ns = piece.program_ns.saturating_sub(counted_ns);
        let own = OwnCpu { server_ns, clients_ns, waits: &waits };
        Disturbance::measure(&window.before, &window.after, &own, &cpus)
    }

    fn keep_largest(&mut self, resident_bytes: Option<u64>) {
        self.trial.server_rss_bytes = self.trial.server_rss_bytes.max(resident_bytes);
    }

    /// How the target died, if it did. It may take a moment from its connections' end to its own.
    fn death(&mut self) -> Option<String> {
        let deployed = self.deployed.as_mut()?;
        for _ in 0..100 {
            if let Some(how) = deployed.ended() {
                return Some(format!("{} died: {how}", deployed.name));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        None
    }

    fn fail(&mut self, at: FailedAt, error: &DriveError) {
        let death = self.death();
        self.trial.fail(at, death.unwrap_or_else(|| error.to_string()));
        self.session = None;
    }
}

fn read(meter: &mut Option<GroupMeter>) -> Option<(Cpu, u64)> {
    meter.as_mut().and_then(GroupMeter::read)
}
