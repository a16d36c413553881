//! The frame before what a datagram carries: which request it is about, and which piece it is.

/// The length of a frame.
pub const FRAME_BYTES: usize = 8;

/// A datagram is at most this long, with its frame; a request's may be longer.
pub const MAX_DATAGRAM_BYTES: usize = 1400;

/// What a datagram carries beside its frame is at most this long.
pub const MAX_PIECE_BYTES: usize = MAX_DATAGRAM_BYTES - FRAME_BYTES;

/// The frame. Its numbers are big-endian; its last two bytes are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The client's number of the request, which its answer carries too.
    pub request: u16,
    /// Which piece this is, counted from 0.
    pub sequence: u16,
    /// How many pieces there are.
    pub total: u16,
}

impl Frame {
    /// The frame of a datagram, and what follows it; `None` when it is too short.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let (frame, rest) = datagram.split_first_chunk::<FRAME_BYTES>()?;
        let number = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        Some((Self { request: number(0), sequence: number(2), total: number(4) }, rest))
    }

    /// Appends the frame.
    #[inline]
    pub fn put(&self, into: &mut Vec<u8>) {
        for number in [self.request, self.sequence, self.total, 0] {
            into.extend_from_slice(&number.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let frame = Frame { request: 0x0102, sequence: 3, total: 0x0400 };
        let mut bytes = Vec::new();
        frame.put(&mut bytes);
        assert_eq!(bytes, [1, 2, 0, 3, 4, 0, 0, 0]);
        bytes.extend(b"get");
        assert_eq!(Frame::read(&bytes), Some((frame, &b"get"[..])));
        assert_eq!(Frame::read(&bytes[..7]), None);
    }
}
