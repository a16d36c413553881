//! Protocol Buffers by buffa: it keeps fields that it doesn't know, writes each size once, and
//! copies arrays of a fixed width as a whole. crates/rpc/README.md has what was measured.

use buffa::{EnumValue, Message as _};

use super::codec::{Codec, CodecError, Older};
use super::depth::{Nested, is_within_most};
use super::sample::{self, Sample, convert};

/// The messages as buffa's generator makes them.
// What is generated has its own style.
#[allow(dead_code, unreachable_pub, unused_imports, clippy::all)]
#[allow(clippy::too_many_lines)]
pub(crate) mod generated {
    include!(concat!(env!("OUT_DIR"), "/measured.rs"));
}

use generated::__buffa::oneof::sample::One;

/// Protocol Buffers.
#[derive(Debug)]
pub(crate) struct Protobuf;

/// What holds itself is checked before it is written: buffa checks when it reads.
impl Nested for generated::Sample {
    #[inline]
    fn within(&self) -> (Option<&Self>, &[Self]) {
        (self.inner.as_option(), &self.samples)
    }
}

impl From<sample::One> for One {
    fn from(one: sample::One) -> Self {
        match one {
            sample::One::Integer(value) => Self::Integer(value),
            sample::One::Word(word) => Self::Word(word),
            sample::One::Boxed(sample::Number { value }) => {
                generated::Number { value, ..Default::default() }.into()
            }
        }
    }
}

impl From<One> for sample::One {
    fn from(one: One) -> Self {
        match one {
            One::Integer(value) => Self::Integer(value),
            One::Word(word) => Self::Word(word),
            One::Boxed(number) => Self::Boxed(sample::Number { value: number.value }),
        }
    }
}

impl From<Sample> for generated::Sample {
    fn from(from: Sample) -> Self {
        convert!(from => Self {
            number text real flag blob reals signed small wide;
            inner: from.inner.map(|inner| Self::from(*inner)).into(),
            samples: from.samples.into_iter().map(Self::from).collect(),
            counts: from.counts.into_iter().collect(),
            one: from.one.map(One::from),
            kind: EnumValue::from(from.kind as i32),
        } ..Self::default())
    }
}

impl From<generated::Sample> for Sample {
    fn from(from: generated::Sample) -> Self {
        convert!(from => Self {
            number text real flag blob reals signed small wide;
            inner: from.inner.into_option().map(|inner| Box::new(inner.into())),
            samples: from.samples.into_iter().map(Self::from).collect(),
            counts: from.counts.into_iter().collect(),
            one: from.one.map(sample::One::from),
            kind: match from.kind.to_i32() {
                1 => sample::Kind::Plain,
                2 => sample::Kind::Special,
                _ => sample::Kind::None,
            },
        })
    }
}

fn read(bytes: &[u8], message: &mut impl buffa::Message) -> Result<(), CodecError> {
    message.merge_from_slice(bytes).map_err(|why| match why {
        buffa::DecodeError::RecursionLimitExceeded => CodecError::too_deep(),
        why => CodecError::new(why),
    })
}

impl Codec for Protobuf {
    type Message = generated::Sample;

    fn message(sample: Sample) -> Self::Message {
        sample.into()
    }

    fn sample(message: Self::Message) -> Sample {
        message.into()
    }

    #[inline]
    fn encode(message: &Self::Message, into: &mut Vec<u8>) -> Result<(), CodecError> {
        if !is_within_most(message) {
            return Err(CodecError::too_deep());
        }
        message.encode(into);
        Ok(())
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Self::Message, CodecError> {
        let mut message = generated::Sample::default();
        read(bytes, &mut message)?;
        Ok(message)
    }

    #[inline]
    fn decode_into(bytes: &[u8], message: &mut Self::Message) -> Result<(), CodecError> {
        message.clear();
        read(bytes, message)
    }

    fn encode_earlier(number: i64, text: &str) -> Result<Vec<u8>, CodecError> {
        let text = text.to_owned();
        Ok(generated::Earlier { number, text, ..Default::default() }.encode_to_vec())
    }

    fn through_earlier(bytes: &[u8]) -> Result<Older, CodecError> {
        let mut earlier = generated::Earlier::default();
        read(bytes, &mut earlier)?;
        let bytes = earlier.encode_to_vec();
        Ok(Older { number: earlier.number, text: earlier.text, bytes })
    }
}

/// The message of the bytes as it is written again, with fields that aren't known.
///
/// # Errors
/// When they are no message.
pub fn protobuf_again(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
    let (message, mut again) = (Protobuf::decode(bytes)?, Vec::new());
    Protobuf::encode(&message, &mut again)?;
    Ok(again)
}
