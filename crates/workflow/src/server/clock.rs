//! When the owner has something to do without being asked.

use std::time::{Duration, Instant};

use super::environment::Environment;
use super::log::unix_us;

/// When the next minute of the calendars and the next checkpoint are due.
pub(super) struct Clock {
    pub(super) tick: Instant,
    interval: Duration,
    /// Whether the server has run since this process began: until then the calendars stand still.
    pub(super) has_run: bool,
    pub(super) check: Instant,
    /// When ends of commands that a full disk refused are recorded again.
    pub(super) retry: Instant,
    /// When the text that is kept for others is dropped, where there is one.
    pub(super) forget: Option<Instant>,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Clock {
    /// The first tick is on the next whole minute, where the interval is one.
    pub(super) fn new(environment: &Environment) -> Self {
        // The time of day is read first: a tick is never before its minute.
        let (at_us, now) = (unix_us(), Instant::now());
        let interval = Duration::from_secs(environment.interval_s.into());
        let check = now + Duration::from_secs(environment.check_interval_s.into());
        let (has_run, retry, forget) = (false, now, None);
        let mut clock = Self { tick: now, interval, has_run, check, retry, forget };
        clock.ticked(at_us, now);
        clock
    }

    /// There has been a tick. The next one is on the minute of the time of day, which may have been
    /// set meanwhile.
    pub(super) fn ticked(&mut self, at_us: i64, now: Instant) {
        if self.interval == MINUTE {
            let passed = at_us.rem_euclid(60_000_000).unsigned_abs();
            self.tick = now + MINUTE - Duration::from_micros(passed);
            return;
        }
        while self.tick <= now {
            self.tick += self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_that_of_the_time_of_day_also_when_that_is_set() {
        let start = Instant::now();
        let seconds = Duration::from_secs;
        let (tick, check, retry, has_run) = (start, start, start, true);
        let mut clock = Clock { tick, interval: MINUTE, has_run, check, retry, forget: None };
        clock.ticked(90_000_000, start);
        assert_eq!(clock.tick, start + seconds(30));
        // On its minute, as it should be; and 20 seconds behind, as it was set.
        clock.ticked(120_000_000, start + seconds(30));
        assert_eq!(clock.tick, start + seconds(90));
        clock.ticked(200_000_000, start + seconds(90));
        assert_eq!(clock.tick, start + seconds(130));
        clock.interval = seconds(10);
        clock.ticked(0, start + seconds(155));
        assert_eq!(clock.tick, start + seconds(160));
    }
}
