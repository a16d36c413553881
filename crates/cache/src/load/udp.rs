//! memcached's text protocol in datagrams. Every request is one datagram; its answer is one or
//! several, in any order, of which some may never come. Data plane.
//!
//! A request keeps a [`Memcached`] of its own, which reads its answer as it would from a stream.

use std::collections::VecDeque;
use std::sync::Arc;

use load::kv::Oracle;
use load::{Dialect, Events, Op, Tag};
use wire::{Input, Ns, Output, ProtocolError};

use super::memcached::Memcached;
use super::operations::{ASIDE, MG};
use crate::protocol::datagram::Frame;

/// Maximum number of expired requests that are remembered until their answers come.
const MAX_FORGOTTEN: usize = 1024;

/// Requests whose answer is awaited.
#[derive(Debug)]
struct Waiting {
    number: u16,
    /// Reads the answer.
    reader: Memcached,
    /// The pieces of an answer in several datagrams that have come.
    pieces: Vec<Option<Vec<u8>>>,
}

/// The client side of one datagram socket.
#[derive(Debug)]
pub struct MemcachedUdp {
    oracle: Arc<Oracle>,
    waiting: VecDeque<Waiting>,
    /// What is not in use.
    spare: Vec<Waiting>,
    next: u16,
    /// The bytes of one answer.
    answer: Input,
}

impl MemcachedUdp {
    /// A socket whose answers `oracle` checks.
    pub fn new(oracle: &Arc<Oracle>) -> Self {
        Self {
            oracle: Arc::clone(oracle),
            waiting: VecDeque::new(),
            spare: Vec::new(),
            next: 0,
            answer: Input::new(),
        }
    }

    /// Begins a datagram, and returns the reader of its answer.
    fn begin(&mut self, out: &mut Output) -> Option<&mut Memcached> {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        Frame { request: number, sequence: 0, total: 1 }.put(out.tail());
        let fresh = || Waiting { number, reader: Memcached::new(&self.oracle), pieces: Vec::new() };
        let mut waiting = self.spare.pop().unwrap_or_else(fresh);
        waiting.number = number;
        self.waiting.push_back(waiting);
        self.waiting.back_mut().map(|waiting| &mut waiting.reader)
    }

    /// Reads the answer, or the part of it that `answer` holds, of the requests at `index`.
    fn read(&mut self, now: Ns, index: usize, events: &mut Events, out: &mut Output) {
        let Some(waiting) = self.waiting.get_mut(index) else { return };
        // A broken answer has been reported as wrong; the socket is none the worse for it.
        let broken = waiting.reader.receive(now, &mut self.answer, events, out).is_err();
        if broken || !self.answer.is_empty() {
            waiting.reader.cut_off(self.answer.bytes(), events);
        }
        self.answer.clear();
        if !waiting.reader.is_awaited() {
            self.release(index);
        }
    }

    fn release(&mut self, index: usize) {
        if let Some(mut waiting) = self.waiting.remove(index) {
            waiting.reader.clear();
            waiting.pieces.clear();
            self.spare.push(waiting);
        }
    }
}

impl Dialect for MemcachedUdp {
    fn request(&mut self, now: Ns, tag: Tag, op: Op, out: &mut Output) {
        // A store that is no operation of the engine's would need a datagram of its own.
        let operation = if op.operation == ASIDE { MG } else { op.operation };
        if let Some(reader) = self.begin(out) {
            reader.request(now, tag, Op { operation, ..op }, out);
        }
    }

    fn prepare(&mut self, now: Ns, tag: Tag, key: u64, out: &mut Output) {
        if let Some(reader) = self.begin(out) {
            reader.prepare(now, tag, key, out);
        }
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        events: &mut Events,
        out: &mut Output,
    ) -> Result<(), ProtocolError> {
        let bytes = input.bytes();
        if let Some((frame, rest)) = Frame::read(bytes)
            && let Some(index) = self.waiting.iter().position(|one| one.number == frame.request)
        {
            let waiting = &mut self.waiting[index];
            let (place, total) = (usize::from(frame.sequence), usize::from(frame.total));
            if total <= 1 {
                self.answer.append(rest);
                self.read(now, index, events, out);
            } else if place < total {
                waiting.pieces.resize(total, None);
                waiting.pieces[place] = Some(rest.to_vec());
                if waiting.pieces.iter().all(Option::is_some) {
                    let pieces = std::mem::take(&mut waiting.pieces);
                    pieces.iter().flatten().for_each(|piece| self.answer.append(piece));
                    self.read(now, index, events, out);
                }
            }
        }
        // Anything else is an answer that is late, or to no request.
        input.consume(input.len());
        Ok(())
    }

    fn expire(&mut self, tag: Tag) {
        let found = self.waiting.iter_mut().position(|one| one.reader.give_up(tag));
        if let Some(index) = found
            && (!self.waiting[index].reader.is_awaited() || self.waiting.len() > MAX_FORGOTTEN)
        {
            // Its answer, if it comes, is ignored.
            self.release(index);
        }
    }
}
