//! Which tasks are being run or queued by whom: what their state should be is known of a task that
//! only one client has changed meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

/// The changes of each task: how many were begun (upper half), and are under way (lower half).
#[derive(Debug, Default)]
pub(super) struct Runs(Vec<AtomicU64>);

/// A change of a task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Which one of the task's.
    number: u64,
    is_first: bool,
}

/// A change of one task.
const BEGUN: u64 = (1 << 32) | 1;

impl Runs {
    /// This number of tasks, none changed yet.
    pub(super) fn of(tasks: u64) -> Self {
        Self((0..tasks).map(|_| AtomicU64::new(0)).collect())
    }

    /// A change begins.
    pub(super) fn begin(&self, key: u64) -> Run {
        let before =
            self.0.get(key as usize).map_or(0, |one| one.fetch_add(BEGUN, Ordering::AcqRel));
        Run { number: (before >> 32) + 1, is_first: before as u32 == 0 }
    }

    /// It ends. One that never ends makes the check of its task more lenient.
    pub(super) fn end(&self, key: u64) {
        if let Some(one) = self.0.get(key as usize) {
            one.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether no other change of the task was under way since it began.
    pub(super) fn is_alone(&self, key: u64, run: Run) -> bool {
        let begun = self.0.get(key as usize).map_or(0, |one| one.load(Ordering::Acquire) >> 32);
        run.is_first && begun == run.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_overlap_are_not_alone() {
        let runs = Runs::of(2);
        let one = runs.begin(0);
        assert!(runs.is_alone(0, one));
        let two = runs.begin(0);
        assert!(!runs.is_alone(0, one) && !runs.is_alone(0, two));
        runs.end(0);
        assert!(!runs.is_alone(0, one));
        runs.end(0);
        let three = runs.begin(0);
        assert!(runs.is_alone(0, three));
        let elsewhere = runs.begin(1);
        assert!(runs.is_alone(1, elsewhere));
    }
}
