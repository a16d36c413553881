//! The workload of codecs: messages are encoded and decoded in a process, without a socket.
//!
//! What is decoded is compared with what was encoded, before anything is timed and after that: a
//! decoder that has used its bytes up is fast, and wrong.

#[cfg(feature = "grpc")]
mod evaluator;
mod messages;

use std::sync::Arc;

use load::{
    Busy, DialectRow, Draw, Operation, Part, Reach, Service, Speaks, SpecError, UniformDraw,
    Workload,
};
use serde::Deserialize;
use wire::{Address, ProtocolError};

use crate::codecs::shape::SHAPES;
use messages::{Codecs, OPERATIONS};

/// The service.
pub static CODECS: Service = Service {
    name: "rpc-codec",
    doc: "Messages as bytes and back, without a socket.",
    read,
    dialects: &[
        codec("protobuf", "Protocol Buffers: fields that aren't known are kept."),
        codec("prost", "Protocol Buffers by prost, which drops them."),
        codec("rkyv", "rkyv: the memory of a message, checked and copied out."),
        codec("postcard", "postcard: fields in turn."),
        codec("msgpack", "MessagePack: fields in turn, each tagged."),
        codec("cbor", "CBOR: fields by name."),
        codec("json", "JSON: fields by name."),
    ],
};

const fn codec(name: &'static str, doc: &'static str) -> DialectRow {
    let row = DialectRow::new(name, doc, Reach::InProcess);
    match cfg!(feature = "grpc") {
        true => row,
        false => row.lacking("this program was built without its feature `rpc`"),
    }
}

/// The service's part of `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// What messages are made of, by name.
    message: String,
    /// How many elements, levels or bytes; left out where messages have one size only.
    size: Option<usize>,
}

fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    let Spec { message, size } = part.read()?;
    let Some(row) = SHAPES.iter().find(|row| row.name == message) else {
        let names: Vec<_> = SHAPES.iter().map(|row| row.name).collect();
        let why = format!("there is no message \"{message}\": there are {}", names.join(", "));
        return Err(part.error("message", why));
    };
    let size = match (row.most, size) {
        (0, None) => 0,
        (0, Some(_)) => {
            let why = format!("messages \"{message}\" have one size only: leave size out");
            return Err(part.error("size", why));
        }
        (most, Some(size)) if size <= most => size,
        (most, size) => {
            let said = size.map_or("there is none".to_owned(), |size| format!("not {size}"));
            let why = format!("\"{message}\" needs a size of 0 to {most} {}: {said}", row.counted);
            return Err(part.error("size", why));
        }
    };
    Ok(Arc::new(Codecs { shape: row.shape, size, seed: part.seed }))
}

impl Workload for Codecs {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        self
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: self.messages() })
    }

    #[cfg(feature = "grpc")]
    fn busy(
        self: Arc<Self>,
        speaks: &Speaks,
        _: Option<&Address>,
    ) -> Result<Box<dyn Busy>, ProtocolError> {
        evaluator::by_name(speaks.dialect.name, &self)
    }

    #[cfg(not(feature = "grpc"))]
    fn busy(
        self: Arc<Self>,
        speaks: &Speaks,
        _: Option<&Address>,
    ) -> Result<Box<dyn Busy>, ProtocolError> {
        Err(ProtocolError::new(format!("{} is left out of this program", speaks.dialect.name)))
    }
}

#[cfg(all(test, feature = "grpc"))]
mod tests {
    use super::*;
    use crate::codecs::ROWS;

    #[test]
    fn every_codec_is_a_dialect() {
        let names = CODECS.dialects.iter().map(|row| row.name);
        assert!(names.eq(ROWS.iter().map(|row| row.name)));
    }
}
