//! A turn in which the system calls of many connections are made together: one receives for all
//! that are ready, one sends what all of them have answered. Everything else a connection does is
//! as in any other turn. Data plane.

use rustix::fd::AsFd;
use rustix::io::Errno;

use crate::counters::add;
use crate::pass::After;
use crate::ring::{MOST_TOGETHER, Outcome, Ring};
use crate::slots::SPECIAL;
use crate::stream::{ReadOutcome, kind};
use crate::worker::Worker;
use crate::{Closed, Connection, Datagrams};

/// What is received for one connection at once; more is received in its next turn. No power of two,
/// so that the beginnings of all spaces don't compete for the same few places of the cache.
const SPACE_BYTES: usize = (16 << 10) + 5 * 64;

/// A connection with more to send does so by itself.
const MOST_SENT_BYTES: usize = 64 << 10;

/// What it takes to make calls together.
#[derive(Debug)]
pub(crate) struct Together {
    ring: Ring,
    space: Vec<u8>,
    /// Who receives together, and with what outcome.
    receiving: Vec<u64>,
    outcomes: Vec<Outcome>,
    /// Who waits to send together.
    sending: Vec<u64>,
}

impl Together {
    pub(crate) fn new(ring: Ring) -> Self {
        let space = vec![0; MOST_TOGETHER * SPACE_BYTES];
        Self { ring, space, receiving: Vec::new(), outcomes: Vec::new(), sending: Vec::new() }
    }

    /// Whether the kernel has refused to go on: then each call is made by itself.
    pub(crate) fn is_lost(&self) -> bool {
        self.ring.is_lost()
    }
}

impl<C: Connection, D: Datagrams> Worker<C, D> {
    /// Gives those a turn of whom the last wait has told.
    pub(crate) fn dispatch_together(&mut self, events: usize, together: &mut Together) {
        together.receiving.clear();
        for index in 0..events {
            let event = self.poller.event(index);
            let has_room = together.receiving.len() < MOST_TOGETHER;
            if has_room && self.may_receive(event.token) {
                together.receiving.push(event.token);
            } else {
                self.dispatch(event);
            }
        }
        let Together { ring, space, receiving, outcomes, sending } = together;
        // One alone has nothing of it.
        if let [token] = receiving[..] {
            return self.read(token);
        }
        if receiving.is_empty() {
            return;
        }
        // One left out would have the others given what is not theirs.
        let slot = |token: &u64| self.slots.get(*token).expect("nobody closes another's");
        let sockets = receiving.iter().map(|token| slot(token).socket.as_fd());
        outcomes.clear();
        outcomes.extend_from_slice(ring.receive(sockets.zip(space.chunks_mut(SPACE_BYTES))));
        for ((token, outcome), space) in
            receiving.iter().zip(outcomes.iter()).zip(space.chunks(SPACE_BYTES))
        {
            let received = match *outcome {
                // The kernel never took it.
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
            let most = MOST_SENT_BYTES.min(self.shared.config.turn_bytes);
            if self.take_in(*token, received, bytes, most) == Sent::Later {
                sending.push(*token);
            }
        }
        self.send_together(ring, sending);
    }

    /// What the socket had to read has been received together with what others had. An answer of
    /// at most `most` bytes may be sent with others, too.
    fn take_in(&mut self, token: u64, outcome: ReadOutcome, bytes: &[u8], most: usize) -> Sent {
        if let Some(slot) = self.slots.get_mut(token) {
            self.lent.input_for(&mut slot.input).append(bytes);
        }
        self.answer(token, outcome, most)
    }

    /// Whether all that a connection needs is to be read from.
    fn may_receive(&mut self, token: u64) -> bool {
        if token & SPECIAL != 0 {
            return false;
        }
        let Some(slot) = self.slots.get_mut(token) else { return false };
        let Some(connection) = &mut slot.connection else { return false };
        // What has a place of its own is read straight into it.
        if connection.place().is_some_and(|place| !place.is_empty()) {
            return false;
        }
        let is_free = !slot.queued && slot.output.is_none() && !slot.owed && slot.link.is_plain();
        is_free && slot.input.len() + SPACE_BYTES <= self.shared.config.input_limit_bytes
    }

    /// Sends what connections have been left with.
    fn send_together(&mut self, ring: &mut Ring, sending: &mut Vec<u64>) {
        let slots = &self.slots;
        let job = |token: &u64| {
            let slot = slots.get(*token)?;
            Some((slot.socket.as_fd(), slot.output.as_ref()?.plain()?))
        };
        sending.retain(|token| job(token).is_some());
        let outcomes = ring.send(sending.iter().filter_map(job));
        for (token, outcome) in sending.drain(..).zip(outcomes) {
            let Some(slot) = self.slots.get_mut(token) else { continue };
            let Some(output) = &mut slot.output else { continue };
            let after = match *outcome {
                Ok(count) => {
                    output.advance(count);
                    add(&self.shared.counters[self.index].bytes_written, count);
                    self.moved_bytes += count;
                    if output.is_empty() { After::Idle } else { After::Blocked }
                }
                // What the kernel never took is sent once the socket is said to have room.
                Err(Errno::AGAIN | Errno::INTR | Errno::CANCELED) => After::Blocked,
                Err(error) => After::Gone(Closed::Socket(kind(error))),
            };
            if after == After::Idle {
                slot.output.take().into_iter().for_each(|empty| self.lent.keep(empty));
            } else {
                slot.owed = true;
            }
            self.settle(token, after);
        }
    }
}

/// Whether what a turn has answered is still to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is sent, or waits as anything does that a peer does not take.
    Now,
    /// It waits to be sent with that of others.
    Later,
}
