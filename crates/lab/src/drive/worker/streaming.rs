//! Slots that subscribe: begins and ends their streams, and lets slow readers pause.

use wire::Ns;

use super::super::streams::StreamSum;
use super::super::transport::Transport;
use super::state::{Work, Worker};

impl<T: Transport> Worker<T> {
    /// Returns what the streams have brought, and begins anew.
    pub(super) fn take_streams(&mut self) -> Vec<StreamSum> {
        match std::mem::take(&mut self.recorder.streams) {
            sum if sum.each.is_empty() => Vec::new(),
            sum => vec![sum],
        }
    }

    /// Begins a slot's streams, as many as its depth, each with an index of its own.
    pub(super) fn subscribe(&mut self, index: usize, now: Ns) {
        let depth = self.slot_config.depth as u64;
        let first = (self.config.slots.start + index) as u64 * depth;
        while self.slots[index].has_room() {
            self.slots[index].subscribe(first, now);
        }
    }

    /// Ends every stream and every pause. What is still under way is awaited.
    #[cold]
    pub(super) fn end_streams(&mut self, now: Ns) {
        for index in 0..self.slots.len() {
            self.slots[index].cancel(now, &mut self.recorder);
            self.read_again(index);
            self.flush(index);
        }
    }

    /// Ends a slow reader's pause.
    pub(super) fn read_again(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.reads_at.take().is_some() {
            let interest = slot.interest();
            self.watch(index, interest);
        }
    }

    /// Pauses a slow reader after an update, so that the target has to wait.
    #[inline]
    pub(super) fn pause(&mut self, index: usize, now: Ns, work: &Work) {
        if let Work::Streams { pause_ns, .. } = *work
            && pause_ns > 0
            && !self.events.updates.is_empty()
        {
            let slot = &mut self.slots[index];
            slot.reads_at = Some(now + pause_ns);
            let interest = slot.interest();
            self.watch(index, interest);
        }
    }
}
