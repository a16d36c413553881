//! The server: a service's store behind the loop's connections.

mod accounts;
mod connection;
mod datagrams;
mod detail;
mod hot;
mod incoming;
mod peers;
mod samples;
mod service;
mod statistics;
mod watch;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wire::{Address, Backend, Bytes, Config, DatagramListener, ListenOptions, Listener, WhenFull};

pub use accounts::{Accounts, AccountsError};
pub use connection::{CacheConnection, Speech};
pub use datagrams::CacheDatagrams;
pub use service::{Service, ThreadCounts};

use crate::model::{Clock, Limits, MakeError, Policy, Rules, Sharing};

/// What `shutdown` does.
#[derive(Clone)]
pub struct Shutdown(Arc<dyn Fn() + Send + Sync>);

impl Shutdown {
    /// `end` has the process end, soon.
    pub fn new(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(end))
    }
}

impl std::ops::Deref for Shutdown {
    type Target = dyn Fn() + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl std::fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shutdown")
    }
}

/// Reads the files of certificates again, for the connections that come from then on.
#[derive(Clone)]
pub struct Reload(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl Reload {
    /// `reload` says what is wrong with the files, and then changes nothing.
    pub fn new(reload: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reload))
    }
}

impl std::ops::Deref for Reload {
    type Target = dyn Fn() -> Result<(), String> + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reload")
    }
}

/// What connections are encrypted with, and what `stats settings` says of it.
#[derive(Clone, Debug)]
pub struct Encryption {
    /// The loop's part.
    pub tls: wire::Tls,
    /// What the command `refresh_certs` does.
    pub reload: Reload,
    /// The file of certificates.
    pub certificates: String,
    /// The file of the key, if it is another.
    pub key: Option<String>,
    /// The file of those who vouch for clients.
    pub authorities: Option<String>,
    /// Whether clients have to say who they are, as memcached writes it: 0 to 3.
    pub verify_mode: u64,
    /// The lowest version spoken, as memcached writes it: 2 is 1.2, 3 is 1.3.
    pub least_version: u64,
}

/// How a server is set.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: Vec<Address>,
    /// Where it listens for connections that are plain even if others are encrypted.
    pub listen_plain: Vec<Address>,
    /// What connections are encrypted with; they are plain when this is `None`.
    pub encryption: Option<Encryption>,
    /// Threads, each with a loop of its own.
    pub threads: usize,
    /// Memory for items and index together, in bytes.
    pub memory_bytes: usize,
    /// The largest item, in bytes: key, value and what the store adds.
    pub item_bytes: usize,
    /// What data blocks on their way in may take together, in bytes; a quarter of the memory when
    /// it is `None`. Requests of up to 4 KiB wait in their connection's input instead.
    pub incoming_bytes: Option<usize>,
    /// Connections open at once.
    pub most_connections: usize,
    /// Whether one more waits until another is closed, instead of being sent away.
    pub wait_when_full: bool,
    /// A connection with so many unsent bytes is not read from until they are sent.
    pub output_limit_bytes: usize,
    /// Where it receives datagrams; nowhere unless asked to.
    pub datagrams: Vec<Address>,
    /// How many connections may wait to be accepted.
    pub backlog: i32,
    /// The permissions of Unix sockets' files; by default the umask decides.
    pub unix_mode: Option<u32>,
    /// A connection over which nothing has come or gone for so long is closed.
    pub idle_timeout: Option<Duration>,
    /// Which protocols are spoken.
    pub speech: Speech,
    /// Whether items are let go to make room for new ones; otherwise new ones are refused.
    pub evict: bool,
    /// Which items are let go.
    pub policy: Policy,
    /// How threads share the store.
    pub sharing: Sharing,
    /// How system calls are made.
    pub backend: Backend,
    /// Whether answers go out one by one, instead of all answers to a batch together.
    pub flush_each: bool,
    /// Whether each store has a unique number.
    pub cas: bool,
    /// Whether a command may have everything forgotten.
    pub flush: bool,
    /// Whether a command may list all keys.
    pub list_keys: bool,
    /// Whether clients may watch what happens.
    pub watch: bool,
    /// How many bytes of lines wait for one who watches; more are left out.
    pub watch_queue_bytes: usize,
    /// Whether a command may move the service's clock, for tests of what expires.
    pub debug_time: bool,
    /// What ends the part of a key by which `stats detail` counts.
    pub prefix_end: u8,
    /// Whether `stats detail` counts from the start.
    pub count_prefixes: bool,
    /// Whether `stats sizes` looks at all items from the start.
    pub track_sizes: bool,
    /// Who may use it; anybody, when it is `None`.
    pub accounts: Option<Accounts>,
    /// What the command `shutdown` does; it is refused when this is `None`.
    pub shutdown: Option<Shutdown>,
    /// For tests of load generators: every so many-th value that is sent has a flipped bit.
    pub corrupt_every: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            listen_plain: Vec::new(),
            encryption: None,
            threads: 1,
            memory_bytes: 64 << 20,
            item_bytes: 1 << 20,
            incoming_bytes: None,
            most_connections: 1024,
            wait_when_full: false,
            output_limit_bytes: 256 << 10,
            datagrams: Vec::new(),
            backlog: 1024,
            unix_mode: None,
            idle_timeout: None,
            speech: Speech::Either,
            evict: true,
            policy: Policy::default(),
            sharing: Sharing::default(),
            backend: Backend::Auto,
            flush_each: false,
            cas: true,
            flush: true,
            list_keys: true,
            watch: true,
            watch_queue_bytes: 256 << 10,
            debug_time: false,
            prefix_end: b':',
            count_prefixes: false,
            track_sizes: false,
            accounts: None,
            shutdown: None,
            corrupt_every: None,
        }
    }
}

impl Options {
    fn limits(&self) -> Limits {
        let Self { memory_bytes, item_bytes, threads, .. } = *self;
        let Self { evict, cas, policy, sharing, .. } = *self;
        let rules = Rules { evict, cas, policy, sharing, ..Rules::default() };
        Limits { memory_bytes, item_bytes, threads, rules }
    }

    /// What data blocks on their way in may take together: never less than the largest item.
    fn incoming_limit_bytes(&self) -> usize {
        self.incoming_bytes.unwrap_or(self.memory_bytes / 4).max(self.item_bytes)
    }
}

/// Input that waits for the end of its message: the longest line and the largest data block that
/// is not read into a place of its own, with room for a batch of others.
const INPUT_LIMIT_BYTES: usize = 64 << 10;

/// What one connection too many is told.
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
        let listen = ListenOptions { backlog: options.backlog, unix_mode: options.unix_mode };
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
            .collect::<Result<_, _>>()
            .map_err(StartError::Listen)?;
        let config = Config {
            threads,
            max_connections: options.most_connections,
            when_full: match options.wait_when_full {
                true => WhenFull::Wait,
                false => WhenFull::Refuse(Bytes::from_static(TOO_MANY)),
            },
            input_limit_bytes: INPUT_LIMIT_BYTES,
            // A connection pauses once so much waits: with 1, after every answer.
            output_limit_bytes: if options.flush_each { 1 } else { options.output_limit_bytes },
            idle_timeout: options.idle_timeout,
            backend: options.backend,
            thread_name: "cache",
            ..Config::default()
        };
        let service = Arc::new(Service::new(options, clock)?);
        let shared = Arc::clone(&service);
        let make = move |thread| CacheConnection::new(Arc::clone(&shared), thread);
        let shared = Arc::clone(&service);
        let make_datagrams = move |thread| CacheDatagrams::new(Arc::clone(&shared), thread);
        let server =
            wire::Server::start_with_datagrams(config, listeners, make, datagrams, make_datagrams)
                .map_err(StartError::Threads)?;
        // Set once, here: `set` can't find it set.
        let _ = service.counters.set(Box::new(server.counters_reader()));
        let _ = service.listening.set(server.addresses().to_vec());
        Ok(Self { server, service })
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

    /// What is counted, as Prometheus reads it (text format 0.0.4).
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
