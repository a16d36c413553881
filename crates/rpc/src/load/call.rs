//! One call: what it has said, and what has come back of it so far. Data plane.

use super::made::{Made, PREFIX_BYTES, Piece, put_varint};
use super::operations::{ADD, BIDI, CALL, CLIENT_STREAM};

/// An answer that is one number is at most this long, with its prefix.
const NUMBER_BYTES: usize = 24;

/// A short message, with its prefix.
#[derive(Clone, Copy, Debug, Default)]
struct Short {
    bytes: [u8; NUMBER_BYTES],
    len: usize,
}

impl Short {
    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends bytes; whether there was room.
    fn push(&mut self, bytes: &[u8]) -> bool {
        let end = self.len + bytes.len();
        let Some(room) = self.bytes.get_mut(self.len..end) else { return false };
        room.copy_from_slice(bytes);
        self.len = end;
        true
    }
}

/// A call of one of the operations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Call {
    pub(super) operation: usize,
    pub(super) what: u64,
    /// The server has been asked.
    pub(super) is_begun: bool,
    /// It waits for room to say more.
    pub(super) is_queued: bool,
    /// Its answer has begun.
    pub(super) is_answered: bool,
    /// The answer so far is not right.
    pub(super) is_wrong: bool,
    /// The first call of a connection, which only its dialect waits for.
    pub(super) is_own: bool,
    /// Bytes that it has said.
    pub(super) said: usize,
    /// Bytes that have come.
    heard: usize,
    /// The number that it adds, and the least sum that is right.
    pub(super) number: i64,
    pub(super) least: Option<i64>,
    asks: Short,
    answer: Short,
}

/// Where an answer differs from the right one.
#[derive(Debug)]
pub(super) struct Difference<'a> {
    pub(super) expected: &'a [u8],
    pub(super) received: &'a [u8],
    pub(super) note: &'static str,
}

impl Call {
    /// A call that is not begun.
    #[inline]
    pub(super) fn new(operation: usize, what: u64) -> Self {
        let mut call = Self { operation, what, ..Self::default() };
        if operation == ADD {
            call.add((what % super::made::BODIES + 1).cast_signed());
        }
        call
    }

    /// The first call of a connection: it adds nothing, and asks for the total.
    pub(super) fn own() -> Self {
        let mut call = Self { operation: ADD, is_own: true, ..Self::default() };
        call.add(0);
        call
    }

    /// A call that adds this number, from 0 on.
    #[inline]
    fn add(&mut self, number: i64) {
        self.number = number;
        let (bytes, mut len) = (&mut self.asks.bytes, PREFIX_BYTES);
        let mut left = number.cast_unsigned();
        if left > 0 {
            bytes[len] = 1 << 3;
            len += 1;
            while left >= 0x80 {
                bytes[len] = left as u8 | 0x80;
                (left, len) = (left >> 7, len + 1);
            }
            bytes[len] = left as u8;
            len += 1;
        }
        // It is shorter than a byte can say.
        bytes[PREFIX_BYTES - 1] = (len - PREFIX_BYTES) as u8;
        self.asks.len = len;
    }

    /// It has to be asked once more.
    pub(super) fn again(&mut self) {
        let (asks, number, least, is_own) = (self.asks, self.number, self.least, self.is_own);
        *self = Self { asks, number, least, is_own, ..Self::new(self.operation, self.what) };
    }

    /// How many bytes it says.
    #[inline]
    pub(super) fn total(&self, made: &Made) -> usize {
        match made.asked(self.operation) {
            Some(tape) => tape.total,
            None if self.operation == ADD => self.asks.len,
            None if self.operation == CALL => made.request(self.what).map_or(0, |one| one.1.len()),
            None => made.echo_bytes(),
        }
    }

    /// How many bytes it may have said by now: in a conversation, one message more than was
    /// answered.
    #[inline]
    pub(super) fn may_say(&self, made: &Made) -> usize {
        let total = self.total(made);
        match (self.operation, made.asked(BIDI), made.answer_unit()) {
            (BIDI, Some(tape), Some(answer)) => {
                total.min((self.heard / answer + 1).saturating_mul(tape.unit))
            }
            _ => total,
        }
    }

    /// What it says next.
    #[inline]
    pub(super) fn piece<'a>(&'a self, made: &'a Made) -> Piece<'a> {
        match self.operation {
            ADD => Piece::Small(&self.asks.get()[self.said..]),
            _ => made.asks(self.operation, self.what, self.said),
        }
    }

    /// Bytes of its answer have come.
    ///
    /// # Errors
    /// The first difference from the right one.
    #[inline]
    pub(super) fn hear<'a>(
        &mut self,
        mut bytes: &'a [u8],
        made: &'a Made,
    ) -> Result<(), Difference<'a>> {
        if self.is_wrong {
            return Ok(());
        }
        if matches!(self.operation, ADD | CLIENT_STREAM) {
            if self.answer.push(bytes) {
                return Ok(());
            }
            self.is_wrong = true;
            let note = "more than a message with one number";
            return Err(Difference { expected: &[], received: bytes, note });
        }
        while !bytes.is_empty() {
            let expected = made.answer(self.operation, self.what, self.heard);
            let len = expected.len().min(bytes.len());
            let (here, rest) = bytes.split_at(len);
            if len == 0 || here != &expected[..len] {
                self.is_wrong = true;
                let note = if len == 0 { "more than the answer" } else { "another message" };
                return Err(Difference { expected, received: bytes, note });
            }
            self.heard += len;
            bytes = rest;
        }
        Ok(())
    }

    /// Whether all of an answer has come that is known byte for byte.
    #[inline]
    pub(super) fn is_whole(&self, made: &Made) -> bool {
        made.answer_bytes(self.operation).is_none_or(|bytes| bytes == self.heard)
    }

    /// The bytes of an answer that is one number.
    pub(super) fn answer(&self) -> &[u8] {
        self.answer.get()
    }

    /// The number that was answered.
    #[inline]
    pub(super) fn answered_number(&self) -> Option<i64> {
        let (prefix, message) = self.answer.get().split_first_chunk::<PREFIX_BYTES>()?;
        let [compressed, len @ ..] = *prefix;
        let is_one = compressed == 0 && u32::from_be_bytes(len) as usize == message.len();
        if !is_one {
            return None;
        }
        let Some((key, digits)) = message.split_first() else { return Some(0) };
        let (last, more) = digits.split_last()?;
        let is_number = *key == 1 << 3
            && digits.len() <= 10
            && *last < 0x80
            && more.iter().all(|byte| *byte >= 0x80);
        let add =
            |sum: u64, (place, byte): (usize, &u8)| sum | u64::from(byte & 0x7f) << (7 * place);
        is_number.then(|| digits.iter().enumerate().fold(0, add).cast_signed())
    }
}

/// A message with one number, with its prefix.
pub(super) fn number_message(number: i64) -> Vec<u8> {
    let mut message = Vec::new();
    if number != 0 {
        message.push(1 << 3);
        put_varint(number.cast_unsigned(), &mut message);
    }
    [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat()
}

#[cfg(test)]
mod tests {
    use super::super::operations::{SERVER_STREAM, UNARY};
    use super::*;

    #[test]
    fn numbers_are_said_and_read_as_protobuf_says_them() {
        for number in [0, 1, 127, 128, 4096, i64::MAX, -1] {
            let (mut call, mut other) = (Call::new(ADD, 0), Call::new(ADD, 0));
            call.add(number);
            assert_eq!(call.asks.get(), number_message(number));
            assert!(other.answer.push(&number_message(number)));
            assert_eq!(other.answered_number(), Some(number));
        }
        assert_eq!(number_message(-1)[5..], [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        let read = |bytes: &[u8]| {
            let mut call = Call::new(ADD, 0);
            assert!(call.answer.push(bytes));
            call.answered_number()
        };
        for bad in [&b""[..], b"\0\0\0\0\x01", b"\x01\0\0\0\0", b"\0\0\0\0\x02\x10\x01"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(read(b"\0\0\0\0\x02\x08\x81"), None, "a number that goes on");
    }

    #[test]
    fn an_answer_in_any_pieces_is_compared_to_its_last_byte() {
        let made = Made::new(20, 3, 1);
        for (operation, wrong_at) in [(UNARY, 24), (SERVER_STREAM, 60)] {
            let mut all = Vec::new();
            while all.len() < made.answer_bytes(operation).unwrap() {
                all.extend_from_slice(made.answer(operation, 8, all.len()));
            }
            for size in [1, 7, 1000] {
                let mut call = Call::new(operation, 8);
                assert!(all.chunks(size).all(|piece| call.hear(piece, &made).is_ok()));
                assert!(call.is_whole(&made));
                assert_eq!(call.hear(&[0], &made).unwrap_err().note, "more than the answer");
            }
            all[wrong_at] ^= 1;
            let mut call = Call::new(operation, 8);
            assert_eq!(call.hear(&all, &made).unwrap_err().note, "another message");
            assert!(call.is_wrong && !call.is_whole(&made));
        }
    }

    #[test]
    fn a_conversation_says_a_message_more_than_it_has_heard() {
        let made = Made::new(20, 3, 1);
        let mut call = Call::new(BIDI, 0);
        let unit = made.asked(BIDI).unwrap().unit;
        assert_eq!(call.may_say(&made), unit);
        let answer = made.answer(BIDI, 0, 0);
        let one = answer.len() / 3;
        call.hear(&answer[..one - 1], &made).unwrap();
        assert_eq!(call.may_say(&made), unit);
        call.hear(&answer[one - 1..one], &made).unwrap();
        assert_eq!(call.may_say(&made), 2 * unit);
        call.hear(&answer[one..], &made).unwrap();
        assert_eq!(call.may_say(&made), call.total(&made));
    }
}
