//! When the owner has something to do without being asked.

use std::time::{Duration, Instant};

use super::environment::Environment;
use super::log::unix_us;

/// When the next minute of the calendars and the next checkpoint are due.
pub(super) struct Clock {
    pub(super) tick: Instant,
    pub(super) interval: Duration,
    pub(super) check: Instant,
    /// When ends of commands that a full disk refused are recorded again.
    pub(super) retry: Instant,
    /// When the text of the whole tree is dropped, where there is one.
    pub(super) forget: Option<Instant>,
}

impl Clock {
    /// The first tick is on the next whole minute, where the interval is one.
    pub(super) fn new(environment: &Environment) -> Self {
        let now = Instant::now();
        let interval = Duration::from_secs(environment.interval_s.into());
        let passed = unix_us().rem_euclid(60_000_000).unsigned_abs();
        let first = match environment.interval_s {
            60 => now + Duration::from_micros(60_000_000 - passed),
            _ => now + interval,
        };
        let check = now + Duration::from_secs(environment.check_interval_s.into());
        Self { tick: first, interval, check, retry: now, forget: None }
    }
}
