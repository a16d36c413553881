//! Frames from bytes, in whichever pieces they come.

use bytes::{Buf as _, Bytes, BytesMut};

use super::fault::Fault;
use super::frame::{HEADER_BYTES, Header, METADATA, MOST_METADATA_BYTES};

/// What an idle connection may keep of its buffer.
const KEPT_BYTES: usize = 16 << 10;

/// The most that is asked for in one read.
const MOST_ROOM_BYTES: usize = 256 << 10;

/// What the bytes hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A frame.
    Frame(Header, Bytes),
    /// A message over the limit, which is passed over.
    TooLarge(Header),
}

/// Takes frames from what has come.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    max_payload: usize,
    /// The header of the frame that is under way.
    header: Option<Header>,
    /// What is still to be passed over.
    skip: usize,
}

impl Decoder {
    /// For messages of at most this many bytes. Other frames have limits of their own.
    pub fn new(max_payload: usize) -> Self {
        Self { buffer: BytesMut::new(), max_payload, header: None, skip: 0 }
    }

    /// Where the next bytes are appended, with room for what the frame under way still lacks, up to
    /// 256 KiB.
    pub fn space(&mut self) -> &mut BytesMut {
        let missing = self.header.map_or(0, |header| header.length as usize);
        let missing = missing.saturating_sub(self.buffer.len()).max(self.skip);
        self.shrink();
        self.buffer.reserve(missing.clamp(KEPT_BYTES, MOST_ROOM_BYTES));
        &mut self.buffer
    }

    /// Gives up the room of a large frame that was taken.
    fn shrink(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > MOST_ROOM_BYTES {
            self.buffer = BytesMut::new();
        }
    }

    /// Appends bytes that have come. The room for them is that of those before.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        self.shrink();
        self.buffer.extend_from_slice(bytes);
    }

    /// The bytes that have come and are not taken yet.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// How many bytes of a frame that isn't whole are kept.
    pub fn kept_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The next frame, as far as it has come.
    ///
    /// # Errors
    /// When the bytes are none; then the connection has to end.
    // Called from two loops. Out of line, the moves of what it returns take as long as its work.
    #[inline(always)]
    pub fn next_item(&mut self) -> Result<Option<Item>, Fault> {
        if self.skip > 0 {
            let skipped = self.skip.min(self.buffer.len());
            self.buffer.advance(skipped);
            self.skip -= skipped;
            if self.skip > 0 {
                return Ok(None);
            }
        }
        let header = match self.header {
            Some(header) => header,
            None => {
                let Some(bytes) = self.buffer.first_chunk::<HEADER_BYTES>() else {
                    return Ok(None);
                };
                let header = Header::decode(bytes)?;
                self.buffer.advance(HEADER_BYTES);
                header
            }
        };
        let length = header.length as usize;
        // Metadata come beside the message.
        let more = if header.has(METADATA) { 4 + MOST_METADATA_BYTES } else { 0 };
        let is_message = header.kind.most_bytes(header.flags).is_none();
        if is_message && length > self.max_payload.saturating_add(more) {
            self.skip = length;
            return Ok(Some(Item::TooLarge(header)));
        }
        if self.buffer.len() < length {
            self.header = Some(header);
            return Ok(None);
        }
        self.header = None;
        if length == 0 {
            return Ok(Some(Item::Frame(header, Bytes::new())));
        }
        let payload = self.buffer.split_to(length).freeze();
        if length > MOST_ROOM_BYTES {
            // What is behind a large frame would keep the room of it.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        Ok(Some(Item::Frame(header, payload)))
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// When it did so within a frame.
    pub fn finish(&self) -> Result<(), Fault> {
        let header = self.header.map_or(0, |_| HEADER_BYTES);
        match self.buffer.len() + header {
            0 if self.skip == 0 => Ok(()),
            bytes => Err(Fault::Torn(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Outbox;
    use super::super::frame::{Kind, MOST_TEXT_BYTES};
    use super::*;

    fn frames() -> impl Strategy<Value = Vec<(Header, Vec<u8>)>> {
        let kinds =
            [Kind::Call, Kind::Answer, Kind::Failure, Kind::Goodbye, Kind::Message, Kind::Head];
        let one = (
            proptest::sample::select(kinds.to_vec()),
            any::<(u8, u64, u32, u32)>(),
            proptest::collection::vec(any::<u8>(), 0..MOST_TEXT_BYTES),
        );
        let one = one.prop_map(|(kind, (codec, id, method, timeout_us), payload)| {
            let length = payload.len() as u32;
            (Header { length, codec, method, timeout_us, ..Header::of(kind, id) }, payload)
        });
        proptest::collection::vec(one, 0..8)
    }

    /// All items of these bytes, which come in pieces of this size.
    fn decoded(bytes: &[u8], size: usize, most: usize) -> Result<(Vec<Item>, Decoder), Fault> {
        let (mut decoder, mut items) = (Decoder::new(most), Vec::new());
        for piece in bytes.chunks(size) {
            decoder.space().extend_from_slice(piece);
            while let Some(item) = decoder.next_item()? {
                items.push(item);
            }
        }
        Ok((items, decoder))
    }

    proptest! {
        #[test]
        fn frames_come_back_in_any_pieces_and_large_ones_are_passed_over(
            frames in frames(), size in 1..5_000_usize, most in 0..MOST_TEXT_BYTES
        ) {
            let mut out = Outbox::default();
            frames.iter().for_each(|(header, payload)| out.push(header, &payload.clone().into()));
            let (items, decoder) = decoded(&out.to_vec(), size, most).expect("frames");
            let right: Vec<_> = frames.into_iter().map(|(header, payload)| {
                let is_message = matches!(header.kind, Kind::Call | Kind::Answer | Kind::Message);
                match is_message && payload.len() > most {
                    true => Item::TooLarge(header),
                    false => Item::Frame(header, payload.into()),
                }
            }).collect();
            prop_assert_eq!(items, right);
            prop_assert_eq!(decoder.finish(), Ok(()));
        }

        #[test]
        fn any_bytes_end_in_frames_or_a_fault_the_same_in_all_pieces(
            bytes in proptest::collection::vec(0..6_u8, 0..300), size in 1..300_usize
        ) {
            let whole = decoded(&bytes, bytes.len().max(1), 100).map(|(items, _)| items);
            let pieces = decoded(&bytes, size, 100).map(|(items, _)| items);
            prop_assert_eq!(whole, pieces);
        }
    }

    #[test]
    fn an_end_within_a_frame_is_torn() {
        let mut out = Outbox::default();
        let header = Header { length: 9, ..Header::of(Kind::Call, 1) };
        out.push(&header, &Bytes::from_static(&[7; 9]));
        let bytes = out.to_vec();
        for length in 1..bytes.len() {
            let (items, decoder) = decoded(&bytes[..length], 5, 100).expect("no fault");
            assert!(items.is_empty());
            assert_eq!(decoder.finish(), Err(Fault::Torn(length)));
            let (_, decoder) = decoded(&bytes[..length], 5, 8).expect("no fault");
            assert!(decoder.finish().is_err());
        }
    }

    #[test]
    fn a_length_of_4_gib_takes_no_memory() {
        let header = Header { length: u32::MAX, ..Header::of(Kind::Call, 1) };
        let (items, mut decoder) = decoded(&header.encode(), 24, 100).expect("a frame");
        assert_eq!(items, [Item::TooLarge(header)]);
        assert!(decoder.space().capacity() <= 2 * MOST_ROOM_BYTES);
    }
}
