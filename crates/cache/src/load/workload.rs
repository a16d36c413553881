//! The workload of a cache: keys and values, in one of its dialects.

use std::sync::Arc;

use load::kv::Store;
use load::{Dialect, Draw, Operation, Part, Preparation, Speaks, SpecError, Workload};
use wire::ProtocolError;

use super::memcached::Memcached;
use super::operations::RULES;
use super::redis::Redis;
use super::udp::MemcachedUdp;

/// Reads the part of a suite that belongs to a cache.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    Ok(Arc::new(CacheWorkload(Store::read(part, &RULES)?)))
}

#[derive(Debug)]
struct CacheWorkload(Store);

impl Workload for CacheWorkload {
    fn operations(&self) -> &[Operation] {
        self.0.operations()
    }

    fn preparation(&self) -> Preparation {
        self.0.preparation()
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        Arc::new(Self(self.0.begin(operations)))
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(self.0.draws())
    }

    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        let oracle = &self.0.oracle;
        Ok(match speaks.dialect.name {
            "memcached" => Box::new(Memcached::new(oracle)),
            "memcached-udp" => Box::new(MemcachedUdp::new(oracle)),
            "redis" => Box::new(Redis::new(oracle)),
            other => return Err(ProtocolError::new(format!("a cache does not speak {other}"))),
        })
    }
}
