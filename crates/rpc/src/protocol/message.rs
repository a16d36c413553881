//! Messages as bytes, and back.

use bytes::{Buf, Bytes};
use prost::Message;

use super::status::{Code, Status};

/// A message of no fields: what has come is looked through, and all fields are left out.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Anything {}

/// A request as a message. Its fields of bytes are parts of `bytes`, and not copied.
pub(crate) fn decode<M: Message + Default>(bytes: &Bytes) -> Result<M, Status> {
    decode_part(bytes, bytes)
}

/// A part of `whole` as a message.
pub(crate) fn decode_part<M: Message + Default>(whole: &Bytes, part: &[u8]) -> Result<M, Status> {
    M::decode(Part { whole, rest: part }).map_err(|why| {
        Status::new(Code::Internal, format!("the request can't be read as its message: {why}"))
    })
}

/// What is left of a message. As a slice it is read without the bookkeeping of `Bytes`, which takes
/// as long as decoding a small message does.
struct Part<'a> {
    whole: &'a Bytes,
    rest: &'a [u8],
}

impl Buf for Part<'_> {
    #[inline]
    fn remaining(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn chunk(&self) -> &[u8] {
        self.rest
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    #[inline]
    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        self.whole.slice_ref(taken)
    }
}

/// An answer as bytes.
pub(crate) fn encode(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}
