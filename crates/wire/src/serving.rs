//! Turns of connections: reading, answering, sending, and what a connection waits for after
//! them. Data plane.

use std::mem;
use std::sync::atomic::Ordering::AcqRel;

use crate::buffers::SMALL_REST_BYTES;
use crate::clock::SECOND_NS;
use crate::closing::LINGER_NS;
use crate::counters::add;
use crate::poll::Interest;
use crate::slots::{SPECIAL, Slot};
use crate::stream::{ReadOutcome, read};
use crate::system::System;
use crate::timers::NEVER;
use crate::turn::{Turn, TurnEnd};
use crate::uring_batch::Sent;
use crate::worker::Worker;
use crate::{Closed, Connection, Flow, Ns, Wake};

/// The clock is read again after this many bytes, as copying them takes time.
const CLOCK_EVERY_BYTES: usize = 128 * 1024;

/// How long a connection may wait for its first answer before its socket is polled for errors.
const UNPOLLED_NS: Ns = SECOND_NS;

impl<C: Connection, S: System> Worker<C, S> {
    /// Gives a connection a turn with its own input.
    pub(crate) fn turn(
        &mut self,
        token: u64,
        act: impl FnOnce(&mut Turn<'_, C, S::Socket>) -> TurnEnd,
    ) -> TurnEnd {
        let Self { slots, buffers, shared, index, now_ns, moved_bytes, round, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return TurnEnd::Unchanged };
        let Some(connection) = &mut slot.connection else { return TurnEnd::Unchanged };
        buffers.attach(&mut slot.output);
        buffers.output.set_limit(shared.config.output_limit());
        let turn_bytes = round.share();
        let mut turn = Turn {
            connection,
            socket: &slot.socket,
            transport: &mut slot.transport,
            input: &mut slot.input,
            output: &mut buffers.output,
            closing: &mut slot.closing,
            drained_due: &mut slot.drained_due,
            now_ns: *now_ns,
            budget_bytes: turn_bytes,
            interleaved_read_bytes: 0,
        };
        let end = act(&mut turn);
        let sent = turn_bytes - turn.budget_bytes;
        round.spend(sent);
        add(&shared.counters[*index].bytes_read, turn.interleaved_read_bytes);
        if sent > 0 {
            add(&shared.counters[*index].bytes_written, sent);
            slot.active_ns = *now_ns;
            *moved_bytes += sent;
        }
        slot.input.release();
        end
    }

    /// The socket is writable, or a connection that yielded has its next turn: sends what waits,
    /// and then resumes a protocol that paused for it.
    pub(crate) fn write(&mut self, token: u64) {
        let end = self.turn(token, |turn| turn.run(Ok(Flow::Continue)));
        self.settle(token, end);
    }

    pub(crate) fn wake(&mut self, token: u64) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        // Cleared before the protocol is called, so that a wake during the call isn't lost.
        slot.posted.swap(false, AcqRel);
        self.resume(token, Wake::Posted);
    }

    pub(crate) fn resume(&mut self, token: u64, why: Wake) {
        let end = self.turn(token, |turn| match turn.closing {
            None => turn.resume(why),
            Some(_) => TurnEnd::Unchanged,
        });
        self.settle(token, end);
    }

    /// The socket is readable.
    pub(crate) fn read(&mut self, token: u64) {
        let Self { slots, buffers, shared, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let Some(connection) = &mut slot.connection else { return self.linger(token) };
        if slot.input_ended || !connection.wants_input() {
            self.settle(token, TurnEnd::Done);
            return self.ignore_input(token);
        }
        let config = &shared.config;
        let input = buffers.input_for(&mut slot.input);
        let socket = &slot.socket;
        let outcome = match connection.place() {
            Some(place) if !place.is_empty() && input.is_empty() && slot.transport.is_plain() => {
                let most = place.len().min(config.turn_bytes);
                let outcome = read(socket, &mut place[..most]);
                if let ReadOutcome::Bytes(count) = outcome {
                    connection.placed(count);
                }
                outcome
            }
            _ => slot.transport.read_into(socket, input, config.input_limit_bytes),
        };
        self.answer(token, outcome, 0);
    }

    /// Has the protocol answer the bytes read into its input. An answer of at most `max_deferred`
    /// bytes, if it ends the turn, is left in the connection's output, for a batched send.
    pub(crate) fn answer(&mut self, token: u64, outcome: ReadOutcome, max_deferred: usize) -> Sent {
        let Self { slots, buffers, shared, index, now_ns, moved_bytes, round, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return Sent::Now };
        let Some(connection) = &mut slot.connection else { return Sent::Now };
        let config = &shared.config;
        let is_large = slot.input.len() > SMALL_REST_BYTES;
        buffers.output.set_limit(config.output_limit());
        let turn_bytes = round.share();
        let mut turn = Turn {
            connection,
            socket: &slot.socket,
            transport: &mut slot.transport,
            input: if is_large { &mut slot.input } else { &mut buffers.input },
            output: &mut buffers.output,
            closing: &mut slot.closing,
            drained_due: &mut slot.drained_due,
            now_ns: *now_ns,
            budget_bytes: turn_bytes,
            interleaved_read_bytes: 0,
        };
        let mut sent = Sent::Now;
        let end = match outcome {
            ReadOutcome::Bytes(count) => {
                add(&shared.counters[*index].bytes_read, count);
                let result = turn.receive();
                let end = if turn.can_defer_send(&result, max_deferred) {
                    sent = Sent::Deferred;
                    TurnEnd::Unchanged
                } else {
                    turn.run(result)
                };
                let sent_bytes = turn_bytes - turn.budget_bytes;
                round.spend(sent_bytes);
                add(&shared.counters[*index].bytes_written, sent_bytes);
                add(&shared.counters[*index].bytes_read, turn.interleaved_read_bytes);
                slot.active_ns = *now_ns;
                *moved_bytes += count + sent_bytes;
                end
            }
            // Handshake bytes that the socket didn't take wait like any other output.
            ReadOutcome::Blocked if turn.transport.has_unsent() => turn.run(Ok(Flow::Continue)),
            ReadOutcome::Blocked => TurnEnd::NothingRead,
            // Answers that are still to come are sent first.
            ReadOutcome::Closed if turn.connection.has_pending() => {
                slot.input_ended = true;
                TurnEnd::Done
            }
            ReadOutcome::Closed => TurnEnd::Ended(Closed::ByPeer),
            ReadOutcome::Failed(kind) => TurnEnd::Ended(Closed::Socket(kind)),
            ReadOutcome::Full(fault) => {
                turn.connection.too_large(turn.output);
                turn.run(Err(fault))
            }
        };
        if is_large {
            slot.input.release();
        } else if !buffers.input.is_empty() {
            slot.input = buffers.input.split_rest();
        }
        self.settle(token, end);
        sent
    }

    /// Ends a connection's turn: keeps its unsent bytes and waits for the event it needs next.
    #[inline]
    pub(crate) fn settle(&mut self, token: u64, end: TurnEnd) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        if let TurnEnd::Ended(why) = end {
            return self.close(token, why);
        }
        self.buffers.detach(&mut slot.output);
        if slot.output.is_none() {
            slot.held = None;
        } else if matches!(end, TurnEnd::Blocked | TurnEnd::Yielded) {
            self.count_unsent(token);
        }
        match end {
            TurnEnd::Close => return self.close_gently(token),
            TurnEnd::Done | TurnEnd::NothingRead => self.await_input(token, end),
            TurnEnd::Blocked => self.expect(token, Interest::Write),
            TurnEnd::Yielded => {
                add(&self.counters().yields, 1);
                self.queue(token);
            }
            TurnEnd::Unchanged | TurnEnd::Ended(_) => {}
        }
        self.arm(token);
        if self.moved_bytes >= CLOCK_EVERY_BYTES {
            self.read_clock();
        }
    }

    /// All is sent: waits for more input, unless none is wanted or none will come.
    #[inline]
    fn await_input(&mut self, token: u64, end: TurnEnd) {
        let (is_stopping, now_ns) = (self.stop_at_ns.is_some(), self.now_ns);
        let Some(slot) = self.slots.get_mut(token) else { return };
        let Some(connection) = &slot.connection else { return };
        let has_pending = connection.has_pending();
        let wants_input = connection.wants_input() && !slot.input_ended;
        let has_read_all = end == TurnEnd::NothingRead && slot.input.is_empty();
        if slot.input_ended && !has_pending {
            self.close(token, Closed::ByPeer);
        } else if is_stopping && has_read_all && !has_pending {
            self.close_at_stop(token);
        } else if !wants_input && !slot.is_polled {
            // Most answers come so soon that polling for errors until then isn't worth two calls.
            if slot.poll_by_ns == NEVER {
                slot.interest = Interest::Nothing;
                slot.poll_by_ns = now_ns.saturating_add(UNPOLLED_NS);
            }
        } else if !wants_input && slot.interest == Interest::Read {
            // Most answers also come before the peer sends more, which is ignored when it does.
        } else if !wants_input {
            self.expect(token, Interest::Nothing);
        // Decrypted bytes wait in memory, where epoll doesn't see them.
        } else if slot.transport.has_plaintext()
            || is_stopping && end == TurnEnd::Done && !has_pending
        {
            self.queue(token);
        } else {
            self.expect(token, Interest::Read);
        }
    }

    /// The peer has sent something, or ended, before the protocol wants it.
    fn ignore_input(&mut self, token: u64) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let wants_input = slot.connection.as_ref().is_none_or(Connection::wants_input);
        if slot.is_polled && slot.interest == Interest::Read && (slot.input_ended || !wants_input) {
            self.expect(token, Interest::Nothing);
        }
    }

    /// Waits for `interest` from now on.
    #[inline]
    pub(crate) fn expect(&mut self, token: u64, interest: Interest) {
        if let Err(error) = self.set_interest(token, interest) {
            self.close(token, Closed::Socket(error.kind()));
        }
    }

    /// Gives the connections that yielded their next turn, in their order and each an equal share,
    /// until the round's bytes are spent; the others' turns come in the next round.
    pub(crate) fn run_queued(&mut self) {
        if self.queues.yielded.is_empty() {
            return;
        }
        self.round.begin(self.queues.yielded.len());
        let spare = mem::take(&mut self.queues.yielded_spare);
        let mut yielded = mem::replace(&mut self.queues.yielded, spare);
        let mut served = 0;
        for &token in &yielded {
            if self.round.is_spent() {
                break;
            }
            served += 1;
            let Some(slot) = self.slots.get_mut(token) else { continue };
            slot.queued = false;
            if slot.output.is_some() || slot.drained_due {
                self.write(token)
            } else {
                self.read(token)
            }
        }
        // Those that have yielded again wait behind those that have not had their turn.
        yielded.drain(..served);
        yielded.append(&mut self.queues.yielded);
        mem::swap(&mut self.queues.yielded, &mut yielded);
        self.queues.yielded_spare = yielded;
    }

    /// When the connection's next timer is due.
    #[inline]
    pub(crate) fn deadline_ns(slot: &Slot<C, S::Socket>, idle_ns: Option<Ns>) -> Ns {
        let Some(connection) = &slot.connection else { return slot.active_ns + LINGER_NS };
        let own = if slot.closing.is_none() { connection.deadline() } else { None };
        let idle_until_ns = Self::idle_until_ns(slot, idle_ns);
        own.unwrap_or(NEVER).min(idle_until_ns).min(slot.establish_by_ns).min(slot.poll_by_ns)
    }

    /// When an idle connection is closed.
    #[inline]
    pub(crate) fn idle_until_ns(slot: &Slot<C, S::Socket>, idle_ns: Option<Ns>) -> Ns {
        match (idle_ns, &slot.connection) {
            (Some(idle_ns), Some(connection)) if !connection.has_pending() => {
                slot.active_ns.saturating_add(idle_ns)
            }
            _ => NEVER,
        }
    }

    /// Sets a timer for the connection's deadline, unless an earlier one is set.
    #[inline]
    pub(crate) fn arm(&mut self, token: u64) {
        let Self { slots, timers, now_ns, idle_ns, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return };
        let deadline_ns = Self::deadline_ns(slot, *idle_ns);
        if deadline_ns < slot.armed_ns {
            // At least 1 ns ahead: a deadline that stays in the past must not starve the loop.
            slot.armed_ns = deadline_ns.max(*now_ns + 1);
            timers.set(slot.armed_ns, token);
            let live = slots.len();
            timers.compact(live, |at, token| {
                token & SPECIAL != 0 || slots.get(token).is_some_and(|slot| slot.armed_ns == at)
            });
        }
    }
}
