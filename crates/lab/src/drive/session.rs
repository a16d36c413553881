//! A target's connections through one round: threads that wait for commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use load::{Caller, Preparation, Reach, Scenario, Speaks, Workload};
use wire::{Address, Backend, Ns, ProtocolError, clock};

use super::arrivals::Arrivals;
use super::batch::{Batch, BatchCaller};
use super::busy::BusyWorker;
use super::caller::{CallWorker, Watched};
use super::clients::Clients;
use super::config::{Command, Parts, WorkerConfig};
use super::live_stats::LiveStats;
use super::program::Program;
use super::result::LoadResult;
use super::slot::SlotConfig;
use super::transport::Sockets;
use super::worker::Worker;

/// The interval at which it is checked whether a call hangs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The interval of reports of how much is prepared.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// A thread whose client isn't made within this time has failed.
const OPEN_WITHIN: Duration = Duration::from_secs(30);

/// A target, and the load on it.
#[derive(Clone, Debug)]
pub struct SessionConfig<'a> {
    /// Where the target is.
    pub address: &'a Address,
    /// Its dialect, with options.
    pub speaks: &'a Speaks,
    /// A command to run over and over instead.
    pub batch: Option<Batch>,
    /// A program that loads it instead, once it is prepared.
    pub program: Option<Program>,
    /// The workload, and the operations of all groups.
    pub workload: &'a Scenario,
    /// The groups of clients.
    pub clients: &'a [Clients],
    /// The round, which seeds the operations: they are the same for every target.
    pub round: u64,
    /// The zero of the run's clock.
    pub clock_zero: Ns,
    /// Set when the run is to stop.
    pub stop: Arc<AtomicBool>,
    /// Where threads publish what they measure, once a second.
    pub live: Option<Arc<LiveStats>>,
}

/// Why a session could not go on.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// A connection could not be made.
    #[error("{clients}: can't connect to {address}: {source}")]
    Connect {
        /// The group of clients.
        clients: String,
        /// The target's address.
        address: Address,
        /// The system's error.
        source: std::io::Error,
    },
    /// A thread of load has ended, which is a bug in this program.
    #[error("a thread of load has ended unexpectedly; please report this")]
    Ended,
}

/// One target's connections.
pub struct Session {
    threads: Vec<Thread>,
    preparation: Preparation,
    /// How many of the threads prepare: one where parts are written in order; and over datagrams,
    /// which bounds what is under way.
    preparing: u64,
    program: Option<Programmed>,
}

/// A program that loads the target.
struct Programmed {
    program: Program,
    scenario: Scenario,
    clock_zero: Ns,
    stop: Arc<AtomicBool>,
}

struct Thread {
    commands: Sender<Command>,
    results: Receiver<LoadResult>,
    handle: Option<JoinHandle<()>>,
    /// Since when it has been in a call, where calls may hang.
    watched: Option<Arc<Watched>>,
    /// Why it is given up: it hangs in a call, and is left behind.
    given_up: Option<String>,
    /// How many closed loops it drives; none where it sends on a schedule.
    loops: u64,
}

impl Session {
    /// Starts the threads of every group and connects all slots.
    ///
    /// # Errors
    /// When a connection can't be made.
    pub fn open(load: &SessionConfig<'_>) -> Result<Self, DriveError> {
        let workload = load.workload.begin();
        let reach = load.speaks.dialect.reach;
        let preparation = match reach {
            Reach::InProcess | Reach::Busy => Preparation::default(),
            Reach::Stream | Reach::Datagrams | Reach::Calls => workload.preparation(),
        };
        let program = load.program.clone().map(|program| Programmed {
            program,
            scenario: load.workload.clone(),
            clock_zero: load.clock_zero,
            stop: load.stop.clone(),
        });
        let mut threads = Vec::new();
        // A program brings its own connections; what is to be prepared is written before.
        let own = program.is_none() || preparation.parts > 0;
        for (group, clients) in load.clients.iter().enumerate().filter(|_| own) {
            // A call blocks, or keeps its thread busy, so each slot is a thread of its own.
            let count = match reach {
                Reach::Calls | Reach::Busy => clients.connections,
                Reach::Stream | Reach::Datagrams | Reach::InProcess => clients.threads,
            };
            for index in 0..count {
                let share = |at: usize| clients.connections * at / count;
                let config = WorkerConfig {
                    group,
                    scenario: clients.scenario(load.workload),
                    workload: workload.clone(),
                    arrivals: clients.arrivals.clone(),
                    spin: clients.spin,
                    slots: share(index)..share(index + 1),
                    thread: (index, count),
                    timeout_ns: clients.timeout.ns,
                    cpu: clients.cpus.get(index % clients.cpus.len().max(1)).copied(),
                    round: load.round,
                    clock_zero: load.clock_zero,
                    stop: load.stop.clone(),
                    live: load.live.clone(),
                };
                let loops = match clients.arrivals {
                    Arrivals::Closed => config.slots.len() as u64,
                    _ => 0,
                };
                let opened = start(load, clients, workload.clone(), config);
                let opened = opened.map(|thread| Thread { loops, ..thread });
                let opened = opened.map_err(|source| DriveError::Connect {
                    clients: clients.name.clone(),
                    address: load.address.clone(),
                    source,
                });
                threads.push(opened?);
            }
        }
        let preparing = match reach {
            Reach::Datagrams => 1,
            _ if preparation.is_in_order => 1,
            _ => threads.len() as u64,
        };
        Ok(Self { threads, preparation, preparing, program })
    }

    /// Writes every part of the preparation, where the workload has any. Over datagrams, what is
    /// not answered is sent again; what is never answered is the result's trouble. Once a second
    /// `passed` is called with the number of parts that have been begun, and that of all.
    ///
    /// # Errors
    /// When a thread has ended.
    pub fn prepare(&mut self, passed: &mut dyn FnMut(u64, u64)) -> Result<LoadResult, DriveError> {
        let (Preparation { parts, is_in_order, within, .. }, threads) =
            (self.preparation.clone(), self.preparing);
        if parts == 0 {
            return Ok(LoadResult::default());
        }
        let begun = Arc::new(AtomicU64::new(0));
        let command = |index| {
            let share = |at: u64| {
                (u128::from(parts) * u128::from(at.min(threads)) / u128::from(threads.max(1)))
                    as u64
            };
            Command::Prepare(Parts {
                left: share(index)..share(index + 1),
                in_order: is_in_order,
                within_ns: within.map(|within| within.as_nanos() as u64),
                begun: Arc::clone(&begun),
            })
        };
        let written = std::thread::scope(|scope| {
            let (end, over) = channel::<()>();
            let written = scope.spawn(|| {
                let written = self.command(command);
                drop(end);
                written
            });
            while over.recv_timeout(TELL_EVERY) == Err(RecvTimeoutError::Timeout) {
                passed(begun.load(Ordering::Relaxed), parts);
            }
            written.join().unwrap_or(Err(DriveError::Ended))
        });
        if self.program.is_some() {
            self.close();
        }
        written
    }

    /// Sends operations for `length_ns` nanoseconds, and waits for their answers.
    ///
    /// # Errors
    /// When a thread has ended.
    pub fn run(&mut self, length_ns: u64) -> Result<LoadResult, DriveError> {
        if let Some(Programmed { program, scenario, clock_zero, stop }) = &self.program {
            return Ok(program.run(scenario, length_ns, *clock_zero, stop));
        }
        self.command(|_| Command::Run(length_ns))
    }

    fn command(&mut self, command: impl Fn(u64) -> Command) -> Result<LoadResult, DriveError> {
        for (index, thread) in self.threads.iter().enumerate() {
            if thread.given_up.is_none() {
                thread.commands.send(command(index as u64)).map_err(|_| DriveError::Ended)?;
            }
        }
        let mut sum = LoadResult::default();
        // Closed loops end with their last answers, at different times: their mean counts.
        let (mut loops, mut looped_ns, mut loop_ns, mut has_loop_ns) = (0, 0, 0, false);
        for thread in &mut self.threads {
            let mut result = thread.result()?;
            if thread.loops > 0 {
                loops += thread.loops;
                let ns = std::mem::take(&mut result.duration_ns);
                looped_ns += ns * thread.loops;
                // Calls that block have no other time than that.
                let own_ns = if result.loop_ns > 0 { result.loop_ns } else { ns };
                loop_ns += own_ns * thread.loops;
                has_loop_ns |= result.loop_ns > 0;
            }
            sum.add(result);
        }
        // Beside a schedule they are divided by its time, where that is longer.
        let loop_ns = loop_ns.checked_div(loops).filter(|_| has_loop_ns);
        sum.loop_ns = loop_ns.map_or(0, |ns| sum.duration_ns.max(ns));
        sum.duration_ns = sum.duration_ns.max(looped_ns.checked_div(loops).unwrap_or(0));
        sum.streams = super::streams::joined(sum.streams);
        Ok(sum)
    }
}

/// Starts one thread of load with the engine that the dialect needs.
fn start(
    load: &SessionConfig<'_>,
    clients: &Clients,
    workload: Arc<dyn Workload>,
    config: WorkerConfig,
) -> std::io::Result<Thread> {
    let (address, speaks) = (load.address.clone(), load.speaks.clone());
    if let Some(batch) = &load.batch {
        let (batch, stop) = (batch.clone(), load.stop.clone());
        let within = Duration::from_nanos(config.timeout_ns);
        let make = move || {
            let caller = BatchCaller::new(batch, stop, within);
            let caller = caller.map_err(|error| ProtocolError::new(error.to_string()))?;
            Ok(Box::new(caller) as Box<dyn Caller>)
        };
        // A run that takes too long is ended by its watcher.
        let open = move || CallWorker::open(config, Watched::new(), make);
        return Thread::start(open, CallWorker::execute);
    }
    let datagrams = match load.speaks.dialect.reach {
        Reach::InProcess => return Err(std::io::Error::other("it has no connections")),
        Reach::Stream => false,
        Reach::Datagrams => true,
        Reach::Calls => {
            let watched = Watched::new();
            let make = move || workload.caller(&speaks, &address);
            let shared = watched.clone();
            let open = move || CallWorker::open(config, shared, make);
            let thread = Thread::start(open, CallWorker::execute)?;
            return Ok(Thread { watched: Some(watched), ..thread });
        }
        Reach::Busy => {
            let make = move || workload.busy(&speaks, Some(&address));
            return Thread::start(move || BusyWorker::open(config, make), BusyWorker::execute);
        }
    };
    let (depth, reconnect_every) = (clients.pipeline, clients.reconnect_every);
    let slot_config = SlotConfig { workload, speaks, datagrams, depth, reconnect_every };
    // A single connection has nothing to submit together.
    let io = if config.slots.len() > 1 { clients.io } else { Backend::Epoll };
    let open = move || Worker::open(config, slot_config, Sockets::new(address, datagrams, io)?);
    Thread::start(open, Worker::execute)
}

impl Thread {
    /// A thread that opens its worker and then executes commands until there are no more.
    fn start<W>(
        open: impl FnOnce() -> std::io::Result<W> + Send + 'static,
        execute: impl Fn(&mut W, Command) -> LoadResult + Send + 'static,
    ) -> std::io::Result<Self> {
        let (commands, received) = channel::<Command>();
        let (finished, results) = channel::<LoadResult>();
        let (opened, has_opened) = channel::<std::io::Result<()>>();
        let run = move || {
            let mut worker = match open() {
                Ok(worker) => worker,
                Err(error) => return drop(opened.send(Err(error))),
            };
            let _ = opened.send(Ok(()));
            while let Ok(command) = received.recv() {
                if finished.send(execute(&mut worker, command)).is_err() {
                    return;
                }
            }
        };
        let handle = std::thread::Builder::new().name("load".into()).spawn(run)?;
        has_opened.recv_timeout(OPEN_WITHIN).unwrap_or_else(|error| {
            Err(std::io::Error::other(match error {
                RecvTimeoutError::Timeout => {
                    format!("its client is not made after {OPEN_WITHIN:?}")
                }
                RecvTimeoutError::Disconnected => "the thread ended".to_owned(),
            }))
        })?;
        let (watched, given_up) = (None, None);
        Ok(Self { commands, results, handle: Some(handle), watched, given_up, loops: 0 })
    }

    /// The result of its command; of a thread that hangs in a call, that it does.
    fn result(&mut self) -> Result<LoadResult, DriveError> {
        if let Some(trouble) = self.given_up.clone() {
            return Ok(LoadResult { trouble: Some(trouble), ..LoadResult::default() });
        }
        let Some(watched) = self.watched.clone() else {
            return self.results.recv().map_err(|_| DriveError::Ended);
        };
        loop {
            match self.results.recv_timeout(LOOK_EVERY) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => return Err(DriveError::Ended),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(timeout_ns) = watched.hangs(clock::now()) {
                let timeout = base::units::Span { ns: timeout_ns };
                let trouble = format!(
                    "a call did not come back within its time-out of {timeout}, nor soon after; \
                     its slot is given up"
                );
                self.given_up = Some(trouble.clone());
                let mut result = LoadResult { trouble: Some(trouble), ..LoadResult::default() };
                result.counts.missing = 1;
                return Ok(result);
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl Session {
    /// Closes the connections and ends the threads.
    fn close(&mut self) {
        for mut thread in self.threads.drain(..) {
            drop(thread.commands);
            drop(thread.results);
            // One that hangs can't be joined; it ends with its call, or with this program.
            if let Some(handle) = thread.handle.take().filter(|_| thread.given_up.is_none()) {
                let _ = handle.join();
            }
        }
    }
}
