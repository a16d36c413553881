//! Deterministic simulation of a server: its workers, with the protocol and all that it serves, on
//! a simulated clock and a simulated network, in one thread.
//!
//! A seed decides everything that a kernel and a network decide otherwise: how many bytes a call
//! moves, in which order connections, workers and clients have their turns, when bytes arrive,
//! which connections break, and where the clock jumps. What fails once is replayed by its seed. The
//! workers are those of [`Server`](crate::Server), compiled for another backend; half of the seeds
//! use batched calls, as under io_uring. The idea is that of FoundationDB's simulator and of
//! TigerBeetle's VOPR; as in the latter, faults stop at the end, and everything has to come to
//! rest: no connection is left, and no memory held.
//!
//! Not simulated: threads (the workers have their passes one after another, so a race between two
//! is for loom and ThreadSanitizer), datagrams, TLS, outgoing connections, foreign descriptors and
//! task pools.

mod backend;
mod client;
mod faults;
mod network;
mod peer;
mod random;

use std::fmt;
use std::io;
use std::sync::Arc;

pub use client::{Client, End, Next};
pub use faults::Faults;
pub use random::Random;

use crate::accept::Acceptor;
use crate::clock::SECOND_NS;
use crate::mailbox::Message;
use crate::shared::Shared;
use crate::worker::{Factory, Worker};
use crate::{Config, Connection, Counters, Loop, Ns};
use backend::{SharedNetwork, Simulated, SimulatedListener, SimulatedRing, SimulatedSocket};
use network::Network;
use peer::Peer;

/// The time at which every simulation starts.
pub const START_NS: Ns = 1_000 * SECOND_NS;

/// How long a server that stops lets its connections drain.
const DRAIN_NS: Ns = 5 * SECOND_NS;

/// The most time that one step takes, as code and system calls do.
const STEP_NS: Ns = 2_000;

/// A worker has work in each of its passes; false readiness alone never makes this many idle.
const MAX_IDLE_PASSES: u32 = 2_000;

/// A simulation that takes more steps never ends.
const MAX_STEPS: u64 = 1_000_000;

/// One simulated server and its clients.
pub struct Simulation<C: Connection> {
    network: SharedNetwork,
    shared: Arc<Shared<SimulatedSocket>>,
    /// None once a worker has ended.
    workers: Vec<Option<Worker<C, Simulated>>>,
    /// Passes of each worker in a row that have changed nothing.
    idle_passes: Vec<u32>,
    peers: Vec<Peer>,
    /// Which of them, and what they do: apart from the network's, so that both stay comparable.
    random: Random,
    is_stopping: bool,
    report: Report,
}

/// What a simulation has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Hash of all events and bytes: the same for every run of a seed.
    pub digest: u64,
    /// Turns of workers and clients.
    pub steps: u64,
    /// Clients that have connected.
    pub clients: u64,
    /// The simulated time.
    pub simulated_ns: Ns,
    /// Bytes that clients and server have received.
    pub moved_bytes: u64,
    /// The server's counters at the end.
    pub counters: Counters,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, steps, clients, simulated_ns, moved_bytes, .. } = self;
        let seconds = *simulated_ns as f64 / SECOND_NS as f64;
        let mib = *moved_bytes as f64 / f64::from(1 << 20);
        write!(f, "{steps} steps, {clients} clients, {mib:.1} MiB in {seconds:.1} simulated s, ")?;
        write!(f, "digest {digest:016x}")
    }
}

/// What is due now.
#[derive(Clone, Copy)]
enum Turn {
    Worker(usize),
    Peer(usize),
}

impl<C: Connection> Simulation<C> {
    /// A server of one protocol with the limits of `config`, whose name of a backend has no
    /// meaning here.
    ///
    /// # Errors
    /// When the system has no descriptor for it.
    pub fn new<M>(seed: u64, faults: Faults, config: Config, make: M) -> io::Result<Self>
    where
        M: Fn(Loop<C>) -> C + Send + Sync + 'static,
    {
        let mut random = Random::new(seed);
        let network = Network::new(random.bits(), faults, START_NS);
        let network = SharedNetwork::new(network);
        let shared = Arc::new(Shared::new(config)?);
        let factories: Arc<[Factory<C>]> = Arc::new([Box::new(make) as Factory<C>]);
        let is_batched = random.chance(512);
        let mut workers = Vec::new();
        for index in 0..shared.mailboxes.len() {
            let system = Simulated::new(network.clone(), index);
            let acceptor = match index {
                0 => Some(Acceptor::new(vec![SimulatedListener::new(network.clone())], &system)?),
                _ => None,
            };
            let ring = is_batched.then(|| SimulatedRing::new(network.clone()));
            let shared = Arc::clone(&shared);
            let mut worker = Worker::new(index, shared, Arc::clone(&factories), system, ring);
            worker.acceptor = acceptor;
            workers.push(Some(worker));
        }
        Ok(Self {
            network,
            idle_passes: vec![0; workers.len()],
            shared,
            workers,
            peers: Vec::new(),
            random,
            is_stopping: false,
            report: Report::default(),
        })
    }

    /// Runs the simulation with up to `at_once` clients at a time. `next_client` returns them, one
    /// after another; after the last one, faults end, all clients come to their end, and the server
    /// stops. Every fourth seed stops the server while clients are at work.
    ///
    /// # Errors
    /// The first wrong answer, or what was not released at the end.
    pub fn run(
        mut self,
        at_once: usize,
        mut next_client: impl FnMut(&mut Random) -> Option<Box<dyn Client>>,
    ) -> Result<Report, Failure> {
        let stops_early = self.random.chance(256);
        let mut are_more = true;
        while are_more || !self.peers.is_empty() {
            while are_more && self.peers.len() < at_once {
                match next_client(&mut self.random).filter(|_| !self.is_stopping) {
                    Some(client) => self.connect(client),
                    None => {
                        are_more = false;
                        self.calm();
                        if stops_early {
                            self.stop();
                        }
                    }
                }
            }
            self.step()?;
        }
        self.stop();
        while self.workers.iter().any(Option::is_some) {
            self.step()?;
        }
        self.finish()
    }

    fn connect(&mut self, client: Box<dyn Client>) {
        let id = self.network.lock().connect();
        if let Some(id) = id {
            self.report.clients += 1;
            self.peers.push(Peer::new(self.network.clone(), id, client));
        }
    }

    /// Ends all faults, save those of the network's size.
    fn calm(&self) {
        let mut network = self.network.lock();
        let Faults { buffer_bytes, delay_ns, .. } = network.faults;
        network.faults = Faults { buffer_bytes, delay_ns, ..Faults::none() };
    }

    fn stop(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            let at_ns = self.network.lock().now_ns + DRAIN_NS;
            for mailbox in &self.shared.mailboxes {
                // A worker that has ended already has no reader.
                let _ = mailbox.post(Message::Stop(at_ns));
            }
        }
    }

    /// Gives one worker or client its turn, or waits until one is due.
    fn step(&mut self) -> Result<(), Failure> {
        self.report.steps += 1;
        if self.report.steps > MAX_STEPS {
            let peers: Vec<_> = self.peers.iter().map(Peer::state).collect();
            let what = format!("no end after {MAX_STEPS} steps: {}", peers.join("; "));
            return Err(self.failure(what));
        }
        let due = self.due();
        if due.is_empty() {
            return self.wait();
        }
        match due[self.random.index(due.len())] {
            Turn::Worker(index) => self.pass(index)?,
            Turn::Peer(index) => match self.peers[index].turn(&mut self.random, self.is_stopping) {
                Ok(true) => {}
                Ok(false) => drop(self.peers.swap_remove(index)),
                Err(what) => return Err(self.failure(what)),
            },
        }
        self.pass_time();
        Ok(())
    }

    fn due(&self) -> Vec<Turn> {
        let now_ns = self.network.lock().now_ns;
        let workers = self.workers.iter().enumerate().filter_map(|(index, worker)| {
            let worker = worker.as_ref()?;
            let is_due = worker.nearest_at_ns().is_some_and(|at_ns| at_ns <= now_ns);
            let has_work = worker.has_work() || worker.mailbox().is_pending();
            let is_due = is_due || has_work || worker.is_finished() || worker.system.is_ready();
            is_due.then_some(Turn::Worker(index))
        });
        let peers = self.peers.iter().enumerate();
        let peers = peers.filter(|(_, peer)| peer.turn_at_ns <= now_ns);
        workers.chain(peers.map(|(index, _)| Turn::Peer(index))).collect()
    }

    fn pass(&mut self, index: usize) -> Result<(), Failure> {
        self.network.lock().digest.add(index as u64);
        let Some(mut worker) = self.workers[index].take() else { return Ok(()) };
        if worker.is_finished() {
            worker.end();
        } else {
            let before = self.network.lock().changes;
            worker.pass();
            self.workers[index] = Some(worker);
            let is_idle = self.network.lock().changes == before;
            self.idle_passes[index] = if is_idle { self.idle_passes[index] + 1 } else { 0 };
            if self.idle_passes[index] > MAX_IDLE_PASSES {
                return Err(
                    self.failure(format!("worker {index} spins: its passes change nothing"))
                );
            }
        }
        let memory = &self.shared.config.send_memory;
        let (held, limit) = (memory.held_bytes(), memory.limit_bytes());
        if held > limit {
            return Err(self.failure(format!("{held} unsent bytes are held, and {limit} allowed")));
        }
        Ok(())
    }

    /// Nothing is due: goes on to the next time at which something is.
    fn wait(&mut self) -> Result<(), Failure> {
        let timers = self.workers.iter().flatten().filter_map(Worker::nearest_at_ns);
        let turns = self.peers.iter().map(|peer| peer.turn_at_ns);
        let arrival = self.network.lock().next_arrival_ns();
        match timers.chain(turns).chain(arrival).min() {
            Some(at_ns) => {
                let mut network = self.network.lock();
                network.now_ns = network.now_ns.max(at_ns);
                Ok(())
            }
            None => Err(self.failure("nothing is left to happen".to_owned())),
        }
    }

    fn pass_time(&mut self) {
        let mut network = self.network.lock();
        network.now_ns += self.random.below(STEP_NS);
        if self.random.chance(network.faults.jumps) && self.random.chance(16) {
            let by_ns = self.random.below(network.faults.jump_ns + 1);
            network.now_ns += by_ns;
            self.peers.iter_mut().for_each(|peer| peer.jump(by_ns));
        }
    }

    fn finish(self) -> Result<Report, Failure> {
        let counters = self.shared.counters();
        let open = self.network.lock().open_at_server();
        let held = self.shared.config.send_memory.held_bytes();
        if counters.current_connections > 0 || open > 0 {
            let counted = counters.current_connections;
            return Err(self.failure(format!("{open} connections are left, {counted} are counted")));
        }
        if held > 0 {
            return Err(self.failure(format!("{held} unsent bytes are counted at the end")));
        }
        let network = self.network.lock();
        Ok(Report {
            digest: network.digest.value(),
            simulated_ns: network.now_ns - START_NS,
            moved_bytes: network.moved_bytes,
            counters,
            ..self.report
        })
    }

    fn failure(&self, what: String) -> Failure {
        let at_ns = self.network.lock().now_ns - START_NS;
        Failure { step: self.report.steps, at_ns, what }
    }
}

impl<C: Connection> fmt::Debug for Simulation<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("report", &self.report).finish_non_exhaustive()
    }
}

/// What a simulation has found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step}, {:.6} simulated s after the start: {what}", *at_ns as f64 / 1e9)]
pub struct Failure {
    /// The number of the step.
    pub step: u64,
    /// The time since the start.
    pub at_ns: Ns,
    /// What is wrong.
    pub what: String,
}
