//! Times of a day, single or in a row, and the calendar by which they are reached: the rules of
//! `time`, `today` and `cron`, each a function of the attribute and a suite's calendar.

use super::calendar::Calendar;
use super::time::{Date, Duration, Slot};

/// A time of day, or times from start to finish, and whether it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// The first time.
    pub start: Slot,
    /// The last time, and the step, of a row.
    pub until: Option<(Slot, Slot)>,
    /// `+`: since the suite began, or the node was queued again.
    pub relative: bool,
    /// The next time.
    pub next: Slot,
    /// Whether a time is still to come.
    pub is_valid: bool,
    /// Whether the time has come.
    pub free: bool,
    /// How long it has waited (`+`).
    pub waited: Duration,
    /// When a row was queued again: past midnight it waits until then.
    pub requeued_at: Option<Slot>,
}

impl Series {
    /// A series that starts.
    #[must_use]
    pub const fn new(start: Slot, until: Option<(Slot, Slot)>, relative: bool) -> Self {
        Self {
            start,
            until,
            relative,
            next: start,
            is_valid: true,
            free: false,
            waited: Duration::ZERO,
            requeued_at: None,
        }
    }

    /// The last time of the row that the steps reach.
    fn last(&self) -> Slot {
        match self.until {
            Some((finish, step)) if step.minutes > 0 => {
                let steps = (finish.minutes - self.start.minutes) / step.minutes;
                Slot { minutes: self.start.minutes + steps * step.minutes }
            }
            _ => self.start,
        }
    }

    /// The time that counts, in whole minutes: of the day, or waited.
    #[must_use]
    pub fn now(&self, calendar: &Calendar) -> Slot {
        let time = if self.relative { self.waited } else { calendar.suite.time_of_day() };
        Slot { minutes: i32::try_from(time.whole_minutes()).unwrap_or(i32::MAX) }
    }

    /// The calendar has moved; whether anything changed.
    pub fn calendar_changed(&mut self, calendar: &Calendar) -> bool {
        if self.relative {
            self.waited = self.waited.plus(calendar.increment);
            return true;
        }
        if calendar.day_changed {
            self.is_valid = true;
            self.next = self.start;
        }
        calendar.day_changed
    }

    /// Steps to the first time that is later than `now`, or not earlier.
    fn advance(&mut self, now: Slot, is_past: impl Fn(Slot, Slot) -> bool) {
        let Some((finish, step)) = self.until else { return };
        if step.minutes > 0 && is_past(now, self.next) {
            let behind = now.minutes - self.next.minutes;
            self.next.minutes += behind / step.minutes * step.minutes;
            // It is less than a step behind.
            if is_past(now, self.next) {
                self.next = self.next.plus(step);
            }
        }
        if self.next > finish {
            self.is_valid = false;
        }
    }

    /// As before begin.
    pub fn reset_only(&mut self) {
        self.is_valid = true;
        self.next = self.start;
        self.waited = Duration::ZERO;
    }

    /// At begin: a time that is now still counts.
    pub fn reset(&mut self, calendar: &Calendar) {
        self.reset_only();
        let now = self.now(calendar);
        if self.until.is_some() {
            if !self.relative {
                self.requeued_at = Some(time_of_day(calendar));
            }
            self.advance(now, |now, next| now > next);
        } else if now > self.start {
            self.is_valid = false;
        }
    }

    /// At a requeue: a time that is now has been used. `reset` begins the row again.
    pub fn requeue(&mut self, calendar: &Calendar, reset: bool) {
        if reset {
            self.is_valid = true;
            self.next = self.start;
        }
        let now = self.now(calendar);
        if self.until.is_none() {
            if now >= self.start {
                self.is_valid = false;
            }
            return;
        }
        if !self.relative {
            self.requeued_at = Some(time_of_day(calendar));
        }
        self.advance(now, |now, next| now >= next);
        if !self.is_valid {
            self.requeued_at = None;
        }
    }

    /// Whether the time has come, apart from [`Series::free`].
    #[must_use]
    pub fn is_now(&self, calendar: &Calendar) -> bool {
        if !self.is_valid {
            return false;
        }
        let now = self.now(calendar);
        match self.until {
            None => now == self.start,
            Some((finish, step)) => {
                let since = now.minutes - self.next.minutes;
                now <= finish && since >= 0 && step.minutes > 0 && since % step.minutes == 0
            }
        }
    }

    /// Whether `today` holds: a single time that has passed does, too.
    #[must_use]
    pub fn is_now_or_passed(&self, calendar: &Calendar) -> bool {
        self.until.is_none() && self.now(calendar) > self.start || self.is_now(calendar)
    }

    /// Gives up the next time: it was run by hand.
    pub fn miss_next(&mut self) {
        match self.until {
            None => self.is_valid = false,
            Some((finish, step)) => {
                self.next = self.next.plus(step);
                if self.next > finish {
                    self.is_valid = false;
                }
            }
        }
    }

    /// Whether a completed node is to be queued for a later time. `least` and `most` are those of
    /// all times of the node; `by_command`: by an operator, for whom an earlier time counts.
    pub fn wants_requeue(
        &mut self,
        calendar: &Calendar,
        (least, most): (Slot, Slot),
        by_command: bool,
    ) -> bool {
        if !self.is_valid {
            return false;
        }
        let now = self.now(calendar);
        let Some((finish, _)) = self.until else {
            return least != most && (by_command || now >= least) && now < most;
        };
        if self.next > finish {
            return false;
        }
        if let Some(at) = self.requeued_at.filter(|_| !self.relative) {
            if time_of_day(calendar) < at {
                return false;
            }
            self.requeued_at = None;
        }
        (by_command || now >= self.start) && now < self.last()
    }

    /// The earliest and the latest time.
    #[must_use]
    pub fn range(&self) -> (Slot, Slot) {
        let finish = self.until.map_or(self.start, |(finish, _)| finish);
        (self.start.min(finish), self.start.max(finish))
    }
}

fn time_of_day(calendar: &Calendar) -> Slot {
    Slot { minutes: calendar.suite.time_of_day().whole_minutes() as i32 }
}

/// `cron`: a series on some days.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cron {
    /// `-w`: days of the week, 0 is Sunday.
    pub weekdays: Vec<u8>,
    /// `-w 5L`: the last such day of a month.
    pub last_weekdays: Vec<u8>,
    /// `-d`: days of the month.
    pub days: Vec<u8>,
    /// `-d L`: the last day of the month.
    pub last_day: bool,
    /// `-m`: months.
    pub months: Vec<u8>,
    /// The times.
    pub series: Series,
}

impl Cron {
    /// Whether it runs on this day.
    #[must_use]
    pub fn is_on(&self, date: Date) -> bool {
        let (_, month, day) = date.parts();
        let end = date.end_of_month();
        let has = |list: &[u8], number: i32| list.iter().any(|item| i32::from(*item) == number);
        let is_last_week = end.julian - date.julian < 7;
        let by_week = has(&self.weekdays, date.weekday())
            || is_last_week && has(&self.last_weekdays, date.weekday())
            || self.weekdays.is_empty() && self.last_weekdays.is_empty();
        let by_day = if self.days.is_empty() && !self.last_day {
            true
        } else {
            has(&self.days, day) || self.last_day && date == end
        };
        by_week && by_day && (self.months.is_empty() || has(&self.months, month))
    }

    /// Whether the time has come, apart from [`Series::free`].
    #[must_use]
    pub fn is_now(&self, calendar: &Calendar) -> bool {
        self.series.is_now(calendar) && self.is_on(calendar.suite.date())
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::Instant;
    use super::*;

    fn at(hour: i64, minute: i64) -> Calendar {
        let midnight = Instant::midnight(Date::of_number(20_261_122).expect("a date"));
        let start = midnight.plus(Duration::minutes(hour * 60 + minute));
        Calendar::begin(start, start)
    }

    #[test]
    fn a_row_steps_past_what_was_used_and_ends() {
        let until = Some((Slot::new(12, 0), Slot::new(1, 0)));
        let mut series = Series::new(Slot::new(10, 0), until, false);
        assert!(!series.is_now(&at(9, 59)));
        assert!(series.is_now(&at(11, 0)));
        series.requeue(&at(11, 0), true);
        assert_eq!(series.next, Slot::new(12, 0));
        assert!(series.is_valid && !series.is_now(&at(11, 0)));
        series.requeue(&at(12, 0), true);
        assert!(!series.is_valid);
        let mut calendar = at(23, 59);
        calendar.update(calendar.last, Some(Duration::minutes(1)), false);
        assert!(calendar.day_changed && series.calendar_changed(&calendar) && series.is_valid);
    }
}
