//! The server: a service's store behind the loop's connections.

mod connection;
mod service;
mod statistics;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wire::{Address, Bytes, Config, ListenOptions, Listener, WhenFull};

pub use connection::CacheConnection;
pub use service::{Service, ThreadCounts};

use crate::model::{Clock, Limits, MakeError};

/// How a server is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it listens.
    pub listen: Vec<Address>,
    /// Threads, each with a loop of its own.
    pub threads: usize,
    /// Memory for items and index together, in bytes.
    pub memory_bytes: usize,
    /// The largest item, in bytes: key, value and what the store adds.
    pub item_bytes: usize,
    /// Connections open at once.
    pub most_connections: usize,
    /// A connection with so many unsent bytes is not read from until they are sent.
    pub output_limit_bytes: usize,
    /// For tests of load generators: every so many-th value that is sent has a flipped bit.
    pub corrupt_every: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            threads: 1,
            memory_bytes: 64 << 20,
            item_bytes: 1 << 20,
            most_connections: 1024,
            output_limit_bytes: 256 << 10,
            corrupt_every: None,
        }
    }
}

impl Options {
    fn limits(&self) -> Limits {
        let Self { memory_bytes, item_bytes, threads, .. } = *self;
        Limits { memory_bytes, item_bytes, threads }
    }
}

/// Input that waits for the end of its message: the longest line and the largest data block that
/// is not read into a place of its own, with room for a batch of others.
const INPUT_LIMIT_BYTES: usize = 64 << 10;

/// A server that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store can't be made.
    #[error(transparent)]
    Store(#[from] MakeError),
    /// An address can't be listened on; the error names it.
    #[error(transparent)]
    Listen(std::io::Error),
    /// The system has no threads or descriptors for it.
    #[error("cannot start the server's threads: {0}")]
    Threads(std::io::Error),
}

/// A running server. Dropping it stops it without waiting for what is in flight.
#[derive(Debug)]
pub struct CacheServer {
    server: wire::Server,
    service: Arc<Service>,
}

impl CacheServer {
    /// Binds and serves.
    ///
    /// # Errors
    /// When the options make no sense, an address can't be had, or the system lacks something.
    pub fn start(options: Options) -> Result<Self, StartError> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let clock = Clock { start_ns: wire::clock::now(), start_unix_s: since_epoch.as_secs() };
        let listeners = options
            .listen
            .iter()
            .map(|address| Listener::bind(address, &ListenOptions::default()))
            .collect::<Result<_, _>>()
            .map_err(StartError::Listen)?;
        let config = Config {
            threads: options.threads.max(1),
            most_connections: options.most_connections,
            when_full: WhenFull::Refuse(Bytes::from_static(b"ERROR Too many open connections\r\n")),
            input_limit_bytes: INPUT_LIMIT_BYTES,
            output_limit_bytes: options.output_limit_bytes,
            thread_name: "cache",
            ..Config::default()
        };
        let service = Arc::new(Service::new(options, clock)?);
        let shared = Arc::clone(&service);
        let make = move |thread| CacheConnection::new(Arc::clone(&shared), thread);
        let server = wire::Server::start(config, listeners, make).map_err(StartError::Threads)?;
        // Set once, here: `set` can't find it set.
        let _ = service.counters.set(Box::new(server.counters_reader()));
        Ok(Self { server, service })
    }

    /// Where it listens, with the ports that it was given.
    pub fn addresses(&self) -> &[Address] {
        self.server.addresses()
    }

    /// What its connections share.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Stops accepting, lets connections finish what is in flight until `drain` has passed, and
    /// returns once all threads have ended.
    pub fn stop(self, drain: Duration) -> wire::Counters {
        self.server.stop(drain)
    }
}
