//! Messages as bytes, and back.

use bytes::{Buf, Bytes};
use prost::Message;

use super::status::{Code, Status};

/// A message of no fields: what has come is looked through, and all fields are left out.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Anything {}

/// A request as a message.
pub(crate) fn decode<M: Message + Default>(bytes: impl Buf) -> Result<M, Status> {
    M::decode(bytes).map_err(|why| {
        Status::new(Code::Internal, format!("the request can't be read as its message: {why}"))
    })
}

/// An answer as bytes.
pub(crate) fn encode(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}
