//! Connections that break under the load: what was under way on one is missing, which is an error
//! like others, and the connection is made again, a few times before something is answered on it.
//!
//! Only where requests are sent one by one: what prepares, subscribes or takes steps can't go on
//! without what was lost, and neither can what is not understood any more. Control plane.

use wire::stream::ReadOutcome;
use wire::{ProtocolError, clock};

use super::super::slot::State;
use super::super::transport::Transport;
use super::state::{Work, Worker};

/// How long a connection that broke is left alone before it is made again: the first time, and each
/// time that it breaks before something was answered on it. After that it is given up.
const PAUSES_NS: [u64; 4] = [0, 10_000_000, 100_000_000, 1_000_000_000];

/// Whether the connection has broken, or was closed.
#[inline]
pub(super) fn is_break(outcome: &ReadOutcome) -> bool {
    matches!(outcome, ReadOutcome::Closed | ReadOutcome::Failed(_))
}

impl<T: Transport> Worker<T> {
    /// A connection has failed: it is made again, if all that happened `is_break`, or given up.
    #[cold]
    pub(super) fn fail(
        &mut self,
        index: usize,
        fault: &ProtocolError,
        is_break: bool,
        work: &mut Work,
    ) {
        let is_load = matches!(work, Work::Closed { .. } | Work::Timed(_));
        let pause_ns = PAUSES_NS.get(self.slots[index].breaks).copied();
        let may_go_on = is_break && is_load && self.is_open && !self.slot_config.datagrams;
        let Some(pause_ns) = pause_ns.filter(|_| may_go_on) else {
            return self.give_up(index, fault, work);
        };
        let (now, slot) = (clock::now(), &mut self.slots[index]);
        if slot.state == State::Ready {
            self.recorder.counts.broken += 1;
            self.fault.get_or_insert_with(|| fault.to_string());
        }
        self.transport.leave(index);
        match slot.break_off(&self.slot_config, now, &mut self.recorder) {
            Ok(lost) => work.free(index, lost, now),
            Err(fault) => return self.give_up(index, &fault, work),
        }
        slot.breaks += 1;
        slot.connects_at = Some(now + pause_ns);
        if pause_ns == 0 {
            self.connect_again(index);
        }
    }

    /// Makes a connection that broke again.
    pub(super) fn connect_again(&mut self, index: usize) {
        self.slots[index].connects_at = None;
        if let Err(error) = self.transport.connect(index) {
            self.lose(index, &ProtocolError::new(format!("connecting again: {error}")));
        }
    }

    /// A connection is given up, and what was under way on it is that no more.
    pub(super) fn give_up(&mut self, index: usize, fault: &ProtocolError, work: &mut Work) {
        let lost = self.lose(index, fault);
        work.free(index, lost, clock::now());
    }

    /// A connection is given up: what was under way is missing, and the result names the fault.
    /// Returns how many requests were lost.
    #[cold]
    pub(super) fn lose(&mut self, index: usize, fault: &ProtocolError) -> usize {
        let slot = &mut self.slots[index];
        let lost = slot.lose(clock::now(), &mut self.recorder);
        self.transport.leave(index);
        self.trouble.get_or_insert_with(|| format!("connection {index}: {fault}"));
        lost
    }
}
