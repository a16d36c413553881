//! What a thread does for slots that subscribe: begins and ends their streams, and lets slow
//! readers pause.

use wire::Ns;

use super::super::streams::StreamSum;
use super::super::transport::Transport;
use super::state::{Work, Worker};

impl<T: Transport> Worker<T> {
    /// When a piece's last answer came; what is read while streams end counts for nothing.
    pub(super) fn last_answer(&self, work: &Work) -> Ns {
        match *work {
            Work::Streams { until, .. } => self.recorder.last_answer.min(until),
            _ => self.recorder.last_answer,
        }
    }

    /// What the streams of a piece have brought.
    pub(super) fn take_streams(&mut self) -> Vec<StreamSum> {
        match std::mem::take(&mut self.recorder.streams) {
            sum if sum.each.is_empty() => Vec::new(),
            sum => vec![sum],
        }
    }

    /// Begins as many streams on a slot as it is deep, each with an index of its own.
    pub(super) fn subscribe(&mut self, index: usize, now: Ns) {
        let depth = self.slot_config.depth as u64;
        let first = (self.config.slots.start + index) as u64 * depth;
        while self.slots[index].has_room() {
            self.slots[index].subscribe(first, now);
        }
    }

    /// Ends every stream, and pauses too. What still comes of them is waited for.
    #[cold]
    pub(super) fn end_streams(&mut self, now: Ns) {
        for index in 0..self.slots.len() {
            self.slots[index].cancel(now, &mut self.recorder);
            self.read_again(index);
            self.flush(index);
        }
    }

    /// A slow reader has waited long enough.
    pub(super) fn read_again(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.reads_at.take().is_some() {
            let interest = slot.interest();
            self.watch(index, interest);
        }
    }

    /// After an update a slow reader takes nothing for a while, so that the target has to wait.
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
