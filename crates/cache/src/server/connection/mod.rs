//! One connection: requests in, answers out. Data plane: nothing is allocated per command, and
//! the answers to a batch of commands go into one output that the loop sends with one write.

mod administration;
mod binary;
mod block;
mod list;
mod logging;
mod meta;
mod observers;
mod prefetch;
mod state;
mod store_request;
mod text;
mod values;

use std::sync::Arc;

use memchr::memchr;
use wire::{Closed, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake};

use super::clients::ClientEntry;
use super::options::Speech;
use super::sampling::Meter;
use crate::model::Seconds;
use crate::protocol::binary::REQUEST;
pub use state::CacheConnection;
use state::{State, Step};

impl CacheConnection {
    #[inline]
    fn step(&mut self, now_s: Seconds, bytes: &[u8], out: &mut Output) -> Step {
        match self.state {
            State::Line => self.step_line(now_s, bytes, out),
            State::Packet => self.step_packet(now_s, bytes, out),
            State::Keys(keys) => self.step_keys(now_s, keys, 0, bytes, out),
            State::RestOfLine => match memchr(b'\n', bytes) {
                None => Step::Consumed(bytes.len()),
                Some(end) => {
                    self.state = State::Line;
                    Step::Consumed(end + 1)
                }
            },
            State::Block => {
                let used = self.block.take(bytes);
                if self.block.is_complete() {
                    self.finish_block(now_s, out);
                }
                Step::Consumed(used)
            }
            State::Refused(left) => {
                let used = bytes.len().min(left);
                self.refuse_bytes(left - used);
                Step::Consumed(used)
            }
            State::Start => {
                self.is_binary = match self.service.options.speech {
                    Speech::Either => bytes.first() == Some(&REQUEST) && !self.is_unauthenticated,
                    Speech::Text => false,
                    Speech::Binary => true,
                };
                self.state = self.idle();
                Step::Consumed(0)
            }
            State::List(listing, cursor) => {
                self.step_list(now_s, listing, cursor, out);
                Step::Consumed(0)
            }
            State::Watch => Step::Consumed(bytes.len()),
        }
    }

    /// Answers the input until it ends or the output is full. `SAMPLED` measures each command.
    #[inline]
    fn work<const SAMPLED: bool>(
        &mut self,
        now: Ns,
        mut now_s: Seconds,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let service = SAMPLED.then(|| Arc::clone(&self.service));
        let samples = service.as_ref().map(|service| &service.threads[self.thread].samples);
        let mut meter = Meter::new();
        if self.state == State::Block && self.block.is_complete() {
            if let Some(samples) = samples {
                meter.step(samples, Some(self.command_of_block()));
            }
            self.finish_block(now_s, out);
        }
        let (mut used, mut looked_at, mut awaits_data) = (0, 0, false);
        let result = loop {
            let bytes = &input.bytes()[used..];
            let is_listing = matches!(self.state, State::List(..));
            if out.is_full() || (bytes.is_empty() && !is_listing) {
                break Ok(Flow::Continue);
            }
            if used >= looked_at && self.service.store.is_large() {
                looked_at = used + self.look_ahead(bytes);
            }
            let kind = samples.and_then(|samples| {
                let kind = self.kind(bytes);
                meter.step(samples, kind);
                kind
            });
            let logged = self.is_logged().then_some(self.state);
            let step = self.step(now_s, bytes, out);
            if let Some(before) = logged {
                self.log_step(now_s, before, bytes, step.used());
            }
            if SAMPLED && kind.is_some() && !matches!(step, Step::NeedMore(0)) {
                meter.count();
            }
            match step {
                Step::Consumed(count) => used += count,
                Step::NeedMore(count) => {
                    awaits_data = self.awaits_data(&bytes[count..]);
                    used += count;
                    break Ok(Flow::Continue);
                }
                Step::ClockMoved(count) => {
                    used += count;
                    now_s = self.service.seconds(now);
                    self.service.store.tick(now_s);
                }
                Step::Quit => break Ok(Flow::Close),
                Step::Broken(fault) => break Err(fault),
            }
        };
        if let Some(samples) = samples {
            meter.end(samples);
        }
        input.consume(used);
        self.note_activity(awaits_data, out);
        result
    }
}

impl Connection for CacheConnection {
    fn opened(&mut self, now: Ns, peer: &Peer, _out: &mut Output) -> Result<Flow, ProtocolError> {
        let now_s = self.service.seconds(now);
        let client = self.service.peers.add(&peer.address, now_s);
        self.service.watchers.publish_opened(&peer.address, client.number());
        self.client = Some(client);
        self.log_opened(now_s);
        self.waker = Some(peer.waker.clone());
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let now_s = self.service.seconds(now);
        self.service.store.tick(now_s);
        if let Some(client) = &self.client {
            client.note(now_s);
        }
        let result = match self.begin_batch() {
            false => self.work::<false>(now, now_s, input, out),
            true => self.work::<true>(now, now_s, input, out),
        };
        if self.state == State::Block {
            self.block.watch(now, &self.service.incoming);
        }
        result
    }

    fn resume(&mut self, now: Ns, _why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        if self.state == State::Watch {
            self.step_watch(out);
            return Ok(Flow::Continue);
        }
        let now_s = self.service.seconds(now);
        self.note_activity(false, out);
        if self.state == State::Block && self.block.is_too_slow(now, &self.service.incoming) {
            self.refuse_block(now_s, out);
            self.service.log_slow_block(self.client.as_ref().map(ClientEntry::address));
            return Err(ProtocolError::new("data come slowly, and others need their memory"));
        }
        while let State::List(listing, cursor) = self.state
            && !out.is_full()
        {
            self.step_list(now_s, listing, cursor, out);
        }
        Ok(Flow::Continue)
    }

    fn deadline(&self) -> Option<Ns> {
        if self.state == State::Block { self.block.check_at() } else { None }
    }

    fn place(&mut self) -> Option<&mut [u8]> {
        if self.state != State::Block || self.block.is_complete() {
            return None;
        }
        Some(self.block.place())
    }

    fn placed(&mut self, count: usize) {
        self.block.placed(count);
    }

    fn closed(&mut self, why: Closed) {
        self.log_closed(&why);
        if let Some(client) = self.client.take() {
            if why == Closed::Socket(std::io::ErrorKind::TimedOut) {
                self.service.count_idle_kick();
            }
            if why == Closed::SlowPeer {
                self.service.log_slow_peer(client.address());
            }
            self.service.watchers.publish_closed(client.address(), &why, client.number());
        }
        self.watching = None;
    }
}
