//! What is wrong with a definition before it runs: what ecFlow's parser refuses ([`check`]), and
//! what can never run as it is written ([`lint`]). No I/O.
//!
//! What can run is computed from below: nothing can at first, then whatever waits for nothing, then
//! whatever waits for what can. States are sets, so that each expression is asked whether it can
//! hold, not whether it does. What is left over never runs unless somebody helps, and the reason is
//! searched for there: an expression that contradicts itself, a circle, a limit without room.

mod domain;
mod finding;
mod limits;
mod reach;
mod reasons;
mod scripts;

pub use finding::{Finding, Level, sort};
pub use scripts::scripts;

use crate::definition::Examined;
use crate::model::Date;

/// What ecFlow refuses or warns of: lines and references. Sorted by line.
#[must_use]
pub fn check(examined: &Examined) -> Vec<Finding> {
    let faults = examined.faults.iter();
    let mut found: Vec<Finding> =
        faults.map(|fault| Finding::of_fault(Level::Error, "syntax", fault)).collect();
    let passed = examined.warnings.iter();
    found.extend(passed.map(|fault| Finding::of_fault(Level::Warning, "passed-over", fault)));
    if examined.is_read {
        found.extend(limits::references(examined));
    }
    sort(&mut found);
    found
}

/// What [`check`] finds, and what never runs or is not used; `today` tells which dates have
/// passed. Sorted by line.
#[must_use]
pub fn lint(examined: &Examined, today: Date) -> Vec<Finding> {
    let mut found = check(examined);
    if examined.is_read {
        found.extend(limits::unused(examined));
        found.extend(limits::stuck(examined));
    }
    if examined.faults.is_empty() {
        let reach = reach::Reach::of(&examined.tree, today);
        found.extend(reasons::findings(examined, &reach));
    }
    sort(&mut found);
    found
}

#[cfg(test)]
mod tests;
