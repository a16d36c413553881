//! A server's counters, one set per thread, without contention.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One thread's counters. Only that thread writes them, so counting is a plain addition; any
/// thread may read them. Aligned so that no two threads write to the same cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadCounters {
    pub(crate) opened: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) yields: AtomicU64,
    pub(crate) slow_peers_closed: AtomicU64,
    pub(crate) protocol_errors: AtomicU64,
    pub(crate) datagrams_received: AtomicU64,
    pub(crate) datagrams_sent: AtomicU64,
    pub(crate) datagrams_dropped: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) listen_disabled: AtomicU64,
}

/// Adds to a counter that only the calling thread writes.
#[inline]
pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.store(counter.load(Relaxed).wrapping_add(count as u64), Relaxed);
}

/// A reading of a server's counters. Each only grows, save for `current_connections` and
/// `uring_threads`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Connections that are open now, including those that linger to be closed cleanly.
    pub current_connections: u64,
    /// Connections that have been opened.
    pub total_connections: u64,
    /// Connections refused because there were too many.
    pub rejected_connections: u64,
    /// How often accepting was suspended because there were too many connections or descriptors.
    pub listen_disabled: u64,
    /// Whether connections are accepted now.
    pub accepting: bool,
    /// Threads that use [io_uring](crate::Backend::Uring).
    pub uring_threads: u64,
    /// Connections closed because the peer broke the protocol or a limit.
    pub protocol_errors: u64,
    /// Bytes received over connections.
    pub bytes_read: u64,
    /// Bytes sent over connections.
    pub bytes_written: u64,
    /// How often a connection had more to send than one turn allows, and yielded to others.
    pub yields: u64,
    /// Connections closed because the unsent bytes of all exceeded
    /// [`Config::send_memory`](crate::Config::send_memory), and their peers took none for the
    /// longest time.
    pub slow_peers_closed: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams not sent because the system didn't take them.
    pub datagrams_dropped: u64,
}

impl Counters {
    pub(crate) fn sum<'a>(threads: impl Iterator<Item = &'a ThreadCounters>) -> Self {
        let mut sum = Self::default();
        for thread in threads {
            for (total, counter) in [
                (&mut sum.total_connections, &thread.opened),
                (&mut sum.rejected_connections, &thread.rejected),
                (&mut sum.listen_disabled, &thread.listen_disabled),
                (&mut sum.protocol_errors, &thread.protocol_errors),
                (&mut sum.bytes_read, &thread.bytes_read),
                (&mut sum.bytes_written, &thread.bytes_written),
                (&mut sum.yields, &thread.yields),
                (&mut sum.slow_peers_closed, &thread.slow_peers_closed),
                (&mut sum.datagrams_received, &thread.datagrams_received),
                (&mut sum.datagrams_sent, &thread.datagrams_sent),
                (&mut sum.datagrams_dropped, &thread.datagrams_dropped),
            ] {
                *total = total.wrapping_add(counter.load(Relaxed));
            }
        }
        sum
    }
}
