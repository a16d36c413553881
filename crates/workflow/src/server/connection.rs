//! One connection: a request, its answer, and the end. Data plane.
//!
//! What is small is read and written here; a large document is parsed, and a large answer
//! rendered, by the pool. The owner of the tree answers into a [`Slot`].

use std::sync::Arc;
use std::sync::mpsc::Sender;

use bytes::Bytes;
use wire::clock::SECOND_NS;
use wire::{
    Closed, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, TaskPool, Wake, Waker,
};

use super::message::{Asked, Message};
use super::slot::{Answer, Held, Memory, Slot};
use crate::protocol::frame::{self, HEAD_BYTES};
use crate::protocol::{Reply, read};

/// The time within which a request has to be whole.
const REQUEST_WITHIN: Ns = 60 * SECOND_NS;

/// A document up to this size waits in the loop's buffer until it is whole, and is parsed there.
pub(super) const SMALL_BYTES: usize = 64 << 10;

/// A large document is read by pieces of this size, so that memory follows what has come.
const PIECE_BYTES: usize = 1 << 20;

/// What all connections share.
pub(super) struct Shared {
    pub(super) owner: Sender<Message>,
    pub(super) pool: TaskPool,
    /// The largest request.
    pub(super) max_message: u64,
    /// Of large documents that have come or are coming.
    pub(super) memory: Arc<Memory>,
    /// Of large answers that are being sent.
    pub(super) answers: Arc<Memory>,
}

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
    waker: Option<Waker>,
    until: Ns,
    stage: Stage,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, waker: None, until: 0, stage: Stage::Head }
    }

    fn refuse(&mut self, why: impl std::fmt::Display, out: &mut Output) -> Flow {
        self.stage = Stage::Answered;
        Reply::error(why.to_string()).write(out.tail());
        Flow::Close
    }

    fn head(&mut self, input: &mut Input, out: &mut Output) -> Flow {
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
        let slot = Slot::new(waker);
        let owner = self.shared.owner.clone();
        let asked = Asked { document, slot: slot.clone(), held, is_trusted: false };
        if asked.document.len() <= SMALL_BYTES {
            match read(&asked.document) {
                Ok(request) => asked.send(request, &owner),
                Err(why) => return self.refuse(why, out),
            }
        } else {
            let work = move || match read(&asked.document) {
                Ok(request) => asked.send(request, &owner),
                Err(why) => asked.slot.put(Answer::Reply(Reply::error(why.to_string()))),
            };
            // What it comes to is in the slot.
            if self.shared.pool.submit(Waker::new(|| {}), work).is_err() {
                return self.refuse("too many large requests at once: try again", out);
            }
        }
        self.stage = Stage::Asked(slot);
        Flow::Continue
    }
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
        match &self.stage {
            Stage::Asked(slot) => match slot.take() {
                Some(Answer::Reply(reply)) => reply.write(out.tail()),
                Some(Answer::Bytes(bytes)) => out.share(bytes),
                None => return Ok(Flow::Continue),
            },
            Stage::Answered => return Ok(Flow::Close),
            _ if now >= self.until => {
                let within = REQUEST_WITHIN / SECOND_NS;
                return Ok(self.refuse(format!("no whole request came within {within} s"), out));
            }
            _ => return Ok(Flow::Continue),
        }
        self.stage = Stage::Answered;
        Ok(Flow::Close)
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

    fn closed(&mut self, _: Closed) {
        // The owner may still answer; the slot is dropped then.
        self.stage = Stage::Answered;
    }
}
