//! Messages as bytes and back, by one trait over one message: protobuf, rkyv, postcard,
//! MessagePack, CBOR and JSON.
//!
//! | file | what it holds |
//! |---|---|
//! | `shape` | the messages that are measured, by name: small ones, arrays, chains |
//! | `codec`, `rows` | the trait, and a row for each codec |
//! | `sample` | the message, and in what one differs from another |
//! | `make` | messages of a shape |
//! | `depth` | the one limit of depth, on both sides |
//! | `protobuf` | by buffa, whose sizes are cached and whose arrays are copied as a whole |
//! | `by_prost` | by prost, which protobuf is compared with |
//! | `serde` | postcard, MessagePack, CBOR and JSON |
//! | `archive` | rkyv |
//! | `inspect` | any encoding byte by byte |
//! | `capabilities` | what each codec can, by trying it |

pub(crate) mod shape;

#[cfg(feature = "grpc")]
mod archive;
#[cfg(feature = "grpc")]
mod by_prost;
#[cfg(feature = "grpc")]
pub(crate) mod capabilities;
#[cfg(feature = "grpc")]
mod codec;
#[cfg(feature = "grpc")]
mod depth;
#[cfg(feature = "grpc")]
pub mod inspect;
#[cfg(feature = "grpc")]
mod make;
#[cfg(feature = "grpc")]
mod protobuf;
#[cfg(feature = "grpc")]
mod rows;
#[cfg(feature = "grpc")]
mod sample;
#[cfg(feature = "grpc")]
mod serde;

#[cfg(all(test, feature = "grpc"))]
mod tests;

pub use shape::Shape;
#[cfg(feature = "grpc")]
pub(crate) use {
    archive::Rkyv,
    by_prost::Prost,
    protobuf::Protobuf,
    serde::{Cbor, Json, MessagePack, Postcard},
};
#[cfg(feature = "grpc")]
pub use {
    codec::{Codec, CodecError, Older},
    depth::MOST as MOST_DEPTH,
    make::any,
    protobuf::protobuf_again,
    rows::{ROWS, Row, by_name},
    sample::{Kind, Named, Number, One, Sample},
};
