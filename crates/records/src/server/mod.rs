//! The server: records behind the loop's connections, and the thread that answers searches.

mod calls;
mod channel;
mod connection;
mod in_flight;
mod inbox;
mod monitor;
mod operations;
mod producer;
mod putlog;
mod ready;
mod respond;
mod search;
mod service;
mod shared_arrays;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use wire::{Address, Config, ListenOptions, Listener, SendMemory, ServerBuilder, WhenFull};

pub use channel::Identity;
pub use connection::RecordsConnection;
pub use producer::{ProduceError, Producer, Production, Seen, Watcher, available_bytes};
pub use putlog::{PutEntry, PutLog};
pub use search::Discovery;
pub use service::{AddError, Limits, Service};

use in_flight::OUTPUT_LIMIT_BYTES;
use search::Sockets;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// Threads, each with a loop of its own.
    pub threads: usize,
    /// Connections open at once; one more waits until another is closed.
    pub most_connections: usize,
    /// A connection without a byte in either direction for this long is closed.
    pub idle_timeout: Duration,
    /// The memory of the unsent bytes of all connections, without large arrays; beyond it, the
    /// slowest peers are closed.
    pub send_bytes: usize,
    /// How it is found.
    pub discovery: Discovery,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            threads: 1,
            most_connections: 1024,
            // EPICS_PVA_CONN_TMO is 30 s, of which peers make 4/3.
            idle_timeout: Duration::from_secs(40),
            send_bytes: 24 << 20,
            discovery: Discovery::default(),
        }
    }
}

impl Options {
    /// Returns the settings of the loop.
    pub fn loop_config(&self) -> Config {
        Config {
            threads: self.threads.max(1),
            max_connections: self.most_connections,
            when_full: WhenFull::Wait,
            input_limit_bytes: INPUT_LIMIT_BYTES,
            output_limit_bytes: OUTPUT_LIMIT_BYTES,
            idle_timeout: Some(self.idle_timeout),
            send_memory: SendMemory::new(self.send_bytes),
            thread_name: "records",
            ..Config::default()
        }
    }
}

/// Small messages wait in the input for their end; large ones get a place of their own.
const INPUT_LIMIT_BYTES: usize = 256 << 10;

/// A server that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address can't be listened on; the error names it.
    #[error(transparent)]
    Listen(std::io::Error),
    /// The system has no threads or descriptors for it.
    #[error("cannot start the server's threads: {0}")]
    Threads(std::io::Error),
}

/// A running server. Dropping it stops it without waiting for what is in flight.
#[derive(Debug)]
pub struct RecordsServer {
    server: wire::Server,
    search_addresses: Vec<SocketAddr>,
    service: Arc<Service>,
}

/// A server whose addresses are bound, and that accepts nothing yet.
#[derive(Debug)]
pub struct BoundRecords {
    listeners: Vec<Listener>,
    sockets: Sockets,
    options: Options,
}

impl BoundRecords {
    /// Binds.
    ///
    /// # Errors
    /// When an address can't be had.
    pub fn bind(options: Options) -> Result<Self, StartError> {
        let listeners = options
            .listen
            .iter()
            .map(|at| Listener::bind(&Address::Internet(*at), &ListenOptions::default()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(StartError::Listen)?;
        let sockets = Sockets::bind(&options.discovery.listen).map_err(StartError::Listen)?;
        Ok(Self { listeners, sockets, options })
    }

    /// Its listeners.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Serves.
    ///
    /// # Errors
    /// When the system lacks something.
    pub fn start(self, service: Arc<Service>) -> Result<RecordsServer, StartError> {
        let Self { listeners, sockets, options } = self;
        let config = options.loop_config();
        let addresses = listeners.iter().filter_map(|listener| match listener.address() {
            Address::Internet(address) => Some(*address),
            Address::Unix(_) => None,
        });
        service.listens(addresses.collect());
        let shared = Arc::clone(&service);
        let make = move |_| RecordsConnection::new(Arc::clone(&shared));
        let search_addresses = sockets.addresses();
        let (sockets, searcher) = sockets.serve(Arc::clone(&service), options.discovery);
        let builder =
            listeners.into_iter().fold(ServerBuilder::new(config), |builder, listener| {
                builder.listen(listener, make.clone())
            });
        let builder = builder.datagrams(sockets, move |_| searcher.clone());
        let server = builder.start().map_err(StartError::Threads)?;
        Ok(RecordsServer { server, search_addresses, service })
    }
}

impl RecordsServer {
    /// Binds and serves.
    ///
    /// # Errors
    /// When an address can't be had, or the system lacks something.
    pub fn start(service: Arc<Service>, options: Options) -> Result<Self, StartError> {
        BoundRecords::bind(options)?.start(service)
    }

    /// Where it listens, with the ports that it was given.
    pub fn addresses(&self) -> &[Address] {
        self.server.addresses()
    }

    /// Where it receives searches.
    pub fn search_addresses(&self) -> &[SocketAddr] {
        &self.search_addresses
    }

    /// Its records.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// What the loop has counted.
    pub fn counters(&self) -> wire::Counters {
        self.server.counters()
    }

    /// A reader of the same counters that can be given away, and outlives the server.
    pub fn counters_reader(&self) -> impl Fn() -> wire::Counters + Send + Sync + Clone + use<> {
        self.server.counters_reader()
    }

    /// Stops accepting, lets connections finish what is in flight until `drain` has passed, and
    /// returns once all threads have ended.
    pub fn stop(self, drain: Duration) -> wire::Counters {
        self.server.stop(drain)
    }
}

impl Service {
    /// Where it listens from now on.
    fn listens(&self, addresses: Vec<SocketAddr>) {
        // Set once, by the one server that is started with it.
        let _ = self.listening.set(addresses);
    }

    /// The port where it listens first.
    fn port(&self) -> u16 {
        let addresses = self.listening.get().map_or(&[][..], Vec::as_slice);
        addresses.first().map_or(0, SocketAddr::port)
    }

    /// The address for a client whose search was received on `near`. An unspecified one stands for
    /// the address that the answer comes from.
    fn server_near(&self, near: Option<IpAddr>) -> SocketAddr {
        let addresses = self.listening.get().map_or(&[][..], Vec::as_slice);
        let anywhere = |at: &&SocketAddr| at.ip().is_unspecified();
        let found = addresses
            .iter()
            .find(|at| Some(at.ip()) == near)
            .or_else(|| addresses.iter().find(anywhere))
            .or(addresses.first());
        found.copied().unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into())
    }
}
