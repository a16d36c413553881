//! The prefix of a message in the body of a stream: a flag, and the length in four bytes.

use bytes::{Buf as _, Bytes};

/// The prefix of each message.
pub(crate) const PREFIX_BYTES: usize = 5;

/// Takes the prefix of the next message of `whole`, each of which is whole and not compressed; its
/// length.
pub(crate) fn take_prefix(whole: &mut Bytes) -> Option<usize> {
    let [_, length @ ..] = whole.first_chunk::<PREFIX_BYTES>()?;
    let length = u32::from_be_bytes(*length) as usize;
    whole.advance(PREFIX_BYTES);
    Some(length)
}
