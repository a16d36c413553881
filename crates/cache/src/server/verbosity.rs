//! How much is logged of connections, as memcached's `-v` has it: errors (1), also connections and
//! commands (2), also changes of state (3). Lines per second are limited, so that the log
//! can't hold up the service. Control plane.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::model::Seconds;

/// Connections that end with an error are logged.
pub(super) const ERRORS: u8 = 1;

/// Connections and commands are logged.
pub(super) const COMMANDS: u8 = 2;

/// Changes of connections' states are logged.
pub(super) const STATES: u8 = 3;

/// The most lines about connections in one second; others are left out and counted.
const MAX_LINES_PER_SECOND: u32 = 1000;

/// The verbosity in force, and the budget of lines.
#[derive(Debug)]
pub(super) struct Verbosity {
    level: AtomicU8,
    /// The level with which the service was started: the log shows no more.
    max_level: u8,
    second: AtomicU32,
    /// Lines of that second.
    lines: AtomicU32,
    left_out: AtomicU64,
}

impl Verbosity {
    pub(super) fn new(level: u8) -> Self {
        Self {
            level: AtomicU8::new(level),
            max_level: level,
            second: AtomicU32::new(0),
            lines: AtomicU32::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Returns the level in force.
    #[inline]
    pub(super) fn level(&self) -> u8 {
        self.level.load(Relaxed)
    }

    /// Puts another level in force, at most the one at the start.
    pub(super) fn set(&self, level: u64) {
        let level = u8::try_from(level).unwrap_or(u8::MAX);
        self.level.store(level.min(self.max_level), Relaxed);
    }

    /// Whether a line of this level is logged now. Threads that meet in one second may log a few
    /// more than the limit.
    pub(super) fn allows(&self, level: u8, now_s: Seconds) -> bool {
        if self.level() < level {
            return false;
        }
        if self.second.swap(now_s, Relaxed) != now_s {
            self.lines.store(0, Relaxed);
            let left_out = self.left_out.swap(0, Relaxed);
            if left_out > 0 {
                tracing::info!(left_out, "lines about connections are left out of the log");
            }
        }
        let is_allowed = self.lines.fetch_add(1, Relaxed) < MAX_LINES_PER_SECOND;
        self.left_out.fetch_add(u64::from(!is_allowed), Relaxed);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_limited_number_of_lines_and_a_level_stays_below_that_of_the_start() {
        let verbosity = Verbosity::new(COMMANDS);
        let allowed =
            |level, second| (0..5000).filter(|_| verbosity.allows(level, second)).count() as u32;
        assert_eq!(allowed(COMMANDS, 7), MAX_LINES_PER_SECOND);
        assert_eq!((allowed(COMMANDS, 7), allowed(STATES, 8)), (0, 0));
        assert_eq!(allowed(ERRORS, 8), MAX_LINES_PER_SECOND);
        for (asked, level) in [(0, 0), (1, 1), (u64::MAX, COMMANDS)] {
            verbosity.set(asked);
            assert_eq!(verbosity.level(), level);
        }
    }
}
