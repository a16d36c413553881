//! The workload of a cache: keys and values, in one of its dialects.

use std::sync::Arc;

use load::kv::{Oracle, Store};
use load::{Dialect, Part, Speaks, SpecError, Workload};
use wire::ProtocolError;

use super::memcached::Memcached;
use super::operations::RULES;
use super::redis::Redis;
use super::udp::MemcachedUdp;

/// Reads the part of a suite that belongs to a cache.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    Ok(Store::read(part, &RULES)?.with_dialects(dialect))
}

fn dialect(oracle: &Arc<Oracle>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
    Ok(match speaks.dialect.name {
        "memcached" => Box::new(Memcached::new(oracle)),
        "memcached-udp" => Box::new(MemcachedUdp::new(oracle)),
        "redis" => Box::new(Redis::new(oracle)),
        other => return Err(ProtocolError::new(format!("a cache does not speak {other}"))),
    })
}
