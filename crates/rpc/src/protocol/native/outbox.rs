//! What waits to be sent: small frames in one piece, large payloads as they are, so that one
//! vectored write takes all of them without a copy of what is large.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::frame::{HEADER_BYTES, Header};

/// A payload from here on is a piece of its own; a smaller one is copied.
const APART_FROM_BYTES: usize = 4 << 10;

/// Pieces of one write.
const MOST_PIECES: usize = 64;

/// Frames that wait to be sent.
#[derive(Debug, Default)]
pub struct Outbox {
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
}

impl Outbox {
    /// Adds a frame.
    pub fn push(&mut self, header: &Header, payload: &Bytes) {
        self.push_parts(header, &[], payload);
    }

    /// Adds a frame whose payload is in two parts.
    pub fn push_parts(&mut self, header: &Header, first: &[u8], rest: &Bytes) {
        let small = if rest.len() < APART_FROM_BYTES { rest.len() } else { 0 };
        self.tail.reserve(HEADER_BYTES + first.len() + small);
        for word in header.words() {
            self.tail.put_u64_le(word);
        }
        if !first.is_empty() {
            self.tail.put_slice(first);
        }
        if rest.len() < APART_FROM_BYTES {
            self.tail.put_slice(rest);
        } else {
            self.pieces.push_back(self.tail.split().freeze());
            self.pieces.push_back(rest.clone());
        }
    }

    /// Where a greeting is appended.
    pub fn raw(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// How many bytes wait.
    pub fn bytes(&self) -> usize {
        if self.pieces.is_empty() {
            return self.tail.len();
        }
        self.pieces.iter().map(Bytes::len).sum::<usize>() + self.tail.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.tail.is_empty()
    }

    /// Hands the first pieces to one vectored write; none where nothing waits. What that has taken
    /// is taken off by [`Outbox::advance`].
    pub fn with_slices<R>(&self, write: impl FnOnce(&[IoSlice<'_>]) -> R) -> R {
        if self.pieces.is_empty() {
            return match self.tail.is_empty() {
                true => write(&[]),
                false => write(&[IoSlice::new(&self.tail)]),
            };
        }
        let all = self.pieces.iter().map(|piece| &piece[..]).chain([&self.tail[..]]);
        let mut slices = [IoSlice::new(&[]); MOST_PIECES];
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(all.filter(|piece| !piece.is_empty())) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        write(slices.get(..count).unwrap_or_default())
    }

    /// This many bytes are sent.
    pub fn advance(&mut self, mut count: usize) {
        while count > 0 {
            let Some(first) = self.pieces.front_mut() else {
                self.tail.advance(count.min(self.tail.len()));
                return;
            };
            let taken = count.min(first.len());
            first.advance(taken);
            count -= taken;
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
    }

    /// All of it as one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let all = self.pieces.iter().map(|piece| &piece[..]).chain([&self.tail[..]]);
        all.flatten().copied().collect()
    }
}
