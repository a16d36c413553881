//! The requests of a suite with their right answers. Control plane.

use ::load::kv::{Keys, KeysSpec, Sampler};
use ::load::{Operation, Part, SpecError};
use serde::Deserialize;

use super::limits::MAX_REQUESTS;
use super::request::{KEY, Request};
use super::spec::RequestSpec;

/// The longest key, in bytes.
pub(super) const LONGEST_KEY_BYTES: usize = 250;

/// The part as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// The keys, where a request holds one.
    keys: Option<KeysSpec>,
    #[serde(default)]
    request: Vec<RequestSpec>,
}

/// The requests of a suite with their right answers.
#[derive(Debug)]
pub struct Requests {
    pub(super) operations: Vec<Operation>,
    /// In the order of the operations.
    pub(super) requests: Vec<Request>,
    pub(super) keys: Keys,
    pub(super) sampler: Sampler,
}

impl Requests {
    /// Reads a suite's requests.
    ///
    /// # Errors
    /// Names the key that is wrong, and what would be right.
    pub fn read(part: &Part<'_>) -> Result<Self, SpecError> {
        for key in ["value", "keys_per_request", "misses"] {
            if part.table.contains_key(key) {
                let message = "it means nothing here: say in each request's `body` what is sent, \
                               and in its `expect` what is right";
                return Err(part.error(key, message));
            }
        }
        let spec: Spec = part.read()?;
        if spec.request.is_empty() {
            let message = "describe at least one [[workload.request]] with its name and path";
            return Err(part.error("request", message));
        }
        if spec.request.len() > MAX_REQUESTS {
            return Err(part.error("request", format!("at most {MAX_REQUESTS} requests")));
        }
        for (index, request) in spec.request.iter().enumerate() {
            if spec.request[..index].iter().any(|other| other.name == request.name) {
                let message = format!("two are called \"{}\"", request.name);
                return Err(part.error("request", message));
            }
        }
        let keys = spec.keys.as_ref().map(|keys| keys.resolve(part, LONGEST_KEY_BYTES));
        let (keys, sampler) = keys.transpose()?.unzip();
        let mut requests = Vec::new();
        for one in &spec.request {
            let request = one.resolve(keys.as_ref(), part.folder);
            requests.push(request.map_err(|(key, message)| {
                part.error(&format!("request.{}.{key}", one.name), message)
            })?);
        }
        if keys.is_some() && !requests.iter().any(|request| request.has_key) {
            let message = format!("no request says where a key goes: write `{KEY}` into a path");
            return Err(part.error("keys", message));
        }
        let operation = |one: &RequestSpec| Operation {
            name: one.name.clone().into(),
            kind: one.kind(),
            doc: "A request of the suite.",
        };
        Ok(Self {
            operations: spec.request.iter().map(operation).collect(),
            requests,
            keys: keys.unwrap_or_else(Keys::none),
            sampler: sampler.unwrap_or_else(Sampler::none),
        })
    }

    /// The same asked of this host, where the suite doesn't state another one.
    pub(super) fn asked_of(&self, host: &str) -> Self {
        Self {
            operations: self.operations.clone(),
            requests: self.requests.iter().map(|request| request.asked_of(host)).collect(),
            keys: self.keys.clone(),
            sampler: self.sampler.clone(),
        }
    }
}
