//! One frame: 24 bytes of header, little-endian, and a payload.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | bytes of the payload |
//! | 4 | 1 | kind ([`Kind`]) |
//! | 5 | 1 | codec of the payload: 0 protobuf |
//! | 6 | 2 | flags: [`OPEN`], [`METADATA`], [`DETAILS`] |
//! | 8 | 8 | number of the call, chosen by the client |
//! | 16 | 4 | call: the method's row; failure, goodbye: code of the status; credit: bytes |
//! | 20 | 4 | call: how long the client waits, in µs; 0 is without end |
//!
//! Of a stream a side sends messages as long as it has credit, whatever their size: a message costs
//! its payload and [`HEADER_BYTES`], and the other side gives credit back as its function, or its
//! caller, takes messages. Each direction of a call begins with [`WINDOW_BYTES`] of it. Frames of a
//! call that has ended are passed over by the server.

use super::fault::Fault;

/// The bytes of a header.
pub const HEADER_BYTES: usize = 24;

/// Where each field of a header ends.
pub const FIELD_ENDS: [usize; 7] = [4, 5, 6, 8, 16, 20, 24];

/// The most bytes of the text of a failure or goodbye.
pub const MOST_TEXT_BYTES: usize = 2 << 10;

/// The most bytes of metadata that a frame carries; of the details of a failure, too.
pub const MOST_METADATA_BYTES: usize = 64 << 10;

/// What each direction of a call may send before the other side has taken any of it.
pub const WINDOW_BYTES: u32 = 128 << 10;

/// What a message costs of its sender's credit.
pub fn cost(message: &[u8]) -> i64 {
    (message.len() + HEADER_BYTES) as i64
}

/// The codec of protobuf's messages.
pub const PROTOBUF: u8 = 0;

/// Flag of a call: it has no message, which follow as frames of their own until the client ends
/// them.
pub const OPEN: u16 = 1;

/// Flag of a payload that begins with metadata, behind four bytes of their length.
pub const METADATA: u16 = 2;

/// Flag of a failure: four bytes of length and the details are before its text.
pub const DETAILS: u16 = 4;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call; its payload is the request, unless it is open. Of the client.
    Call = 1,
    /// The answer to a call, and its end; its payload is the message. Of the server.
    Answer = 2,
    /// A call that failed: code, and a text as payload, which says where it was carried out
    /// nevertheless, or that this is unknown. Of the server.
    Failure = 3,
    /// The last frame of a connection: code, and why, as payload. Calls that have
    /// neither answer nor failure by then were not carried out. Of the server.
    Goodbye = 4,
    /// A message of a stream.
    Message = 5,
    /// The last of a stream: the client sends no more messages; the server's call has ended well.
    End = 6,
    /// The client gives a call up; the server answers with a failure, if it has not ended.
    Cancel = 7,
    /// The other side may send this many bytes more of a stream.
    Credit = 8,
    /// Metadata before the first message of an answer. Of the server.
    Head = 9,
}

impl Kind {
    fn of(number: u8) -> Result<Self, Fault> {
        match number {
            1 => Ok(Self::Call),
            2 => Ok(Self::Answer),
            3 => Ok(Self::Failure),
            4 => Ok(Self::Goodbye),
            5 => Ok(Self::Message),
            6 => Ok(Self::End),
            7 => Ok(Self::Cancel),
            8 => Ok(Self::Credit),
            9 => Ok(Self::Head),
            other => Err(Fault::Kind(other)),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Answer => "answer",
            Self::Failure => "failure",
            Self::Goodbye => "goodbye",
            Self::Message => "message",
            Self::End => "end",
            Self::Cancel => "cancel",
            Self::Credit => "credit",
            Self::Head => "head",
        }
    }

    /// The flags that it may have.
    fn flags(self) -> u16 {
        match self {
            Self::Call => OPEN | METADATA,
            Self::Answer | Self::End => METADATA,
            Self::Failure => METADATA | DETAILS,
            Self::Goodbye | Self::Message | Self::Cancel | Self::Credit | Self::Head => 0,
        }
    }

    /// The most bytes of a payload that is no message, of frames with these flags.
    pub(super) fn most_bytes(self, flags: u16) -> Option<usize> {
        let extra = |flag: u16| if flags & flag == 0 { 0 } else { 4 + MOST_METADATA_BYTES };
        match self {
            Self::Call if flags & OPEN == 0 => None,
            Self::Answer | Self::Message => None,
            Self::Call | Self::End => Some(extra(METADATA)),
            Self::Failure => Some(MOST_TEXT_BYTES + extra(METADATA) + extra(DETAILS)),
            Self::Goodbye => Some(MOST_TEXT_BYTES),
            Self::Head => Some(MOST_METADATA_BYTES),
            Self::Cancel | Self::Credit => Some(0),
        }
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the payload.
    pub length: u32,
    /// What it is.
    pub kind: Kind,
    /// How the payload is encoded.
    pub codec: u8,
    /// What else it is.
    pub flags: u16,
    /// The number of the call; 0 for a goodbye.
    pub id: u64,
    /// The method of a call, the code of a status, or the bytes of a credit.
    pub method: u32,
    /// How long the client waits, in microseconds; 0 is without end.
    pub timeout_us: u32,
}

impl Header {
    /// The header of a frame of a call, without payload, flags and all the rest.
    pub fn of(kind: Kind, id: u64) -> Self {
        Self { length: 0, kind, codec: PROTOBUF, flags: 0, id, method: 0, timeout_us: 0 }
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Its bytes, as three little-endian words: they are written with three stores.
    #[inline]
    pub(super) fn words(&self) -> [u64; 3] {
        let kinds = u64::from(self.kind as u8) << 32 | u64::from(self.codec) << 40;
        let first = u64::from(self.length) | kinds | u64::from(self.flags) << 48;
        [first, self.id, u64::from(self.method) | u64::from(self.timeout_us) << 32]
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words()) {
            *to = word.to_le_bytes();
        }
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// When its kind or flags are unknown, or a payload that is no message is too long.
    #[inline(always)]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Fault> {
        let [a, b, c, d, kind, codec, e, f, rest @ ..] = *bytes;
        let [i0, i1, i2, i3, i4, i5, i6, i7, m0, m1, m2, m3, t0, t1, t2, t3] = rest;
        let header = Self {
            length: u32::from_le_bytes([a, b, c, d]),
            kind: Kind::of(kind)?,
            codec,
            flags: u16::from_le_bytes([e, f]),
            id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            method: u32::from_le_bytes([m0, m1, m2, m3]),
            timeout_us: u32::from_le_bytes([t0, t1, t2, t3]),
        };
        if header.flags & !header.kind.flags() != 0 {
            return Err(Fault::Flags(header.flags));
        }
        let most = header.kind.most_bytes(header.flags);
        if most.is_some_and(|most| header.length as usize > most) {
            return Err(Fault::Length(header.kind.name(), header.length));
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_call_are_these() {
        let header = Header {
            length: 2,
            method: 3,
            timeout_us: 1_000_000,
            flags: METADATA,
            ..Header::of(Kind::Call, 0x0102)
        };
        let bytes = [2, 0, 0, 0, 1, 0, 2, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 64, 66, 15, 0];
        assert_eq!(header.encode(), bytes);
        assert_eq!(Header::decode(&bytes), Ok(header));
    }

    #[test]
    fn what_is_not_known_is_a_fault() {
        let decode = |kind: u8, flags: u16, length: u32| {
            let mut bytes = Header::of(Kind::Call, 1).encode();
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            bytes[4] = kind;
            bytes[6..8].copy_from_slice(&flags.to_le_bytes());
            Header::decode(&bytes).err()
        };
        assert_eq!(decode(0, 0, 0), Some(Fault::Kind(0)));
        assert_eq!(decode(10, 0, 0), Some(Fault::Kind(10)));
        assert_eq!(decode(1, 256, 0), Some(Fault::Flags(256)));
        assert_eq!(decode(2, OPEN, 0), Some(Fault::Flags(OPEN)));
        assert_eq!(decode(1, 0, u32::MAX), None, "the limit of messages is the decoder's");
        assert_eq!(decode(1, OPEN, 1), Some(Fault::Length("call", 1)));
        assert_eq!(decode(4, 0, 9 << 8), Some(Fault::Length("goodbye", 9 << 8)));
        assert_eq!(decode(3, DETAILS, 9 << 8), None);
        assert_eq!(decode(3, DETAILS, 1 << 20), Some(Fault::Length("failure", 1 << 20)));
        assert_eq!(decode(7, 0, 1), Some(Fault::Length("cancel", 1)));
        assert_eq!(decode(9, 0, 1 << 20), Some(Fault::Length("head", 1 << 20)));
    }
}
