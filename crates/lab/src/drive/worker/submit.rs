//! Turns of several ready slots whose system calls are made together: one submission reads for up
//! to 64 of them, and one sends what follows. Data plane.
//!
//! Only for closed loops and for preparing, where a slot's next request is due when the last one is
//! answered. A scheduled request is sent when it is due, by a call of its own: it waits for no
//! other's answer to be read. All answers of a submission have one time, read right after it, and
//! the requests that follow them are due at that time: their latency includes the checking of the
//! answers before them in the submission and the sends before theirs, as it includes the whole
//! turns of other slots where each makes its own calls.

use rustix::io::Errno;
use wire::stream::ReadOutcome;
use wire::{Input, Ns, clock};

use super::super::slot::{Slot, State};
use super::super::transport::Transport;
use super::broken::is_break;
use super::state::{READ_BYTES, Submissions, Work, Worker};

/// A slot with more to send uses a system call of its own.
const MAX_SEND_BYTES: usize = 64 << 10;

/// Once this many bytes of answers are checked, the requests so far are sent: the checking of
/// 16 KiB takes a few microseconds, which the first of them would otherwise wait several times.
const MAX_CHECKED_BYTES: usize = 16 << 10;

impl Slot {
    /// Whether all that this slot needs is a read into the thread's memory.
    #[inline]
    fn may_submit(&self) -> bool {
        self.state == State::Ready
            && self.input.is_empty()
            && self.reads_at.is_none()
            && !self.blocked
            && !self.reads_much
    }
}

impl<T: Transport> Worker<T> {
    /// Whether slots make their calls together.
    #[inline]
    pub(super) fn submits(&self, work: &Work) -> bool {
        let waits_for_answers = matches!(work, Work::Closed { .. } | Work::Prepare(_));
        waits_for_answers && !self.slot_config.datagrams && self.transport.max_submission() > 1
    }

    /// Gives each ready slot of the last wait its turn. Returns the time of the last answer.
    pub(super) fn turn_together(&mut self, ready: usize, work: &mut Work) -> Ns {
        let mut own = std::mem::take(&mut self.submissions);
        let (mut now, mut event) = (0, 0);
        while event < ready {
            own.reading.clear();
            while event < ready && own.reading.len() < own.inputs.len() {
                let index = self.transport.ready(event);
                event += 1;
                if self.slots[index].may_submit() {
                    own.reading.push(index);
                } else {
                    now = self.turn(index, work);
                }
            }
            now = match own.reading[..] {
                [] => now,
                // A submission of one is a plain call with overhead.
                [index] => self.turn(index, work),
                _ => self.submit(&mut own, work),
            };
        }
        self.submissions = own;
        now
    }

    /// Reads, checks and refills the slots of one submission, and sends their next requests.
    fn submit(&mut self, own: &mut Submissions, work: &mut Work) -> Ns {
        let jobs = own.reading.iter().zip(&mut own.inputs).filter_map(|(index, input)| {
            // An input is empty between two submissions, so that this is never refused.
            Some((*index, input.space(READ_BYTES, READ_BYTES).ok()?))
        });
        own.outcomes.clear();
        own.outcomes.extend_from_slice(self.transport.submit_reads(jobs));
        let now = clock::now();
        let mut checked_bytes = 0;
        for position in 0..own.reading.len() {
            let index = own.reading[position];
            let input = &mut own.inputs[position];
            let outcome = match own.outcomes.get(position) {
                Some(Ok(0)) => ReadOutcome::Closed,
                Some(Ok(count)) => {
                    input.filled(*count);
                    checked_bytes += count;
                    ReadOutcome::Bytes(*count)
                }
                Some(Err(Errno::AGAIN | Errno::INTR)) => ReadOutcome::Blocked,
                // The kernel never took it.
                None | Some(Err(Errno::CANCELED)) => {
                    self.turn(index, work);
                    continue;
                }
                Some(Err(error)) => ReadOutcome::Failed(std::io::Error::from(*error).kind()),
            };
            let is_whole = self.answer(index, now, outcome, input, work);
            let slot = &self.slots[index];
            match slot.output.plain() {
                _ if !is_whole => {}
                Some([]) => {}
                Some(bytes) if bytes.len() <= MAX_SEND_BYTES => own.sending.push(index),
                _ => self.flush(index),
            }
            if checked_bytes >= MAX_CHECKED_BYTES {
                checked_bytes = 0;
                self.submit_sends(&mut own.sending);
            }
        }
        self.submit_sends(&mut own.sending);
        now
    }

    /// Checks what was read for a slot, and writes its next requests. Returns whether they are to
    /// be sent: where the connection was lost or is made again, nothing is left to do.
    #[inline]
    fn answer(
        &mut self,
        index: usize,
        now: Ns,
        outcome: ReadOutcome,
        input: &mut Input,
        work: &mut Work,
    ) -> bool {
        self.count_read(index, &outcome);
        let is_broken = is_break(&outcome);
        let slot = &mut self.slots[index];
        let understood = slot.understand(now, outcome, input, &mut self.events);
        self.settle(index, now, work);
        if let Err(fault) = understood {
            self.fail(index, &fault, is_broken, work);
            return false;
        }
        if self.events.close || self.slots[index].is_used_up() {
            self.reopen(index, now, work);
            self.refill(index, now, work);
            return false;
        }
        self.fill(index, now, work);
        true
    }

    /// Sends the requests of all these slots.
    fn submit_sends(&mut self, sending: &mut Vec<usize>) {
        if sending.len() > 1 {
            let Self { transport, slots, recorder, .. } = self;
            let job = |index: &usize| (*index, slots[*index].output.plain().unwrap_or_default());
            let mut outcomes = transport.submit_sends(sending.iter().map(job)).iter();
            sending.retain(|index| {
                let output = &mut slots[*index].output;
                if let Some(Ok(count)) = outcomes.next() {
                    output.advance(*count);
                    recorder.counts.sent_bytes += *count as u64;
                }
                !output.is_empty()
            });
        }
        // The only one, and what a socket has not taken: a call of its own finds out why.
        while let Some(index) = sending.pop() {
            self.flush(index);
        }
    }
}
