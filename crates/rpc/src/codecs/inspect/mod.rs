//! Any encoding byte by byte: where each piece lies, what it is, and what its bytes are for.
//!
//! Pieces follow each other without gaps. What can't be read ends with a fault at its place, behind
//! the pieces before it.

mod archive;
mod cbor;
mod cursor;
mod json;
mod julia;
mod msgpack;
mod piece;
mod postcard;
mod protobuf;

use prost_reflect::MessageDescriptor;

use cursor::Cursor;

pub use piece::{Cause, Fault, MOST_BYTES, Piece};

/// What is seen of an encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The pieces, in the order in which they lie.
    pub pieces: Vec<Piece>,
    /// Why there aren't more.
    pub fault: Option<Fault>,
}

impl Inspection {
    /// How many bytes each cause has, in the order of [`Cause::ALL`].
    pub fn causes(&self) -> [usize; 5] {
        Cause::ALL.map(|cause| {
            let these = self.pieces.iter().filter(|piece| piece.cause == cause);
            these.map(|piece| piece.length).sum()
        })
    }
}

/// An encoding that can be inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Protocol Buffers, with a type or without.
    Protobuf,
    /// rkyv: `loadline.rpc.v1.Sample` only.
    Rkyv,
    /// postcard: `loadline.rpc.v1.Sample` only.
    Postcard,
    /// MessagePack.
    MessagePack,
    /// CBOR.
    Cbor,
    /// JSON.
    Json,
    /// Julia's standard library Serialization: header, tags and plain values.
    Julia,
}

impl Encoding {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 7] = [
        ("protobuf", Self::Protobuf),
        ("rkyv", Self::Rkyv),
        ("postcard", Self::Postcard),
        ("msgpack", Self::MessagePack),
        ("cbor", Self::Cbor),
        ("json", Self::Json),
        ("julia", Self::Julia),
    ];

    /// What bytes look like: Julia's by their header, JSON by its bracket, else protobuf.
    pub fn guess(bytes: &[u8]) -> Self {
        match bytes {
            [0x37, b'J', b'L', ..] => Self::Julia,
            [b'{' | b'[', ..] => Self::Json,
            _ => Self::Protobuf,
        }
    }

    /// Reads bytes piece by piece; of protobuf with the names and types of a message, where it is
    /// known.
    pub fn inspect(self, bytes: &[u8], message: Option<&MessageDescriptor>) -> Inspection {
        if bytes.len() > MOST_BYTES {
            let why = format!("{} bytes are more than {MOST_BYTES}", bytes.len());
            let fault = Some(Fault { offset: MOST_BYTES, why });
            return Inspection { pieces: Vec::new(), fault };
        }
        let mut cursor = Cursor::new(bytes);
        let read = match self {
            Self::Protobuf => protobuf::read(&mut cursor, message),
            Self::Rkyv => archive::read(&mut cursor),
            Self::Postcard => postcard::read(&mut cursor),
            Self::MessagePack => msgpack::read(&mut cursor),
            Self::Cbor => cbor::read(&mut cursor),
            Self::Json => json::read(&mut cursor),
            Self::Julia => julia::read(&mut cursor),
        };
        Inspection { pieces: cursor.pieces, fault: read.err() }
    }
}

#[cfg(test)]
mod tests;
