//! One target in one round: its process, its connections, and its slices.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use judge::Stretch;
use ledger::{Cause, CauseKind, FailedAt};

use super::events::{self, Subject};
use super::limit_figures::{each_once, generator_cpus};
use super::slice::Slice;
use super::slice_stats::SliceStats;
use super::trial::Trial;
use super::usage::{ProcessReadings, Window};
use crate::deploy::Deployed;
use crate::drive::{DriveError, LoadResult, Session};
use crate::observe::{
    self, AdvisorMeter, Busy, CounterMeter, Cpu, Disturbance, GroupMeter, Listeners, OwnCpu, Owner,
    Totals, Wait, Watch,
};
use crate::plan::{Event, Point};

/// One target in one round. The field order matters: connections are closed before the target is
/// stopped.
pub(super) struct TargetRun {
    pub(super) session: Option<Session>,
    pub(super) deployed: Option<Deployed>,
    /// This program.
    pub(super) exe: PathBuf,
    /// Set to stop the run.
    pub(super) stop: Arc<AtomicBool>,
    /// Whose it is.
    pub(super) owner: Owner,
    pub(super) meter: Option<GroupMeter>,
    /// The cores that it may use; empty means all.
    pub(super) cpus: Vec<usize>,
    /// Reads the target's own counters.
    pub(super) service: Option<CounterMeter>,
    /// Asks it which statements it executes, and what would help.
    pub(super) advisor: Option<AdvisorMeter>,
    /// Its CPU time after its last slice, and when that was, where other targets take turns.
    pub(super) outside: Option<(wire::Ns, u64)>,
    pub(super) trial: Trial,
    /// Slices measured so far in this round.
    pub(super) measured: u64,
    /// How many disturbed slices may still be measured again in this round.
    pub(super) repeats: u64,
}

impl TargetRun {
    /// Measures one slice, with the target's CPU time read right before and right after. Returns
    /// `None` when it failed.
    pub(super) fn slice(
        &mut self,
        start: wire::Ns,
        length_ns: u64,
        here: &Point,
        watch: &mut Watch,
        judged: bool,
    ) -> Option<SliceStats> {
        watch.before_slice();
        let listeners = Listeners::read();
        let counted = self.service.as_ref().map(CounterMeter::read);
        let before = read(&mut self.meter);
        let written = self.meter.as_mut().and_then(GroupMeter::written_bytes);
        self.meter.iter_mut().for_each(GroupMeter::forget_peak);
        let (outcome, window) = self.measure(length_ns, &here.events, watch);
        let after = read(&mut self.meter);
        // The peak during the slice, which may be above the resident size after it.
        let peak_bytes = self.meter.as_mut().and_then(GroupMeter::peak_bytes);
        self.keep_largest(peak_bytes);
        let listen_drops = self.listen_drops(listeners, &window);
        let resident_bytes = after.map(|(_, resident_bytes)| resident_bytes);
        let processes = ProcessReadings { listen_drops, ..self.processes(written, resident_bytes) };
        let of_processes = before.zip(after).map(|((before, _), (after, _))| {
            after.since(before).waiting_within(window.length_ns(), processes.runnable_threads)
        });
        self.keep_largest(after.map(|(_, resident_bytes)| resident_bytes));
        let result = match outcome {
            Ok(result) => crowded(result, &window, &generator_cpus(&here.clients)),
            Err(error) => {
                self.fail(FailedAt::Measure, &error);
                return None;
            }
        };
        self.keep_largest(result.cost.map(|cost| cost.peak_bytes).filter(|bytes| *bytes > 0));
        let exact = result.cost.map(|cost| Cpu::exact(cost.user_ns, cost.system_ns));
        // An answer takes CPU time: a target that used none runs outside its process group.
        let answers = result.counts.operations;
        let library = result.by_target_ns.map(|total_ns| Cpu { total_ns, ..Cpu::default() });
        let server = exact.or(library).or(of_processes);
        let server = server.filter(|cpu| cpu.total_ns > 0 || answers == 0);
        self.trial.usage.is_elsewhere = self.owner == Owner::Elsewhere;
        self.trial.usage.server_cpus = server.map(|_| self.cpus.clone());
        let broken = result.trouble.is_some();
        let is_over = self.is_over(broken, result.counts.broken);
        let counted = counted.zip(self.service.as_ref().map(CounterMeter::read));
        // The lab's process holds a target that is a library: its time is counted there.
        let apart = if library.is_some() { of_processes } else { server };
        let is_writing = processes.makes_disks_work(&window.totals);
        let seen = self.disturbance(&window, apart, is_writing, &result, here, watch);
        let causes = seen.causes();
        let is_disturbed = judged && !causes.is_empty();
        let taken = is_disturbed.then(|| self.taken(&causes, &window, &result, here, watch));
        let slice = Slice {
            counters: counted.and_then(|(before, after)| observe::between(&before, &after)),
            start,
            duration_ns: result.duration_ns,
            operations: result.counts.operations,
            server,
            generator: result.generator,
            is_disturbed,
            causes,
            taken: taken.flatten(),
        };
        let stats = SliceStats::of(self.trial.target, &slice, &result);
        if slice.is_disturbed && self.repeats > 0 && !broken {
            self.repeats -= 1;
            self.trial.set_aside(slice, result);
        } else {
            self.measured += 1;
            self.trial.usage.add(&window, &seen, &processes);
            self.trial.add(slice, result);
        }
        if is_over {
            self.session = None;
        }
        Some(stats)
    }

    /// Whether the slice was the trial's last: its load is `broken`, or its target has lost its
    /// supervisor. The trial says so, and whether the target has died.
    fn is_over(&mut self, broken: bool, broken_connections: u64) -> bool {
        // Connections that are made again may be those of a target that has just ended.
        let died = match (broken, broken_connections) {
            (true, _) => self.death(),
            (false, 0) => None,
            (false, _) => self.end_of_target(),
        };
        let unsupervised = self.deployed.as_mut().and_then(|deployed| {
            let is_unsupervised = deployed.is_unsupervised();
            is_unsupervised.then(|| format!("the supervisor of {} was killed", deployed.name))
        });
        let is_over = broken || unsupervised.is_some();
        if let Some(how) = died.or(unsupervised) {
            self.trial.fail(FailedAt::Measure, how);
        }
        is_over
    }

    /// Its slices are over for now: other targets are measured. Stops it, if the suite says so.
    pub(super) fn leave_turn(&mut self, stops: bool) {
        if stops {
            self.service.iter().for_each(|service| service.set_paused(true));
            self.deployed.iter().for_each(Deployed::pause);
        }
        self.outside = cpu_at(read(&mut self.meter));
    }

    /// Its next slice begins: adds the CPU time used since `leave_turn`, and resumes it.
    pub(super) fn take_turn(&mut self, stops: bool) {
        let now = cpu_at(read(&mut self.meter));
        if let Some(((left_at, left_ns), (at, ns))) = self.outside.take().zip(now) {
            self.trial.usage.add_outside(at - left_at, ns.saturating_sub(left_ns));
        }
        if stops {
            self.deployed.iter().for_each(Deployed::resume);
            self.service.iter().for_each(|service| service.set_paused(false));
        }
    }

    /// Readings of the target's processes at the end of a slice.
    fn processes(&mut self, written: Option<u64>, resident_bytes: Option<u64>) -> ProcessReadings {
        let Some(meter) = &mut self.meter else { return ProcessReadings::default() };
        let written_now = meter.written_bytes();
        ProcessReadings {
            busiest_thread_ns: Some(meter.busiest_thread_ns()),
            runnable_threads: Some(meter.runnable_threads()),
            written_bytes: written_now.zip(written).map(|(now, then)| now.saturating_sub(then)),
            resident_bytes,
            descriptors: meter.descriptors(),
            listen_drops: None,
        }
    }

    /// Connections lost at the target's own listening sockets in a slice. Which sockets are its own
    /// is only asked where any were lost on this host.
    fn listen_drops(&self, before: Option<Listeners>, window: &Window) -> Option<u64> {
        let of_host = window.totals.figures.iter().find(|(name, _)| *name == "listen_drops");
        if of_host.is_some_and(|(_, lost)| *lost == 0.0) {
            return Some(0);
        }
        let pids = self.meter.as_ref()?.processes();
        Listeners::read()?.lost_by(&before?, &pids)
    }

    /// Loads the target for `length_ns` while its events are performed. Returns the readings
    /// around it, too.
    fn measure(
        &mut self,
        length_ns: u64,
        events: &[Event],
        watch: &mut Watch,
    ) -> (Result<LoadResult, DriveError>, Window) {
        let subject = self.deployed.as_ref().map(|deployed| Subject {
            name: deployed.name.clone(),
            group: deployed.group(),
            address: deployed.address.to_string(),
            exe: self.exe.clone(),
            stop: Arc::clone(&self.stop),
        });
        let (before, totals) = (watch.mark(), watch.totals());
        let Some((session, subject)) = self.session.as_mut().zip(subject) else {
            let totals = Totals::default();
            let window = Window { after: before.clone(), before, totals };
            return (Err(DriveError::Ended), window);
        };
        let clock_zero = watch.clock_zero();
        let (mut outcome, outcomes) = std::thread::scope(|scope| {
            let (end, over) = std::sync::mpsc::channel();
            let perform = move || events::perform(events, &subject, length_ns, clock_zero, &over);
            let events = (!events.is_empty()).then(|| scope.spawn(perform));
            self.advisor.iter().for_each(AdvisorMeter::begin);
            let outcome = session.run(length_ns);
            self.advisor.iter().for_each(AdvisorMeter::end);
            drop(end);
            (outcome, events.and_then(|events| events.join().ok()))
        });
        let (after, totals) = (watch.mark(), watch.totals().since(&totals));
        self.trial.add_events(outcomes.unwrap_or_default());
        // Without an answer there is no last one, and the whole slice was waited for.
        if let Ok(result) = &mut outcome
            && result.duration_ns == 0
        {
            result.duration_ns = after.at - before.at;
        }
        (outcome, Window { before, after, totals })
    }

    /// What else ran on the host during a slice, by name where it is too much.
    fn disturbance(
        &self,
        window: &Window,
        server: Option<Cpu>,
        is_writing: bool,
        result: &LoadResult,
        here: &Point,
        watch: &mut Watch,
    ) -> Disturbance {
        let is_elsewhere = self.owner == Owner::Elsewhere;
        let target = &here.targets[self.trial.target];
        let server_cores = each_once([&self.cpus[..]]).unwrap_or_else(crate::cpus::cpus_here);
        let load_cores = generator_cpus(&here.clients);
        let server = server.or_else(|| is_elsewhere.then(Cpu::default));
        let cpus = run_cpus(here, (!is_elsewhere).then_some(&self.cpus[..]));
        let waits = [
            Wait {
                target: Some(&target.name),
                waited_ns: self.meter.as_ref().map_or(0, GroupMeter::most_waited_ns),
                runnable: self.meter.as_ref().map_or(usize::MAX, GroupMeter::runnable_threads),
                cores: &server_cores,
            },
            Wait {
                target: None,
                waited_ns: result.most_waited_ns,
                runnable: result.threads,
                cores: &load_cores,
            },
        ];
        let waits = if is_elsewhere { &waits[1..] } else { &waits };
        let server_ns = server.map(|cpu| cpu.total_ns);
        let own = OwnCpu { server_ns, clients_ns: result.clients_ns(), is_writing, waits };
        let mut seen = Disturbance::measure(&window.before, &window.after, &own, &cpus);
        if seen.wants_names() {
            let roots = self.owner.roots();
            seen.others = watch.other_programs(roots, result.program_ns > 0, &cpus);
        }
        seen
    }

    /// What time these causes took from a slice; `None` where that isn't known.
    fn taken(
        &self,
        causes: &[Cause],
        window: &Window,
        result: &LoadResult,
        here: &Point,
        watch: &Watch,
    ) -> Option<Vec<Stretch>> {
        // Swapping waits for a disk, a quota stops both sides at once, and of a target or of load
        // whose processes are unseen nothing is known.
        let takes_time = |cause: &Cause| {
            matches!(
                cause.kind,
                CauseKind::Foreign
                    | CauseKind::ForeignTicks
                    | CauseKind::Steal
                    | CauseKind::Pause
                    | CauseKind::Pauses
                    | CauseKind::Wait { .. }
            )
        };
        let meter = self.meter.as_ref().filter(|_| result.program_ns == 0)?;
        let slice = [window.before.at, window.after.at];
        let length_ns = window.length_ns().max(1);
        let target = meter.busiest_thread_ns() as f64 / length_ns as f64;
        let busy = Busy { target, load: result.busy };
        let name = &here.targets[self.trial.target].name;
        causes.iter().all(takes_time).then(|| watch.taken(name, slice, busy))?
    }

    /// Ends the round: one that was measured without an answer has failed. Requests need not be
    /// missing: a target that doesn't read lets none be sent.
    pub(super) fn hold_answered(&mut self) {
        let is_measured = !self.trial.slices.is_empty();
        if is_measured && self.trial.counts.operations == 0 && self.trial.streams.is_empty() {
            self.trial.fail(FailedAt::Measure, "no operation was answered");
        }
    }

    fn keep_largest(&mut self, resident_bytes: Option<u64>) {
        self.trial.server_rss_bytes = self.trial.server_rss_bytes.max(resident_bytes);
    }

    /// How the target died, if it did. Its connections may close a moment before it ends.
    fn death(&mut self) -> Option<String> {
        for _ in 0..100 {
            if let Some(how) = self.end_of_target() {
                return Some(how);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        None
    }

    /// How the target has died, if it has.
    fn end_of_target(&mut self) -> Option<String> {
        let deployed = self.deployed.as_mut()?;
        deployed.ended().map(|how| format!("{} died: {how}", deployed.name))
    }

    pub(super) fn fail(&mut self, at: FailedAt, error: &DriveError) {
        let death = self.death();
        self.trial.fail(at, death.unwrap_or_else(|| error.to_string()));
        self.session = None;
    }
}

/// A result in which threads of load that share cores count as busy as these cores: each of them
/// waits for the others, and whatever one does delays the rest.
fn crowded(result: LoadResult, window: &Window, cores: &[usize]) -> LoadResult {
    let length_ns = window.length_ns().max(1);
    let shared = result.generator.total_ns as f64 / (length_ns * cores.len().max(1) as u64) as f64;
    let is_crowded = result.threads > cores.len();
    LoadResult { busy: if is_crowded { result.busy.max(shared) } else { result.busy }, ..result }
}

/// The cores of the load, and of a target that is on this host; empty means all.
fn run_cpus(here: &Point, of_target: Option<&[usize]>) -> Vec<usize> {
    let groups = here.clients.iter().map(|group| &group.cpus[..]);
    each_once(groups.chain(of_target)).unwrap_or_default()
}

/// The CPU time of a reading that has just been taken, with its time.
fn cpu_at(reading: Option<(Cpu, u64)>) -> Option<(wire::Ns, u64)> {
    reading.map(|(cpu, _)| (wire::clock::now(), cpu.total_ns))
}

fn read(meter: &mut Option<GroupMeter>) -> Option<(Cpu, u64)> {
    meter.as_mut().and_then(GroupMeter::read)
}
