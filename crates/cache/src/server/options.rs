//! The settings of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use wire::{Address, Backend};

use super::accounts::Accounts;
use crate::model::{Limits, Policy, Rules, Sharing};

/// Which protocols a server's connections may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speech {
    /// The first byte of a connection decides.
    #[default]
    Either,
    /// Text and meta commands only.
    Text,
    /// The binary protocol only.
    Binary,
}

/// Input that waits for the end of its message: the longest line and the largest data block that
/// is not read into a place of its own, with room for a batch of others.
pub(super) const INPUT_LIMIT_BYTES: usize = 64 << 10;

/// The effect of `shutdown`.
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
pub struct Reload {
    read: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// When they were last read.
    read_ns: Arc<AtomicU64>,
}

impl Reload {
    /// `read` returns what is wrong with the files, and changes nothing then. They have just been
    /// read for the first time.
    pub fn new(read: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), read_ns: Arc::new(AtomicU64::new(wire::clock::now())) }
    }

    /// Reads them.
    ///
    /// # Errors
    /// Returns what is wrong with them.
    pub fn run(&self) -> Result<(), String> {
        (self.read)()?;
        self.read_ns.store(wire::clock::now(), Relaxed);
        Ok(())
    }

    /// Returns the time since they were last read.
    pub fn age(&self) -> Duration {
        let read_ns = self.read_ns.load(Relaxed);
        Duration::from_nanos(wire::clock::now().saturating_sub(read_ns))
    }
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reload")
    }
}

/// The encryption of connections, and what `stats settings` shows of it.
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
    /// The file of authorities that sign clients' certificates.
    pub authorities: Option<String>,
    /// Whether clients need a certificate, in memcached's numbers: 0 to 3.
    pub verify_mode: u64,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// The lowest version spoken, as memcached writes it: 2 is 1.2, 3 is 1.3.
    pub least_version: u64,
}

/// The settings of the crawler, which removes expired items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlerOptions {
    /// Whether it walks.
    pub enabled: bool,
    /// The time between two turns of a walk, in microseconds.
    pub sleep_us: u32,
    /// The items that one walk examines at most; 0 is all.
    pub to_crawl: u32,
}

impl Default for CrawlerOptions {
    fn default() -> Self {
        Self { enabled: true, sleep_us: 1000, to_crawl: 0 }
    }
}

/// The settings of a server.
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
    /// The memory of all data blocks that are being received, in bytes; a quarter of the memory
    /// when it is `None`. Requests of up to 4 KiB wait in their connection's input instead.
    pub incoming_bytes: Option<usize>,
    /// The memory of unsent answers of all connections, in bytes, large values counted once; when
    /// it is `None`, a quarter of the memory, and at least 32 MiB.
    pub send_bytes: Option<usize>,
    /// Connections open at once.
    pub most_connections: usize,
    /// Whether one more waits until another is closed, instead of being refused.
    pub wait_when_full: bool,
    /// The unsent bytes at which a connection is not read from until they are sent.
    pub output_limit_bytes: usize,
    /// Where it receives datagrams; nowhere unless asked to.
    pub datagrams: Vec<Address>,
    /// How many connections may wait to be accepted.
    pub backlog: i32,
    /// The permissions of Unix sockets' files; by default the umask decides.
    pub unix_mode: Option<u32>,
    /// The time without traffic after which a connection is closed.
    pub idle_timeout: Option<Duration>,
    /// Which protocols are spoken.
    pub speech: Speech,
    /// Whether items are evicted to make room for new ones; otherwise new ones are refused.
    pub evict: bool,
    /// Which items are evicted.
    pub policy: Policy,
    /// How threads share the store.
    pub sharing: Sharing,
    /// How system calls are made.
    pub backend: Backend,
    /// Whether answers go out one by one, instead of all answers to a batch together.
    pub flush_each: bool,
    /// Whether each store has a unique number.
    pub cas: bool,
    /// Whether `flush_all` is enabled.
    pub flush: bool,
    /// Whether commands may list keys.
    pub list_keys: bool,
    /// The crawler's settings at the start.
    pub crawler: CrawlerOptions,
    /// What is logged of connections: errors (1), also commands (2), also states (3).
    pub verbosity: u8,
    /// Whether `watch` is enabled.
    pub watch: bool,
    /// The bytes of log lines that wait for one watcher; further lines are dropped.
    pub watch_queue_bytes: usize,
    /// Whether a command may move the service's clock, for tests of what expires.
    pub debug_time: bool,
    /// What ends the part of a key by which `stats detail` counts.
    pub prefix_end: u8,
    /// Whether `stats detail` counts from the start.
    pub count_prefixes: bool,
    /// Whether `stats sizes` is enabled from the start.
    pub track_sizes: bool,
    /// The accounts of authorised clients; `None` disables authentication.
    pub accounts: Option<Accounts>,
    /// What the command `shutdown` does; it is refused when this is `None`.
    pub shutdown: Option<Shutdown>,
    /// Has keys spread in the same way in every process, for tests that repeat exactly.
    pub key_seed: Option<u64>,
    /// For tests of load generators: every n-th value that is sent has a flipped bit.
    pub corrupt_every: Option<u64>,
}

/// The default limit of the memory of unsent answers, where a quarter of the store's is less.
const SEND_BYTES: usize = 32 << 20;

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
            send_bytes: None,
            most_connections: 1024,
            wait_when_full: false,
            output_limit_bytes: 256 << 10,
            datagrams: Vec::new(),
            backlog: 1024,
            unix_mode: Some(0o700),
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
            crawler: CrawlerOptions::default(),
            verbosity: 0,
            watch: true,
            watch_queue_bytes: 256 << 10,
            debug_time: false,
            prefix_end: b':',
            count_prefixes: false,
            track_sizes: false,
            accounts: None,
            shutdown: None,
            key_seed: None,
            corrupt_every: None,
        }
    }
}

impl Options {
    pub(super) fn limits(&self) -> Limits {
        let Self { memory_bytes, item_bytes, threads, .. } = *self;
        let Self { evict, cas, policy, sharing, key_seed, .. } = *self;
        let rules = Rules { evict, cas, policy, sharing, seed: key_seed };
        Limits { memory_bytes, item_bytes, threads, rules }
    }

    /// Returns the memory of unsent answers of all connections, at least what one connection may
    /// have waiting: less than its limit of output, and then the largest item.
    pub(super) fn send_limit_bytes(&self) -> usize {
        let least = self.item_bytes.saturating_add(self.output_limit_bytes);
        self.send_bytes.unwrap_or((self.memory_bytes / 4).max(SEND_BYTES)).max(least)
    }

    /// Returns the memory of data blocks that are being received, at least the largest item's.
    pub(super) fn incoming_limit_bytes(&self) -> usize {
        self.incoming_bytes.unwrap_or(self.memory_bytes / 4).max(self.item_bytes)
    }
}
