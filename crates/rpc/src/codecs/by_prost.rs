//! Protocol Buffers by prost, which protobuf is compared with: as it is, with its own limit of
//! depth when it reads and none when it writes.

use prost::Message as _;

use super::codec::{Codec, CodecError, Older};
use super::sample::{self, Sample, convert};
use crate::protocol::table;
use crate::protocol::table::sample::One;

/// Protocol Buffers by prost.
#[derive(Debug)]
pub(crate) struct Prost;

impl From<Sample> for table::Sample {
    fn from(from: Sample) -> Self {
        convert!(from => Self {
            number text real flag reals signed small wide;
            blob: from.blob.into(),
            inner: from.inner.map(|inner| Box::new((*inner).into())),
            samples: from.samples.into_iter().map(Self::from).collect(),
            counts: from.counts.into_iter().collect(),
            one: from.one.map(|one| match one {
                sample::One::Integer(value) => One::Integer(value),
                sample::One::Word(word) => One::Word(word),
                sample::One::Boxed(number) => One::Boxed(table::Number { value: number.value }),
            }),
            kind: from.kind as i32,
        })
    }
}

impl From<table::Sample> for Sample {
    fn from(from: table::Sample) -> Self {
        convert!(from => Self {
            number text real flag reals signed small wide;
            blob: from.blob.into(),
            inner: from.inner.map(|inner| Box::new((*inner).into())),
            samples: from.samples.into_iter().map(Self::from).collect(),
            counts: from.counts.into_iter().collect(),
            one: from.one.map(|one| match one {
                One::Integer(value) => sample::One::Integer(value),
                One::Word(word) => sample::One::Word(word),
                One::Boxed(number) => sample::One::Boxed(sample::Number { value: number.value }),
            }),
            kind: match from.kind {
                1 => sample::Kind::Plain,
                2 => sample::Kind::Special,
                _ => sample::Kind::None,
            },
        })
    }
}

impl Codec for Prost {
    type Message = table::Sample;

    fn message(sample: Sample) -> Self::Message {
        sample.into()
    }

    fn sample(message: Self::Message) -> Sample {
        message.into()
    }

    #[inline]
    fn encode(message: &Self::Message, into: &mut Vec<u8>) -> Result<(), CodecError> {
        message.encode(into).map_err(CodecError::new)
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Self::Message, CodecError> {
        table::Sample::decode(bytes).map_err(CodecError::new)
    }

    #[inline]
    fn decode_into(bytes: &[u8], message: &mut Self::Message) -> Result<(), CodecError> {
        message.clear();
        message.merge(bytes).map_err(CodecError::new)
    }

    fn encode_earlier(number: i64, text: &str) -> Result<Vec<u8>, CodecError> {
        Ok(table::Earlier { number, text: text.to_owned() }.encode_to_vec())
    }

    fn through_earlier(bytes: &[u8]) -> Result<Older, CodecError> {
        let earlier = table::Earlier::decode(bytes).map_err(CodecError::new)?;
        let bytes = earlier.encode_to_vec();
        Ok(Older { number: earlier.number, text: earlier.text, bytes })
    }
}
