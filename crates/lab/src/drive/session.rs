//! A target's connections through one round: threads that wait for orders.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use load::{Caller, Client, DialectRow, Oracle, Service, Workload};
use wire::{Address, Ns, ProtocolError};

use super::batch::{Batch, BatchCaller};
use super::caller::CallWorker;
use super::program::Program;
use super::record::Piece;
use super::seconds::Seconds;
use super::slot::Origin;
use super::transport::Sockets;
use super::worker::{Duty, Order, Worker};
use crate::plan::Clients;

/// What a session needs to know.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// Where the target is.
    pub address: &'a Address,
    /// How it is spoken to.
    pub dialect: &'static DialectRow,
    /// A command to run over and over instead.
    pub batch: Option<Batch>,
    /// A program that loads it instead, once it is prepared.
    pub program: Option<Program>,
    /// The operations of all groups.
    pub workload: &'a Workload,
    /// Who sends them.
    pub clients: &'a [Clients],
    /// Which round this is: it chooses the operations, the same for every target.
    pub round: u64,
    /// The zero of the run's clock.
    pub clock_zero: Ns,
    /// Set when the run is to stop.
    pub stop: Arc<AtomicBool>,
    /// Who looks on while it goes on.
    pub onlooker: Option<Arc<Seconds>>,
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
        /// What the system says.
        source: std::io::Error,
    },
    /// A thread of load has ended, which is a mistake in this program.
    #[error("a thread of load has ended unexpectedly; please report this")]
    Ended,
}

/// One target's connections.
pub struct Session {
    threads: Vec<Thread>,
    keys: u64,
    /// How many of the threads prepare: over datagrams it is one, which bounds what is under way.
    preparing: u64,
    program: Option<Programmed>,
}

/// What a session needs to know of a program that loads its target.
struct Programmed {
    program: Program,
    service: &'static Service,
    clock_zero: Ns,
    stop: Arc<AtomicBool>,
}

struct Thread {
    orders: Sender<Order>,
    pieces: Receiver<Piece>,
    handle: Option<JoinHandle<()>>,
}

impl Session {
    /// Starts the threads of every group and connects all slots.
    ///
    /// # Errors
    /// When a connection can't be made.
    pub fn open(load: &Load<'_>) -> Result<Self, DriveError> {
        let oracle = load.workload.oracle();
        let mut threads = Vec::new();
        let keys = match load.dialect.client {
            Client::InProcess(_) => 0,
            _ => load.workload.prepared_keys(),
        };
        let program = load.program.clone().map(|program| Programmed {
            program,
            service: load.workload.service,
            clock_zero: load.clock_zero,
            stop: load.stop.clone(),
        });
        // A program brings its own connections; what is to be prepared is written before.
        let own = program.is_none() || keys > 0;
        for (group, clients) in load.clients.iter().enumerate().filter(|_| own) {
            // A caller blocks, so each of its slots is a thread of its own.
            let count = match load.dialect.client {
                _ if load.batch.is_some() => clients.connections,
                Client::Calls(_) => clients.connections,
                Client::Stream(_) | Client::Datagrams(_) | Client::InProcess(_) => clients.threads,
            };
            for index in 0..count {
                let share = |at: usize| clients.connections * at / count;
                let duty = Duty {
                    group,
                    workload: clients.workload(load.workload),
                    arrivals: clients.arrivals.clone(),
                    spin: clients.spin,
                    slots: share(index)..share(index + 1),
                    thread: (index, count),
                    timeout_ns: clients.timeout.ns,
                    cpu: clients.cpus.get(index % clients.cpus.len().max(1)).copied(),
                    round: load.round,
                    clock_zero: load.clock_zero,
                    stop: load.stop.clone(),
                    onlooker: load.onlooker.clone(),
                };
                let opened = start(load, clients, oracle.clone(), duty);
                let opened = opened.map_err(|source| DriveError::Connect {
                    clients: clients.name.clone(),
                    address: load.address.clone(),
                    source,
                });
                threads.push(opened?);
            }
        }
        let preparing = match load.dialect.client {
            Client::Datagrams(_) if load.batch.is_none() => 1,
            _ => threads.len() as u64,
        };
        Ok(Self { threads, keys, preparing, program })
    }

    /// Writes every key's first version, where the service wants that. Over datagrams, what is not
    /// answered is said again; what is never answered is in the piece's trouble.
    ///
    /// # Errors
    /// When a thread has ended.
    pub fn prepare(&mut self) -> Result<Piece, DriveError> {
        let (keys, threads) = (self.keys, self.preparing);
        if keys == 0 {
            return Ok(Piece::default());
        }
        let written = self.order(|index| {
            let share = |at: u64| keys * at.min(threads) / threads;
            Order::Prepare(share(index)..share(index + 1))
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
    pub fn run(&mut self, length_ns: u64) -> Result<Piece, DriveError> {
        if let Some(Programmed { program, service, clock_zero, stop }) = &self.program {
            return Ok(program.run(service, length_ns, *clock_zero, stop));
        }
        self.order(|_| Order::Run(length_ns))
    }

    fn order(&mut self, order: impl Fn(u64) -> Order) -> Result<Piece, DriveError> {
        for (index, thread) in self.threads.iter().enumerate() {
            thread.orders.send(order(index as u64)).map_err(|_| DriveError::Ended)?;
        }
        let mut sum = Piece::default();
        for thread in &self.threads {
            let piece = thread.pieces.recv().map_err(|_| DriveError::Ended)?;
            sum.duration_ns = sum.duration_ns.max(piece.duration_ns);
            sum.counts.add(piece.counts);
            sum.generator = sum.generator.plus(piece.generator);
            sum.busy = sum.busy.max(piece.busy);
            sum.intervals.extend(piece.intervals);
            sum.found.extend(piece.found);
            sum.slowest.add(piece.slowest);
            sum.trouble = sum.trouble.or(piece.trouble);
            sum.pressure.add(piece.pressure);
            sum.figures.extend(piece.figures);
            sum.streams.extend(piece.streams);
            if let Some(cost) = piece.cost {
                sum.cost.get_or_insert_default().add(cost);
            }
        }
        sum.streams = super::streams::joined(sum.streams);
        Ok(sum)
    }
}

/// Starts one thread of load with the engine that the dialect needs.
fn start(
    load: &Load<'_>,
    clients: &Clients,
    oracle: Arc<Oracle>,
    duty: Duty,
) -> std::io::Result<Thread> {
    if let Some(batch) = &load.batch {
        let (batch, stop) = (batch.clone(), load.stop.clone());
        let make = move || {
            let caller = BatchCaller::new(batch, stop);
            let caller = caller.map_err(|error| ProtocolError::new(error.to_string()))?;
            Ok(Box::new(caller) as Box<dyn Caller>)
        };
        return Thread::start(move || CallWorker::open(duty, make), CallWorker::obey);
    }
    let (make, datagrams) = match load.dialect.client {
        Client::InProcess(_) => return Err(std::io::Error::other("it has no connections")),
        Client::Stream(make) => (make, false),
        Client::Datagrams(make) => (make, true),
        Client::Calls(make) => {
            let address = load.address.clone();
            let make = move || make(&address, &oracle);
            return Thread::start(move || CallWorker::open(duty, make), CallWorker::obey);
        }
    };
    let origin = Origin {
        make,
        datagrams,
        oracle,
        depth: clients.pipeline,
        reconnect_every: clients.reconnect_every,
    };
    let address = load.address.clone();
    let open = move || Worker::open(duty, origin, Sockets::new(address, datagrams)?);
    Thread::start(open, Worker::obey)
}

impl Thread {
    /// A thread that opens its worker and then obeys orders until there are no more.
    fn start<W>(
        open: impl FnOnce() -> std::io::Result<W> + Send + 'static,
        obey: impl Fn(&mut W, Order) -> Piece + Send + 'static,
    ) -> std::io::Result<Self> {
        let (orders, received) = channel::<Order>();
        let (finished, pieces) = channel::<Piece>();
        let (opened, has_opened) = channel::<std::io::Result<()>>();
        let run = move || {
            let mut worker = match open() {
                Ok(worker) => worker,
                Err(error) => return drop(opened.send(Err(error))),
            };
            let _ = opened.send(Ok(()));
            while let Ok(order) = received.recv() {
                if finished.send(obey(&mut worker, order)).is_err() {
                    return;
                }
            }
        };
        let handle = std::thread::Builder::new().name("load".into()).spawn(run)?;
        has_opened.recv().unwrap_or_else(|_| Err(std::io::Error::other("the thread ended")))?;
        Ok(Self { orders, pieces, handle: Some(handle) })
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
            drop(thread.orders);
            drop(thread.pieces);
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}
