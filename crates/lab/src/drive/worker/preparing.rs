//! Preparation over datagrams, which get lost: one socket writes the keys, never more at once than
//! a receive buffer holds, and sends again what is not answered.
//!
//! All of it travels on one socket because a target takes the datagrams of one socket in their
//! order: when the last copy of a write is answered, no earlier copy can come after it and undo
//! what is measured. Control plane.

use std::sync::atomic::Ordering;

use wire::{Ns, ProtocolError};

use super::super::config::Parts;
use super::super::slot::State;
use super::super::transport::Transport;
use super::state::{Work, Worker};

/// A write without an answer is sent again after this time, and then after twice as long.
const AGAIN_AFTER_NS: u64 = 100_000_000;

/// How often the time is doubled.
const MAX_DOUBLINGS: u32 = 2;

/// A write is sent at most this often; then preparing fails.
const MAX_TIMES: u32 = 10;

/// The most bytes under way, as a receive buffer counts them: half of the default of Linux
/// (net.core.rmem_default, 212,992 bytes).
const MAX_UNDER_WAY_BYTES: usize = 106_496;

/// The socket that prepares.
const FIRST: usize = 0;

/// The most of a receive buffer that a datagram of `bytes` takes: the kernel's own record of it,
/// and its memory rounded up to a power of two.
fn room_for(bytes: usize) -> usize {
    2 * bytes + 1536
}

/// The time, in nanoseconds, after which a write that was sent this often is sent again.
fn patience(times: u32) -> u64 {
    AGAIN_AFTER_NS << times.saturating_sub(1).min(MAX_DOUBLINGS)
}

impl<T: Transport> Worker<T> {
    /// Writes the next `parts` while there is room for them under way.
    pub(super) fn prepare_by_datagrams(&mut self, index: usize, now: Ns, parts: &mut Parts) {
        if index != FIRST {
            return;
        }
        while self.has_room_for_datagram() && self.slots[FIRST].send_prepare(now, parts) {
            self.largest_bytes = self.largest_bytes.max(self.slots[FIRST].output.len());
            self.flush(FIRST);
        }
    }

    /// Whether one more datagram of the largest size so far has room beside those under way.
    fn has_room_for_datagram(&self) -> bool {
        let each = room_for(self.largest_bytes);
        let outstanding = self.slots[FIRST].outstanding();
        outstanding == 0 || (outstanding + 1) * each <= MAX_UNDER_WAY_BYTES
    }

    /// While keys are prepared over datagrams: sends overdue writes again, and returns the time-out
    /// of requests, which is none. A write that was sent [`MAX_TIMES`] ends the preparing, and so
    /// does the end of the socket.
    pub(super) fn prepare_again(&mut self, now: Ns, work: &mut Work) -> Option<u64> {
        let Work::Prepare(parts) = work else { return None };
        if !self.slot_config.datagrams || self.config.stop.load(Ordering::Relaxed) {
            return None;
        }
        while let Some((tag, late)) = self.slots[FIRST].late_prepare(now, patience) {
            if late.times < MAX_TIMES {
                self.slots[FIRST].prepare_again(now, tag);
                self.flush(FIRST);
            } else {
                self.lose(FIRST, &unanswered(late.part));
            }
        }
        if self.slots[FIRST].state == State::Gone {
            parts.left = 0..0;
        }
        Some(u64::MAX)
    }
}

#[cold]
fn unanswered(part: u64) -> ProtocolError {
    let waited_ms = (1..=MAX_TIMES).map(patience).sum::<u64>() / 1_000_000;
    ProtocolError::new(format!(
        "preparing key {part}: none of {MAX_TIMES} datagrams within {waited_ms} ms was answered; \
         see that the target speaks this dialect and takes values of this size"
    ))
}
