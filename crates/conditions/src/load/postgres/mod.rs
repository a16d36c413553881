//! PostgreSQL as a peer: the same objects in tables, in four ways ([`schema`]), filled by COPY
//! ([`copy`]), asked by prepared statements with binary results ([`slot`]), and its own counters
//! ([`counters`]).

mod copy;
mod counters;
mod schema;
mod slot;

use std::net::SocketAddr;
use std::sync::Arc;

use load::Caller;
use wire::ProtocolError;

use super::made::Made;
use super::options::TableOptions;
use super::spec::Long;
use schema::{SCHEMAS, Shape};
use slot::Slot;

pub(super) use counters::Activity;
pub(super) use slot::{config, fault, patiently};

/// The client of one slot, connected.
pub(super) fn caller(
    name: &str,
    options: TableOptions,
    address: SocketAddr,
    made: Arc<Made>,
    channel: u32,
) -> Result<Box<dyn Caller>, ProtocolError> {
    let schema = SCHEMAS.iter().find(|schema| schema.name == name);
    let schema = schema.ok_or_else(|| ProtocolError::new("there is no such schema"))?;
    if schema.shape == Shape::Vectors && made.spec.long != Long::None {
        let why = "a row for all channels can't keep intervals of different lengths";
        return Err(ProtocolError::new(format!("{name}: {why}")));
    }
    Ok(Box::new(Slot::connect(schema, options, address, made, channel)?))
}
