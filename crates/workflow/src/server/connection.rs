//! One connection: a request, its answer, and the end. Data plane.
//!
//! What is small is read and written here, pings are answered; a large document is parsed, and a
//! large answer rendered, by the pool. The owner of the tree answers into a [`Slot`].

use std::sync::Arc;

use bytes::Bytes;
use wire::clock::SECOND_NS;
use wire::{Closed, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake, Waker};

use super::core::read_definition;
use super::dispatch::Dispatch;
use super::message::Asked;
use super::shared::Shared;
use super::slices;
use super::slot::{Answer, Held, SMALL_BYTES, Slot};
use crate::protocol::frame::{self, HEAD_BYTES};
use crate::protocol::header::{self, Header};
use crate::protocol::{Body, Command, Reply, Request, ServerCommand, read};

/// The time within which a request has to be whole.
const REQUEST_WITHIN: Ns = 60 * SECOND_NS;

/// A large document is read by pieces of this size, so that memory follows what has come.
const PIECE_BYTES: usize = 1 << 20;

enum Stage {
    /// The head, or a small document, has not come whole.
    Head,
    /// A large document is coming.
    Body { document: Vec<u8>, filled: usize, bytes: usize, held: Held, lacks_memory: bool },
    /// The owner has the request.
    Asked(Slot),
    /// The answer is written.
    Answered,
}

/// A connection.
pub(super) struct Session {
    shared: Arc<Shared>,
    dispatch: Arc<Dispatch>,
    waker: Option<Waker>,
    until: Ns,
    stage: Stage,
    /// A request has come whole, and nothing behind it.
    has_read_all: bool,
    /// What stands before the request, of this program's own clients.
    header: Option<Header>,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, dispatch: Arc<Dispatch>) -> Self {
        slices::shorten();
        let (waker, stage, header) = (None, Stage::Head, None);
        Self { shared, dispatch, waker, until: 0, stage, has_read_all: false, header }
    }

    fn refuse(&mut self, why: impl std::fmt::Display, out: &mut Output) -> Flow {
        self.stage = Stage::Answered;
        Reply::error(why.to_string()).write(out.tail());
        Flow::Close
    }

    fn head(&mut self, input: &mut Input, out: &mut Output) -> Flow {
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
            return self.ask(document, held, out);
        }
        input.consume(HEAD_BYTES);
        let (document, filled, lacks_memory) = (Vec::new(), 0, false);
        self.stage = Stage::Body { document, filled, bytes: size, held, lacks_memory };
        Flow::Continue
    }

    /// Passes the request on, parsed.
    fn ask(&mut self, document: Bytes, held: Held, out: &mut Output) -> Flow {
        let Some(waker) = self.waker.clone() else { return Flow::Close };
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
        self.answer(out)
    }

    /// Writes the answer, where it has come.
    fn answer(&mut self, out: &mut Output) -> Flow {
        let Stage::Asked(slot) = &self.stage else { return Flow::Continue };
        match slot.take() {
            Some(Answer::Reply(reply)) => reply.write(out.tail()),
            Some(Answer::Bytes(bytes)) => out.share(bytes),
            Some(Answer::Around(text, [before, behind])) => {
                out.put(&before);
                out.share(text);
                out.put(&behind);
            }
            None => return Flow::Continue,
        }
        self.stage = Stage::Answered;
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
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let flow = match &mut self.stage {
            Stage::Head => self.head(input, out),
            Stage::Body { lacks_memory: true, .. } => {
                let most = self.shared.memory.most;
                let why = format!("requests of {most} bytes are being read (--receive-memory)");
                self.refuse(why, out)
            }
            Stage::Body { filled, bytes, .. } if filled == bytes => {
                match std::mem::replace(&mut self.stage, Stage::Answered) {
                    Stage::Body { document, held, .. } => self.ask(document.into(), held, out),
                    _ => Flow::Close,
                }
            }
            _ => Flow::Continue,
        };
        Ok(flow)
    }

    fn resume(&mut self, now: Ns, _: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(match &self.stage {
            Stage::Asked(_) => self.answer(out),
            Stage::Answered => Flow::Close,
            _ if now >= self.until => {
                let within = REQUEST_WITHIN / SECOND_NS;
                self.refuse(format!("no whole request came within {within} s"), out)
            }
            _ => Flow::Continue,
        })
    }

    fn deadline(&self) -> Option<Ns> {
        matches!(self.stage, Stage::Head | Stage::Body { .. }).then_some(self.until)
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
        matches!(self.stage, Stage::Head | Stage::Body { .. })
    }

    fn has_pending(&self) -> bool {
        matches!(self.stage, Stage::Asked(_))
    }

    fn lingers(&self) -> bool {
        !self.has_read_all
    }

    fn closed(&mut self, _: Closed) {
        // The owner may still answer; the slot is dropped then.
        self.stage = Stage::Answered;
    }
}
