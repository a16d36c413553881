//! The server: a service's store behind the loop's connections.

mod accounts;
mod clients;
mod connection;
mod crawler;
mod crawler_control;
mod datagrams;
mod hot_keys;
mod incoming_memory;
mod large_values;
mod options;
mod prefix_counts;
mod sampling;
mod service;
mod statistics;
mod verbosity;
mod watch;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wire::{
    Address, Backend, Bytes, Config, DatagramListener, ListenOptions, Listener, Loop,
    ServerBuilder, WhenFull,
};

pub use accounts::{Accounts, AccountsError};
pub use connection::CacheConnection;
pub use crawler::{Crawler, SLOTS_PER_TURN};
pub use datagrams::CacheDatagrams;
use options::INPUT_LIMIT_BYTES;
pub use options::{CrawlerOptions, Encryption, Options, Reload, Shutdown, Speech};
pub use service::{Service, ThreadCounts};

use crate::model::{Clock, MakeError};

/// The answer to a connection above the limit.
const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

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

/// Where to receive datagrams: with port 0, at the port of the first listener of the same kind,
/// so that one address names both.
fn beside(address: &Address, listeners: &[Listener]) -> Address {
    let Address::Internet(internet) = address else { return address.clone() };
    let ports = listeners.iter().filter_map(|listener| match listener.address() {
        Address::Internet(listens) if listens.ip() == internet.ip() => Some(listens.port()),
        _ => None,
    });
    let mut internet = *internet;
    if internet.port() == 0 {
        internet.set_port(ports.take(1).next().unwrap_or(0));
    }
    Address::Internet(internet)
}

impl Service {
    /// Returns the settings of the loop.
    pub fn loop_config(&self) -> Config {
        let options = &self.options;
        let usual = Config::default();
        let encryption = options.encryption.as_ref();
        Config {
            handshake_timeout: encryption
                .map_or(usual.handshake_timeout, |encryption| encryption.handshake_timeout),
            threads: options.threads.max(1),
            max_connections: options.most_connections,
            when_full: match options.wait_when_full {
                true => WhenFull::Wait,
                false => WhenFull::Refuse(Bytes::from_static(TOO_MANY)),
            },
            input_limit_bytes: INPUT_LIMIT_BYTES,
            // With a limit of 1 byte, a connection pauses after every answer.
            output_limit_bytes: if options.flush_each { 1 } else { options.output_limit_bytes },
            send_memory: Arc::clone(&self.send_memory),
            idle_timeout: options.idle_timeout,
            backend: options.backend,
            thread_name: "cache",
            ..usual
        }
    }
}

/// A running server. Dropping it stops it without waiting for what is in flight.
#[derive(Debug)]
pub struct CacheServer {
    server: wire::Server,
    service: Arc<Service>,
}

/// A server whose addresses are bound, and that accepts nothing yet.
#[derive(Debug)]
pub struct BoundCache {
    listeners: Vec<Listener>,
    datagrams: Vec<DatagramListener>,
    options: Options,
}

impl BoundCache {
    /// Binds.
    ///
    /// # Errors
    /// When an address can't be had.
    pub fn bind(options: Options) -> Result<Self, StartError> {
        let (backlog, unix_mode) = (options.backlog, options.unix_mode);
        let listen = ListenOptions { backlog, unix_mode, ..ListenOptions::default() };
        let encrypted = |listener: Listener| match &options.encryption {
            Some(encryption) => listener.with_tls(encryption.tls.clone()),
            None => listener,
        };
        let bind = |address| Listener::bind(address, &listen);
        let listeners = options.listen.iter().map(|address| bind(address).map(encrypted));
        let plain = options.listen_plain.iter().map(bind);
        let listeners =
            listeners.chain(plain).collect::<Result<Vec<_>, _>>().map_err(StartError::Listen)?;
        let threads = options.threads.max(1);
        let datagrams = options
            .datagrams
            .iter()
            .map(|address| DatagramListener::bind(&beside(address, &listeners), threads))
            .collect::<Result<Vec<_>, _>>()
            .map_err(StartError::Listen)?;
        Ok(Self { listeners, datagrams, options })
    }

    /// Its listeners.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Makes the store, and serves.
    ///
    /// # Errors
    /// When the options make no sense, or the system lacks something.
    pub fn start(self) -> Result<CacheServer, StartError> {
        let Self { listeners, datagrams, options } = self;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let clock = Clock { start_ns: wire::clock::now(), start_unix_s: since_epoch.as_secs() };
        let service = Arc::new(Service::new(options, clock)?);
        let mut builder = ServerBuilder::new(service.loop_config());
        for listener in listeners {
            let shared = Arc::clone(&service);
            let make = move |own: Loop<_>| CacheConnection::new(Arc::clone(&shared), own.thread());
            builder = builder.listen(listener, make);
        }
        for listener in datagrams {
            let shared = Arc::clone(&service);
            let make = move |thread| CacheDatagrams::new(Arc::clone(&shared), thread);
            builder = builder.datagrams(vec![listener], make);
        }
        let shared = Arc::clone(&service);
        builder = builder.datagrams(Vec::new(), move |_| Crawler::new(Arc::clone(&shared)));
        let server = builder.start().map_err(StartError::Threads)?;
        // Set once, here: `set` can't find it set.
        let _ = service.counters.set(Box::new(server.counters_reader()));
        let _ = service.listening.set(server.addresses().to_vec());
        Ok(CacheServer { server, service })
    }
}

impl CacheServer {
    /// Binds and serves.
    ///
    /// # Errors
    /// When the options make no sense, an address can't be had, or the system lacks something.
    pub fn start(options: Options) -> Result<Self, StartError> {
        BoundCache::bind(options)?.start()
    }

    /// Where it listens, with the ports that it was given.
    pub fn addresses(&self) -> &[Address] {
        self.server.addresses()
    }

    /// How its threads make their system calls, as far as the kernel lets them.
    pub fn backend(&self) -> Backend {
        self.server.backend()
    }

    /// Where it receives datagrams, with the ports that it was given.
    pub fn datagram_addresses(&self) -> &[Address] {
        self.server.datagram_addresses()
    }

    /// What its connections share.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Returns a reader of the counters in Prometheus' text format 0.0.4.
    pub fn prometheus(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let service = Arc::clone(&self.service);
        move || service.prometheus(wire::clock::now())
    }

    /// Stops accepting, lets connections finish what is in flight until `drain` has passed, and
    /// returns once all threads have ended.
    pub fn stop(self, drain: Duration) -> wire::Counters {
        self.server.stop(drain)
    }
}
