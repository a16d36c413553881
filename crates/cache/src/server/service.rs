//! The state that all connections of one server share.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use wire::{Address, Ns, SendMemory};

use super::accounts::Accounts;
use super::clients::ClientTable;
use super::crawler_control::CrawlerControl;
use super::incoming_memory::IncomingMemory;
use super::large_values::LargeValues;
use super::options::{Options, Shutdown};
use super::prefix_counts::PrefixCounts;
use super::sampling::Samples;
use super::verbosity::Verbosity;
use super::watch::Watchers;
use crate::model::{Clock, Eviction, EvictionObserver, FIRST_SECOND, MakeError, Seconds, Store};
use crate::protocol::text::DebugTime;

/// Reads the loop's counters.
pub(super) type ReadCounters = Box<dyn Fn() -> wire::Counters + Send + Sync>;

/// The counters of one thread, beside those of the store. Aligned so that no two threads write to
/// one cache line.
#[derive(Debug)]
#[repr(align(128))]
pub struct ThreadCounts {
    /// Meta commands.
    pub(super) cmd_meta: AtomicU64,
    /// The samples of its batches.
    pub(super) samples: Samples,
}

/// Corrupts values on purpose, to prove that a load generator finds wrong answers.
#[derive(Debug)]
struct Corrupter {
    every: u64,
    sent: AtomicU64,
}

/// The store and what belongs to it.
pub struct Service {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) options: Options,
    pub(super) threads: Vec<ThreadCounts>,
    /// Set once the loop runs; a service without a loop, as in tests, has none.
    pub(super) counters: OnceLock<ReadCounters>,
    /// Where it listens, once it does.
    pub(super) listening: OnceLock<Vec<Address>>,
    pub(super) peers: ClientTable,
    pub(super) detail: PrefixCounts,
    pub(super) crawler: CrawlerControl,
    pub(super) verbosity: Verbosity,
    /// Room for data blocks on their way in.
    pub(super) incoming: Arc<IncomingMemory>,
    /// The memory of unsent answers.
    pub(super) send_memory: Arc<SendMemory>,
    /// Copies of large values that are being sent.
    pub(super) large_values: Arc<LargeValues>,
    pub(super) watchers: Arc<Watchers>,
    debug_clock: DebugClock,
    /// The accounts; `None` disables authentication.
    pub(super) accounts: Option<Accounts>,
    /// Ends the process, where a command may.
    pub(super) shutdown: Option<Shutdown>,
    rare: ServiceCounts,
    sizes: AtomicBool,
    corrupter: Option<Corrupter>,
}

/// A clock that a command may move.
#[derive(Debug, Default)]
struct DebugClock {
    /// The offset of the clock, in seconds.
    skew_s: AtomicI64,
    /// The second at which it is stopped; 0 while it runs.
    stopped_s: AtomicU32,
}

/// Counters of rare events.
#[derive(Debug, Default)]
struct ServiceCounts {
    cmd_flush: AtomicU64,
    auth_cmds: AtomicU64,
    auth_errors: AtomicU64,
    slow_peers: AtomicU64,
    slow_blocks: AtomicU64,
    idle_kicks: AtomicU64,
}

impl Service {
    /// Creates a service with an empty store; `clock` holds the time of its start.
    ///
    /// # Errors
    /// When the options are invalid or the system lacks memory.
    pub fn new(options: Options, clock: Clock) -> Result<Self, MakeError> {
        let spoil = |every| Corrupter { every, sent: AtomicU64::new(0) };
        let send_memory = SendMemory::new(options.send_limit_bytes());
        let store = Store::new(options.limits())?;
        let watchers = Arc::new(Watchers::new(options.watch_queue_bytes));
        let told = Arc::clone(&watchers);
        store.set_eviction_observer(&EvictionObserver::new(move |eviction: &Eviction<'_>| {
            told.publish_eviction(eviction)
        }));
        let counts =
            |thread| ThreadCounts { cmd_meta: AtomicU64::new(0), samples: Samples::new(thread) };
        Ok(Self {
            store,
            clock,
            watchers,
            debug_clock: DebugClock::default(),
            threads: (0..options.threads.max(1)).map(counts).collect(),
            counters: OnceLock::new(),
            listening: OnceLock::new(),
            peers: ClientTable::default(),
            verbosity: Verbosity::new(options.verbosity),
            crawler: CrawlerControl::new(&options.crawler),
            incoming: Arc::new(IncomingMemory::new(options.incoming_limit_bytes())),
            large_values: LargeValues::new(Arc::clone(&send_memory)),
            send_memory,
            detail: PrefixCounts::new(options.prefix_end, options.count_prefixes),
            accounts: options.accounts.clone(),
            shutdown: options.shutdown.clone(),
            rare: ServiceCounts::default(),
            sizes: AtomicBool::new(options.track_sizes),
            corrupter: options.corrupt_every.filter(|every| *every > 0).map(spoil),
            options,
        })
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The service's second at `now_ns`.
    #[inline]
    pub(super) fn seconds(&self, now_ns: Ns) -> Seconds {
        let now_s = self.clock.seconds(now_ns);
        if self.options.debug_time { self.debug_clock.moved(now_s) } else { now_s }
    }

    /// Moves the service's clock, where that is allowed; whether it is.
    pub(super) fn set_time(&self, now_s: Seconds, change: DebugTime) -> bool {
        let clock = &self.debug_clock;
        match change {
            _ if !self.options.debug_time => return false,
            DebugTime::Pause => clock.stopped_s.store(now_s, Relaxed),
            DebugTime::Resume => clock.stopped_s.store(0, Relaxed),
            DebugTime::Jump(by_s) => {
                clock.skew_s.fetch_add(by_s.clamp(-MAX_JUMP_S, MAX_JUMP_S), Relaxed);
                let moved = |at_s: u32| (at_s != 0).then(|| shifted(at_s, by_s));
                // A clock that stands still jumps, too.
                let _ = clock.stopped_s.fetch_update(Relaxed, Relaxed, moved);
            }
        }
        true
    }

    /// Whether `password` is that of `name`; counted.
    pub(super) fn authenticate(&self, name: &[u8], password: &[u8]) -> bool {
        let known = self.accounts.as_ref().is_none_or(|all| all.has(name, password));
        self.rare.auth_cmds.fetch_add(1, Relaxed);
        self.rare.auth_errors.fetch_add(u64::from(!known), Relaxed);
        known
    }

    /// Reads the certificates again.
    ///
    /// # Errors
    /// Returns what is wrong with them.
    pub(super) fn refresh_certificates(&self) -> Result<(), String> {
        match &self.options.encryption {
            Some(encryption) => encryption.reload.run(),
            None => Err("TLS not enabled".to_owned()),
        }
    }

    /// Logs a connection that was closed because unsent answers took too much memory: the first,
    /// and then each time that their number has doubled.
    pub(super) fn log_slow_peer(&self, peer: &Address) {
        let closed = self.rare.slow_peers.fetch_add(1, Relaxed) + 1;
        if closed.is_power_of_two() {
            let limit_bytes = self.send_memory.limit_bytes();
            tracing::warn!(
                %peer, closed, limit_bytes,
                "closed the slowest reader: unsent answers exceed their memory"
            );
        }
    }

    /// Logs a connection that was closed because its data came slowly while those of others were
    /// refused: the first, and then each time that their number has doubled.
    pub(super) fn log_slow_block(&self, peer: Option<&Address>) {
        let closed = self.rare.slow_blocks.fetch_add(1, Relaxed) + 1;
        if closed.is_power_of_two() {
            let limit_bytes = self.incoming.limit_bytes();
            let peer = peer.map(ToString::to_string).unwrap_or_default();
            tracing::warn!(
                peer,
                closed,
                limit_bytes,
                "closed a slow sender: data on their way in exceed their memory"
            );
        }
    }

    /// Counts a connection that was closed because it was idle.
    pub(super) fn count_idle_kick(&self) {
        self.rare.idle_kicks.fetch_add(1, Relaxed);
    }

    /// Returns the number of connections closed because they were idle.
    pub(super) fn idle_kicks(&self) -> u64 {
        self.rare.idle_kicks.load(Relaxed)
    }

    /// Counts one `flush_all`.
    pub(super) fn count_flush(&self) {
        self.rare.cmd_flush.fetch_add(1, Relaxed);
    }

    /// Returns the numbers of `flush_all`, of authentications, and of failed ones.
    pub(super) fn counted(&self) -> (u64, u64, u64) {
        let ServiceCounts { cmd_flush, auth_cmds, auth_errors, .. } = &self.rare;
        (cmd_flush.load(Relaxed), auth_cmds.load(Relaxed), auth_errors.load(Relaxed))
    }

    /// Starts these counts again.
    pub(super) fn reset_counts(&self) {
        let ServiceCounts { cmd_flush, auth_cmds, auth_errors, .. } = &self.rare;
        for count in [cmd_flush, auth_cmds, auth_errors] {
            count.store(0, Relaxed);
        }
        self.incoming.reset_refused();
    }

    /// Whether `stats sizes` is enabled.
    pub(super) fn tracks_sizes(&self) -> bool {
        self.sizes.load(Relaxed)
    }

    /// Switches `stats sizes` on or off.
    pub(super) fn track_sizes(&self, on: bool) {
        self.sizes.store(on, Relaxed);
    }

    /// Whether values are corrupted, when a test has asked for it.
    #[inline]
    pub(super) fn corrupts(&self) -> bool {
        self.corrupter.is_some()
    }

    /// Flips a bit in the first byte of a value of `value_bytes`, when a test has asked for it and
    /// it is this value's turn.
    #[inline]
    pub(super) fn corrupt(&self, sent: &mut [u8], value_bytes: usize) {
        if let Some(corrupter) = &self.corrupter {
            let number = corrupter.sent.fetch_add(1, Relaxed) + 1;
            if number % corrupter.every == 0 && value_bytes > 0 {
                sent[value_bytes / 2] ^= 1;
            }
        }
    }
}

/// The largest jump of the clock, in seconds: about a hundred years.
const MAX_JUMP_S: i64 = 1 << 32;

impl DebugClock {
    fn moved(&self, now_s: Seconds) -> Seconds {
        match self.stopped_s.load(Relaxed) {
            0 => shifted(now_s, self.skew_s.load(Relaxed)),
            stopped_s => stopped_s,
        }
    }
}

/// `at_s`, moved, and never before the first second.
fn shifted(at_s: Seconds, by_s: i64) -> Seconds {
    let moved = i64::from(at_s).saturating_add(by_s).max(i64::from(FIRST_SECOND));
    Seconds::try_from(moved).unwrap_or(Seconds::MAX)
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("options", &self.options).finish_non_exhaustive()
    }
}

impl ThreadCounts {
    /// Counts meta commands. Only the owning thread writes, so no atomic addition is needed.
    #[inline]
    pub(super) fn add_metas(&self, count: u64) {
        self.cmd_meta.store(self.cmd_meta.load(Relaxed).wrapping_add(count), Relaxed);
    }
}
