//! A server: threads that each run a loop, and the handle that starts and stops them. Control
//! plane.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fd::OwnedFd;

use crate::accept::Acceptor;
use crate::clock;
use crate::config::{Backend, Config, ThreadIndex};
use crate::counters::Counters;
use crate::datagrams::{DatagramEndpoint, datagram_token};
use crate::event_loop::MAILBOX_TOKEN;
use crate::handle::Loop;
use crate::kernel::Kernel;
use crate::listen::{DatagramListener, Listener};
use crate::mailbox::Message;
use crate::shared::Shared;
use crate::uring::Uring;
use crate::worker::{Factory, Worker};
use crate::{Address, Connection, Datagrams};

/// Makes a thread's protocol of a datagram endpoint.
type DatagramFactory = Arc<dyn Fn(ThreadIndex) -> Box<dyn Datagrams> + Send + Sync>;

/// A server that is being put together: what it listens to, each with its protocol.
///
/// With several protocols, `C` is `Box<dyn Connection>`, or an enum of the server's own.
pub struct ServerBuilder<C> {
    config: Config,
    listeners: Vec<Listener>,
    factories: Vec<Factory<C>>,
    endpoints: Vec<(Vec<DatagramListener>, DatagramFactory)>,
}

impl<C: Connection + 'static> ServerBuilder<C> {
    /// A server that listens to nothing yet.
    pub fn new(config: Config) -> Self {
        Self { config, listeners: Vec::new(), factories: Vec::new(), endpoints: Vec::new() }
    }

    /// Serves the connections of `listener`. `make` returns the protocol of each and is called on
    /// the thread that serves it: the connection need not be `Send`.
    #[must_use]
    pub fn listen<M>(mut self, listener: Listener, make: M) -> Self
    where
        M: Fn(Loop<C>) -> C + Send + Sync + 'static,
    {
        self.listeners.push(listener);
        self.factories.push(Box::new(make));
        self
    }

    /// Serves the datagrams of `sockets` with one protocol on each thread for which they were
    /// bound; `make` returns it and is called on that thread. The protocol names a socket by its
    /// place in the list. Without sockets it is a protocol of the first thread that only has
    /// timers and wakes.
    #[must_use]
    pub fn datagrams<D, M>(mut self, sockets: Vec<DatagramListener>, make: M) -> Self
    where
        D: Datagrams + 'static,
        M: Fn(ThreadIndex) -> D + Send + Sync + 'static,
    {
        self.endpoints.push((sockets, Arc::new(move |thread| Box::new(make(thread)))));
        self
    }

    /// Starts the server's threads. The first accepts connections and distributes them over all
    /// threads in turn.
    ///
    /// # Errors
    /// When the system has no thread, descriptor or memory for it, or when datagram listeners were
    /// bound for more threads than the server has, or those of one protocol for different numbers
    /// of threads.
    pub fn start(self) -> io::Result<Server> {
        let Self { config, listeners, factories, endpoints } = self;
        let count = config.threads.max(1);
        for (sockets, _) in &endpoints {
            let threads = |listener: &DatagramListener| listener.sockets.len();
            let first = sockets.first().map_or(1, threads);
            if first > count || sockets.iter().any(|listener| threads(listener) != first) {
                let what = "a datagram listener was bound for another number of threads";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        }
        let shared = Arc::new(Shared::new(config)?);
        let addresses = listeners.iter().map(|listener| listener.address().clone()).collect();
        let datagram_addresses = endpoints.iter().flat_map(|(sockets, _)| sockets);
        let datagram_addresses = datagram_addresses.map(|one| one.address().clone()).collect();
        let mut server = Server { addresses, datagram_addresses, shared, threads: Vec::new() };
        let factories: Arc<[_]> = factories.into();
        for seed in server.seeds(listeners, endpoints)? {
            let factories = Arc::clone(&factories);
            let name = format!("{}-{}", seed.shared.config.thread_name, seed.index);
            let (report, reported) = std::sync::mpsc::channel();
            // If one can't start, dropping `server` stops the others.
            let thread = std::thread::Builder::new().name(name).spawn(move || {
                match seed.build(factories) {
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
}

impl<C> std::fmt::Debug for ServerBuilder<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder").field("listeners", &self.listeners).finish_non_exhaustive()
    }
}

/// A running server. Dropping it stops it without waiting for what is in flight.
pub struct Server {
    addresses: Vec<Address>,
    datagram_addresses: Vec<Address>,
    shared: Arc<Shared<OwnedFd>>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves connections with one protocol; [`ServerBuilder`] is for everything else.
    ///
    /// # Errors
    /// When the system has no thread, descriptor or memory for it.
    pub fn start<C, M>(config: Config, listeners: Vec<Listener>, make: M) -> io::Result<Self>
    where
        C: Connection + 'static,
        M: Fn(Loop<C>) -> C + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let builder =
            listeners.into_iter().fold(ServerBuilder::new(config), |builder, listener| {
                let make = Arc::clone(&make);
                builder.listen(listener, move |thread| make(thread))
            });
        builder.start()
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
        endpoints: Vec<(Vec<DatagramListener>, DatagramFactory)>,
    ) -> io::Result<Vec<WorkerSeed>> {
        let mut listeners = Some(listeners);
        let mut seeds = Vec::new();
        for (index, mailbox) in self.shared.mailboxes.iter().enumerate() {
            let kernel = Kernel::new()?;
            kernel.add_special(mailbox, MAILBOX_TOKEN)?;
            let acceptor = listeners.take().map(|all| Acceptor::new(all, &kernel)).transpose()?;
            let shared = Arc::clone(&self.shared);
            seeds.push(WorkerSeed { index, shared, kernel, acceptor, endpoints: Vec::new() });
        }
        for (listeners, make) in endpoints {
            let threads = listeners.first().map_or(1, |listener| listener.sockets.len());
            let mut sockets: Vec<_> =
                listeners.into_iter().map(|listener| listener.sockets.into_iter()).collect();
            for seed in seeds.iter_mut().take(threads) {
                let sockets: Vec<_> = sockets.iter_mut().filter_map(Iterator::next).collect();
                for (number, socket) in sockets.iter().enumerate() {
                    let token = datagram_token(seed.endpoints.len(), number);
                    seed.kernel.add_special(socket, token)?;
                }
                seed.endpoints.push((sockets, Arc::clone(&make)));
            }
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

/// What a thread is started with; the rest is created on the thread itself.
struct WorkerSeed {
    index: ThreadIndex,
    shared: Arc<Shared<OwnedFd>>,
    kernel: Kernel,
    acceptor: Option<Acceptor<Kernel>>,
    endpoints: Vec<(Vec<OwnedFd>, DatagramFactory)>,
}

impl WorkerSeed {
    fn build<C: Connection>(self, factories: Arc<[Factory<C>]>) -> io::Result<Worker<C, Kernel>> {
        // The kernel interrupts the thread that created a ring when the ring is closed: that has
        // to be the thread that uses it.
        let ring = Uring::for_backend(self.shared.config.backend)?;
        let mut worker = Worker::new(self.index, self.shared, factories, self.kernel, ring);
        worker.acceptor = self.acceptor;
        let endpoints = self.endpoints.into_iter();
        let endpoints =
            endpoints.map(|(sockets, make)| DatagramEndpoint::new(sockets, make(self.index)));
        worker.endpoints.extend(endpoints);
        Ok(worker)
    }
}
