//! rkyv: the message's memory with relative addresses, which is checked and then copied out.

use std::num::NonZeroUsize;

use rkyv::api::high::HighSerializer;
use rkyv::rancor::{Error, Strategy};
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::validation::Validator;
use rkyv::validation::archive::ArchiveValidator;
use rkyv::validation::shared::SharedValidator;

use super::codec::{Codec, CodecError, Older};
use super::depth::{self, is_within_most};
use super::sample::{ArchivedEarlier, ArchivedSample, Earlier, Sample};

/// rkyv.
#[derive(Debug)]
pub(crate) struct Rkyv;

/// Where an archive may begin in memory: at a multiple of this.
const ALIGNED: usize = 16;

/// How deep memory may refer to memory: texts and maps lie deeper than the message that has them.
const REFERENCES: NonZeroUsize = NonZeroUsize::new(depth::MOST + 16).expect("more than none");

fn write(
    value: &impl for<'a> rkyv::Serialize<HighSerializer<Vec<u8>, ArenaHandle<'a>, Error>>,
    into: &mut Vec<u8>,
) -> Result<(), CodecError> {
    // Addresses within are relative, but to a place that is aligned.
    if into.len().is_multiple_of(ALIGNED) {
        let all = rkyv::api::high::to_bytes_in(value, std::mem::take(into));
        *into = all.map_err(CodecError::new)?;
        return Ok(());
    }
    let archive = rkyv::api::high::to_bytes_in(value, Vec::new()).map_err(CodecError::new)?;
    into.extend_from_slice(&archive);
    Ok(())
}

type Checks<'a> = Strategy<Validator<ArchiveValidator<'a>, SharedValidator>, Error>;

/// The archived value, checked.
pub(super) fn check<'b, A>(bytes: &'b [u8]) -> Result<&'b A, CodecError>
where
    A: rkyv::Portable + for<'a> rkyv::bytecheck::CheckBytes<Checks<'a>>,
{
    let archive = ArchiveValidator::with_max_depth(bytes, Some(REFERENCES));
    let mut checks = Validator::new(archive, SharedValidator::new());
    rkyv::api::access_with_context::<A, _, Error>(bytes, &mut checks).map_err(CodecError::new)
}

/// Has the bytes lie where they may, which costs a copy where they don't.
pub(super) fn aligned<T>(bytes: &[u8], with: impl FnOnce(&[u8]) -> T) -> T {
    if bytes.as_ptr().align_offset(ALIGNED) == 0 {
        return with(bytes);
    }
    let mut copy = AlignedVec::<ALIGNED>::with_capacity(bytes.len());
    copy.extend_from_slice(bytes);
    with(&copy)
}

impl Codec for Rkyv {
    type Message = Sample;

    fn message(sample: Sample) -> Sample {
        sample
    }

    fn sample(message: Sample) -> Sample {
        message
    }

    #[inline]
    fn encode(message: &Sample, into: &mut Vec<u8>) -> Result<(), CodecError> {
        if !is_within_most(message) {
            return Err(CodecError::too_deep());
        }
        write(message, into)
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Sample, CodecError> {
        let sample = aligned(bytes, |bytes| {
            let archived = check::<ArchivedSample>(bytes)?;
            rkyv::deserialize::<Sample, Error>(archived).map_err(CodecError::new)
        })?;
        match is_within_most(&sample) {
            true => Ok(sample),
            false => Err(CodecError::too_deep()),
        }
    }

    fn encode_earlier(number: i64, text: &str) -> Result<Vec<u8>, CodecError> {
        let mut bytes = Vec::new();
        write(&Earlier { number, text: text.to_owned() }, &mut bytes)?;
        Ok(bytes)
    }

    fn through_earlier(bytes: &[u8]) -> Result<Older, CodecError> {
        let earlier = aligned(bytes, |bytes| {
            let archived = check::<ArchivedEarlier>(bytes)?;
            rkyv::deserialize::<Earlier, Error>(archived).map_err(CodecError::new)
        })?;
        let mut bytes = Vec::new();
        write(&earlier, &mut bytes)?;
        Ok(Older { number: earlier.number, text: earlier.text, bytes })
    }
}
