//! The parts of a report as lines and tables, made once for every form that shows them.
//!
//! | file | what it holds |
//! |---|---|
//! | `point`, `target` | a point: its targets, verdicts, requirements and wrong answers |
//! | `notes` | what has to be known beside the figures of a point |
//! | `samples` | the samples of operations in a process |
//! | `limits` | what limited its targets |
//! | `advice` | what their connections did, and what would help |
//! | `cost` | what one operation costs |
//! | `slow` | the slowest requests |
//! | `ladder`, `capacity` | the rungs of a ladder, and the loads of a search |
//! | `bytes` | bytes of a wrong answer |

use findings::Summary;

mod advice;
mod bytes;
mod capacity;
mod cost;
mod ladder;
mod limits;
mod notes;
mod point;
mod samples;
mod slow;
mod target;

pub(crate) use capacity::capacity;
pub(crate) use cost::cost;
pub(crate) use ladder::ladder;
pub(crate) use point::{carried, measured, point};
pub(crate) use slow::slowest;
pub(crate) use target::{grade, name, targets, value};

/// The claims and compromises of a run's suite, its note, and the targets that were skipped.
pub(crate) fn remarks(summary: &Summary) -> Vec<(&'static str, String)> {
    let claims = summary.suite.claims.iter().map(|one| ("claim", one.clone()));
    let compromises = summary.suite.compromises.iter().map(|one| ("compromise", one.clone()));
    let note = summary.run.note.iter().map(|one| ("note", one.clone()));
    let skipped = summary.targets.iter().filter_map(|target| {
        Some(("skipped", format!("{}: {}", target.name, target.skipped.as_ref()?)))
    });
    claims.chain(compromises).chain(note).chain(skipped).collect()
}
