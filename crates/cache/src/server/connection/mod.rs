//! One connection: requests in, answers out. Data plane: nothing is allocated per command, and
//! the answers to a batch of commands go into one output that the loop sends with one write.

mod ahead;
mod binary;
mod block;
mod list;
mod meta;
mod store;
mod tap;
mod text;

use std::sync::Arc;

use memchr::memchr;
use wire::{Closed, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake, Waker};

use super::peers::Known;
use super::samples::Meter;
use super::service::Service;
use super::watch::Watching;
use crate::model::{Cursor, Seconds};
use crate::protocol::binary::REQUEST;
use crate::protocol::text::{Listing, RequestForm};
use block::Block;

/// Which protocols a server's connections may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speech {
    /// The first byte of a connection decides.
    #[default]
    Either,
    /// Text and meta commands only.
    Text,
    /// The binary protocol only.
    Binary,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first byte of the connection, which says what is spoken.
    Start,
    /// A command line.
    Line,
    /// The keys of a `get`.
    Keys(Keys),
    /// The rest of a line that has been refused.
    RestOfLine,
    /// A request of the binary protocol.
    Packet,
    /// A data block that belongs into `block`.
    Block,
    /// So many bytes of a data block that has been refused.
    Refused(usize),
    /// Nothing yet: a list is on its way out.
    List(Listing, Cursor),
    /// Nothing any more: the connection is a stream of lines.
    Watch,
}

/// A `get` under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keys {
    /// Whether unique numbers are wanted.
    with_cas: bool,
    /// The items' new expiry.
    expires_s: Option<Seconds>,
    /// The form of the keys so far: an HTTP request line is refused.
    form: RequestForm,
}

/// What a step has done with the bytes it was given.
enum Step {
    /// Understood so many.
    Used(usize),
    /// Needs more bytes first, having understood so many.
    More(usize),
    /// Understood so many, and moved the clock.
    Moved(usize),
    /// The client wants no more.
    Quit,
    /// The client can't be understood any more.
    Broken(ProtocolError),
}

/// The server side of one connection.
#[derive(Debug)]
pub struct CacheConnection {
    service: Arc<Service>,
    thread: usize,
    state: State,
    /// Whether requests are packets of the binary protocol.
    is_binary: bool,
    /// Whether the client has still to say who it is.
    is_stranger: bool,
    /// Who looks at the commands of this batch.
    taps: u8,
    block: Block,
    known: Option<Known>,
    waker: Option<Waker>,
    watching: Option<Watching>,
}

impl CacheConnection {
    /// A connection to `service` that lives on thread number `thread`.
    pub fn new(service: Arc<Service>, thread: usize) -> Self {
        Self {
            is_stranger: service.accounts.is_some(),
            service,
            thread,
            state: State::Start,
            is_binary: false,
            taps: 0,
            block: Block::default(),
            known: None,
            waker: None,
            watching: None,
        }
    }

    /// Forgets what is unfinished: the next bytes are the first.
    pub(super) fn begin(&mut self) {
        self.state = State::Start;
        self.block = Block::default();
    }

    #[inline]
    fn step(&mut self, now_s: Seconds, bytes: &[u8], out: &mut Output) -> Step {
        match self.state {
            State::Line => self.step_line(now_s, bytes, out),
            State::Packet => self.step_packet(now_s, bytes, out),
            State::Keys(keys) => self.step_keys(now_s, keys, 0, bytes, out),
            State::RestOfLine => match memchr(b'\n', bytes) {
                None => Step::Used(bytes.len()),
                Some(end) => {
                    self.state = State::Line;
                    Step::Used(end + 1)
                }
            },
            State::Block => {
                let used = self.block.take(bytes);
                if self.block.is_complete() {
                    self.finish_block(now_s, out);
                }
                Step::Used(used)
            }
            State::Refused(left) => {
                let used = bytes.len().min(left);
                self.refuse_bytes(left - used);
                Step::Used(used)
            }
            State::Start => {
                self.is_binary = match self.service.options.speech {
                    Speech::Either => bytes.first() == Some(&REQUEST) && !self.is_stranger,
                    Speech::Text => false,
                    Speech::Binary => true,
                };
                self.state = self.idle();
                Step::Used(0)
            }
            State::List(listing, cursor) => {
                self.step_list(now_s, listing, cursor, out);
                Step::Used(0)
            }
            State::Watch => Step::Used(bytes.len()),
        }
    }

    /// Answers what has come, until it ends or the output is full. `SAMPLED` measures it.
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
                meter.step(samples, Some(self.kind_of_block()));
            }
            self.finish_block(now_s, out);
        }
        let (mut used, mut looked_at) = (0, 0);
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
            let step = self.step(now_s, bytes, out);
            if SAMPLED && kind.is_some() && !matches!(step, Step::More(0)) {
                meter.count();
            }
            match step {
                Step::Used(count) => used += count,
                Step::More(count) => {
                    used += count;
                    break Ok(Flow::Continue);
                }
                Step::Moved(count) => {
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
        result
    }

    /// The state between two requests.
    fn idle(&self) -> State {
        if self.is_binary { State::Packet } else { State::Line }
    }

    /// Lets so many bytes of a data block pass.
    fn refuse_bytes(&mut self, left: usize) {
        self.state = if left == 0 { self.idle() } else { State::Refused(left) };
    }
}

impl Connection for CacheConnection {
    fn opened(&mut self, now: Ns, peer: &Peer, _out: &mut Output) -> Result<Flow, ProtocolError> {
        let now_s = self.service.seconds(now);
        let known = self.service.peers.add(&peer.address, now_s);
        self.service.watchers.tell_opened(&peer.address, known.number());
        self.known = Some(known);
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
        if let Some(known) = &self.known {
            known.note(now_s);
        }
        match self.begin_batch() {
            false => self.work::<false>(now, now_s, input, out),
            true => self.work::<true>(now, now_s, input, out),
        }
    }

    fn resume(&mut self, now: Ns, _why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        if self.state == State::Watch {
            self.step_watch(out);
            return Ok(Flow::Continue);
        }
        let now_s = self.service.seconds(now);
        while let State::List(listing, cursor) = self.state
            && !out.is_full()
        {
            self.step_list(now_s, listing, cursor, out);
        }
        Ok(Flow::Continue)
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
        if let Some(known) = self.known.take() {
            self.service.watchers.tell_closed(known.address(), &why, known.number());
        }
        self.watching = None;
    }
}
