//! What calls say and what right answers are, byte for byte, made once for all of them.
//!
//! An answer is right only in protobuf's usual encoding: fields in the order of their numbers, and
//! none that has its default. All of gRPC's servers write it so.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use load::scramble;

use super::any::{Any, Learn, Source};
use super::operations::{BIDI, CALL, CLIENT_STREAM, PATHS, SERVER_STREAM, UNARY};

/// The bytes before a message: whether it is compressed, and its length.
pub(super) const PREFIX_BYTES: usize = 5;

/// At how many places of the random bytes a body may begin, so that answers to different calls
/// differ.
pub(super) const BODIES: u64 = 4096;

/// A tape is about as long as this, so that few pieces are sent and compared.
const TAPE_BYTES: usize = 64 << 10;

/// Keys of protobuf: field and wire type.
mod key {
    pub(super) const SAMPLE_BLOB: u8 = 5 << 3 | 2;
    pub(super) const PAYLOAD_BODY: u8 = 2 << 3 | 2;
    pub(super) const INPUT_PAYLOAD: u8 = 1 << 3 | 2;
    pub(super) const OUTPUT_PARAMETERS: u8 = 2 << 3 | 2;
    pub(super) const OUTPUT_PAYLOAD: u8 = 3 << 3 | 2;
    pub(super) const PARAMETERS_SIZE: u8 = 1 << 3;
    pub(super) const ANSWER_PAYLOAD: u8 = 1 << 3 | 2;
}

/// Appends a number in seven bits a byte.
pub(super) fn put_varint(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Appends a field that is bytes.
fn put_field(key: u8, bytes: &[u8], into: &mut Vec<u8>) {
    into.push(key);
    put_varint(bytes.len() as u64, into);
    into.extend_from_slice(bytes);
}

/// A message behind its prefix.
fn prefixed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

/// A message over and over.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    /// Several of it.
    bytes: Bytes,
    /// How long one is, with its prefix.
    pub(super) unit: usize,
    /// How long all of them are.
    pub(super) total: usize,
}

impl Tape {
    fn new(message: &[u8], count: usize) -> Self {
        let one = prefixed(message);
        let several = (TAPE_BYTES / one.len()).clamp(1, count);
        let (unit, total) = (one.len(), one.len() * count);
        Self { bytes: one.repeat(several).into(), unit, total }
    }

    /// What comes at a place of the whole: at least a byte, unless it is the end.
    #[inline]
    fn at(&self, at: usize) -> std::ops::Range<usize> {
        let start = at % self.unit;
        start..self.bytes.len().min(start + (self.total - at))
    }
}

/// A piece of a message.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// To be copied.
    Small(&'a [u8]),
    /// To be shared, if that is worth it.
    Large(&'a Bytes, std::ops::Range<usize>),
}

/// What every call of a workload is made of. Copies share what is large.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// Bytes of each message's payload.
    pub(super) bytes: usize,
    /// Messages of each call that streams.
    pub(super) messages: usize,
    /// What comes before the body of an echo.
    head: Vec<u8>,
    /// Random bytes, in which bodies lie.
    block: Bytes,
    /// By operation: what is asked of it, and what it answers, where that is the same in all calls.
    asked: [Option<Tape>; 5],
    answered: [Option<Tape>; 5],
    /// The operation `call`, and its method's path.
    source: Option<(String, Source)>,
    /// What is known of it; once a connection has asked, where that is needed.
    any: OnceLock<Arc<Any>>,
}

impl Made {
    pub(super) fn new(bytes: usize, messages: usize, seed: u64) -> Self {
        let mut block = Vec::with_capacity(bytes + BODIES as usize + 8);
        let mut word = 0;
        while block.len() < bytes + BODIES as usize {
            word += 1;
            block.extend_from_slice(&scramble(seed ^ scramble(word)).to_le_bytes());
        }
        let sample = |body: &[u8]| {
            let mut message = Vec::new();
            if !body.is_empty() {
                put_field(key::SAMPLE_BLOB, body, &mut message);
            }
            prefixed(&message)
        };
        let field = |key: u8, bytes: &[u8]| {
            let mut field = Vec::new();
            put_field(key, bytes, &mut field);
            field
        };
        let body = &block[..bytes];
        let mut head = sample(body);
        head.truncate(head.len() - bytes);
        let mut size = vec![key::PARAMETERS_SIZE];
        put_varint(bytes as u64, &mut size);
        let size = field(key::OUTPUT_PARAMETERS, &size);
        let payload = field(key::PAYLOAD_BODY, body);
        let both = [&size[..], &field(key::OUTPUT_PAYLOAD, &payload)].concat();
        let zeros = field(key::ANSWER_PAYLOAD, &field(key::PAYLOAD_BODY, &vec![0; bytes]));
        let tape = |message: &[u8], count: usize| Some(Tape::new(message, count));
        let (mut asked, mut answered) = ([const { None }; 5], [const { None }; 5]);
        asked[SERVER_STREAM] = tape(&size.repeat(messages), 1);
        asked[CLIENT_STREAM] = tape(&field(key::INPUT_PAYLOAD, &payload), messages);
        asked[BIDI] = tape(&both, messages);
        answered[SERVER_STREAM] = tape(&zeros, messages);
        answered[BIDI] = tape(&zeros, messages);
        let (source, any) = (None, OnceLock::new());
        Self { bytes, messages, head, block: block.into(), asked, answered, source, any }
    }

    /// Whether the operation `call` has a method.
    pub(super) fn has_call(&self) -> bool {
        self.source.is_some()
    }

    /// Whether the operation `call` is learnt of the server.
    pub(super) fn is_learnt(&self) -> bool {
        matches!(&self.source, Some((_, Source::Asked(_))))
    }

    /// How the operation `call` is learnt, where that is still to be done.
    pub(super) fn learns(&self) -> Option<&dyn Learn> {
        match &self.source {
            Some((_, Source::Asked(learn))) if self.any.get().is_none() => Some(&**learn),
            _ => None,
        }
    }

    /// The paths of all operations.
    pub(super) fn paths(&self) -> Vec<&str> {
        let own = PATHS.iter().copied();
        own.chain(self.source.iter().map(|(path, _)| &path[..])).collect()
    }

    /// The operation `call`, and its method's path.
    pub(super) fn set_source(&mut self, path: String, source: Source) {
        if let Source::Known(any) = &source {
            self.learn(Arc::clone(any));
        }
        self.source = Some((path, source));
    }

    /// The operation `call` is known from now on.
    pub(super) fn learn(&self, any: Arc<Any>) {
        // Of several connections that have asked, the first one says it.
        let _ = self.any.set(any);
    }

    /// What the operation `call` says and wants.
    #[inline]
    pub(super) fn any(&self) -> Option<&Any> {
        self.any.get().map(|any| &**any)
    }

    /// The request number of a call.
    #[inline]
    pub(super) fn request(&self, what: u64) -> Option<(usize, &Bytes)> {
        let requests = &self.any()?.requests;
        let number = (what % requests.len().max(1) as u64) as usize;
        Some((number, requests.get(number)?))
    }

    /// How many bytes an echo has.
    #[inline]
    pub(super) fn echo_bytes(&self) -> usize {
        self.head.len() + self.bytes
    }

    /// What a call of an operation asks, where it is the same in all.
    #[inline]
    pub(super) fn asked(&self, operation: usize) -> Option<&Tape> {
        self.asked.get(operation).and_then(Option::as_ref)
    }

    /// What is answered, where it is known byte for byte and the same in all.
    #[inline]
    fn answered(&self, operation: usize) -> Option<&Tape> {
        self.answered.get(operation).and_then(Option::as_ref)
    }

    /// How long each message of a conversation's answer is.
    #[inline]
    pub(super) fn answer_unit(&self) -> Option<usize> {
        self.answered(BIDI).map(|tape| tape.unit)
    }

    /// How many bytes a right answer has, where it is known byte for byte.
    #[inline]
    pub(super) fn answer_bytes(&self, operation: usize) -> Option<usize> {
        match operation {
            UNARY => Some(self.echo_bytes()),
            _ => self.answered(operation).map(|tape| tape.total),
        }
    }

    /// What an echo says at a place, or a tape of what is asked.
    #[inline]
    pub(super) fn asks(&self, operation: usize, what: u64, at: usize) -> Piece<'_> {
        match self.asked(operation) {
            Some(tape) => Piece::Large(&tape.bytes, tape.at(at)),
            None if operation == CALL => match self.request(what) {
                Some((_, bytes)) => Piece::Large(bytes, at..bytes.len()),
                None => Piece::Small(&[]),
            },
            None => self.echo(what, at),
        }
    }

    #[inline]
    fn echo(&self, what: u64, at: usize) -> Piece<'_> {
        if at < self.head.len() {
            return Piece::Small(&self.head[at..]);
        }
        let start = (what % BODIES) as usize;
        Piece::Large(&self.block, start + at - self.head.len()..start + self.bytes)
    }

    /// What a right answer has at a place; empty at its end.
    #[inline]
    pub(super) fn answer(&self, operation: usize, what: u64, at: usize) -> &[u8] {
        match self.answered(operation) {
            Some(tape) => &tape.bytes[tape.at(at)],
            None => match self.echo(what, at) {
                Piece::Small(bytes) => bytes,
                Piece::Large(bytes, range) => &bytes[range],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(made: &Made, operation: usize, what: u64) -> Vec<u8> {
        let (mut all, most) = (Vec::new(), made.answer_bytes(operation).unwrap());
        while all.len() < most {
            let piece = made.answer(operation, what, all.len());
            assert!(!piece.is_empty());
            all.extend_from_slice(piece);
        }
        assert!(made.answer(operation, what, most).is_empty());
        all
    }

    #[test]
    fn messages_are_protobufs() {
        let made = Made::new(3, 2, 1);
        let echo = whole(&made, UNARY, 4);
        assert_eq!(echo[..7], [0, 0, 0, 0, 5, 0x2a, 3]);
        assert_eq!(echo[7..], made.block[4..7]);
        assert_ne!(echo, whole(&made, UNARY, 5));
        let answer = [0, 0, 0, 0, 7, 0x0a, 5, 0x12, 3, 0, 0, 0];
        assert_eq!(whole(&made, SERVER_STREAM, 0), answer.repeat(2));
        let Piece::Large(bytes, range) = made.asks(SERVER_STREAM, 0, 0) else { panic!("a tape") };
        assert_eq!(bytes[range], [0, 0, 0, 0, 8, 0x12, 2, 8, 3, 0x12, 2, 8, 3]);
        let body = &made.block[..3];
        let Piece::Large(bytes, range) = made.asks(CLIENT_STREAM, 0, 12) else { panic!("a tape") };
        assert_eq!(bytes[range], [&[0, 0, 0, 0, 7, 0x0a, 5, 0x12, 3][..], body].concat());
        let Piece::Large(bytes, range) = made.asks(BIDI, 0, 0) else { panic!("a tape") };
        let one = [&[0, 0, 0, 0, 11, 0x12, 2, 8, 3, 0x1a, 5, 0x12, 3][..], body].concat();
        assert_eq!(bytes[range], one.repeat(2));
        let empty = Made::new(0, 1, 1);
        assert_eq!(whole(&empty, UNARY, 9), [0; 5]);
    }

    #[test]
    fn a_tape_goes_on_beyond_what_it_holds() {
        let made = Made::new(50_000, 3, 1);
        let all = whole(&made, SERVER_STREAM, 0);
        let unit = made.answered(SERVER_STREAM).unwrap().unit;
        assert_eq!(all.len(), 3 * unit);
        assert_eq!(all[..unit], all[2 * unit..]);
    }
}
