//! Messages in the body of a stream: a flag, the length in four bytes, the message.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::compression::{Encoding, too_large};
use super::prefix::PREFIX_BYTES;
use super::status::{Code, Status};

/// What of the room of earlier messages may be kept while a call waits.
const KEPT_ROOM_BYTES: usize = 64 << 10;

/// Reads messages from the pieces of a body, in order.
#[derive(Debug)]
pub(crate) struct Reader {
    most_bytes: usize,
    encoding: Option<Encoding>,
    /// The piece that has come last. A whole message in one piece is not copied.
    buffer: Bytes,
    /// Where it isn't empty, all that is not read: several pieces, the first within a message.
    partial: BytesMut,
    /// The most room that it has had, which messages that were taken are parts of.
    room: usize,
}

impl Reader {
    /// Of messages of at most this many bytes each.
    pub(crate) fn new(most_bytes: usize, encoding: Option<Encoding>) -> Self {
        Self { most_bytes, encoding, buffer: Bytes::new(), partial: BytesMut::new(), room: 0 }
    }

    /// Adds the next piece of the body.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if self.partial.is_empty() && self.buffer.is_empty() {
            self.buffer = piece;
            return;
        }
        if !self.buffer.is_empty() {
            self.partial.extend_from_slice(&self.buffer);
            self.buffer = Bytes::new();
        }
        // Room that messages before have left is taken while there is little to move there. Else it
        // grows with what comes, whatever length the prefix claims; by half at least, since what is
        // behind a message that was taken is moved when it grows, and up to fourfold where the
        // message goes on.
        let (missing, length) = (self.missing(), self.partial.len());
        if !self.partial.try_reclaim(missing.max(piece.len()))
            && self.partial.capacity() - length < piece.len()
        {
            self.partial.reserve(piece.len().max(length / 2).max(missing.min(3 * length)));
        }
        self.partial.extend_from_slice(&piece);
        self.room = self.room.max(self.partial.capacity());
    }

    /// Gives up the room that earlier messages have left, before the call waits: what is left of
    /// them would keep all of it. A message under way has at most four times its bytes.
    pub(crate) fn shrink(&mut self) {
        let length = self.partial.len();
        if self.room > KEPT_ROOM_BYTES + 4 * length {
            self.partial = BytesMut::from(&self.partial[..]);
            self.room = length;
        }
    }

    /// What the message under way lacks, as far as its prefix may be believed.
    fn missing(&self) -> usize {
        let Some([_, length @ ..]) = self.partial.first_chunk::<PREFIX_BYTES>() else { return 0 };
        let length = u32::from_be_bytes(*length) as usize;
        match length <= self.most_bytes {
            true => (PREFIX_BYTES + length).saturating_sub(self.partial.len()),
            false => 0,
        }
    }

    /// How many bytes are kept.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.buffer.len() + self.partial.len()
    }

    /// The next message, if it is whole, and whether it came compressed.
    ///
    /// # Errors
    /// When it is over the limit, which its prefix already shows, or its flag or compression is
    /// wrong. What comes after it can't be read.
    pub(crate) fn next(&mut self) -> Result<Option<(Bytes, bool)>, Status> {
        let there: &[u8] = if self.partial.is_empty() { &self.buffer } else { &self.partial };
        let Some((prefix, rest)) = there.split_first_chunk::<PREFIX_BYTES>() else {
            self.keep();
            return Ok(None);
        };
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        let flag = prefix[0];
        if flag > 1 {
            let words = format!("the flag {flag} before a message is neither 0 nor 1");
            return Err(Status::new(Code::Internal, words));
        }
        if flag == 1 && self.encoding.is_none() {
            let words = "a message is flagged as compressed, and there is no grpc-encoding";
            return Err(Status::new(Code::Internal, words));
        }
        if length > self.most_bytes {
            return Err(too_large(length, self.most_bytes));
        }
        if rest.len() < length {
            self.keep();
            return Ok(None);
        }
        let message = if self.partial.is_empty() {
            self.buffer.advance(PREFIX_BYTES);
            self.buffer.split_to(length)
        } else {
            self.partial.advance(PREFIX_BYTES);
            self.partial.split_to(length).freeze()
        };
        match self.encoding.filter(|_| flag == 1) {
            Some(encoding) => Ok(Some((encoding.decompress(&message, self.most_bytes)?, true))),
            None => Ok(Some((message, false))),
        }
    }

    /// All messages that are whole and not compressed, each behind its prefix, until they have this
    /// many bytes; and how many they are. What is wrong behind them is found by [`Reader::next`].
    pub(crate) fn next_whole(&mut self, bytes: usize) -> (Bytes, u64) {
        let there: &[u8] = if self.partial.is_empty() { &self.buffer } else { &self.partial };
        let (mut end, mut messages) = (0, 0);
        while end < bytes {
            let Some(([0, length @ ..], rest)) = there[end..].split_first_chunk::<PREFIX_BYTES>()
            else {
                break;
            };
            let length = u32::from_be_bytes(*length) as usize;
            if length > self.most_bytes || length > rest.len() {
                break;
            }
            end += PREFIX_BYTES + length;
            messages += 1;
        }
        let whole = match self.partial.is_empty() {
            true => self.buffer.split_to(end),
            false => self.partial.split_to(end).freeze(),
        };
        if end < bytes {
            self.keep();
        }
        (whole, messages)
    }

    /// Messages that may be held: small ones alone would keep all that was read from the socket,
    /// and any the room of much larger ones before them.
    pub(crate) fn apart(&self, messages: Bytes) -> Bytes {
        let length = messages.len();
        match length <= APART_BYTES || self.room > KEPT_ROOM_BYTES + 4 * length {
            true => Bytes::copy_from_slice(&messages),
            false => messages,
        }
    }

    /// Copies the beginning of a message: a piece of one byte would keep all that was read from the
    /// socket with it.
    fn keep(&mut self) {
        if !self.buffer.is_empty() {
            self.partial.extend_from_slice(&std::mem::take(&mut self.buffer));
        }
    }

    /// What is left once the body has ended.
    ///
    /// # Errors
    /// When it is a part of a message.
    pub(crate) fn finish(&self) -> Result<(), Status> {
        match self.kept_bytes() {
            0 => Ok(()),
            _ => Err(Status::new(Code::Internal, "the stream ends within a message")),
        }
    }
}

/// A longer message isn't copied to be behind its prefix.
pub(crate) const APART_BYTES: usize = 16 << 10;

/// A message with its prefix in one piece, or in two where it is long; compressed if that is asked
/// for.
pub(crate) fn pieces(message: Bytes, encoding: Option<Encoding>) -> [Bytes; 2] {
    if encoding.is_some() || message.len() <= APART_BYTES {
        return [frame(&message, encoding), Bytes::new()];
    }
    // The caller has seen to it that no message is longer.
    let [a, b, c, d] = (message.len() as u32).to_be_bytes();
    [Bytes::copy_from_slice(&[0, a, b, c, d]), message]
}

/// A message with its prefix, compressed if that is asked for.
pub(crate) fn frame(message: &[u8], encoding: Option<Encoding>) -> Bytes {
    match encoding {
        Some(encoding) => whole(1, &encoding.compress(message)),
        None => whole(0, message),
    }
}

fn whole(flag: u8, message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    out.put_u8(flag);
    // The caller has seen to it that no message is longer.
    out.put_u32(message.len() as u32);
    out.put_slice(message);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::prefix::take_prefix;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_is_a_flag_and_a_length() {
        assert_eq!(&frame(&[8, 1], None)[..], [0, 0, 0, 0, 2, 8, 1]);
        assert_eq!(&frame(&[], None)[..], [0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_long_message_follows_its_prefix_without_a_copy() {
        for length in [0, APART_BYTES, APART_BYTES + 1] {
            let message = Bytes::from(vec![7; length]);
            let [head, rest] = pieces(message.clone(), None);
            assert_eq!([&head[..], &rest].concat(), frame(&message, None));
            assert_eq!(rest.is_empty(), length <= APART_BYTES);
        }
        let [head, rest] = pieces(vec![7; 1 << 20].into(), Some(Encoding::Gzip));
        assert!(head.len() < 10_000 && rest.is_empty());
    }

    #[test]
    fn a_message_has_the_room_of_the_one_before_from_its_first_piece_on() {
        let mut reader = Reader::new(1 << 20, None);
        let sent = frame(&[7; 100_000], None).repeat(6);
        let (mut messages, mut places) = (0, Vec::new());
        for piece in sent.chunks(16_384) {
            reader.push(Bytes::copy_from_slice(piece));
            if messages > 0 {
                places.push(reader.partial.as_ptr());
            }
            while let Some((message, _)) = reader.next().expect("whole") {
                assert!(message.iter().all(|byte| *byte == 7));
                messages += 1;
            }
        }
        assert_eq!(messages, 6);
        assert!(places.len() > 20 && places.iter().all(|place| *place == places[0]), "{places:?}");
    }

    #[test]
    fn while_a_call_waits_the_room_of_a_message_that_was_taken_is_not_kept() {
        let mut reader = Reader::new(1 << 20, None);
        let sent = [frame(&[7; 1_000_000], None), frame(&[8; 300_000], None)].concat();
        let (first, second) = sent.split_at(1_000_010);
        first.chunks(16_384).for_each(|piece| reader.push(Bytes::copy_from_slice(piece)));
        assert_eq!(reader.next().expect("whole").expect("a message").0.len(), 1_000_000);
        reader.shrink();
        assert!(reader.partial.capacity() < 1_000 && !reader.partial.try_reclaim(1_000));
        // That of a message under way is.
        second.chunks(16_384).for_each(|piece| {
            reader.push(Bytes::copy_from_slice(piece));
            let place = reader.partial.as_ptr();
            reader.shrink();
            assert_eq!(reader.partial.as_ptr(), place);
        });
        assert!(reader.next().expect("whole").expect("a message").0.iter().all(|byte| *byte == 8));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn messages_that_are_held_keep_no_room_of_larger_ones_before_them() {
        for length in [10, APART_BYTES + 10] {
            let mut reader = Reader::new(2 << 20, None);
            let [first, others] = [1 << 20, length].map(|length| frame(&vec![7; length], None));
            [first, others.clone(), others].concat().chunks(4 * APART_BYTES).for_each(|piece| {
                reader.push(Bytes::copy_from_slice(piece));
            });
            let mut next = || reader.next().expect("whole").expect("a message").0;
            assert_eq!(next().len(), 1 << 20);
            let second = next();
            let second = reader.apart(second);
            let (whole, messages) = reader.next_whole(APART_BYTES);
            assert_eq!(messages, 1);
            let whole = reader.apart(whole);
            for (held, bytes) in [(second, length), (whole, PREFIX_BYTES + length)] {
                assert_eq!(held.len(), bytes);
                assert!(held.try_into_mut().expect("alone").capacity() < 2 * bytes);
            }
        }
    }

    fn refused(bytes: &'static [u8]) -> Code {
        let mut reader = Reader::new(10, None);
        reader.push(Bytes::from_static(bytes));
        reader.next().expect_err("refused").code
    }

    #[test]
    fn a_wrong_prefix_is_refused_before_anything_is_kept_for_it() {
        assert_eq!(refused(&[0, 255, 255, 255, 255]), Code::ResourceExhausted);
        assert_eq!(refused(&[0, 0, 0, 0, 11]), Code::ResourceExhausted);
        assert_eq!(refused(&[1, 0, 0, 0, 1]), Code::Internal);
        assert_eq!(refused(&[2, 0, 0, 0, 1]), Code::Internal);
        let mut reader = Reader::new(10, None);
        reader.push(Bytes::from_static(&[0, 0, 0, 0, 10, 1]));
        assert_eq!(reader.next(), Ok(None));
        assert_eq!(reader.finish().expect_err("cut").code, Code::Internal);
    }

    proptest! {
        #[test]
        fn any_division_of_the_bytes_gives_the_same_messages(
            messages: Vec<Vec<u8>>,
            cuts in prop::collection::vec(1..40_usize, 0..60),
            is_compressed: bool,
        ) {
            let encoding = is_compressed.then_some(Encoding::Gzip);
            let sent: Vec<u8> =
                messages.iter().flat_map(|message| frame(message, encoding)).collect();
            let mut reader = Reader::new(1 << 20, encoding);
            let mut got = Vec::new();
            let mut rest = &sent[..];
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                reader.push(Bytes::copy_from_slice(piece));
                rest = after;
                while let Some((message, _)) = reader.next().expect("whole") {
                    got.push(message.to_vec());
                }
            }
            prop_assert_eq!(got, messages);
            prop_assert_eq!(reader.finish(), Ok(()));
        }

        #[test]
        fn whole_messages_are_the_same_together_as_one_by_one(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..30),
            cuts in prop::collection::vec(1..60_usize, 0..60),
            most in 0..200_usize,
        ) {
            let sent: Vec<u8> = messages.iter().flat_map(|message| frame(message, None)).collect();
            let mut reader = Reader::new(1 << 20, None);
            let (mut got, mut count) = (Vec::new(), 0);
            let mut rest = &sent[..];
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                reader.push(Bytes::copy_from_slice(piece));
                rest = after;
                while let Some((first, _)) = reader.next().expect("whole") {
                    got.push(first.to_vec());
                    let (mut whole, messages) = reader.next_whole(most);
                    count += 1 + messages;
                    prop_assert!(whole.len() < most + PREFIX_BYTES + 30);
                    while let Some(length) = take_prefix(&mut whole) {
                        got.push(whole.split_to(length).to_vec());
                    }
                }
            }
            prop_assert_eq!(count, messages.len() as u64);
            prop_assert_eq!(got, messages);
            prop_assert_eq!(reader.finish(), Ok(()));
        }

        #[test]
        fn any_bytes_are_messages_or_refused(bytes: Vec<u8>) {
            let mut reader = Reader::new(100, Some(Encoding::Zstd));
            reader.push(bytes.clone().into());
            while let Ok(Some(_)) = reader.next() {}
            let mut reader = Reader::new(100, None);
            reader.push(bytes.into());
            reader.next_whole(1_000);
        }
    }
}
