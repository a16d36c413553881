//! A row for each codec.

use super::archive::Rkyv;
use super::by_prost::Prost;
use super::codec::{Codec, CodecError, Older};
use super::protobuf::Protobuf;
use super::sample::Sample;
use super::serde::{Cbor, Json, MessagePack, Postcard};

/// A codec by its name.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// A message as bytes.
    pub encode: fn(&Sample) -> Result<Vec<u8>, CodecError>,
    /// The bytes as a message.
    pub decode: fn(&[u8]) -> Result<Sample, CodecError>,
    /// [`Codec::encode_earlier`].
    pub encode_earlier: fn(i64, &str) -> Result<Vec<u8>, CodecError>,
    /// [`Codec::through_earlier`].
    pub through_earlier: fn(&[u8]) -> Result<Older, CodecError>,
}

const fn row<C: Codec>(name: &'static str, doc: &'static str) -> Row {
    Row {
        name,
        doc,
        encode: |sample| {
            let mut bytes = Vec::new();
            C::encode(&C::message(sample.clone()), &mut bytes)?;
            Ok(bytes)
        },
        decode: |bytes| C::decode(bytes).map(C::sample),
        encode_earlier: C::encode_earlier,
        through_earlier: C::through_earlier,
    }
}

/// Every codec.
pub static ROWS: [Row; 7] = [
    row::<Protobuf>("protobuf", "Protocol Buffers, as protoc's programs write them."),
    row::<Prost>("prost", "Protocol Buffers by prost, which drops unknown fields."),
    row::<Rkyv>("rkyv", "rkyv: the memory of the message, checked when it is read."),
    row::<Postcard>("postcard", "postcard: fields in turn, numbers of 7 bits a byte."),
    row::<MessagePack>("msgpack", "MessagePack by rmp-serde: fields in turn, each tagged."),
    row::<Cbor>("cbor", "CBOR by ciborium: fields by name."),
    row::<Json>("json", "JSON by serde_json."),
];

/// A codec by its name.
pub fn by_name(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}
