//! Datagrams: each is a frame of 8 bytes and whole requests, and so is each piece of an answer.
//! Data plane.
//!
//! Nothing is kept between two datagrams, so a request has to be whole in one.

use std::sync::Arc;

use wire::{Batch, Connection, Datagrams, Input, Ns, Output, Replies};

use super::connection::CacheConnection;
use super::service::Service;
use crate::protocol::datagram::{Frame, MAX_PIECE_BYTES};

/// An answer that is longer is replaced by an error: it would take more datagrams than arrive.
const MAX_ANSWER_BYTES: usize = 2 << 20;

/// The answer instead of one that is too long.
const TOO_LONG: &[u8] = b"SERVER_ERROR the answer is too long for datagrams\r\n";

/// The answer to a request in several datagrams.
const TOO_MANY: &[u8] = b"SERVER_ERROR multi-packet request not supported\r\n";

/// The server side of one thread's datagram socket.
#[derive(Debug)]
pub struct CacheDatagrams {
    connection: CacheConnection,
    input: Input,
    out: Output,
}

impl CacheDatagrams {
    /// Datagrams to `service` that are answered on thread number `thread`.
    pub fn new(service: Arc<Service>, thread: usize) -> Self {
        let connection = CacheConnection::new(service, thread);
        Self { connection, input: Input::new(), out: Output::new(MAX_ANSWER_BYTES) }
    }

    /// Answers the requests of one datagram.
    fn answer(&mut self, now: Ns, requests: &[u8]) {
        self.connection.begin();
        self.input.clear();
        self.input.append(requests);
        // However it ends, there is nothing to close.
        let _ = self.connection.receive(now, &mut self.input, &mut self.out);
        if self.out.is_full() {
            self.out.clear(MAX_ANSWER_BYTES);
            self.out.put(TOO_LONG);
        }
    }
}

impl Datagrams for CacheDatagrams {
    fn datagrams(&mut self, now: Ns, batch: &Batch, replies: &mut Replies) {
        for (address, datagram) in batch.iter() {
            let Some((frame, requests)) = Frame::read(datagram) else { continue };
            if frame.total == 1 && frame.sequence == 0 {
                self.answer(now, requests);
            } else {
                self.out.put(TOO_MANY);
            }
            // Nothing is ever shared with this output.
            let bytes = self.out.plain().unwrap_or_default();
            let total = bytes.len().div_ceil(MAX_PIECE_BYTES) as u16;
            for (sequence, piece) in (0..total).zip(bytes.chunks(MAX_PIECE_BYTES)) {
                replies.compose(address.clone(), |into| {
                    Frame { request: frame.request, sequence, total }.put(into);
                    into.extend_from_slice(piece);
                });
            }
            self.out.advance(self.out.len());
        }
    }
}
