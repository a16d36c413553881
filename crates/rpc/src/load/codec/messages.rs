//! What is encoded and decoded, and the operations.

use load::{Kind, Operation};

use crate::codecs::Shape;

/// Messages that differ, of which each operation takes one, unless they are large.
const MESSAGES: u64 = 64;

/// About how many elements of all messages there may be.
const MOST_ELEMENTS: usize = 1 << 20;

/// The operations, by their index.
#[cfg(feature = "grpc")]
pub(super) mod operation {
    pub(in super::super) const ENCODE: usize = 0;
    pub(in super::super) const ENCODE_REUSED: usize = 1;
    pub(in super::super) const DECODE: usize = 2;
}

pub(super) static OPERATIONS: [Operation; 4] = [
    Operation::new("encode", Kind::Write, "Encodes a message into new memory."),
    Operation::new("encode_reused", Kind::Write, "Encodes a message into memory that is there."),
    Operation::new("decode", Kind::Read, "Decodes a message, which is dropped then."),
    Operation::new("decode_reused", Kind::Read, "Decodes a message over the one before it."),
];

/// The workload.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(super) struct Codecs {
    pub(super) shape: Shape,
    pub(super) size: usize,
    pub(super) seed: u64,
}

impl Codecs {
    /// How many messages differ.
    pub(super) fn messages(&self) -> u64 {
        MESSAGES.min((MOST_ELEMENTS / self.size.max(1)).max(1) as u64)
    }
}
