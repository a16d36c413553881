//! The results of a checkup.

use lab::observe::{Disturbance, SensorCheck};
use serde_json::Value;

use super::{ceiling, measure};

/// Everything that was measured.
#[derive(Debug)]
pub(super) struct Checkup {
    /// The cores that this process may use.
    pub(super) cpus: Vec<usize>,
    /// Facts by name, as every run keeps them.
    pub(super) fingerprint: Value,
    pub(super) clock_read_ns: f64,
    pub(super) timers: Vec<measure::Timer>,
    pub(super) floor: measure::Floor,
    /// What others did meanwhile.
    pub(super) others: Disturbance,
    /// What watching a run costs, as a share of one core.
    pub(super) watching: f64,
    pub(super) round_trip: lab::observe::RoundTrip,
    pub(super) copied_bytes_per_s: f64,
    pub(super) ceilings: Vec<ceiling::Ceiling>,
    pub(super) engine: Vec<ceiling::Engine>,
    pub(super) seen: Vec<SensorCheck>,
}

impl Checkup {
    /// A fact of the fingerprint; `None` is unseen.
    pub(super) fn fact(&self, name: &str) -> Option<&str> {
        self.fingerprint.get(name).and_then(Value::as_str)
    }
}
