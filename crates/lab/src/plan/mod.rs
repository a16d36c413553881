//! From a suite file to what will run: points, targets, clients and rounds, all checked before
//! anything starts.
//!
//! What was written is in `suite`; what it means is here. Control plane.

mod address;
mod arrivals;
mod check;
mod clients;
mod compare;
mod error;
mod event;
mod expression;
mod figures;
mod fill;
mod near;
mod notes;
mod percentile;
mod require;
mod resolve;
mod rounds;
mod rung;
mod suite;
mod sweep;
mod target;
#[cfg(test)]
mod toy;
mod types;
mod wording;

use std::path::Path;

use base::units::Span;

#[cfg(test)]
pub(crate) use arrivals::arrivals_of;
pub use compare::Contest;
pub use error::SuiteError;
pub use event::{Action, Event};
pub use expression::Expression;
pub(crate) use percentile::percentile;
pub use require::{Comparison, Requirement};
pub(crate) use require::{ERRORS, OF_THOSE_ASKED};
pub use rounds::MIN_MEASURE;
pub use rung::Rung;
pub use sweep::parse_setting;
pub use types::{
    CheckArguments, CountersOf, DefaultOf, KeptData, MakePage, Medium, Plan, Point, Registry,
    Rounds, Sequence, Target, TargetKind,
};

pub use crate::drive::{Arrivals, Clients, Schedule, Spacing, Stretch};

/// People write suites: what is longer is something else.
pub const MAX_SUITE_BYTES: u64 = 4 << 20;

impl Plan {
    /// Reads the suite at `path` with `settings` applied over it.
    ///
    /// # Errors
    /// What is wrong, with file, line and column, and what would be right.
    pub fn read(
        path: &Path,
        settings: &[(String, toml::Value)],
        registry: Registry<'_>,
    ) -> Result<Self, Box<SuiteError>> {
        let text = base::read_text(path, MAX_SUITE_BYTES).map_err(|error| {
            let source = error::Source::new(path, String::new());
            let (message, help) = near::unread(path, &error);
            source.error(None, message, help)
        })?;
        Self::parse(path, text, settings, registry)
    }

    /// Reads a suite from `text`; `path` is its name in messages.
    ///
    /// # Errors
    /// As [`Plan::read`].
    pub fn parse(
        path: &Path,
        text: String,
        settings: &[(String, toml::Value)],
        registry: Registry<'_>,
    ) -> Result<Self, Box<SuiteError>> {
        resolve::resolve(path, text, settings, registry)
    }

    /// How long the suite takes at least: every round with its starts, preparation and warm-up.
    pub fn shortest(&self) -> Span {
        let rounds = u64::from(self.rounds.at_least);
        let trial = |point: &Point| {
            let targets = point.targets.iter().filter(|target| target.is_measured());
            let parts = point.workload.workload.preparation().parts;
            let prepare_ns = START_NS + parts.saturating_mul(PREPARE_NS_PER_PART);
            let one = prepare_ns + self.rounds.warm_up.ns + self.rounds.measure.ns;
            (targets.count() as u64).saturating_mul(one)
        };
        let all = self.points.iter().map(trial).fold(0, u64::saturating_add);
        Span { ns: all.saturating_mul(rounds) }
    }

    /// How long it takes when as many slices are disturbed, and measured again, as may be.
    pub fn shortest_disturbed(&self) -> Span {
        let Rounds { measure, slice, at_least, repeat_disturbed, is_cold, .. } = &self.rounds;
        let slice_ns = slice.unwrap_or(*measure).ns.max(1);
        let again_ns = measure.ns.div_ceil(slice_ns).div_ceil(2) * slice_ns;
        let trials = |point: &Point| {
            let here = point.targets.iter().filter(|target| target.is_measured()).count();
            if *repeat_disturbed && !is_cold { here as u64 } else { 0 }
        };
        let trials: u64 = self.points.iter().map(trials).sum();
        let again_ns = trials.saturating_mul(again_ns).saturating_mul(u64::from(*at_least));
        Span { ns: self.shortest().ns.saturating_add(again_ns) }
    }

    /// The overrides, each with its value as TOML writes it.
    pub fn settings_as_text(&self) -> Vec<(String, String)> {
        self.settings.iter().map(|(key, value)| (key.clone(), value.to_string())).collect()
    }

    /// The names of all targets, in order, with the reason for each that is left out.
    pub fn targets(&self) -> &[Target] {
        self.points.first().map_or(&[], |point| &point.targets)
    }
}

/// Starting and stopping one process, as a rule.
const START_NS: u64 = 150_000_000;

/// Writing one part of the preparation, such as a key, as a rule.
const PREPARE_NS_PER_PART: u64 = 2_000;
