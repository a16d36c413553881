//! The memory of unsent bytes, with one limit for all connections of a server.
//!
//! One connection's unsent bytes are limited by its [`Output`](crate::Output), but a thousand
//! peers that don't read multiply that. The limit is kept in two steps. Back-pressure comes first:
//! the more memory is held, the earlier an output asks its protocol to pause
//! ([`SendMemory::output_limit`]). Where that is not enough, because single answers are large, the
//! connections that have waited longest for their peer are closed, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One connection may add this part of the memory that is left. With a sixteenth, the memory held
/// approaches the limit and does not pass it, however many connections wait; an output has at most
/// twice the memory of its bytes.
const SHARE_OF_REST: usize = 16;

/// The memory of unsent bytes of all connections of a server, with a limit.
///
/// The loop counts the buffers of connections that wait for their peer. A protocol that shares
/// large values ([`Output::share`](crate::Output::share)) counts each of them once, with
/// [`SendMemory::hold`].
#[derive(Debug)]
pub struct SendMemory {
    limit_bytes: usize,
    held_bytes: AtomicUsize,
}

/// A part of the memory, released when this is dropped.
#[derive(Debug)]
pub struct SendHold {
    memory: Arc<SendMemory>,
    bytes: usize,
}

impl SendMemory {
    /// Creates a limit of `limit_bytes` for all connections together.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { limit_bytes, held_bytes: AtomicUsize::new(0) })
    }

    /// Counts `bytes` until the result is dropped.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> SendHold {
        self.held_bytes.fetch_add(bytes, Relaxed);
        SendHold { memory: Arc::clone(self), bytes }
    }

    /// Returns the limit, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Returns the memory that is held now, in bytes.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Relaxed)
    }

    /// Whether more is held than the limit.
    #[inline]
    pub(crate) fn is_exceeded(&self) -> bool {
        self.held_bytes() > self.limit_bytes
    }

    /// Returns the bytes, at least 1, at which an output asks its protocol to pause, `most` while
    /// enough memory is left.
    #[inline]
    pub(crate) fn output_limit(&self, most: usize) -> usize {
        let rest = self.limit_bytes.saturating_sub(self.held_bytes());
        most.min(rest / SHARE_OF_REST).max(1)
    }
}

impl SendHold {
    /// Returns the bytes that are held.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for SendHold {
    fn drop(&mut self) {
        let held = self.memory.held_bytes.fetch_sub(self.bytes, Relaxed);
        debug_assert!(held >= self.bytes, "released {} of {held} bytes", self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::SendMemory;

    #[test]
    fn outputs_that_keep_their_limits_never_pass_the_limit_of_all() {
        let memory = SendMemory::new(1 << 20);
        let mut holds = Vec::new();
        for _ in 0..10_000 {
            let limit = memory.output_limit(64 << 10);
            if limit > 1 {
                holds.push(memory.hold(2 * limit));
            }
        }
        assert!(!memory.is_exceeded() && memory.held_bytes() > 900 << 10);
        assert!(holds.len() > 30);
        holds.clear();
        assert_eq!((memory.held_bytes(), memory.output_limit(1 << 30)), (0, 1 << 16));
    }
}
