//! `watch`: a log of events for clients that subscribe to it, in memcached's format and with its
//! limits.
//!
//! A watcher has a bounded queue. What does not fit into it is counted and dropped, and the stream
//! says how many lines are missing: a slow watcher never delays a client. Without watchers, a batch
//! of commands pays for reading one number. Control plane.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use wire::{Address, Closed, Waker};

use crate::model::Eviction;
use crate::protocol::text::{Streams, put_encoded};

/// The number of watchers at most, as in memcached.
const MAX_WATCHERS: usize = 20;

/// All watchers.
#[derive(Debug)]
pub(super) struct Watchers {
    /// The streams with a watcher.
    wanted: AtomicU8,
    /// How many bytes of lines wait for one watcher at most.
    queue_bytes: usize,
    all: Mutex<Vec<Arc<Watcher>>>,
    /// How many lines there have been; each has its number.
    written: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
}

/// One watcher.
#[derive(Debug)]
struct Watcher {
    streams: Streams,
    waker: Waker,
    queue: Mutex<Queue>,
}

/// Lines that wait for one watcher.
#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    /// Lines left out since the last one that fitted.
    skipped: u64,
}

/// A watcher's entry, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Watching {
    watchers: Arc<Watchers>,
    watcher: Arc<Watcher>,
}

/// The counters of watchers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchCounts {
    pub(super) watchers: usize,
    pub(super) written: u64,
    pub(super) sent: u64,
    pub(super) skipped: u64,
}

/// A storage command and its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreEvent<'a> {
    pub(super) key: &'a [u8],
    pub(super) status: &'static str,
    pub(super) command: &'static str,
    pub(super) left_s: u32,
    pub(super) value_bytes: usize,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Lists and queues are whole between any two calls: a panic elsewhere can't break them.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    /// Creates an empty set, with the limit of bytes that wait for one watcher.
    pub(super) fn new(queue_bytes: usize) -> Self {
        Self {
            wanted: AtomicU8::new(0),
            queue_bytes,
            all: Mutex::default(),
            written: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        }
    }

    /// The streams with a watcher.
    #[inline]
    pub(super) fn wanted(&self) -> Streams {
        Streams(self.wanted.load(Relaxed))
    }

    /// Adds a watcher; `None` at the limit.
    pub(super) fn add(self: &Arc<Self>, streams: Streams, waker: Waker) -> Option<Watching> {
        let mut all = lock(&self.all);
        if all.len() >= MAX_WATCHERS {
            return None;
        }
        let watcher = Arc::new(Watcher { streams, waker, queue: Mutex::default() });
        all.push(Arc::clone(&watcher));
        self.want(&all);
        Some(Watching { watchers: Arc::clone(self), watcher })
    }

    fn want(&self, all: &[Arc<Watcher>]) {
        self.wanted.store(all.iter().fold(0, |sum, one| sum | one.streams.0), Relaxed);
    }

    pub(super) fn counts(&self) -> WatchCounts {
        WatchCounts {
            watchers: lock(&self.all).len(),
            written: self.written.load(Relaxed),
            sent: self.sent.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
        }
    }

    /// Publishes a look-up, with the length of the value if it was found.
    pub(super) fn publish_read(&self, key: &[u8], found: Option<usize>, connection: u64) {
        self.publish(Streams::FETCHERS, |line| {
            let (status, class) = if found.is_some() { ("found", 1) } else { ("not_found", 0) };
            put_key(line, "item_get", key);
            let size = found.unwrap_or(0);
            let _ = write!(line, " status={status} clsid={class} cfd={connection} size={size}");
        });
    }

    /// Publishes a storage command and its outcome.
    pub(super) fn publish_store(&self, store: &StoreEvent<'_>, connection: u64) {
        self.publish(Streams::MUTATIONS, |line| {
            let StoreEvent { key, status, command, left_s, value_bytes } = store;
            put_key(line, "item_store", key);
            let _ = write!(
                line,
                " status={status} cmd={command} ttl={left_s} clsid=1 cfd={connection} \
                 size={value_bytes}"
            );
        });
    }

    /// Publishes an eviction.
    pub(super) fn publish_eviction(&self, eviction: &Eviction<'_>) {
        self.publish(Streams::EVICTIONS, |line| {
            put_key(line, "eviction", eviction.key);
            let fetched = if eviction.fetched { "yes" } else { "no" };
            let left = eviction.left_s.map_or(-1, i64::from);
            let _ = write!(
                line,
                " fetch={fetched} ttl={left} la={} clsid=1 size={}",
                eviction.idle_s, eviction.value_bytes
            );
        });
    }

    /// Publishes a new connection.
    pub(super) fn publish_opened(&self, peer: &Address, connection: u64) {
        self.publish(Streams::CONNEVENTS, |line| {
            line.push_str("conn_new ");
            put_peer(line, peer);
            let _ = write!(line, " cfd={connection}");
        });
    }

    /// Publishes the end of a connection.
    pub(super) fn publish_closed(&self, peer: &Address, why: &Closed, connection: u64) {
        self.publish(Streams::CONNEVENTS, |line| {
            let reason = match why {
                Closed::ByPeer | Closed::ByUs => "normal",
                Closed::Socket(std::io::ErrorKind::TimedOut) => "idle_timeout",
                Closed::ProtocolError(_) | Closed::Socket(_) | Closed::SlowPeer => "error",
                Closed::Stopping => "shutdown",
            };
            line.push_str("conn_close ");
            put_peer(line, peer);
            let _ = write!(line, " reason={reason} cfd={connection}");
        });
    }

    /// Appends a line to the queue of each watcher of `stream`. `put` appends what follows `type=`.
    fn publish(&self, stream: Streams, put: impl FnOnce(&mut String)) {
        if !self.wanted().has(stream) {
            return;
        }
        let number = self.written.fetch_add(1, Relaxed) + 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = String::with_capacity(256);
        // Writing to a string can't fail.
        let (seconds, micros) = (now.as_secs(), now.subsec_micros());
        let _ = write!(line, "ts={seconds}.{micros:06} gid={number} type=");
        put(&mut line);
        line.push('\n');
        for watcher in lock(&self.all).iter().filter(|one| one.streams.has(stream)) {
            let fitted = lock(&watcher.queue).push(line.as_bytes(), self.queue_bytes);
            let count = if fitted { &self.sent } else { &self.skipped };
            count.fetch_add(1, Relaxed);
            watcher.waker.wake();
        }
    }
}

impl Queue {
    /// Appends a line; whether it fitted.
    fn push(&mut self, line: &[u8], most_bytes: usize) -> bool {
        if self.bytes.len() + line.len() > most_bytes {
            self.skipped += 1;
            return false;
        }
        if self.skipped > 0 {
            self.bytes.extend_from_slice(format!("skipped={}\n", self.skipped).as_bytes());
            self.skipped = 0;
        }
        self.bytes.extend_from_slice(line);
        true
    }
}

impl Watching {
    /// Moves the lines that wait to the end of `into`.
    pub(super) fn take(&self, into: &mut Vec<u8>) {
        into.append(&mut lock(&self.watcher.queue).bytes);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut all = lock(&self.watchers.all);
        all.retain(|one| !Arc::ptr_eq(one, &self.watcher));
        self.watchers.want(&all);
    }
}

fn put_key(line: &mut String, what: &str, key: &[u8]) {
    line.push_str(what);
    line.push_str(" key=");
    let mut encoded = Vec::with_capacity(key.len());
    put_encoded(key, &mut encoded);
    line.push_str(&String::from_utf8_lossy(&encoded));
}

fn put_peer(line: &mut String, peer: &Address) {
    // Writing to a string can't fail.
    let _ = match peer {
        Address::Internet(address) => {
            write!(line, "rip={} rport={} transport=tcp", address.ip(), address.port())
        }
        Address::Unix(_) => write!(line, "rip=unix rport=0 transport=local"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_full_leaves_out_lines_and_says_how_many() {
        let mut queue = Queue::default();
        assert!(queue.push(b"one\n", 10) && queue.push(b"two\n", 10));
        assert!(!queue.push(b"three\n", 10) && !queue.push(b"four\n", 10));
        queue.bytes.clear();
        assert!(queue.push(b"five\n", 10));
        assert_eq!(queue.bytes, b"skipped=2\nfive\n");
    }

    #[test]
    fn only_those_who_want_a_stream_are_woken_and_a_place_is_given_back() {
        let watchers = Arc::new(Watchers::new(1000));
        let nobody = || Waker::new(|| ());
        let woken = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&woken);
        let reads = watchers.add(
            Streams::FETCHERS,
            Waker::new(move || {
                count.fetch_add(1, Relaxed);
            }),
        );
        let reads = reads.expect("a place");
        let stores = watchers.add(Streams::MUTATIONS, nobody()).expect("a place");
        watchers.publish_read(b"a key", Some(3), 7);
        let (mut seen, mut other) = (Vec::new(), Vec::new());
        reads.take(&mut seen);
        stores.take(&mut other);
        let line = String::from_utf8(seen).expect("text");
        assert!(line.ends_with("type=item_get key=a%20key status=found clsid=1 cfd=7 size=3\n"));
        assert!(other.is_empty() && woken.load(Relaxed) == 1);
        drop((reads, stores));
        assert_eq!(watchers.wanted(), Streams(0));
        let all: Vec<_> = (0..MAX_WATCHERS)
            .map(|_| watchers.add(Streams::EVICTIONS, nobody()).expect("a place"))
            .collect();
        assert!(watchers.add(Streams::EVICTIONS, nobody()).is_none());
        drop(all);
        assert_eq!(watchers.counts().watchers, 0);
    }
}
