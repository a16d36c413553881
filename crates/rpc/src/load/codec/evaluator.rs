//! One codec, evaluated. Data plane.

use std::hint::black_box;

use load::{Busy, Finding, Op, scramble};
use wire::ProtocolError;

use super::messages::operation::{DECODE, ENCODE, ENCODE_REUSED};
use super::messages::{Codecs, OPERATIONS};
use crate::codecs::{
    Cbor, Codec, CodecError, Json, MessagePack, Postcard, Prost, Protobuf, Rkyv, Sample,
};

/// The evaluator of a codec.
pub(super) fn by_name(name: &str, workload: &Codecs) -> Result<Box<dyn Busy>, ProtocolError> {
    Ok(match name {
        "protobuf" => Evaluator::<Protobuf>::boxed(workload)?,
        "prost" => Evaluator::<Prost>::boxed(workload)?,
        "rkyv" => Evaluator::<Rkyv>::boxed(workload)?,
        "postcard" => Evaluator::<Postcard>::boxed(workload)?,
        "msgpack" => Evaluator::<MessagePack>::boxed(workload)?,
        "cbor" => Evaluator::<Cbor>::boxed(workload)?,
        "json" => Evaluator::<Json>::boxed(workload)?,
        name => return Err(ProtocolError::new(format!("there is no codec {name}"))),
    })
}

/// A message in its forms.
struct Message<C: Codec> {
    sample: Sample,
    message: C::Message,
    bytes: Vec<u8>,
}

/// Encodes and decodes messages.
struct Evaluator<C: Codec> {
    messages: Vec<Message<C>>,
    /// Operation and message of each case.
    cases: Vec<(usize, usize)>,
    /// What is written to, and decoded into, again and again.
    written: Vec<u8>,
    decoded: C::Message,
}

impl<C: Codec + 'static> Evaluator<C> {
    fn boxed(workload: &Codecs) -> Result<Box<dyn Busy>, ProtocolError> {
        Ok(Box::new(Self::new(workload)?))
    }

    fn new(workload: &Codecs) -> Result<Self, ProtocolError> {
        let of = |index| {
            let sample = workload.shape.make(workload.size, scramble(workload.seed ^ index));
            let (message, mut bytes) = (C::message(sample.clone()), Vec::new());
            C::encode(&message, &mut bytes).map_err(|why| ProtocolError::new(why.to_string()))?;
            Ok(Message { sample, message, bytes })
        };
        let messages = (0..workload.messages()).map(of).collect::<Result<_, ProtocolError>>()?;
        let decoded = C::message(Sample::default());
        Ok(Self { messages, cases: Vec::new(), written: Vec::new(), decoded })
    }

    /// What a case comes to, as a message.
    fn result(&mut self, operation: usize, place: usize) -> Result<Sample, CodecError> {
        let Message { message, bytes, .. } = &self.messages[place];
        Ok(C::sample(match operation {
            ENCODE => {
                let mut written = Vec::new();
                C::encode(message, &mut written)?;
                C::decode(&written)?
            }
            ENCODE_REUSED => {
                self.written.clear();
                C::encode(message, &mut self.written)?;
                C::decode(&self.written)?
            }
            DECODE => C::decode(bytes)?,
            _ => {
                C::decode_into(bytes, &mut self.decoded)?;
                self.decoded.clone()
            }
        }))
    }
}

impl<C: Codec> Busy for Evaluator<C>
where
    C: 'static,
    Message<C>: Send,
{
    fn ready(&mut self, op: Op) {
        self.cases.push((op.operation, op.what as usize % self.messages.len()));
    }

    #[inline]
    fn call(&mut self, index: usize) -> usize {
        let (operation, place) = self.cases[index];
        let Message { message, bytes, .. } = &self.messages[place];
        // What fails is found by the checks.
        match operation {
            ENCODE => {
                let mut written = Vec::new();
                let _ = black_box(C::encode(black_box(message), &mut written));
                black_box(&written).len()
            }
            ENCODE_REUSED => {
                self.written.clear();
                let _ = black_box(C::encode(black_box(message), &mut self.written));
                black_box(&self.written).len()
            }
            DECODE => {
                let _ = black_box(C::decode(black_box(bytes)));
                bytes.len()
            }
            _ => {
                let _ = black_box(C::decode_into(black_box(bytes), &mut self.decoded));
                black_box(&self.decoded);
                bytes.len()
            }
        }
    }

    fn check(&mut self, index: usize) -> Result<(), Box<Finding>> {
        let (operation, place) = self.cases[index];
        let result = self.result(operation, place);
        let Message { sample, bytes, .. } = &self.messages[place];
        let note = match result {
            Ok(result) => result.difference(sample),
            Err(why) => Some(format!("what was encoded can't be decoded: {why}")),
        };
        let Some(note) = note else { return Ok(()) };
        Err(Box::new(Finding {
            operation: OPERATIONS[operation].name.clone(),
            key: Vec::new(),
            expected: Vec::new(),
            received: bytes.clone(),
            note,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::codecs::{Older, ROWS, Shape};

    fn workload(shape: Shape, size: usize) -> Codecs {
        Codecs { shape, size, seed: 1 }
    }

    #[test]
    fn every_operation_of_every_codec_is_right() {
        let workload = workload(Shape::Messages, 3);
        for row in &ROWS {
            let mut own = by_name(row.name, &workload).unwrap();
            (0..4).for_each(|operation| own.ready(Op { operation, what: 70 + operation as u64 }));
            for index in (0..4).chain(0..4) {
                assert_eq!(own.check(index), Ok(()), "{} {index}", row.name);
                assert!(own.call(index) > 20, "{} {index}", row.name);
            }
        }
    }

    thread_local! {
        static DECODED: Cell<bool> = const { Cell::new(false) };
    }

    /// Decodes from a buffer that is read to its end by the first time.
    struct Exhausted;

    impl Codec for Exhausted {
        type Message = <Protobuf as Codec>::Message;

        fn message(sample: Sample) -> Self::Message {
            Protobuf::message(sample)
        }

        fn sample(message: Self::Message) -> Sample {
            Protobuf::sample(message)
        }

        fn encode(message: &Self::Message, into: &mut Vec<u8>) -> Result<(), CodecError> {
            Protobuf::encode(message, into)
        }

        fn decode(bytes: &[u8]) -> Result<Self::Message, CodecError> {
            Protobuf::decode(if DECODED.replace(true) { &[] } else { bytes })
        }

        fn encode_earlier(number: i64, text: &str) -> Result<Vec<u8>, CodecError> {
            Protobuf::encode_earlier(number, text)
        }

        fn through_earlier(bytes: &[u8]) -> Result<Older, CodecError> {
            Protobuf::through_earlier(bytes)
        }
    }

    #[test]
    fn a_decoder_whose_bytes_are_used_up_is_found() {
        let mut own = Evaluator::<Exhausted>::new(&workload(Shape::Messages, 1024)).unwrap();
        own.ready(Op { operation: DECODE, what: 0 });
        assert_eq!(own.check(0), Ok(()), "the first time is right");
        own.call(0);
        let note = own.check(0).unwrap_err().note;
        assert_eq!(note, "decode returned an empty message: 0 of 1,024 elements");
    }
}
