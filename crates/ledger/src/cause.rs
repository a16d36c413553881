//! What disturbed a slice or a trial, as data. Its words are the reports'.

use serde::{Deserialize, Serialize};

/// One cause of disturbance in a slice, or the same cause over several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// What it was.
    #[serde(flatten)]
    pub kind: CauseKind,
    /// How much it was at least, in the kind's unit; a share is from 0 to 1.
    pub least: f64,
    /// How much it was at most, in the kind's unit.
    pub most: f64,
    /// Those that used most, [`MAX_PROGRAMS`] at the most; empty for every kind but `Foreign`,
    /// `ForeignTicks` and `Unassigned`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
}

/// The most programs that a cause keeps: more than are worth a line, so that one which used little
/// in each slice and much in all is still there when they are summed.
pub const MAX_PROGRAMS: usize = 8;

/// What may disturb, and its unit: one kind for each rule of the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CauseKind {
    /// Other programs' CPU time, as a share of the time of the run's cores.
    Foreign,
    /// The same where it is known from clock ticks only.
    ForeignTicks,
    /// The CPU time of the target and of other programs together, where the target's processes are
    /// unknown and more than one program used some: a share of the time of the run's cores.
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
    Wait {
        /// The target that it belongs to; `None` is the generator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
    /// The share of the periods of the CPU quota in which it was used up.
    Quota,
}

/// A program that is none of the run's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its name; `None` for what no reading saw.
    pub name: Option<String>,
    /// The cores that it used; `None` if it could also run outside the run's cores.
    pub cores: Option<f64>,
}

impl Cause {
    /// A cause in one slice.
    pub fn new(kind: CauseKind, amount: f64) -> Self {
        Self { kind, least: amount, most: amount, programs: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_stored_as_an_object_of_its_kind_and_figures() {
        let waited = |target: Option<&str>| CauseKind::Wait { target: target.map(str::to_owned) };
        let programs = vec![Program { name: Some("rustc".to_owned()), cores: None }];
        for (cause, stored) in [
            (Cause::new(CauseKind::Swap, 17.0), r#"{"kind":"swap","least":17.0,"most":17.0}"#),
            (
                Cause::new(waited(Some("redis")), 0.07),
                r#"{"kind":"wait","target":"redis","least":0.07,"most":0.07}"#,
            ),
            (Cause::new(waited(None), 0.07), r#"{"kind":"wait","least":0.07,"most":0.07}"#),
            (
                Cause { programs, ..Cause::new(CauseKind::ForeignTicks, 0.5) },
                concat!(
                    r#"{"kind":"foreign_ticks","least":0.5,"most":0.5,"#,
                    r#""programs":[{"name":"rustc","cores":null}]}"#,
                ),
            ),
        ] {
            assert_eq!(serde_json::to_string(&cause).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Cause>(stored).unwrap(), cause);
        }
    }
}
