//! A server: threads that each run a loop, and the handle that starts and stops them. Control
//! plane.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fd::OwnedFd;

use crate::accept::Acceptor;
use crate::buffers::ThreadBuffers;
use crate::clock;
use crate::counters::{Counters, ThreadCounters};
use crate::datagrams::{DATAGRAM_TOKEN, DatagramSocket, NoDatagrams};
use crate::listen::{DatagramListener, Listener};
use crate::mailbox::{Mailbox, Message};
use crate::poll::{Interest, Poller};
use crate::slots::Slots;
use crate::stream::FAIR_BYTES;
use crate::timers::Timers;
use crate::uring::Uring;
use crate::uring_turn::UringTurn;
use crate::worker::{MAILBOX_TOKEN, Queues, Worker};
use crate::{Address, Bytes, Connection, Datagrams};

/// Which of a server's threads, counted from 0.
pub type ThreadIndex = usize;

/// What happens to a connection over the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits in the listener's backlog until another is closed.
    Wait,
    /// It is sent this message, at most a few kilobytes, and closed.
    Refuse(Bytes),
}

/// How the threads make their system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// epoll for readiness, and one system call per receive and per send.
    #[default]
    Epoll,
    /// epoll for readiness, and io_uring for the calls: one submission receives for up to 64
    /// ready connections, and one sends their answers.
    Uring,
    /// io_uring on each thread to which the kernel grants a ring, else epoll alone.
    Auto,
}

/// A server's limits. Each is enforced by the loop; only the client that passes one is affected.
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads, each with a loop of its own; at least 1.
    pub threads: usize,
    /// Connections open at once, those that linger to be closed cleanly too.
    pub max_connections: usize,
    /// What happens to one more.
    pub when_full: WhenFull,
    /// The most bytes of one unfinished message in [`Input`](crate::Input); a larger one is a
    /// protocol error. Bytes read into [`Connection::place`] don't count.
    pub input_limit_bytes: usize,
    /// Unsent output at which a protocol is asked to pause
    /// ([`Output::is_full`](crate::Output::is_full)).
    pub output_limit_bytes: usize,
    /// The most bytes received by one read, at least 4 KiB: the size of each thread's read buffer.
    pub read_bytes: usize,
    /// The most bytes sent for one connection before other connections get their turn.
    pub turn_bytes: usize,
    /// A connection without traffic for this long is closed.
    pub idle_timeout: Option<Duration>,
    /// How the threads make their system calls.
    pub backend: Backend,
    /// The threads' name, followed by their number; the kernel keeps 15 bytes of it.
    pub thread_name: &'static str,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: 1,
            max_connections: 1024,
            when_full: WhenFull::Wait,
            input_limit_bytes: 1 << 20,
            output_limit_bytes: 256 << 10,
            read_bytes: 256 << 10,
            turn_bytes: 1 << 20,
            idle_timeout: None,
            backend: Backend::Epoll,
            thread_name: "serve",
        }
    }
}

/// What a server's threads share. Touched per connection, never per operation.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) counters: Vec<ThreadCounters>,
    /// Connections that are open or on their way to their thread.
    pub(crate) current: AtomicUsize,
    /// Accepting is suspended until a connection is closed.
    pub(crate) accept_paused: AtomicBool,
    /// Threads that use io_uring.
    pub(crate) uring_threads: AtomicUsize,
}

impl Shared {
    fn counters(&self) -> Counters {
        let mut counters = Counters::sum(self.counters.iter());
        counters.current_connections = self.current.load(SeqCst) as u64;
        counters.accepting = !self.accept_paused.load(SeqCst);
        counters.uring_threads = self.uring_threads.load(SeqCst) as u64;
        counters
    }

    /// Counts a closed connection, and resumes accepting if it waited for one.
    pub(crate) fn release_one(&self) {
        self.current.fetch_sub(1, SeqCst);
        if self.accept_paused.load(SeqCst) && self.accept_paused.swap(false, SeqCst) {
            // The first thread accepts. If it has ended, no more connections are accepted.
            let _ = self.mailboxes[0].post(Message::Accept);
        }
    }
}

/// A running server. Dropping it stops it without waiting for what is in flight.
pub struct Server {
    addresses: Vec<Address>,
    datagram_addresses: Vec<Address>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves connections. `make` returns the protocol of each and is called on the thread that
    /// serves it: the connection need not be `Send`.
    ///
    /// The first thread accepts and distributes connections over all threads in turn.
    ///
    /// # Errors
    /// When the system has no thread, descriptor or memory for it.
    pub fn start<C, M>(config: Config, listeners: Vec<Listener>, make: M) -> io::Result<Self>
    where
        C: Connection + 'static,
        M: Fn(ThreadIndex) -> C + Send + Sync + 'static,
    {
        Self::start_with_datagrams(config, listeners, make, Vec::new(), |_| NoDatagrams)
    }

    /// Serves connections and datagrams; either may have no listeners. `make_datagrams` is called
    /// once for each thread and each of `datagrams`, on that thread.
    ///
    /// # Errors
    /// When the system has no thread, descriptor or memory for it, or when a datagram listener
    /// wasn't bound for as many threads as the server has.
    pub fn start_with_datagrams<C, M, D, N>(
        config: Config,
        listeners: Vec<Listener>,
        make: M,
        datagrams: Vec<DatagramListener>,
        make_datagrams: N,
    ) -> io::Result<Self>
    where
        C: Connection + 'static,
        M: Fn(ThreadIndex) -> C + Send + Sync + 'static,
        D: Datagrams + 'static,
        N: Fn(ThreadIndex) -> D + Send + Sync + 'static,
    {
        let count = config.threads.max(1);
        if datagrams.iter().any(|listener| listener.sockets.len() != count) {
            let what = "a datagram listener was bound for another number of threads";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mailboxes = (0..count).map(|_| Mailbox::new()).collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared {
            config,
            mailboxes,
            counters: (0..count).map(|_| ThreadCounters::default()).collect(),
            current: AtomicUsize::new(0),
            accept_paused: AtomicBool::new(false),
            uring_threads: AtomicUsize::new(0),
        });
        let addresses = listeners.iter().map(|listener| listener.address().clone()).collect();
        let datagram_addresses = datagrams.iter().map(|one| one.address().clone()).collect();
        let mut server = Self { addresses, datagram_addresses, shared, threads: Vec::new() };
        let mut seeds = server.seeds(listeners, datagrams)?;
        let (make, make_datagrams) = (Arc::new(make), Arc::new(make_datagrams));
        for seed in seeds.drain(..) {
            let (make, make_datagrams) = (Arc::clone(&make), Arc::clone(&make_datagrams));
            let name = format!("{}-{}", seed.shared.config.thread_name, seed.index);
            let (report, reported) = std::sync::mpsc::channel();
            // If one can't start, dropping `server` stops the others.
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                match seed.build(make, &*make_datagrams) {
                    Err(error) => _ = report.send(error),
                    Ok(worker) => {
                        drop(report);
                        worker.run();
                    }
                }
            })?;
            server.threads.push(thread);
            if let Ok(error) = reported.recv() {
                return Err(error);
            }
        }
        Ok(server)
    }

    /// The addresses of the listeners, in their order, with the ports they were given.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The addresses at which datagrams are received.
    pub fn datagram_addresses(&self) -> &[Address] {
        &self.datagram_addresses
    }

    /// The backend in use: [`Backend::Uring`] where all threads have a ring, else
    /// [`Backend::Epoll`].
    pub fn backend(&self) -> Backend {
        let all_have_rings = self.shared.uring_threads.load(SeqCst) == self.threads.len();
        if all_have_rings { Backend::Uring } else { Backend::Epoll }
    }

    /// A reading of the server's counters. Cheap, and takes no lock.
    pub fn counters(&self) -> Counters {
        let counters = self.shared.counters();
        Counters { accepting: counters.accepting && !self.threads.is_empty(), ..counters }
    }

    /// A reader of the same counters that may be moved elsewhere, and outlives the server.
    pub fn counters_reader(&self) -> impl Fn() -> Counters + Send + Sync + Clone + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.counters()
    }

    /// Stops accepting, closes idle connections at once, and lets the others drain for at most
    /// `drain`. Returns the final counters once all threads have ended.
    ///
    /// # Panics
    /// When one of the server's threads has panicked, with that panic.
    pub fn stop(mut self, drain: Duration) -> Counters {
        for outcome in self.stop_threads(drain) {
            if let Err(panic) = outcome {
                std::panic::resume_unwind(panic);
            }
        }
        self.counters()
    }

    fn stop_threads(&mut self, drain: Duration) -> Vec<std::thread::Result<()>> {
        let at_ns = clock::now().saturating_add(clock::duration_ns(drain));
        for mailbox in &self.shared.mailboxes {
            // A thread that has ended already has no reader.
            let _ = mailbox.post(Message::Stop(at_ns));
        }
        self.threads.drain(..).map(JoinHandle::join).collect()
    }

    /// Creates every descriptor before there are threads, so that a failure stops nothing.
    fn seeds(
        &self,
        listeners: Vec<Listener>,
        datagrams: Vec<DatagramListener>,
    ) -> io::Result<Vec<WorkerSeed>> {
        let mut sockets: Vec<_> =
            datagrams.into_iter().map(|listener| listener.sockets.into_iter()).collect();
        let mut listeners = Some(listeners);
        let mut seeds = Vec::new();
        for (index, mailbox) in self.shared.mailboxes.iter().enumerate() {
            let poller = Poller::new()?;
            poller.add(mailbox, MAILBOX_TOKEN, Interest::Read)?;
            let acceptor = listeners.take().map(|all| Acceptor::new(all, &poller)).transpose()?;
            let datagrams: Vec<_> = sockets.iter_mut().filter_map(Iterator::next).collect();
            for (number, socket) in datagrams.iter().enumerate() {
                poller.add(socket, DATAGRAM_TOKEN + number as u64, Interest::Read)?;
            }
            let shared = Arc::clone(&self.shared);
            seeds.push(WorkerSeed { index, shared, poller, acceptor, datagrams });
        }
        Ok(seeds)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The panic hook has reported a thread's panic already.
        let _ = self.stop_threads(Duration::ZERO);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Names io_uring as what is missing.
fn no_ring(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("this kernel gives no io_uring: {error}"))
}

/// What a thread is started with; the rest is created on the thread itself.
struct WorkerSeed {
    index: ThreadIndex,
    shared: Arc<Shared>,
    poller: Poller,
    acceptor: Option<Acceptor>,
    datagrams: Vec<OwnedFd>,
}

impl WorkerSeed {
    fn build<C: Connection, D: Datagrams>(
        self,
        make: Arc<dyn Fn(ThreadIndex) -> C + Send + Sync>,
        make_datagrams: &dyn Fn(ThreadIndex) -> D,
    ) -> io::Result<Worker<C, D>> {
        let config = &self.shared.config;
        // One read never exceeds the input's limit.
        let read_bytes = config.read_bytes.max(FAIR_BYTES).min(config.input_limit_bytes).max(1);
        let sockets = self.datagrams.into_iter();
        // The kernel interrupts the thread that created a ring when the ring is closed: that has
        // to be the thread that uses it.
        let ring = match config.backend {
            Backend::Epoll => None,
            Backend::Uring => Some(Uring::new().map_err(no_ring)?),
            Backend::Auto => Uring::new().ok(),
        };
        let uring = ring.map(|ring| Box::new(UringTurn::new(ring)));
        if uring.is_some() {
            self.shared.uring_threads.fetch_add(1, SeqCst);
        }
        Ok(Worker {
            index: self.index,
            make,
            poller: self.poller,
            uring,
            slots: Slots::new(),
            timers: Timers::default(),
            buffers: ThreadBuffers::new(read_bytes, config.output_limit_bytes),
            acceptor: self.acceptor,
            datagrams: sockets
                .map(|socket| DatagramSocket::new(socket, make_datagrams(self.index)))
                .collect(),
            idle_ns: config.idle_timeout.map(clock::duration_ns),
            queues: Queues::default(),
            now_ns: clock::now(),
            moved_bytes: 0,
            stop_at_ns: None,
            next_thread: 0,
            shared: self.shared,
        })
    }
}
