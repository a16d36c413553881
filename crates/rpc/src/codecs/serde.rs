//! Codecs over serde: postcard, MessagePack, CBOR and JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::{Codec, CodecError, Older};
use super::depth::is_within;
use super::sample::{Earlier, Named, Sample};

/// How deep MessagePack and CBOR may nest: more than messages may, which lie at most three lists
/// and tables deep each.
const LISTS: usize = 4 * super::depth::MOST;

/// How deep messages of JSON may lie, a list counted, too: serde_json reads 127 brackets within
/// each other, of which the outermost message has one and the innermost up to two more.
const BRACKETS: usize = 124;

/// What each codec is but for the message.
trait Format {
    fn write(value: &impl Serialize, into: &mut Vec<u8>) -> Result<(), CodecError>;
    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError>;
}

/// A codec of a format, for a form of the message.
macro_rules! codec {
    ($doc:literal, $name:ident, $form:ident, $may_encode:expr) => {
        #[doc = $doc]
        #[derive(Debug)]
        pub(crate) struct $name;

        impl Codec for $name {
            type Message = $form;

            fn message(sample: Sample) -> $form {
                sample.into()
            }

            fn sample(message: $form) -> Sample {
                message.into()
            }

            #[inline]
            fn encode(message: &$form, into: &mut Vec<u8>) -> Result<(), CodecError> {
                let may_encode: fn(&$form) -> bool = $may_encode;
                if !may_encode(message) {
                    return Err(CodecError::too_deep());
                }
                Self::write(message, into)
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<$form, CodecError> {
                Self::read(bytes)
            }

            fn encode_earlier(number: i64, text: &str) -> Result<Vec<u8>, CodecError> {
                let mut bytes = Vec::new();
                Self::write(&Earlier { number, text: text.to_owned() }, &mut bytes)?;
                Ok(bytes)
            }

            fn through_earlier(bytes: &[u8]) -> Result<Older, CodecError> {
                let (earlier, mut bytes) = (Self::read::<Earlier>(bytes)?, Vec::new());
                Self::write(&earlier, &mut bytes)?;
                Ok(Older { number: earlier.number, text: earlier.text, bytes })
            }
        }
    };
}

codec!("postcard: fields in turn.", Postcard, Sample, |_| true);
codec!("MessagePack: fields in turn, each tagged.", MessagePack, Sample, |_| true);
codec!("CBOR: fields by name.", Cbor, Named, |_| true);
codec!("JSON: fields by name.", Json, Named, |named| is_within(named, BRACKETS, 2));

impl Format for Postcard {
    #[inline]
    fn write(value: &impl Serialize, into: &mut Vec<u8>) -> Result<(), CodecError> {
        // It takes what it writes to by value, and loses it when it fails.
        let all = postcard::to_extend(value, std::mem::take(into)).map_err(CodecError::new)?;
        *into = all;
        Ok(())
    }

    #[inline]
    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        let (value, rest) = postcard::take_from_bytes(bytes).map_err(CodecError::new)?;
        all_of(value, rest)
    }
}

impl Format for MessagePack {
    #[inline]
    fn write(value: &impl Serialize, into: &mut Vec<u8>) -> Result<(), CodecError> {
        rmp_serde::encode::write(into, value).map_err(CodecError::new)
    }

    #[inline]
    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        let mut rest = rmp_serde::Deserializer::new(bytes);
        rest.set_max_depth(LISTS);
        let value = T::deserialize(&mut rest).map_err(CodecError::new)?;
        all_of(value, rest.into_inner())
    }
}

impl Format for Cbor {
    #[inline]
    fn write(value: &impl Serialize, into: &mut Vec<u8>) -> Result<(), CodecError> {
        ciborium::into_writer(value, into).map_err(CodecError::new)
    }

    #[inline]
    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        let mut rest = bytes;
        let value = ciborium::de::from_reader_with_recursion_limit(&mut rest, LISTS);
        let value = value.map_err(CodecError::new)?;
        all_of(value, rest)
    }
}

impl Format for Json {
    #[inline]
    fn write(value: &impl Serialize, into: &mut Vec<u8>) -> Result<(), CodecError> {
        serde_json::to_writer(into, value).map_err(CodecError::new)
    }

    #[inline]
    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(bytes).map_err(CodecError::new)
    }
}

fn all_of<T>(value: T, rest: &[u8]) -> Result<T, CodecError> {
    match rest.len() {
        0 => Ok(value),
        1 => Err(CodecError::new("1 byte is left over")),
        rest => Err(CodecError::new(format!("{rest} bytes are left over"))),
    }
}
