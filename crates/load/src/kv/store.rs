//! The workload of a service that keeps values by key: its part of a suite, and what it shares.

use std::sync::Arc;

use serde::Deserialize;

use super::draws::Draws;
use super::oracle::Oracle;
use super::spec::{KeysSpec, ValueSpec};
use super::values::Values;
use crate::operation::{Kind, Operation};
use crate::part::{Part, SpecError};
use crate::workload::Preparation;

/// What an operation does to the values behind its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads one key.
    Read,
    /// Reads several keys with one request.
    ReadMany,
    /// Writes a new version of one key.
    Write,
    /// Removes one key: a miss is a right answer afterwards.
    Remove,
    /// Subscribes to one key.
    Watch,
}

/// What a service keeps by key, and how it is asked.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Operations: name, role and one sentence. Their order is that of the workload's.
    pub operations: &'static [(&'static str, Role, &'static str)],
    /// The longest key it takes, in bytes.
    pub longest_key_bytes: usize,
    /// The longest value it takes, in bytes.
    pub longest_value_bytes: usize,
}

/// Whether a missing value is a right answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Misses {
    /// A miss is a wrong answer.
    #[default]
    Wrong,
    /// A miss is counted and right. A workload that removes keys allows it by itself.
    Allowed,
}

/// The part as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    keys: Option<KeysSpec>,
    value: Option<ValueSpec>,
    /// How many keys an operation of many keys asks for; 64 unless said otherwise.
    keys_per_request: Option<u32>,
    #[serde(default)]
    misses: Misses,
}

/// At most this many keys in one request.
const MAX_KEYS_PER_REQUEST: u32 = 1024;

/// A workload of keys and values, for the workload of a service to hold.
#[derive(Clone, Debug)]
pub struct Store {
    rules: &'static Rules,
    operations: Arc<[Operation]>,
    /// What the target should hold.
    pub oracle: Arc<Oracle>,
}

impl Store {
    /// Reads a service's part of `[workload]`.
    ///
    /// # Errors
    /// Names the key that is wrong, and what would be right.
    pub fn read(part: &Part<'_>, rules: &'static Rules) -> Result<Self, SpecError> {
        let spec: Spec = part.read()?;
        let service = part.service;
        let Some(keys) = &spec.keys else {
            return Err(
                part.error("keys", format!("{service} needs keys: keys = {{ count = 10_000 }}"))
            );
        };
        let Some(value) = &spec.value else {
            return Err(
                part.error("value", format!("{service} needs values: value = {{ bytes = 100 }}"))
            );
        };
        let (keys_spec, (keys, sampler)) = (keys, keys.resolve(part, rules.longest_key_bytes)?);
        let values = Values::new(part.seed, value.resolve(rules.longest_value_bytes)?);
        let keys_per_request = spec.keys_per_request.unwrap_or(64);
        if !(1..=MAX_KEYS_PER_REQUEST).contains(&keys_per_request) {
            let message = format!("from 1 to {MAX_KEYS_PER_REQUEST}");
            return Err(part.error("keys_per_request", message));
        }
        // A key that comes only once was never written.
        let comes_once = keys_spec.one_hit.is_some_and(|share| share.fraction > 0.0);
        let mut oracle = Oracle::new(keys, values);
        oracle.sampler = sampler;
        oracle.keys_per_request = keys_per_request as usize;
        oracle.misses_allowed = comes_once || spec.misses == Misses::Allowed;
        Ok(Self::of(rules, oracle))
    }

    /// A workload about what `oracle` says.
    pub fn of(rules: &'static Rules, oracle: Oracle) -> Self {
        let operation = |&(name, role, doc): &(&'static str, Role, &'static str)| {
            let kind = match role {
                Role::Read | Role::ReadMany => Kind::Read,
                Role::Write | Role::Remove => Kind::Write,
                Role::Watch => Kind::Stream,
            };
            Operation::new(name, kind, doc)
        };
        let operations = rules.operations.iter().map(operation).collect();
        Self { rules, operations, oracle: Arc::new(oracle) }
    }

    /// The operations.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The same about a target that has just been prepared, of which these operations are asked.
    #[must_use]
    pub fn begin(&self, operations: &[usize]) -> Self {
        let has = |roles: &[Role]| {
            operations.iter().any(|index| roles.contains(&self.rules.operations[*index].1))
        };
        let removes = has(&[Role::Remove]);
        let writes = removes || has(&[Role::Write]);
        let oracle = Arc::new(self.oracle.begin(writes, removes));
        Self { oracle, operations: self.operations.clone(), ..*self }
    }

    /// What one slot draws.
    pub fn draws(&self) -> Draws {
        let keys = |(_, role, _): &(&str, Role, &str)| match role {
            Role::ReadMany => self.oracle.keys_per_request as u64,
            Role::Read | Role::Write | Role::Remove | Role::Watch => 1,
        };
        let keys = self.rules.operations.iter().map(keys).collect();
        Draws::of_many(&self.oracle.sampler, keys)
    }

    /// Every key's first version.
    pub fn preparation(&self) -> Preparation {
        let Oracle { keys, values, .. } = &*self.oracle;
        let each = (keys.bytes() + values.sizes().longest()) as u64;
        Preparation {
            parts: keys.count(),
            bytes: keys.count().saturating_mul(each),
            about: format!("{keys:?} {values:?}"),
            ..Preparation::default()
        }
    }
}
