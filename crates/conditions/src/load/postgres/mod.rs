//! PostgreSQL as a peer: the same objects in tables, in four ways ([`schema`]), filled by COPY
//! ([`copy`]), asked by prepared statements with binary results ([`slot`]), and its own counters
//! ([`counters`]). What its connections do is looked at ([`advisor`]), how it executes statements
//! ([`plan`]), and what would help ([`advice`]).

mod advice;
mod advisor;
mod copy;
mod counters;
mod plan;
mod schema;
mod slot;

use std::net::SocketAddr;
use std::sync::Arc;

use load::{Advisor, Caller};
use wire::ProtocolError;

use super::made::Made;
use super::options::PostgresOptions;
use super::spec::Long;
use schema::{SCHEMAS, Schema, Shape};
use slot::Slot;

pub(super) use advisor::{Asked, Observer};
pub(super) use counters::Activity;
pub(super) use slot::{config, fault, patiently};

/// The client of one slot, connected.
pub(super) fn caller(
    name: &str,
    options: PostgresOptions,
    address: SocketAddr,
    made: Arc<Made>,
    channel: u32,
) -> Result<Box<dyn Caller>, ProtocolError> {
    let schema = schema(name).ok_or_else(|| ProtocolError::new("there is no such schema"))?;
    if schema.shape == Shape::Vectors && made.spec.long != Long::None {
        let why = "a row for all channels can't keep intervals of different lengths";
        return Err(ProtocolError::new(format!("{name}: {why}")));
    }
    Ok(Box::new(Slot::connect(schema, options, address, made, channel)?))
}

fn schema(name: &str) -> Option<&'static Schema> {
    SCHEMAS.iter().find(|schema| schema.name == name)
}

/// What looks at the server; `None` where it can't be reached.
pub(super) fn advisor(
    name: &str,
    options: PostgresOptions,
    address: SocketAddr,
    made: &Made,
) -> Option<Box<dyn Advisor>> {
    let schema = schema(name)?;
    let time = made.time(made.typical()) as i64;
    let (folder, channel) = (0_i32, 0_i32);
    let read = |statement, parameters| Asked {
        text: schema.text(statement, options, &made.spec),
        parameters,
        is_read: true,
    };
    let insert = Asked {
        text: schema.text(schema.insert, options, &made.spec),
        parameters: vec![Box::new(channel), Box::new(time), Box::new(time + 1), Box::new(0_f32)],
        is_read: false,
    };
    let asked = vec![
        read(schema.slice, vec![Box::new(time)]),
        read(schema.folder, vec![Box::new(folder), Box::new(time)]),
        read(schema.browse, vec![Box::new(folder), Box::new(time), Box::new(time + 1)]),
        read(schema.find, vec![Box::new(channel), Box::new(time)]),
        insert,
    ];
    Some(Box::new(Observer::connect(config(address), asked).ok()?))
}
