//! Times as definitions state them: durations, points in time, dates, and minutes of a day.

use std::fmt;

/// A span of time, in microseconds; printed as `hh:mm:ss`, with a fraction if there is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Duration {
    /// Microseconds.
    pub us: i64,
}

const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;

impl Duration {
    /// Nothing.
    pub const ZERO: Self = Self { us: 0 };

    /// Of seconds.
    #[must_use]
    pub const fn seconds(seconds: i64) -> Self {
        Self { us: seconds.saturating_mul(SECOND_US) }
    }

    /// Of minutes.
    #[must_use]
    pub const fn minutes(minutes: i64) -> Self {
        Self::seconds(minutes.saturating_mul(60))
    }

    /// Whole seconds, toward zero.
    #[must_use]
    pub const fn whole_seconds(self) -> i64 {
        self.us / SECOND_US
    }

    /// Whole minutes, toward zero.
    #[must_use]
    pub const fn whole_minutes(self) -> i64 {
        self.whole_seconds() / 60
    }

    /// The sum; the largest span where it would be larger.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { us: self.us.saturating_add(other.us) }
    }

    /// The difference.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { us: self.us.saturating_sub(other.us) }
    }

    /// The span of `[-]hh:mm:ss[.ffffff]`.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let mut parts = digits.splitn(3, ':');
        let hours: i64 = parts.next()?.parse().ok()?;
        let minutes: i64 = parts.next()?.parse().ok()?;
        let seconds = parts.next().unwrap_or("0");
        let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let seconds: i64 = seconds.parse().ok()?;
        let in_range = (0..=99_999_999).contains(&hours)
            && (0..=9_999).contains(&minutes)
            && (0..=99_999).contains(&seconds)
            && fraction.len() <= 6;
        if !in_range {
            return None;
        }
        let mut us = if fraction.is_empty() { 0 } else { fraction.parse::<u32>().ok()?.into() };
        (fraction.len()..6).for_each(|_| us *= 10);
        let us = if fraction.is_empty() { 0 } else { us };
        Some(Self { us: sign * ((hours * 60 + minutes) * 60 + seconds) * SECOND_US + sign * us })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.us < 0 { "-" } else { "" };
        let us = self.us.unsigned_abs();
        let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        write!(f, "{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
        if fraction == 0 { Ok(()) } else { write!(f, ".{fraction:06}") }
    }
}

/// A point in time: microseconds since 1970-01-01 00:00, in the calendar's own time (UTC with the
/// clock's gain); printed as `2026-Nov-22 14:18:21`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Instant {
    /// Microseconds since 1970.
    pub us: i64,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Instant {
    /// Of seconds since 1970.
    #[must_use]
    pub const fn seconds(seconds: i64) -> Self {
        Self { us: seconds.saturating_mul(SECOND_US) }
    }

    /// Midnight of this date.
    #[must_use]
    pub const fn midnight(date: Date) -> Self {
        Self { us: (date.julian as i64 - EPOCH_JULIAN as i64) * DAY_US }
    }

    /// The date that it lies in.
    #[must_use]
    pub const fn date(self) -> Date {
        Date { julian: self.us.div_euclid(DAY_US) as i32 + EPOCH_JULIAN }
    }

    /// The time since midnight.
    #[must_use]
    pub const fn time_of_day(self) -> Duration {
        Duration { us: self.us.rem_euclid(DAY_US) }
    }

    /// The first and the last second of which clients read the date.
    const RANGE_US: (i64, i64) = (
        (date_to_julian(14_000_101) - EPOCH_JULIAN as i64) * DAY_US,
        (date_to_julian(99_991_231) - EPOCH_JULIAN as i64 + 1) * DAY_US - SECOND_US,
    );

    /// The time later by this; the first or last one that can be written where it would be beyond.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        let (us, (first, last)) = (self.us.saturating_add(duration.us), Self::RANGE_US);
        Self {
            us: if us < first {
                first
            } else if us > last {
                last
            } else {
                us
            },
        }
    }

    /// The time since another.
    #[must_use]
    pub const fn since(self, other: Self) -> Duration {
        Duration { us: self.us.saturating_sub(other.us) }
    }

    /// The time of `2026-Nov-22` and `14:18:21`.
    #[must_use]
    pub fn of_text(date: &str, time: &str) -> Option<Self> {
        let time = Duration::of_text(time)?;
        Some(Self::midnight(Date::of_text(date)?).plus(time))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date(), self.time_of_day())
    }
}

const EPOCH_JULIAN: i32 = 2_440_588;

/// A date, by its Julian day number; printed as `2026-Nov-22`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Date {
    /// Days since 4714-11-24 BC in the Gregorian calendar.
    pub julian: i32,
}

impl Date {
    /// The date of these numbers, if there is one between the years 1400 and 9999.
    #[must_use]
    pub fn new(year: i32, month: i32, day: i32) -> Option<Self> {
        if !(1400..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 {
            return None;
        }
        let date = i64::from(year) * 10_000 + i64::from(month) * 100 + i64::from(day);
        let julian = i32::try_from(date_to_julian(date)).ok()?;
        (julian_to_date(julian.into()) == date).then_some(Self { julian })
    }

    /// The date of `yyyymmdd`.
    #[must_use]
    pub fn of_number(number: i64) -> Option<Self> {
        let number = i32::try_from(number).ok()?;
        Self::new(number / 10_000, number / 100 % 100, number % 100)
    }

    /// As the number `yyyymmdd`.
    #[must_use]
    pub fn number(self) -> i64 {
        julian_to_date(self.julian.into())
    }

    /// Year, month (1–12), day (1–31).
    #[must_use]
    pub fn parts(self) -> (i32, i32, i32) {
        let number = self.number();
        ((number / 10_000) as i32, (number / 100 % 100) as i32, (number % 100) as i32)
    }

    /// The day of the week: 0 is Sunday.
    #[must_use]
    pub const fn weekday(self) -> i32 {
        (self.julian + 1).rem_euclid(7)
    }

    /// The day of the year, from 1.
    #[must_use]
    pub fn day_of_year(self) -> i32 {
        let (year, _, _) = self.parts();
        let first = date_to_julian(i64::from(year) * 10_000 + 101);
        self.julian - first as i32 + 1
    }

    /// The date later by these days.
    #[must_use]
    pub const fn plus_days(self, days: i32) -> Self {
        Self { julian: self.julian.saturating_add(days) }
    }

    /// The last day of its month.
    #[must_use]
    pub fn end_of_month(self) -> Self {
        let (year, month, _) = self.parts();
        let (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let next = i64::from(year) * 10_000 + i64::from(month) * 100 + 1;
        Self { julian: date_to_julian(next) as i32 - 1 }
    }

    /// The date of `2026-Nov-22`, or `2026-11-22`.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let year = parts.next()?.parse().ok()?;
        let month = parts.next()?;
        let day = parts.next()?.parse().ok()?;
        let named = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month));
        let month = match named {
            Some(index) => index as i32 + 1,
            None => month.parse().ok()?,
        };
        Self::new(year, month, day)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.parts();
        let month = MONTHS.get((month - 1) as usize).unwrap_or(&"");
        write!(f, "{year:04}-{month}-{day:02}")
    }
}

/// The Julian day of `yyyymmdd`, by ecFlow's method (`ACore/src/Cal.cpp`), which takes numbers that
/// are no date, too.
#[must_use]
pub const fn date_to_julian(date: i64) -> i64 {
    let (year, month, day) = (date / 10_000, date % 10_000 / 100, date % 100);
    let (month, year) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    let centuries = 146_097 * (year / 100) / 4;
    let years = 1461 * (year % 100) / 4;
    centuries + years + (153 * month + 2) / 5 + day + 1_721_119
}

/// The date `yyyymmdd` of a Julian day, by ecFlow's method.
#[must_use]
pub const fn julian_to_date(julian: i64) -> i64 {
    let x = julian.saturating_mul(4).saturating_sub(6_884_477);
    let (y, e) = (x / 146_097 * 100, x % 146_097);
    let x = 4 * (e / 4) + 3;
    let (y, e) = (x / 1461 + y, x % 1461);
    let x = 5 * (e / 4 + 1) - 3;
    let (m, e) = (x / 153 + 1, x % 153);
    let day = e / 5 + 1;
    let month = if m < 11 { m + 2 } else { m - 10 };
    (y + m / 11).saturating_mul(10_000) + month * 100 + day
}

/// A time of day, or a span of hours and minutes, in minutes; printed as `hh:mm`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Slot {
    /// Minutes.
    pub minutes: i32,
}

impl Slot {
    /// Of hours and minutes.
    #[must_use]
    pub const fn new(hours: i32, minutes: i32) -> Self {
        Self { minutes: hours * 60 + minutes }
    }

    /// As a span of time.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::minutes(self.minutes as i64)
    }

    /// The slot later by another.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { minutes: self.minutes.saturating_add(other.minutes) }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_julian_days_are_inverse() {
        for julian in (2_232_400..3_000_000).step_by(97) {
            let date = Date { julian };
            let (year, month, day) = date.parts();
            assert_eq!(Date::new(year, month, day), Some(date));
        }
        assert_eq!(Date::of_number(20_240_230), None);
        assert_eq!(Date::of_number(20_261_122).map(Date::weekday), Some(0));
        assert_eq!(Date::of_number(20_261_122).map(Date::day_of_year), Some(326));
        assert_eq!(Date::of_number(20_261_122).map(|date| date.julian), Some(2_461_367));
        let february = Date::of_number(20_240_210).expect("a date");
        assert_eq!(february.end_of_month().number(), 20_240_229);
    }

    #[test]
    fn a_time_that_no_one_could_read_is_the_last_or_first_one() {
        for (date, time, minutes, expected) in [
            ("9999-Dec-31", "23:58:30", 1, "9999-Dec-31 23:59:30"),
            ("9999-Dec-31", "23:58:30", 2, "9999-Dec-31 23:59:59"),
            ("9999-Dec-31", "00:00:00", i64::MAX, "9999-Dec-31 23:59:59"),
            ("1400-Jan-01", "00:01:00", -2, "1400-Jan-01 00:00:00"),
        ] {
            let at = Instant::of_text(date, time).expect("a time").plus(Duration::minutes(minutes));
            assert_eq!(at.to_string(), expected);
        }
    }

    #[test]
    fn times_are_printed_and_read_again() {
        let at = Instant::of_text("2026-Nov-22", "14:18:21").expect("a time");
        assert_eq!(at.to_string(), "2026-Nov-22 14:18:21");
        for text in ["00:00:01", "26:00:00", "-01:02:03", "00:00:00.000120"] {
            assert_eq!(Duration::of_text(text).expect("a span").to_string(), text);
        }
        assert_eq!(Duration::of_text("x"), None);
        assert_eq!(Slot::new(24, 0).to_string(), "24:00");
    }
}
