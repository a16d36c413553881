//! One frame: 24 bytes of header, little-endian, and a payload.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | bytes of the payload |
//! | 4 | 1 | kind: 1 call, 2 answer, 3 failure, 4 goodbye |
//! | 5 | 1 | codec of the payload: 0 protobuf |
//! | 6 | 2 | flags: none is known yet |
//! | 8 | 8 | number of the call, chosen by the client |
//! | 16 | 4 | call: method, its row in the server's table; failure, goodbye: code of the status |
//! | 20 | 4 | call: how long the client waits, in µs; 0 is without end |

use super::fault::Fault;

/// The bytes of a header.
pub const HEADER_BYTES: usize = 24;

/// Where each field of a header ends.
pub const FIELD_ENDS: [usize; 7] = [4, 5, 6, 8, 16, 20, 24];

/// The most bytes of the text of a failure or goodbye.
pub const MOST_TEXT_BYTES: usize = 2 << 10;

/// The codec of protobuf's messages.
pub const PROTOBUF: u8 = 0;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call; its payload is the request. Of the client.
    Call = 1,
    /// The answer to a call; its payload is the message. Of the server.
    Answer = 2,
    /// A call that failed: code, and a text as payload, which says where it was carried out
    /// nevertheless, or that this is unknown. Of the server.
    Failure = 3,
    /// The last frame of a connection: code, and why, as payload. Calls that have
    /// neither answer nor failure by then were not carried out. Of the server.
    Goodbye = 4,
}

impl Kind {
    fn of(number: u8) -> Result<Self, Fault> {
        match number {
            1 => Ok(Self::Call),
            2 => Ok(Self::Answer),
            3 => Ok(Self::Failure),
            4 => Ok(Self::Goodbye),
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
    /// The number of the call; 0 for a goodbye.
    pub id: u64,
    /// The method of a call, or the code of a status.
    pub method: u32,
    /// How long the client waits, in microseconds; 0 is without end.
    pub timeout_us: u32,
}

impl Header {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.kind as u8;
        bytes[5] = self.codec;
        bytes[8..16].copy_from_slice(&self.id.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.method.to_le_bytes());
        bytes[20..].copy_from_slice(&self.timeout_us.to_le_bytes());
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// When its kind or flags are unknown, or a text is too long.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Fault> {
        let [a, b, c, d, kind, codec, e, f, rest @ ..] = *bytes;
        let [i0, i1, i2, i3, i4, i5, i6, i7, m0, m1, m2, m3, t0, t1, t2, t3] = rest;
        let header = Self {
            length: u32::from_le_bytes([a, b, c, d]),
            kind: Kind::of(kind)?,
            codec,
            id: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            method: u32::from_le_bytes([m0, m1, m2, m3]),
            timeout_us: u32::from_le_bytes([t0, t1, t2, t3]),
        };
        let flags = u16::from_le_bytes([e, f]);
        let is_text = matches!(header.kind, Kind::Failure | Kind::Goodbye);
        if flags != 0 {
            return Err(Fault::Flags(flags));
        }
        if is_text && header.length as usize > MOST_TEXT_BYTES {
            return Err(Fault::Text(header.length));
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
            kind: Kind::Call,
            codec: PROTOBUF,
            id: 0x0102,
            method: 3,
            timeout_us: 1_000_000,
        };
        let bytes = [2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 64, 66, 15, 0];
        assert_eq!(header.encode(), bytes);
        assert_eq!(Header::decode(&bytes), Ok(header));
    }

    #[test]
    fn what_is_not_known_is_a_fault() {
        let mut bytes = [0; HEADER_BYTES];
        assert_eq!(Header::decode(&bytes), Err(Fault::Kind(0)));
        bytes[4] = 1;
        bytes[7] = 1;
        assert_eq!(Header::decode(&bytes), Err(Fault::Flags(256)));
        bytes[7] = 0;
        bytes[4] = 4;
        bytes[1] = 9;
        assert_eq!(Header::decode(&bytes), Err(Fault::Text(9 << 8)));
    }
}
