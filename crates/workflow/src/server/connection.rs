//! One connection: a request, its answer, and the end; or, where the client follows, answers until
//! it ends. Data plane.
//!
//! What is small is read and written here, pings are answered; a large document is parsed, and a
//! large answer rendered, by the pool. The owner of the tree answers into a [`Slot`].

use std::sync::Arc;

use bytes::Bytes;
use wire::clock::{SECOND_NS, duration_ns};
use wire::{Closed, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake, Waker};

use super::admitted::Admitted;
use super::core::read_definition;
use super::dispatch::{Dispatch, WITH_NOTHING_ELSE};
use super::following::Following;
use super::message::Asked;
use super::opened::{REQUEST_WITHIN, SLOW_AFTER};
use super::shared::Shared;
use super::slot::{Answer, Held, SMALL_BYTES, Slot};
use crate::protocol::frame::{self, HEAD_BYTES};
use crate::protocol::header::{self, Header};
use crate::protocol::{Body, Command, Reply, Request, ServerCommand, read};
use crate::slices;

/// A large document is read by pieces of this size, so that memory follows what has come.
const PIECE_BYTES: usize = 1 << 20;

enum Stage {
    /// The head, or a small document, has not come whole.
    Head,
    /// A large document is coming.
    Body { document: Vec<u8>, filled: usize, bytes: usize, held: Held, lacks_memory: bool },
    /// The owner has the request.
    Asked(Slot),
    /// An answer of several is written; the next is asked for when it may be sent.
    Sent,
    /// The answer is written.
    Answered,
}

/// A connection.
pub(super) struct Session {
    shared: Arc<Shared>,
    dispatch: Arc<Dispatch>,
    waker: Option<Waker>,
    until: Ns,
    place: Admitted,
    stage: Stage,
    /// A request has come whole, and nothing behind it.
    has_read_all: bool,
    /// What stands before the request, of this program's own clients.
    header: Option<Header>,
    /// A client that is sent what changes.
    following: Option<Following>,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, dispatch: Arc<Dispatch>) -> Self {
        slices::shorten();
        let (waker, stage, header, following) = (None, Stage::Head, None, None);
        let (until, has_read_all) = (0, false);
        let place = Admitted::new(Arc::clone(&shared));
        Self { shared, dispatch, waker, until, place, stage, has_read_all, header, following }
    }

    /// When a request that isn't whole by then makes the connection a slow one.
    fn slow_at(&self) -> Ns {
        self.until.saturating_sub(REQUEST_WITHIN - SLOW_AFTER)
    }

    fn refuse(&mut self, why: impl std::fmt::Display, out: &mut Output) -> Flow {
        (self.stage, self.following) = (Stage::Answered, None);
        self.place.whole();
        Reply::error(why.to_string()).write(out.tail());
        Flow::Close
    }

    fn head(&mut self, now: Ns, input: &mut Input, out: &mut Output) -> Flow {
        if self.header.is_none() && input.bytes().first() == Some(&header::FIRST) {
            match Header::read(input.bytes()) {
                Ok(Some((header, bytes))) => {
                    input.consume(bytes);
                    self.header = Some(header);
                }
                Ok(None) => return Flow::Continue,
                Err(why) => return self.refuse(why, out),
            }
        }
        let Some(head) = input.bytes().first_chunk::<HEAD_BYTES>() else { return Flow::Continue };
        let bytes = match frame::length(*head, self.shared.max_message) {
            Ok(bytes) => bytes,
            Err(why) => return self.refuse(why, out),
        };
        let Ok(size) = usize::try_from(bytes) else {
            return self.refuse("a request that this machine can't address", out);
        };
        if size <= SMALL_BYTES && input.len() < HEAD_BYTES + size {
            return Flow::Continue;
        }
        let held = Held::none(&self.shared.memory);
        if input.len() >= HEAD_BYTES + size && size <= SMALL_BYTES {
            let document = Bytes::copy_from_slice(&input.bytes()[HEAD_BYTES..HEAD_BYTES + size]);
            input.consume(HEAD_BYTES + size);
            self.has_read_all = input.is_empty();
            return self.ask(now, document, held, out);
        }
        input.consume(HEAD_BYTES);
        let (document, filled, lacks_memory) = (Vec::new(), 0, false);
        self.stage = Stage::Body { document, filled, bytes: size, held, lacks_memory };
        Flow::Continue
    }

    /// Passes the request on, parsed.
    fn ask(&mut self, now: Ns, document: Bytes, held: Held, out: &mut Output) -> Flow {
        let Some(waker) = self.waker.clone() else { return Flow::Close };
        self.place.whole();
        let follows = |header: &mut Header| header.follow.is_some();
        if document.len() <= SMALL_BYTES
            && let Some(header) = self.header.take_if(follows)
        {
            return match read(&document) {
                Ok(request) => self.follow(now, request, header, out),
                Err(why) => self.refuse(why, out),
            };
        }
        let slot = Slot::of_turn(waker);
        let (answered, is_trusted, definition) = (slot.clone(), false, None);
        let header = self.header.take();
        let mut asked = Asked { document, slot: answered, held, is_trusted, definition, header };
        if asked.document.len() <= SMALL_BYTES {
            match read(&asked.document) {
                Ok(request) if is_ping(&request) => {
                    self.shared.ping(&request).write(out.tail());
                    self.stage = Stage::Answered;
                    return Flow::Close;
                }
                Ok(request) => self.dispatch.request(Box::new(request), asked),
                Err(why) => return self.refuse(why, out),
            }
        } else {
            let (dispatch, shared) = (Arc::clone(&self.dispatch), Arc::clone(&self.shared));
            let work = move || match read(&asked.document) {
                Ok(request) => {
                    if shared.refusal(&request).is_none() {
                        asked.definition = read_definition(&request);
                    }
                    dispatch.request(Box::new(request), asked);
                }
                Err(why) => asked.slot.put(Answer::Reply(Reply::error(why.to_string()))),
            };
            // What it comes to is in the slot.
            if self.shared.in_background(work).is_err() {
                return self.refuse("too many large requests at once: try again", out);
            }
        }
        self.stage = Stage::Asked(slot);
        self.answer(now, out)
    }

    /// Has the client sent what changes from here on.
    fn follow(&mut self, now: Ns, request: Request, header: Header, out: &mut Output) -> Flow {
        if !Header::goes_with(&request) {
            return self.refuse(WITH_NOTHING_ELSE, out);
        }
        let mut place = Held::none(&self.shared.followers);
        if !place.grow(1) {
            let most = self.shared.followers.most;
            let why = format!("{most} clients follow, of --max-connections a quarter: try later");
            return self.refuse(why, out);
        }
        self.following = Some(Following::new(request, header, self.silent_until(now), place));
        self.ask_on(true)
    }

    /// Asks for what the client lacks by then.
    fn ask_on(&mut self, is_new: bool) -> Flow {
        let (Some(following), Some(waker)) = (&self.following, &self.waker) else {
            return Flow::Close;
        };
        let slot = Slot::new(waker.clone());
        self.dispatch.send(following.asked(slot.clone(), is_new));
        self.stage = Stage::Asked(slot);
        Flow::Continue
    }

    /// When a client that follows is sent a sign of life, if nothing else from now on.
    fn silent_until(&self, now: Ns) -> Ns {
        now.saturating_add(duration_ns(self.shared.silence))
    }

    /// Sends a client that follows what is due.
    fn go_on(&mut self, now: Ns, out: &mut Output) -> Flow {
        let silent_until = self.silent_until(now);
        let Some(following) = &mut self.following else { return Flow::Close };
        if matches!(self.stage, Stage::Sent) && following.is_due(now) {
            if out.is_empty() {
                return self.ask_on(false);
            }
            following.wait_for_room();
        }
        if now >= following.silent_until() {
            following.spoken(silent_until);
            // What it has not taken yet says as much.
            if out.is_empty() {
                following.sign(out.tail());
            }
        }
        Flow::Continue
    }

    /// Writes the answer, where it has come.
    fn answer(&mut self, now: Ns, out: &mut Output) -> Flow {
        let Stage::Asked(slot) = &self.stage else { return Flow::Continue };
        let silent_until = self.silent_until(now);
        match slot.take() {
            Some(Answer::Changes(bytes, numbers)) => {
                let Some(following) = &mut self.following else { return Flow::Close };
                following.has(numbers, now);
                if !bytes.is_empty() {
                    following.spoken(silent_until);
                    out.share(bytes);
                }
                self.stage = Stage::Sent;
                return Flow::Continue;
            }
            Some(Answer::Reply(reply)) => reply.write(out.tail()),
            Some(Answer::Bytes(bytes)) => out.share(bytes),
            Some(Answer::Around(text, [before, behind])) => {
                out.put(&before);
                out.share(text);
                out.put(&behind);
            }
            None => return Flow::Continue,
        }
        (self.stage, self.following) = (Stage::Answered, None);
        Flow::Close
    }
}

const fn is_ping(request: &Request) -> bool {
    matches!(request.body, Body::User(_, Command::Server(ServerCommand::Ping)))
}

impl Connection for Session {
    fn opened(&mut self, now: Ns, peer: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        self.waker = Some(peer.waker.clone());
        self.until = now.saturating_add(REQUEST_WITHIN);
        self.place.taken(peer.address.clone());
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let flow = match &mut self.stage {
            Stage::Head => self.head(now, input, out),
            Stage::Body { lacks_memory: true, .. } => {
                let most = self.shared.memory.most;
                let why = format!("requests of {most} bytes are being read (--receive-memory)");
                self.refuse(why, out)
            }
            Stage::Body { filled, bytes, .. } if filled == bytes => {
                match std::mem::replace(&mut self.stage, Stage::Answered) {
                    Stage::Body { document, held, .. } => self.ask(now, document.into(), held, out),
                    _ => Flow::Close,
                }
            }
            Stage::Asked(_) | Stage::Sent if self.following.is_some() && !input.is_empty() => {
                let why = "who follows sends no more: ask over another connection";
                self.refuse(why, out)
            }
            _ => Flow::Continue,
        };
        Ok(flow)
    }

    fn resume(&mut self, now: Ns, _: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(match &self.stage {
            Stage::Asked(_) | Stage::Sent => match self.answer(now, out) {
                Flow::Continue if self.following.is_some() => self.go_on(now, out),
                flow => flow,
            },
            Stage::Answered => Flow::Close,
            _ if now >= self.until => {
                let within = REQUEST_WITHIN / SECOND_NS;
                self.refuse(format!("no whole request came within {within} s"), out)
            }
            _ => {
                if now >= self.slow_at() {
                    self.place.slow();
                }
                Flow::Continue
            }
        })
    }

    fn deadline(&self) -> Option<Ns> {
        match (&self.stage, &self.following) {
            (Stage::Head | Stage::Body { .. }, _) if self.place.is_slow() => Some(self.until),
            (Stage::Head | Stage::Body { .. }, _) => Some(self.slow_at()),
            (Stage::Asked(_), Some(following)) => Some(following.silent_until()),
            (Stage::Sent, Some(following)) => Some(following.due().min(following.silent_until())),
            _ => None,
        }
    }

    fn place(&mut self) -> Option<&mut [u8]> {
        let Stage::Body { document, filled, bytes, held, lacks_memory } = &mut self.stage else {
            return None;
        };
        if document.len() == *filled {
            // Of what has come, not of what was announced: that costs eight bytes.
            let more = PIECE_BYTES.min(*bytes - *filled);
            *lacks_memory = !held.grow(more);
            if *lacks_memory {
                return None;
            }
            document.resize(*filled + more, 0);
        }
        Some(&mut document[*filled..])
    }

    fn placed(&mut self, count: usize) {
        if let Stage::Body { filled, .. } = &mut self.stage {
            *filled += count;
        }
    }

    fn wants_input(&self) -> bool {
        matches!(self.stage, Stage::Head | Stage::Body { .. }) || self.following.is_some()
    }

    fn has_pending(&self) -> bool {
        // Who follows is sent signs of life, and keeps no server from ending.
        matches!(self.stage, Stage::Asked(_)) && self.following.is_none()
    }

    fn resets_at_stop(&self) -> bool {
        // ecFlow's clients ask again then, and not where a connection just ends.
        matches!(self.stage, Stage::Head | Stage::Body { .. }) && self.following.is_none()
    }

    fn lingers(&self) -> bool {
        !self.has_read_all
    }

    fn closed(&mut self, _: Closed) {
        // The owner may still answer; the slot is dropped then.
        (self.stage, self.following) = (Stage::Answered, None);
    }
}
