//! A suite's clock as it is stated, and its calendar: where the clock stands.

use super::time::{Date, Duration, Instant};

/// `clock` and `endclock` of a suite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// Whether the date stands still.
    pub hybrid: bool,
    /// The date on which it starts: day, month, year.
    pub date: Option<(u8, u8, u16)>,
    /// Seconds added to the time.
    pub gain_s: i64,
    /// Whether the gain was written with a plus.
    pub plus: bool,
}

/// A suite's calendar: its clock's state since begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Calendar {
    /// The suite's time at begin.
    pub init: Instant,
    /// The suite's time.
    pub suite: Instant,
    /// How long it has run.
    pub duration: Duration,
    /// The server's time at begin.
    pub init_local: Instant,
    /// The server's time of the last update.
    pub last: Instant,
    /// How far the last update went.
    pub increment: Duration,
    /// Whether midnight passed in it.
    pub day_changed: bool,
}

impl Clock {
    /// The time at which a suite begins by it, when it is `now`.
    #[must_use]
    pub fn start(&self, now: Instant) -> Instant {
        let from = match self.date {
            Some((day, month, year)) => {
                Date::new(year.into(), month.into(), day.into()).map_or(now, Instant::midnight)
            }
            None => now,
        };
        from.plus(Duration::seconds(self.gain_s))
    }
}

impl Calendar {
    /// A calendar at begin.
    #[must_use]
    pub const fn begin(start: Instant, now: Instant) -> Self {
        Self {
            init: start,
            suite: start,
            duration: Duration::ZERO,
            init_local: now,
            last: now,
            increment: Duration::minutes(1),
            day_changed: false,
        }
    }

    /// Moves to `now`, or by `step` where one is given (a simulation, or a server that polls more
    /// often than once a minute). With a hybrid clock the date stands still.
    pub fn update(&mut self, now: Instant, step: Option<Duration>, hybrid: bool) {
        let before = self.suite.date();
        match step {
            Some(step) => {
                self.duration = self.duration.plus(step);
                self.increment = step;
            }
            None => {
                self.duration = now.since(self.init_local);
                self.increment = now.since(self.last);
                self.last = now;
            }
        }
        self.suite = self.suite.plus(self.increment);
        self.day_changed = before.weekday() != self.suite.date().weekday();
        if hybrid && self.suite.date() != self.init.date() {
            self.suite = Instant::midnight(self.init.date()).plus(self.suite.time_of_day());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_date_stands_still() {
        let start = Instant::of_text("2026-Nov-22", "23:59:00").expect("a time");
        let mut calendar = Calendar::begin(start, start);
        calendar.update(calendar.last, Some(Duration::minutes(2)), true);
        assert_eq!(calendar.suite.to_string(), "2026-Nov-22 00:01:00");
        assert!(calendar.day_changed);
    }
}
