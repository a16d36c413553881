//! The worker's part in the limit of unsent bytes: counting what connections hold, and closing the
//! slowest peers where the limit is passed. Data plane.

use crate::counters::add;
use crate::system::System;
use crate::worker::Worker;
use crate::{Closed, Connection};

impl<C: Connection, S: System> Worker<C, S> {
    /// Counts the memory of a connection's unsent bytes, for as long as there are any.
    #[cold]
    pub(crate) fn count_unsent(&mut self, token: u64) {
        let memory = &self.shared.config.send_memory;
        let Some(slot) = self.slots.get_mut(token) else { return };
        let Some(output) = &mut slot.output else { return };
        output.shrink();
        let bytes = output.capacity();
        if slot.held.as_ref().is_none_or(|held| held.bytes() != bytes) {
            slot.held = Some(memory.hold(bytes));
        }
        while self.shared.config.send_memory.is_exceeded() && self.close_slowest() {}
    }

    /// Closes this thread's connection whose peer has taken nothing for the longest time. Returns
    /// whether there was one that waits for its peer.
    fn close_slowest(&mut self) -> bool {
        let tokens = self.slots.tokens().into_iter();
        let held = tokens.filter_map(|token| {
            let slot = self.slots.get(token)?;
            slot.held.as_ref().map(|_| (slot.active_ns, token))
        });
        let Some((_, slowest)) = held.min() else { return false };
        add(&self.counters().slow_peers_closed, 1);
        self.close(slowest, Closed::SlowPeer);
        true
    }
}
