//! The trait of codecs, and why one fails.

use super::depth;
use super::sample::Sample;

/// Why a message can't be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecError(String);

impl CodecError {
    pub(crate) fn new(why: impl std::fmt::Display) -> Self {
        Self(why.to_string())
    }

    pub(crate) fn too_deep() -> Self {
        Self::new(depth::TOO_DEEP)
    }
}

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CodecError {}

/// What an older program reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Older {
    /// The one field.
    pub number: i64,
    /// The other.
    pub text: String,
    /// The message as it writes it again.
    pub bytes: Vec<u8>,
}

/// Turns messages into bytes and back.
pub trait Codec {
    /// The message in the form that this codec works on.
    type Message: Clone + Send + 'static;

    /// That form of a message.
    fn message(sample: Sample) -> Self::Message;

    /// The message of that form.
    fn sample(message: Self::Message) -> Sample;

    /// Appends a message.
    ///
    /// # Errors
    /// When it lies deeper than [`MOST`](super::depth::MOST).
    fn encode(message: &Self::Message, into: &mut Vec<u8>) -> Result<(), CodecError>;

    /// The message that the bytes are.
    ///
    /// # Errors
    /// When they are none.
    fn decode(bytes: &[u8]) -> Result<Self::Message, CodecError>;

    /// Replaces a message by that of the bytes. Codecs that can use its memory again do.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    fn decode_into(bytes: &[u8], message: &mut Self::Message) -> Result<(), CodecError> {
        *message = Self::decode(bytes)?;
        Ok(())
    }

    /// What an older program, which knows two fields, reads in the bytes, and writes again.
    ///
    /// # Errors
    /// When it can't read them.
    fn through_earlier(bytes: &[u8]) -> Result<Older, CodecError>;

    /// What an older program writes.
    ///
    /// # Errors
    /// When it can't.
    fn encode_earlier(number: i64, text: &str) -> Result<Vec<u8>, CodecError>;
}
