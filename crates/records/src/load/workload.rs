//! The workload of records: which there are, how large, and who writes them.

use std::sync::Arc;

use load::kv::{KeysSpec, Sampler};
use load::{
    Dialect, Draw, Mix, Op, Operation, Ops, Part, Preparation, Speaks, SpecError, Workload,
};
use serde::{Deserialize, Deserializer, de::Error as _};
use wire::ProtocolError;

use super::operations::{OPERATIONS, PUT};
use super::oracle::Oracle;
use super::pvaccess::PvAccess;
use crate::protocol::MAX_NAME_BYTES;

/// At most this many elements in one value: 1 GiB of 64-bit numbers.
const MAX_ELEMENTS: u64 = 1 << 27;

/// The part as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    keys: Option<KeysSpec>,
    /// How many elements a value has; without it values are plain numbers.
    size: Option<u64>,
    #[serde(default)]
    written_by: WrittenBy,
}

/// Who writes the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WrittenBy {
    /// The clients: every record is prepared, and each write gives it the next version.
    #[default]
    Clients,
    /// The target itself: nothing is prepared, and values count up by one at a time.
    Target,
    /// The target itself writes this number, from the first one on, and the clients the others.
    Both(u64),
}

impl<'de> Deserialize<'de> for WrittenBy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = toml::Value::deserialize(deserializer)?;
        let records = written.get("target").and_then(toml::Value::as_integer);
        match (written.as_str(), records.map(u64::try_from)) {
            (Some("clients"), _) => Ok(Self::Clients),
            (Some("target"), _) => Ok(Self::Target),
            (None, Some(Ok(records))) if written.as_table().is_some_and(|all| all.len() == 1) => {
                Ok(Self::Both(records))
            }
            _ => Err(D::Error::custom(
                "records are written by \"clients\", by \"target\", or by both: \
                 { target = 1 } is the number of those that the target itself writes",
            )),
        }
    }
}

/// Reads the part of a suite that belongs to records.
pub(super) fn read(part: &Part<'_>) -> Result<Arc<dyn Workload>, SpecError> {
    if part.table.contains_key("value") {
        let message = "values of records are numbers: say size = 1_000 for arrays, or nothing";
        return Err(part.error("value", message));
    }
    let spec: Spec = part.read()?;
    let Some(keys) = &spec.keys else {
        return Err(part.error("keys", "records needs keys: keys = { count = 10_000 }"));
    };
    let (keys, sampler) = keys.resolve(part, MAX_NAME_BYTES)?;
    if let Some(size) = spec.size.filter(|size| !(1..=MAX_ELEMENTS).contains(size)) {
        let message = format!("{size} is not from 1 to {MAX_ELEMENTS} elements");
        return Err(part.error("size", message));
    }
    let target_writes = match spec.written_by {
        WrittenBy::Clients => 0,
        WrittenBy::Target => keys.count(),
        WrittenBy::Both(records) if records <= keys.count() => records,
        WrittenBy::Both(records) => {
            let message = format!("there are {} records, not {records}", keys.count());
            return Err(part.error("written_by", message));
        }
    };
    let mut oracle = Oracle::new(keys, spec.size, target_writes);
    oracle.sampler = sampler;
    Ok(Arc::new(RecordsWorkload(Arc::new(oracle))))
}

#[derive(Debug)]
struct RecordsWorkload(Arc<Oracle>);

impl Workload for RecordsWorkload {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn check(&self, operations: &[usize]) -> Result<(), SpecError> {
        if operations.contains(&PUT) && self.0.writable() == 0 {
            let message = "the mix writes too: say { target = 1 } for the number of records that \
                           the target itself writes, or \"clients\"";
            return Err(SpecError::new("workload.written_by", message));
        }
        Ok(())
    }

    /// The first version of each record that the clients write.
    fn preparation(&self) -> Preparation {
        let (parts, size) = (self.0.writable(), self.0.size.unwrap_or(1));
        let bytes = parts.saturating_mul(size).saturating_mul(8);
        let about = format!("{:?} {size} {parts}", self.0.keys);
        Preparation { parts, bytes, about, ..Preparation::default() }
    }

    fn message_bytes(&self) -> u64 {
        self.0.size.unwrap_or(1) * 8
    }

    fn begin(self: Arc<Self>, operations: &[usize]) -> Arc<dyn Workload> {
        Arc::new(Self(Arc::new(self.0.begin(operations.contains(&PUT)))))
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(Draws { sampler: self.0.sampler.clone(), oracle: self.0.clone() })
    }

    fn dialect(self: Arc<Self>, speaks: &Speaks) -> Result<Box<dyn Dialect>, ProtocolError> {
        let updates = speaks.read().map_err(|error| ProtocolError::new(error.to_string()))?;
        Ok(Box::new(PvAccess::new(&self.0, updates)))
    }
}

/// Draws the record of each operation; a put's is one that the clients write.
struct Draws {
    sampler: Sampler,
    oracle: Arc<Oracle>,
}

impl Draw for Draws {
    #[inline]
    fn draw(&mut self, mix: &mut Mix, ops: &mut Ops) {
        while ops.has_room() {
            let operation = mix.operation();
            let key = self.sampler.draw(mix.random());
            let is_kept_from = operation == PUT && self.oracle.is_targets(key);
            let what = if is_kept_from { self.oracle.writable_key(key) } else { key };
            ops.push(Op { operation, what });
        }
    }

    fn subscribe(&mut self, operation: usize, index: u64) -> Op {
        Op { operation, what: index % self.oracle.keys.count().max(1) }
    }
}
