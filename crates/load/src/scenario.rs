//! What every suite's `[workload]` says, whatever the service: which operations are done how often
//! ([`WorkloadSpec`] as written, [`Scenario`] as meant).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::mix::scramble;
use crate::operation::{Kind, Operation};
use crate::part::{COMMON, Part, SpecError, read_table};
use crate::service::Service;
use crate::workload::Workload;

/// `[workload]` as written.
#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    /// The keys that every workload has.
    common: Common,
    /// The service's part.
    own: toml::Table,
    /// Whether the service is named by `room`, as suites once did.
    pub says_room: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    /// The service whose operations these are.
    service: String,
    /// One operation: short for a mix of one.
    operation: Option<String>,
    /// Operations with their weights.
    mix: Option<BTreeMap<String, u32>>,
    /// Operations that are done in this order, each so often: `get`, `get * 5`.
    steps: Option<Vec<String>>,
    /// Where the random numbers start; 1 unless said otherwise.
    seed: Option<u64>,
}

/// What slots do: a service's workload, and which of its operations, by weight or in which order.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The service.
    pub service: &'static Service,
    /// Its workload.
    pub workload: Arc<dyn Workload>,
    /// Operations, as indices into the workload's, with their weights; none is zero.
    pub mix: Vec<(usize, u32)>,
    /// Operations that are done in this order, by clients that take steps: each, and how often.
    pub steps: Vec<(usize, u32)>,
    /// Where the random numbers start.
    pub seed: u64,
}

/// The weights of a mix may add up to this: an operation is drawn by 32 random bits.
const MAX_WEIGHT: u64 = u32::MAX as u64;

/// At most this many steps in one pass: every one's time is kept.
const MAX_STEPS: u64 = 1_000_000;

impl WorkloadSpec {
    /// Reads what `[workload]` holds.
    ///
    /// # Errors
    /// Names the key that can't be read.
    pub fn read(mut table: toml::Table) -> Result<Self, SpecError> {
        let room = table.remove("room");
        let says_room = room.is_some();
        if let Some(room) = room
            && table.insert("service".to_owned(), room).is_some()
        {
            let message = "`room` was the name of `service`: say one of them";
            return Err(SpecError::new("workload.room", message));
        }
        let (common, own) = table.into_iter().partition(|(key, _)| COMMON.contains(&&key[..]));
        let common = read_table("workload", common, &[])?;
        Ok(Self { common, own, says_room })
    }

    /// The name of the service.
    pub fn service(&self) -> &str {
        &self.common.service
    }

    /// The key by which operations are chosen for all clients, if any is.
    pub fn chosen_by(&self) -> Option<&'static str> {
        let Common { operation, mix, steps, .. } = &self.common;
        match () {
            () if operation.is_some() => Some("operation"),
            () if mix.is_some() => Some("mix"),
            () if steps.is_some() => Some("steps"),
            () => None,
        }
    }

    /// The service's workload, with no operation chosen yet. Files that it names are read from
    /// `folder`, where the suite is.
    ///
    /// # Errors
    /// Names the key that is wrong, and what would be right.
    pub fn workload(
        &self,
        service: &'static Service,
        folder: &Path,
    ) -> Result<Scenario, SpecError> {
        let seed = self.common.seed.unwrap_or(1);
        let part = Part { service: service.name, table: &self.own, folder, seed };
        let workload = (service.read)(&part)?;
        Ok(Scenario { service, workload, mix: Vec::new(), steps: Vec::new(), seed })
    }

    /// `scenario` with the operations that are chosen for all clients.
    ///
    /// # Errors
    /// As [`WorkloadSpec::workload`].
    pub fn choose(&self, scenario: &Scenario) -> Result<Scenario, SpecError> {
        let Common { operation, mix, steps, .. } = &self.common;
        let steps = scenario.steps_of(steps.as_deref())?;
        let mix = match (operation, mix) {
            (None, None) if !steps.is_empty() => steps.clone(),
            _ => scenario.mix_of("workload", operation.as_deref(), mix.as_ref())?,
        };
        Ok(Scenario { mix, steps, ..scenario.clone() })
    }
}

impl Scenario {
    /// Reads the text of a `[workload]` without the head, for `service`.
    ///
    /// # Errors
    /// Names the key that is wrong, and what would be right.
    pub fn parse(text: &str, service: &'static Service) -> Result<Self, SpecError> {
        let table = text.parse::<toml::Table>();
        let table = table.map_err(|error| SpecError::new("workload", error.message()))?;
        let spec = WorkloadSpec::read(table)?;
        let scenario = spec.choose(&spec.workload(service, Path::new(""))?)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The steps, each with how often it is done.
    fn steps_of(&self, written: Option<&[String]>) -> Result<Vec<(usize, u32)>, SpecError> {
        let wrong = |message: String| SpecError::new("workload.steps", message);
        let mut steps = Vec::new();
        for step in written.into_iter().flatten() {
            let (name, times) = match step.split_once('*') {
                Some((name, times)) => (name.trim(), times.trim().parse().unwrap_or(0)),
                None => (step.trim(), 1),
            };
            if times == 0 {
                let help = "write an operation, or one with how often it is done: \"get * 5\"";
                return Err(wrong(format!("\"{step}\" is no step; {help}")));
            }
            steps.push((self.operation("workload.steps", name)?, times));
        }
        let all: u64 = steps.iter().map(|(_, times)| u64::from(*times)).sum();
        match (written.is_some(), all) {
            (true, 0) => Err(wrong("there are none".to_owned())),
            (_, all) if all > MAX_STEPS => {
                Err(wrong(format!("{all} in all; {MAX_STEPS} is the most, as each is kept")))
            }
            _ => Ok(steps),
        }
    }

    /// The operations of `operation = "…"` or `mix = { … }`, which stand below `key`.
    ///
    /// # Errors
    /// Names the key that is wrong, and what would be right.
    pub fn mix_of(
        &self,
        key: &str,
        operation: Option<&str>,
        mix: Option<&BTreeMap<String, u32>>,
    ) -> Result<Vec<(usize, u32)>, SpecError> {
        let mix_key = format!("{key}.mix");
        match (operation, mix) {
            (Some(name), None) => Ok(vec![(self.operation(&format!("{key}.operation"), name)?, 1)]),
            (None, Some(mix)) if mix.values().copied().map(u64::from).sum::<u64>() > MAX_WEIGHT => {
                let message = format!("weights of more than {MAX_WEIGHT} in all");
                Err(SpecError::new(mix_key, message))
            }
            (None, Some(mix)) if mix.values().any(|weight| *weight > 0) => mix
                .iter()
                .filter(|(_, weight)| **weight > 0)
                .map(|(name, weight)| Ok((self.operation(&mix_key, name)?, *weight)))
                .collect(),
            _ => {
                let message = format!(
                    "say either operation = \"…\" or mix = {{ … }} with weights; {} has {}",
                    self.service.name,
                    self.names()
                );
                Err(SpecError::new(mix_key, message))
            }
        }
    }

    fn operation(&self, key: &str, name: &str) -> Result<usize, SpecError> {
        self.operations().iter().position(|row| row.name == name).ok_or_else(|| {
            let (service, known) = (self.service.name, self.names());
            let message = format!("{service} has no operation \"{name}\"; it has {known}");
            SpecError::new(key.to_owned(), message)
        })
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.operations().iter().map(|row| &row.name[..]).collect();
        names.join(", ")
    }

    /// The workload's operations.
    pub fn operations(&self) -> &[Operation] {
        self.workload.operations()
    }

    /// The name of the mix: the operation, or `get:90 set:10`; of steps `load → sync × 5`.
    pub fn operation_label(&self) -> String {
        let name = |index: &usize| self.operations()[*index].name.to_string();
        if !self.steps.is_empty() {
            let step = |(index, times): &(usize, u32)| match times {
                1 => name(index),
                times => format!("{} × {times}", name(index)),
            };
            return self.steps.iter().map(step).collect::<Vec<_>>().join(" → ");
        }
        match &self.mix[..] {
            [(index, _)] => name(index),
            mix => {
                let parts: Vec<_> =
                    mix.iter().map(|(index, weight)| format!("{}:{weight}", name(index))).collect();
                parts.join(" ")
            }
        }
    }

    /// Whether any of the mix's operations subscribes, and whether any does not.
    pub fn streams_and_calls(&self) -> (bool, bool) {
        let is_stream = |(index, _): &(usize, u32)| self.operations()[*index].kind == Kind::Stream;
        (self.mix.iter().any(is_stream), !self.mix.iter().all(is_stream))
    }

    /// The workload about a target that has just been prepared.
    pub fn begin(&self) -> Arc<dyn Workload> {
        self.workload.clone().begin(&self.asked())
    }

    /// Whether the operations can be done together.
    ///
    /// # Errors
    /// As [`WorkloadSpec::workload`].
    pub fn check(&self) -> Result<(), SpecError> {
        self.workload.check(&self.asked())
    }

    /// The operations of mix and steps, each once.
    fn asked(&self) -> Vec<usize> {
        let all = self.mix.iter().chain(&self.steps);
        let mut operations: Vec<usize> = all.map(|(operation, _)| *operation).collect();
        operations.sort_unstable();
        operations.dedup();
        operations
    }

    /// The seed of one slot's operations in one round.
    pub(crate) fn seed_of(&self, round: u64, slot: u64) -> u64 {
        scramble(self.seed ^ scramble(round ^ scramble(slot)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null;

    fn error(text: &str) -> (String, String) {
        let error = Scenario::parse(text, &null::SERVICE).unwrap_err();
        (error.key.to_string(), error.message)
    }

    #[test]
    fn steps_are_operations_in_order_each_so_often() {
        let read =
            |steps: &str| Scenario::parse(&format!("service='null'\n{steps}"), &null::SERVICE);
        let scenario = read("steps=['ask','ask * 5']").unwrap();
        assert_eq!(scenario.steps, [(0, 1), (0, 5)]);
        assert_eq!(scenario.operation_label(), "ask → ask × 5");
        let message = |steps: &str| read(&format!("steps={steps}")).unwrap_err().message;
        assert!(message("['gte']").contains("no operation \"gte\""));
        assert!(message("['ask * 0']").contains("\"ask * 0\" is no step"));
        assert!(message("['ask x']").contains("no operation \"ask x\""));
        assert_eq!(message("[]"), "there are none");
        assert!(message("['ask * 1000001']").contains("1000000 is the most"));
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_key_and_what_would() {
        let (key, message) = error("service='null'\noperation='gte'");
        assert_eq!(key, "workload.operation");
        assert_eq!(message, "null has no operation \"gte\"; it has ask");
        assert!(error("room='null'").1.contains("say either"));
        assert_eq!(error("room='null'\nservice='null'").0, "workload.room");
        let (key, message) = error("service='null'\noperaton='ask'");
        assert_eq!(key, "workload.operaton");
        assert!(message.contains("unknown field `operaton`"), "{message}");
        assert_eq!(error("service='null'\nseed='x'\noperation='ask'").0, "workload.seed");
        let heavy = "service='null'\nmix={ask=4_294_967_295,other=1}";
        assert!(error(heavy).1.contains("weights of more than 4294967295"));
    }
}
