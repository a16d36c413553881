//! A suite's `[workload]`: what was written ([`WorkloadSpec`]) and what it means ([`Workload`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::data::{KeysSpec, ValueSpec};
use crate::http::{self, Request, RequestSpec};
use crate::{Keys, Kind, Oracle, Sampler, Service, Sizes, Values};

/// `[workload]` as written.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// The service whose operations these are.
    #[serde(alias = "room")]
    pub service: String,
    /// One operation: short for a mix of one.
    pub operation: Option<String>,
    /// Operations with their weights.
    pub mix: Option<BTreeMap<String, u32>>,
    /// Operations that are done in this order, each so often: `get`, `get * 5`.
    pub steps: Option<Vec<String>>,
    /// The keys, where the operations are about keys.
    pub keys: Option<KeysSpec>,
    /// The values, where the service keeps any.
    pub value: Option<ValueSpec>,
    /// How many elements a value has, where values are arrays; without it they are plain numbers.
    pub size: Option<u64>,
    /// Who writes the values; the clients unless said otherwise.
    #[serde(default)]
    pub written_by: WrittenBy,
    /// The operations, where the service has none of its own.
    #[serde(default)]
    pub request: Vec<RequestSpec>,
    /// How many keys an operation of many keys asks for; 64 unless said otherwise.
    pub keys_per_request: Option<u32>,
    /// Whether a missing value is a right answer.
    #[serde(default)]
    pub misses: Misses,
    /// Where the random numbers start; 1 unless said otherwise.
    pub seed: Option<u64>,
}

/// Whether a missing value is a right answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Misses {
    /// A miss is a wrong answer.
    #[default]
    Wrong,
    /// A miss is counted and right. A workload that removes keys allows it by itself.
    Allowed,
}

/// Who writes the values.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum WrittenBy {
    /// The clients: every key is prepared, and each write gives it the next version.
    #[default]
    Clients,
    /// The target itself: nothing is prepared, and values count up by one at a time.
    Target,
}

/// A workload that was written in a known form but makes no sense. `key` is the dotted key of the
/// suite that it is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// The dotted key, e.g. `workload.mix`.
    pub key: Cow<'static, str>,
    /// What is wrong and what would be right.
    pub message: String,
}

/// A workload that makes sense.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The service whose operations these are.
    pub service: &'static Service,
    /// Operations, as indices into the service's, with their weights; none is zero.
    pub mix: Vec<(usize, u32)>,
    /// Operations that are done in this order, by clients that take steps: each, and how often.
    pub steps: Vec<(usize, u32)>,
    /// The keys.
    pub keys: Keys,
    /// Which keys come how often.
    pub sampler: Sampler,
    /// The values.
    pub values: Values,
    /// How many keys an operation of many keys asks for.
    pub keys_per_request: usize,
    /// Whether a missing value is a right answer.
    pub misses_allowed: bool,
    /// Where the random numbers start.
    pub seed: u64,
    /// The requests that the suite describes, in the order of the service's operations.
    pub requests: Arc<[Request]>,
    /// How many elements a value has; `None` where values are not arrays.
    pub size: Option<u64>,
    /// Who writes the values.
    pub written_by: WrittenBy,
}

/// At most this many elements in one value: 1 GiB of 64-bit numbers.
const MOST_ELEMENTS: u64 = 1 << 27;

/// At most this many keys in one request.
const MOST_KEYS_PER_REQUEST: u32 = 1024;

/// The weights of a mix may add up to this: an operation is drawn by 32 random bits.
const MOST_WEIGHT: u64 = u32::MAX as u64;

/// At most this many steps in one pass: every one's time is kept.
const MOST_STEPS: u64 = 1_000_000;

/// At most this many keys in all: their versions take 16 bytes each.
pub(crate) const MOST_KEYS: u64 = 1 << 30;

impl WorkloadSpec {
    /// Checks the written form against the `service` it names. Files that it names are read from
    /// `folder`, where the suite is.
    ///
    /// # Errors
    /// Which key is wrong, and what would be right.
    pub fn resolve_in(
        &self,
        service: &'static Service,
        folder: &Path,
    ) -> Result<Workload, SpecError> {
        if service.operations.is_empty() {
            return http::resolve(self, service, folder);
        }
        let error = |key: &'static str, message| Err(SpecError { key: key.into(), message });
        if !self.request.is_empty() {
            let message = format!("{} has operations of its own: {}", service.name, names(service));
            return error("workload.request", message);
        }
        let steps = self.resolve_steps(service)?;
        let mix = self.resolve_mix(service, &steps)?;
        let (keys, sampler) = match &self.keys {
            Some(keys) => keys.resolve(service)?,
            None if service.prepares => {
                let message = format!("{} needs keys: keys = {{ count = 10_000 }}", service.name);
                return error("workload.keys", message);
            }
            None => (Keys::none(), Sampler::none()),
        };
        let sizes = match &self.value {
            Some(value) => value.resolve(service)?,
            None if service.prepares && service.longest_value_bytes > 0 => {
                let message = format!("{} needs values: value = {{ bytes = 100 }}", service.name);
                return error("workload.value", message);
            }
            None => Sizes::Fixed(0),
        };
        self.check_numbers(service, &mix)?;
        let keys_per_request = self.keys_per_request.unwrap_or(64);
        if !(1..=MOST_KEYS_PER_REQUEST).contains(&keys_per_request) {
            let message = format!("from 1 to {MOST_KEYS_PER_REQUEST}");
            return error("workload.keys_per_request", message);
        }
        let removes = mix
            .iter()
            .chain(&steps)
            .any(|(index, _)| service.operations[*index].kind == Kind::Remove);
        // A key that comes only once was never written.
        let one_hit = self.keys.as_ref().and_then(|keys| keys.one_hit);
        let comes_once = one_hit.is_some_and(|share| share.fraction > 0.0);
        let seed = self.seed.unwrap_or(1);
        Ok(Workload {
            service,
            mix,
            steps,
            sampler,
            keys,
            values: Values::new(seed, sizes),
            keys_per_request: keys_per_request as usize,
            misses_allowed: removes || comes_once || self.misses == Misses::Allowed,
            seed,
            requests: Arc::from([]),
            size: self.size,
            written_by: self.written_by,
        })
    }

    /// What is said of values that are numbers, and of who writes them.
    fn check_numbers(&self, service: &Service, mix: &[(usize, u32)]) -> Result<(), SpecError> {
        let error = |key: &'static str, message| Err(SpecError { key: key.into(), message });
        let numbers = service.longest_value_bytes == 0 && service.prepares;
        match self.size {
            Some(_) if !numbers => {
                return error(
                    "workload.size",
                    format!("values of {} have no elements", service.name),
                );
            }
            Some(size) if !(1..=MOST_ELEMENTS).contains(&size) => {
                let message = format!("{size} is not from 1 to {MOST_ELEMENTS} elements");
                return error("workload.size", message);
            }
            _ => {}
        }
        if numbers && self.value.is_some() {
            let message = format!(
                "values of {} are numbers: say size = 1_000 for arrays, or nothing",
                service.name
            );
            return error("workload.value", message);
        }
        let writes = |(index, _): &(usize, u32)| {
            matches!(service.operations[*index].kind, Kind::Write | Kind::Remove)
        };
        if self.written_by == WrittenBy::Target && mix.iter().any(writes) {
            let message = "the mix writes too: take written_by = \"clients\"".to_owned();
            return error("workload.written_by", message);
        }
        Ok(())
    }

    /// As [`WorkloadSpec::resolve_in`], with files read from where the program was started.
    ///
    /// # Errors
    /// Which key is wrong, and what would be right.
    pub fn resolve(&self, service: &'static Service) -> Result<Workload, SpecError> {
        self.resolve_in(service, Path::new(""))
    }

    /// The steps, each with how often it is done.
    pub(crate) fn resolve_steps(&self, service: &Service) -> Result<Vec<(usize, u32)>, SpecError> {
        let wrong = |message| SpecError { key: "workload.steps".into(), message };
        let mut steps = Vec::new();
        for step in self.steps.iter().flatten() {
            let (name, times) = match step.split_once('*') {
                Some((name, times)) => (name.trim(), times.trim().parse().unwrap_or(0)),
                None => (step.trim(), 1),
            };
            if times == 0 {
                let help = "write an operation, or one with how often it is done: \"get * 5\"";
                return Err(wrong(format!("\"{step}\" is no step; {help}")));
            }
            let operation = service.operation(name).ok_or_else(|| {
                wrong(format!(
                    "{} has no operation \"{name}\"; it has {}",
                    service.name,
                    names(service)
                ))
            })?;
            steps.push((operation, times));
        }
        let all: u64 = steps.iter().map(|(_, times)| u64::from(*times)).sum();
        match (self.steps.is_some(), all) {
            (true, 0) => Err(wrong("there are none".to_owned())),
            (_, all) if all > MOST_STEPS => {
                Err(wrong(format!("{all} in all; {MOST_STEPS} is the most, as each is kept")))
            }
            _ => Ok(steps),
        }
    }

    /// The mix; of a workload that is only steps, those that it takes.
    pub(crate) fn resolve_mix(
        &self,
        service: &Service,
        steps: &[(usize, u32)],
    ) -> Result<Vec<(usize, u32)>, SpecError> {
        let known = || names(service);
        let find = |key: &'static str, name: &str| {
            service.operation(name).ok_or_else(|| SpecError {
                key: key.into(),
                message: format!(
                    "{} has no operation \"{name}\"; it has {}",
                    service.name,
                    known()
                ),
            })
        };
        match (&self.operation, &self.mix) {
            (None, None) if !steps.is_empty() => Ok(steps.to_vec()),
            (Some(name), None) => Ok(vec![(find("workload.operation", name)?, 1)]),
            (None, Some(mix))
                if mix.values().copied().map(u64::from).sum::<u64>() > MOST_WEIGHT =>
            {
                let message = format!("weights of more than {MOST_WEIGHT} in all");
                Err(SpecError { key: "workload.mix".into(), message })
            }
            (None, Some(mix)) if mix.values().any(|weight| *weight > 0) => mix
                .iter()
                .filter(|(_, weight)| **weight > 0)
                .map(|(name, weight)| Ok((find("workload.mix", name)?, *weight)))
                .collect(),
            _ => Err(SpecError {
                key: "workload.mix".into(),
                message: format!(
                    "say either operation = \"…\" or mix = {{ … }} with weights; {} has {}",
                    service.name,
                    known()
                ),
            }),
        }
    }
}

/// The names of a service's operations.
fn names(service: &Service) -> String {
    let names: Vec<_> = service.operations.iter().map(|operation| operation.name).collect();
    names.join(", ")
}

impl Workload {
    /// The name of the mix: the operation, or `get:90 set:10`; of steps `load → sync × 5`.
    pub fn operation_label(&self) -> String {
        let name = |index: &usize| self.service.operations[*index].name;
        if !self.steps.is_empty() {
            let step = |(index, times): &(usize, u32)| match times {
                1 => name(index).to_owned(),
                times => format!("{} × {times}", name(index)),
            };
            return self.steps.iter().map(step).collect::<Vec<_>>().join(" → ");
        }
        match &self.mix[..] {
            [(index, _)] => name(index).to_owned(),
            mix => {
                let parts: Vec<_> =
                    mix.iter().map(|(index, weight)| format!("{}:{weight}", name(index))).collect();
                parts.join(" ")
            }
        }
    }

    /// Whether it changes values.
    pub fn writes(&self) -> bool {
        let changes = |kind| matches!(kind, Kind::Write | Kind::Remove);
        self.mix
            .iter()
            .chain(&self.steps)
            .any(|(index, _)| changes(self.service.operations[*index].kind))
    }

    /// How many keys are written before the load begins.
    pub fn prepared_keys(&self) -> u64 {
        let prepares = self.service.prepares && self.written_by == WrittenBy::Clients;
        if prepares { self.keys.count() } else { 0 }
    }

    /// Whether any of the mix's operations subscribes, and whether any does not.
    pub fn streams_and_calls(&self) -> (bool, bool) {
        let is_stream =
            |(index, _): &(usize, u32)| self.service.operations[*index].kind == Kind::Stream;
        (self.mix.iter().any(is_stream), !self.mix.iter().all(is_stream))
    }

    /// The oracle about a freshly prepared target.
    pub fn oracle(&self) -> Arc<Oracle> {
        // Versions are kept of what was prepared.
        let writes = self.writes() && self.service.prepares;
        let (keys, values) = (self.keys.clone(), self.values.clone());
        let oracle = Oracle::new(keys, values, self.misses_allowed, writes);
        let oracle = oracle.with_numbers(self.size, self.written_by);
        Arc::new(oracle.with_requests(self.requests.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    static SERVICE: Service = Service {
        name: "toy",
        doc: "A service for tests.",
        operations: &[
            Operation { name: "get", kind: Kind::Read, doc: "" },
            Operation { name: "delete", kind: Kind::Remove, doc: "" },
        ],
        dialects: &[],
        longest_key_bytes: 250,
        longest_value_bytes: 1 << 20,
        prepares: true,
    };

    fn resolve(text: &str) -> Result<Workload, SpecError> {
        toml::from_str::<WorkloadSpec>(text).expect("well formed").resolve(&SERVICE)
    }

    #[test]
    fn a_removing_workload_allows_misses() {
        let text = "service='toy'\nmix={get=9,delete=1}\nkeys={count=10}\nvalue={bytes=16}";
        let workload = resolve(text).unwrap();
        assert!(workload.misses_allowed && workload.writes());
        assert_eq!(workload.operation_label(), "delete:1 get:9");
    }

    #[test]
    fn steps_are_operations_in_order_each_so_often() {
        let rest = "service='toy'\nkeys={count=10}\nvalue={bytes=16}";
        let workload = resolve(&format!("steps=['get','delete','get * 5']\n{rest}")).unwrap();
        assert_eq!(workload.steps, [(0, 1), (1, 1), (0, 5)]);
        assert_eq!(workload.operation_label(), "get → delete → get × 5");
        assert!(workload.misses_allowed && workload.writes());
        let error = |steps: &str| resolve(&format!("steps={steps}\n{rest}")).unwrap_err().message;
        assert!(error("['gte']").contains("no operation \"gte\""));
        assert!(error("['get * 0']").contains("\"get * 0\" is no step"));
        assert!(error("['get x']").contains("no operation \"get x\""));
        assert_eq!(error("[]"), "there are none");
        assert!(error("['get * 1000001']").contains("1000000 is the most"));
    }

    #[test]
    fn what_makes_no_sense_is_named_with_what_would() {
        let error = |text: &str| resolve(text).unwrap_err().to_string();
        let rest = "keys={count=10}\nvalue={bytes=16}\nroom='toy'";
        assert_eq!(
            error(&format!("operation='gte'\n{rest}")),
            "toy has no operation \"gte\"; it has get, delete"
        );
        assert!(error(rest).contains("say either"));
        let many = "service='toy'\noperation='get'\nkeys={count=1001,bytes=4}\nvalue={bytes=16}";
        assert!(error(many).contains("`bytes` = 5"), "{}", error(many));
        let keyless = "service='toy'\noperation='get'\nvalue={bytes=16}";
        assert!(error(keyless).contains("toy needs keys"), "{}", error(keyless));
        let empty = "service='toy'\noperation='get'\nkeys={count=10}";
        assert!(error(empty).contains("toy needs values"), "{}", error(empty));
        let heavy = "mix={get=4_294_967_295,delete=1}";
        assert!(error(&format!("{heavy}\n{rest}")).contains("weights of more than 4294967295"));
        let described = "[[request]]\nname='a'\npath='/'";
        let described = error(&format!("operation='get'\n{rest}\n{described}"));
        assert_eq!(described, "toy has operations of its own: get, delete");
    }
}
