//! Requests that are due at a time: sends each when it is due, and waits for it no longer than it
//! has to. Data plane.

use wire::{Ns, clock};

use super::super::interval::Figure;
use super::super::slot::State;
use super::super::transport::Transport;
use super::state::{Work, Worker};

/// This long before a scheduled request the thread stops blocking and spins: a wake-up takes some
/// tens of microseconds on a virtual machine.
const SPIN_NS: u64 = 60_000;

/// This long before a scheduled request the thread reads nothing but the clock: a poll and a read
/// take one to two microseconds. An answer is then read after the request is sent.
const WATCH_CLOCK_NS: u64 = 2_000;

impl<T: Transport> Worker<T> {
    /// Returns how long the next poll may block.
    #[inline]
    pub(super) fn may_wait(&self, work: &Work, now: Ns, look_at: Ns) -> u64 {
        let until_look = look_at.saturating_sub(now);
        let Work::Timed(timed) = work else { return until_look };
        let early = if self.config.spin { SPIN_NS } else { 0 };
        timed.may_wait(now, early, until_look)
    }

    /// Sends the requests that are due, and spins until those that are imminent are. Returns the
    /// time spun, and leaves in `now` the time of its end.
    #[inline]
    pub(super) fn send_due(&mut self, work: &mut Work, now: &mut Ns) -> u64 {
        let mut spun_ns = 0;
        let Work::Timed(timed) = work else { return spun_ns };
        *now = clock::now();
        timed.begin_sending();
        loop {
            let Some(due) = timed.due(*now) else {
                if !self.config.spin || !timed.is_imminent(*now, WATCH_CLOCK_NS) {
                    return spun_ns;
                }
                let before = std::mem::replace(now, clock::now());
                spun_ns += *now - before;
                continue;
            };
            let slot = &mut self.slots[due.slot];
            if slot.has_room() {
                let operation = slot.send(due.scheduled, *now);
                self.recorder.record(Figure::Lag, operation, *now - due.possible);
                self.flush(due.slot);
                *now = clock::now();
            } else if slot.state == State::Gone {
                timed.lose_place(due);
            } else {
                // Its connection is being remade: the request waits until it is ready.
                timed.put_back(due, *now);
                if timed.is_stuck() {
                    return spun_ns;
                }
            }
        }
    }

    /// Sends what is due before an answer is read, which takes longer than a send may be late.
    #[inline]
    pub(super) fn send_first(&mut self, work: &mut Work, now: &mut Ns) -> u64 {
        let Work::Timed(timed) = work else { return 0 };
        *now = clock::now();
        if timed.is_imminent(*now, WATCH_CLOCK_NS) { self.send_due(work, now) } else { 0 }
    }

    /// Requests that still wait for a slot, or for its connection, a time-out after the end count
    /// as missing.
    pub(super) fn give_up_backlog(&mut self, now: Ns, work: &mut Work) {
        match work {
            Work::Timed(timed) if now >= timed.until() + self.config.timeout_ns => {
                for scheduled in timed.give_up() {
                    let operation =
                        self.slots.first_mut().map_or(0, |slot| slot.stream.next_op().operation);
                    self.recorder.missing(now, operation, now - scheduled);
                }
            }
            Work::Closed { until } if now >= *until + self.config.timeout_ns => {
                for slot in &mut self.slots {
                    slot.give_up_waiting(now, *until, &mut self.recorder);
                }
            }
            _ => {}
        }
    }
}
