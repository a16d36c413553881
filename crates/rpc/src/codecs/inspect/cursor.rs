//! Where an inspection is, and what it has seen.

use super::piece::{Cause, Fault, MOST_DEPTH, MOST_PIECES, Piece};
use base::{many, many_are};

/// A place in the bytes, and the pieces before it.
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    /// What is noted already.
    noted: usize,
    /// Where the next byte lies.
    pub(super) at: usize,
    /// Where the value ends that is read.
    end: usize,
    depth: usize,
    pub(super) pieces: Vec<Piece>,
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, noted: 0, at: 0, end: bytes.len(), depth: 0, pieces: Vec::new() }
    }

    /// All of the bytes.
    pub(super) fn all(&self) -> &'b [u8] {
        self.bytes
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    pub(super) fn left(&self) -> usize {
        self.end - self.at
    }

    pub(super) fn fault<T>(&self, offset: usize, why: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { offset, why: why.into() })
    }

    /// Where fewer bytes are left than there are to be values, each of which takes one at least.
    pub(super) fn too_short<T>(&self, at: usize, values: u64) -> Result<T, Fault> {
        let (values, left) = (many(values, "value"), many_are(self.left(), "byte"));
        self.fault(at, format!("{values}, and {left} left"))
    }

    /// The next byte, which stays.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes[self.at..self.end].first().copied()
    }

    /// Takes this number of bytes.
    pub(super) fn take(&mut self, length: u64, what: &str) -> Result<&'b [u8], Fault> {
        let left = self.left();
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= left) else {
            let (length, left) = (many(length, "byte"), many_are(left, "byte"));
            return self.fault(self.at, format!("{what} needs {length}, and {left} left"));
        };
        if self.pieces.len() >= MOST_PIECES {
            return self.fault(self.at, format!("more than {MOST_PIECES} pieces"));
        }
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    pub(super) fn byte(&mut self, what: &str) -> Result<u8, Fault> {
        Ok(self.take(1, what)?[0])
    }

    /// Takes as many bytes as the array has.
    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    /// Takes a number of 7 bits a byte, at most ten of them.
    pub(super) fn varint(&mut self, what: &str) -> Result<u64, Fault> {
        let (begun, mut value) = (self.at, 0u64);
        for index in 0..10 {
            let byte = self.byte(what)?;
            // Of the tenth byte all bits but one are beyond 64, and are dropped as upb does.
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.fault(begun, format!("{what} is longer than 10 bytes"))
    }

    /// Notes what was taken since the last time.
    pub(super) fn note(
        &mut self,
        cause: Cause,
        field: impl Into<String>,
        kind: impl Into<String>,
        value: impl Into<String>,
    ) {
        let (offset, length) = (self.noted, self.at - self.noted);
        self.noted = self.at;
        if length > 0 {
            let (field, kind, value) = (field.into(), kind.into(), value.into());
            let depth = self.depth;
            self.pieces.push(Piece { offset, length, depth, field, kind, value, cause });
        }
    }

    /// Notes the rest, which isn't read further.
    pub(super) fn rest(&mut self, kind: &str, value: impl Into<String>) {
        self.at = self.end;
        self.note(Cause::Payload, "", kind, value);
    }

    /// Reads what lies within a value.
    pub(super) fn within<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.depth >= MOST_DEPTH {
            let why = format!("more than {MOST_DEPTH} values lie within each other");
            return self.fault(self.at, why);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Reads a value of this length, to its end.
    pub(super) fn bounded<T>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let outer = self.end;
        self.end = self.at + length.min(self.left());
        let value = self.within(read);
        self.end = outer;
        value
    }

    /// Tries to read; where that fails, nothing has happened.
    pub(super) fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (noted, at, end, pieces) = (self.noted, self.at, self.end, self.pieces.len());
        let value = read(self);
        if value.is_none() {
            (self.noted, self.at, self.end) = (noted, at, end);
            self.pieces.truncate(pieces);
        }
        value
    }
}

/// A text in quotes, or what the bytes are; cut where it is long.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().count() <= MOST => format!("{text:?}"),
        Ok(text) => format!("{:?}…", text.chars().take(MOST).collect::<String>()),
        Err(_) => many(bytes.len(), "byte"),
    }
}

/// The number that is written as zigzag: the sign is the lowest bit.
pub(super) fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
