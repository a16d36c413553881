//! What disturbed a slice or a trial, as data. Its words are the reports'.

use serde::{Deserialize, Serialize};

/// One cause of disturbance in a slice, or the same cause over several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// What it was.
    pub kind: CauseKind,
    /// The target whose thread waited; `None` for the generator's, and with every other kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// How much it was at least, in the kind's unit.
    pub least: f64,
    /// How much it was at most.
    pub most: f64,
    /// The programs that used most CPU time, with the kinds of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
}

/// What may disturb: one kind for each rule of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Other programs' CPU time, as a share of the time of the run's cores.
    Foreign,
    /// The same where it is known from clock ticks only.
    ForeignTicks,
    /// The CPU time of the target and of other programs together, where its processes are unknown
    /// and others than one program used some: a share of the time of the run's cores.
    Unassigned,
    /// What the hypervisor kept of a core, as a share of the time.
    Steal,
    /// The longest pause of the host, in nanoseconds.
    Pause,
    /// All its pauses, as a share of the time.
    Pauses,
    /// Pages swapped in and out.
    Swap,
    /// How long a thread was ready to run and had no core, as a share of the time.
    Wait,
    /// The share of the periods of the CPU quota in which it was used up.
    Quota,
}

/// A program that is none of the run's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its name; `None` for what no reading saw.
    pub name: Option<String>,
    /// The cores that it used; `None` where it may have used them beside the run's cores.
    pub cores: Option<f64>,
}

impl Cause {
    /// A cause in one slice.
    pub fn new(kind: CauseKind, amount: f64) -> Self {
        Self { kind, target: None, least: amount, most: amount, programs: Vec::new() }
    }
}
