//! Turns under io_uring: one submission receives for all readable connections, one sends all of
//! their answers. Everything else a connection does is as in any other turn. Data plane.

use rustix::io::Errno;

use crate::counters::add;
use crate::slots::SPECIAL;
use crate::stream::{ReadOutcome, kind};
use crate::system::{MAX_BATCH, Ring, System};
use crate::turn::TurnEnd;
use crate::uring_batch::{SPACE_BYTES, Sent, UringBatch};
use crate::worker::Worker;
use crate::{Closed, Connection};

/// A connection with more to send uses a system call of its own.
const MAX_BATCHED_SEND_BYTES: usize = 64 << 10;

impl<C: Connection, S: System> Worker<C, S> {
    /// Dispatches the ready connections of the last wait.
    pub(crate) fn dispatch_batch(&mut self, events: usize, uring: &mut UringBatch<S::Ring>) {
        uring.receiving.clear();
        for index in 0..events {
            let event = self.system.event(index);
            let has_room = uring.receiving.len() < MAX_BATCH;
            if has_room && self.can_batch(event.token) {
                uring.receiving.push(event.token);
            } else {
                self.dispatch(event);
            }
        }
        let UringBatch { ring, space, receiving, outcomes, sending } = uring;
        // A batch of one is a plain receive with overhead.
        if let [token] = receiving[..] {
            return self.read(token);
        }
        if receiving.is_empty() {
            return;
        }
        // Outcomes are matched by position, so no connection may be missing here.
        let slot = |token: &u64| self.slots.get(*token).expect("dispatch closes no other slot");
        let sockets = receiving.iter().map(|token| &slot(token).socket);
        outcomes.clear();
        outcomes.extend_from_slice(ring.receive(sockets.zip(space.chunks_mut(SPACE_BYTES))));
        debug_assert_eq!(outcomes.len(), receiving.len(), "one outcome for each connection");
        for ((token, outcome), space) in
            receiving.iter().zip(outcomes.iter()).zip(space.chunks(SPACE_BYTES))
        {
            let received = match *outcome {
                // The kernel never took the request.
                Err(Errno::CANCELED) => {
                    self.read(*token);
                    continue;
                }
                Ok(0) => ReadOutcome::Closed,
                Ok(count) => ReadOutcome::Bytes(count),
                Err(Errno::AGAIN | Errno::INTR) => ReadOutcome::Blocked,
                Err(error) => ReadOutcome::Failed(kind(error)),
            };
            let bytes = &space[..outcome.unwrap_or(0)];
            let max_deferred = MAX_BATCHED_SEND_BYTES.min(self.round.share());
            if let Some(slot) = self.slots.get_mut(*token) {
                self.buffers.input_for(&mut slot.input).append(bytes);
            }
            if self.answer(*token, received, max_deferred) == Sent::Deferred {
                sending.push(*token);
            }
        }
        self.send_batch(ring, sending);
    }

    /// Whether the connection only needs a plain receive into the shared space.
    fn can_batch(&mut self, token: u64) -> bool {
        if token & SPECIAL != 0 {
            return false;
        }
        let Some(slot) = self.slots.get_mut(token) else { return false };
        let Some(connection) = &mut slot.connection else { return false };
        if !connection.wants_input() || slot.input_ended {
            return false;
        }
        // Bytes that have a place of their own are read straight into it.
        if connection.place().is_some_and(|place| !place.is_empty()) {
            return false;
        }
        let is_free =
            !slot.queued && slot.output.is_none() && !slot.drained_due && slot.transport.is_plain();
        is_free && slot.input.len() + SPACE_BYTES <= self.shared.config.input_limit_bytes
    }

    /// Sends the deferred answers with one submission.
    fn send_batch(&mut self, ring: &mut S::Ring, sending: &mut Vec<u64>) {
        let slots = &self.slots;
        let job = |token: &u64| {
            let slot = slots.get(*token)?;
            Some((&slot.socket, slot.output.as_ref()?.plain()?))
        };
        sending.retain(|token| job(token).is_some());
        let outcomes = ring.send(sending.iter().filter_map(job));
        debug_assert_eq!(outcomes.len(), sending.len(), "one outcome for each connection");
        for (token, outcome) in sending.drain(..).zip(outcomes) {
            let Some(slot) = self.slots.get_mut(token) else { continue };
            let Some(output) = &mut slot.output else { continue };
            let after = match *outcome {
                Ok(count) => {
                    output.advance(count);
                    add(&self.shared.counters[self.index].bytes_written, count);
                    self.moved_bytes += count;
                    self.round.spend(count);
                    if output.is_empty() { TurnEnd::Done } else { TurnEnd::Blocked }
                }
                // Requests that the kernel never took are sent once the socket is writable.
                Err(Errno::AGAIN | Errno::INTR | Errno::CANCELED) => TurnEnd::Blocked,
                Err(error) => TurnEnd::Ended(Closed::Socket(kind(error))),
            };
            if after == TurnEnd::Done {
                slot.output.take().into_iter().for_each(|empty| self.buffers.keep(empty));
            } else {
                slot.drained_due = true;
            }
            self.settle(token, after);
        }
    }
}
