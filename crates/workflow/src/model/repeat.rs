//! `repeat`: a variable that steps when all below its node is complete.

use super::text::Text;
use super::time::{Date, Duration, Instant, date_to_julian, julian_to_date};

/// A repeat with its name and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// Its name; of `repeat day` it is `day`.
    pub name: Text,
    /// What it steps through.
    pub over: Over,
}

/// What a repeat steps through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Over {
    /// Dates `yyyymmdd`, by days.
    Date(Range),
    /// Dates `yyyymmdd` of a list.
    DateList(List<i32>),
    /// Whole numbers.
    Integer(Range),
    /// Words; a word that is a number counts as that number.
    Enumerated(List<Text>),
    /// Words, which count by their place.
    Text(List<Text>),
    /// Days without an end.
    Day {
        /// How many at once.
        step: i32,
        /// Whether an operator has ended it.
        ended: bool,
    },
    /// Seconds since 1970 (later versions).
    DateTime(Range),
    /// Seconds since 1970 of a list (later versions).
    DateTimeList(List<i64>),
}

/// From a number to another, by a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first value.
    pub start: i64,
    /// The last value.
    pub end: i64,
    /// The step; negative downwards.
    pub delta: i64,
    /// Where it stands; past the end when it is done.
    pub value: i64,
}

impl Range {
    /// A range at its start.
    #[must_use]
    pub const fn new(start: i64, end: i64, delta: i64) -> Self {
        Self { start, end, delta, value: start }
    }

    const fn is_valid(&self) -> bool {
        if self.delta > 0 { self.value <= self.end } else { self.value >= self.end }
    }

    const fn has(&self, number: i64) -> bool {
        let (least, most) =
            if self.delta > 0 { (self.start, self.end) } else { (self.end, self.start) };
        number >= least && number <= most
    }

    fn number(&self) -> i64 {
        if self.delta > 0 {
            self.value.min(self.end).max(self.start)
        } else {
            self.value.max(self.end).min(self.start)
        }
    }
}

/// One value after another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List<T> {
    /// The values, at least one.
    pub items: Vec<T>,
    /// Where it stands, from 0; past the last when it is done.
    pub index: i64,
}

impl<T> List<T> {
    /// A list at its first value.
    #[must_use]
    pub const fn new(items: Vec<T>) -> Self {
        Self { items, index: 0 }
    }

    fn is_valid(&self) -> bool {
        usize::try_from(self.index).is_ok_and(|at| at < self.items.len())
    }

    fn last(&self) -> i64 {
        self.items.len() as i64 - 1
    }

    fn item(&self) -> Option<&T> {
        let last = self.items.len().checked_sub(1)?;
        self.items.get(usize::try_from(self.index).unwrap_or(0).min(last))
    }
}

/// `20240131T060000` of seconds since 1970.
#[must_use]
pub fn instant_text(seconds: i64) -> String {
    let at = Instant::seconds(seconds);
    let time = at.time_of_day().whole_seconds();
    let (hours, minutes) = (time / 3600, time / 60 % 60);
    format!("{:08}T{hours:02}{minutes:02}{:02}", at.date().number(), time % 60)
}

/// Seconds since 1970 of `20240131T060000`, also with `-` and `:` between the parts.
#[must_use]
pub fn instant_of_text(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let (date, time) = digits.split_once('T')?;
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if date.len() != 8 || time.len() != 6 || !is_number(date) || !is_number(time) {
        return None;
    }
    let time: i64 = time.parse().ok()?;
    let (hours, minutes, seconds) = (time / 10_000, time / 100 % 100, time % 100);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let midnight = Instant::midnight(Date::of_number(date.parse().ok()?)?);
    let time = Duration::seconds((hours * 60 + minutes) * 60 + seconds);
    Some(midnight.plus(time).us / 1_000_000)
}

impl Over {
    /// Whether it stands on a value: not past the end.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => range.is_valid(),
            Self::DateList(list) => list.is_valid(),
            Self::DateTimeList(list) => list.is_valid(),
            Self::Enumerated(list) | Self::Text(list) => list.is_valid(),
            Self::Day { ended, .. } => !ended,
        }
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => {
                range.value = range.start;
            }
            Self::Day { ended, .. } => *ended = false,
            _ => self.set(0),
        }
    }

    /// Steps on.
    pub fn increment(&mut self) {
        match self {
            Self::Date(range) => {
                let julian = date_to_julian(range.value).saturating_add(range.delta);
                range.value = julian_to_date(julian);
            }
            Self::Integer(range) | Self::DateTime(range) => {
                range.value = range.value.saturating_add(range.delta);
            }
            Self::Day { .. } => {}
            _ => self.set(self.place().saturating_add(1)),
        }
    }

    /// Goes to the last value, from which it steps past the end.
    pub fn set_last(&mut self) {
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => {
                range.value = range.end;
            }
            Self::DateList(list) => list.index = list.last(),
            Self::DateTimeList(list) => list.index = list.last(),
            Self::Enumerated(list) | Self::Text(list) => list.index = list.last(),
            Self::Day { ended, .. } => *ended = true,
        }
    }

    /// Puts it to a number: the value of dates and numbers, the place in a list.
    pub fn set(&mut self, to: i64) {
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => range.value = to,
            Self::DateList(list) => list.index = to,
            Self::DateTimeList(list) => list.index = to,
            Self::Enumerated(list) | Self::Text(list) => list.index = to,
            Self::Day { .. } => {}
        }
    }

    /// Puts it to a value that a user has written: a date or number of its range, or, of a list, a
    /// value or its place.
    ///
    /// # Errors
    /// It has no such value.
    pub fn change(&mut self, word: &str) -> Result<(), String> {
        let not_one = || format!("{word:?} is none of the repeat's values");
        let number = || word.parse::<i32>().map(i64::from).map_err(|_| not_one());
        let place = |words: &[Text]| {
            let known = words.iter().position(|known| *known == *word);
            let given = || word.parse().ok().filter(|place| *place < words.len());
            known.or_else(given).map(|place| place as i64).ok_or_else(not_one)
        };
        let to = match self {
            Self::Date(range) => {
                let to = number()?;
                let days = date_to_julian(to) - date_to_julian(range.start);
                let is_date = Date::of_number(to).is_some();
                if !is_date || !range.has(to) || range.delta == 0 || days % range.delta != 0 {
                    return Err(not_one());
                }
                to
            }
            Self::Integer(range) => {
                Some(number()?).filter(|to| range.has(*to)).ok_or_else(not_one)?
            }
            Self::DateTime(range) => {
                let to = instant_of_text(word).filter(|to| range.has(*to));
                to.ok_or_else(not_one)?
            }
            Self::DateList(list) => {
                let to = number()?;
                let place = list.items.iter().position(|date| i64::from(*date) == to);
                place.ok_or_else(not_one)? as i64
            }
            Self::DateTimeList(list) => {
                let to = instant_of_text(word);
                let place = list.items.iter().position(|one| Some(*one) == to);
                place.ok_or_else(not_one)? as i64
            }
            Self::Enumerated(list) | Self::Text(list) => place(&list.items)?,
            Self::Day { .. } => return Ok(()),
        };
        self.set(to);
        Ok(())
    }

    /// The number by which it is stored: the value of dates and numbers, the place in a list.
    #[must_use]
    pub fn place(&self) -> i64 {
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => range.value,
            Self::DateList(list) => list.index,
            Self::DateTimeList(list) => list.index,
            Self::Enumerated(list) | Self::Text(list) => list.index,
            Self::Day { step, .. } => i64::from(*step),
        }
    }

    /// The number that expressions compare: the last valid value.
    #[must_use]
    pub fn number(&self) -> i64 {
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => range.number(),
            Self::DateList(list) => list.item().map_or(0, |date| (*date).into()),
            Self::DateTimeList(list) => list.item().copied().unwrap_or(0),
            Self::Enumerated(list) => {
                let number = list.item().and_then(|word| word.parse().ok());
                number.unwrap_or(list.index.clamp(0, list.last().max(0)))
            }
            Self::Text(list) => list.index.clamp(0, list.last().max(0)),
            Self::Day { step, .. } => i64::from(*step),
        }
    }

    /// The number that it stands on, also past the end: of a list without such a value the place,
    /// of dates 0.
    #[must_use]
    pub fn value(&self) -> i64 {
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => range.value,
            Self::DateList(_) | Self::DateTimeList(_) if !self.is_valid() => 0,
            Self::Enumerated(list) if !list.is_valid() => list.index,
            Self::Text(list) => list.index,
            _ => self.number(),
        }
    }

    /// The value of its variable.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Enumerated(list) | Self::Text(list) => {
                list.item().map(ToString::to_string).unwrap_or_default()
            }
            Self::Day { .. } => String::new(),
            Self::DateTime(_) | Self::DateTimeList(_) => instant_text(self.number()),
            _ => self.number().to_string(),
        }
    }

    /// The value of its variable a step on, or with -1 a step back; at the ends that of the end.
    #[must_use]
    pub fn text_beside(&self, steps: i64) -> String {
        let mut beside = self.clone();
        match &mut beside {
            Self::Date(range) => {
                let days = date_to_julian(range.number())
                    .saturating_add(range.delta.saturating_mul(steps));
                range.value = julian_to_date(days);
            }
            Self::Integer(range) | Self::DateTime(range) => {
                range.value = range.number().saturating_add(range.delta.saturating_mul(steps));
            }
            list => list.set(list.place().saturating_add(steps)),
        }
        beside.text()
    }

    /// Whether its numbers are dates, so that plus and minus count days.
    #[must_use]
    pub const fn is_date(&self) -> bool {
        matches!(self, Self::Date(_) | Self::DateList(_))
    }

    /// The number and as many more: days of dates.
    #[must_use]
    pub fn number_plus(&self, more: i64) -> i64 {
        match self.number() {
            0 if matches!(self, Self::DateList(_)) => 0,
            number if self.is_date() => julian_to_date(date_to_julian(number) + more),
            number => number + more,
        }
    }
}

impl Repeat {
    /// The names and values of the variables that it makes beside its own, in ecFlow's order.
    #[must_use]
    pub fn date_parts(&self) -> Vec<(String, String)> {
        if !self.over.is_date() {
            return Vec::new();
        }
        let Some(date) = Date::of_number(self.over.number()) else { return Vec::new() };
        let (year, month, day) = date.parts();
        let parts = [
            ("YYYY", year),
            ("MM", month),
            ("DD", day),
            ("DOW", date.weekday()),
            ("JULIAN", date.julian),
        ];
        let named = parts.map(|(part, value)| (format!("{}_{part}", self.name), value.to_string()));
        named.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_step_by_the_calendar_and_end() {
        let end = 20_240_302;
        let mut over = Over::Date(Range::new(20_240_228, end, 1));
        let mut seen = Vec::new();
        while over.is_valid() {
            seen.push(over.number());
            over.increment();
        }
        assert_eq!(seen, [20_240_228, 20_240_229, 20_240_301, 20_240_302]);
        assert_eq!(over.number(), end);
        assert_eq!(over.number_plus(-2), 20_240_229);
    }

    #[test]
    fn words_that_are_numbers_count_as_such() {
        let list = ["7", "x"].map(Text::from).to_vec();
        let mut over = Over::Enumerated(List::new(list));
        assert_eq!((over.number(), over.text()), (7, "7".to_owned()));
        over.increment();
        assert_eq!((over.number(), over.text()), (1, "x".to_owned()));
        over.increment();
        assert!(!over.is_valid());
        assert_eq!(over.number(), 1);
    }

    #[test]
    fn beside_a_value_are_the_last_and_the_next_one_and_at_the_ends_the_end() {
        let beside = |over: &Over| [over.text_beside(-1), over.text_beside(1)];
        let over = Over::Date(Range::new(20_240_229, 20_240_301, 1));
        assert_eq!(beside(&over), ["20240229", "20240301"]);
        let mut over = Over::Integer(Range { value: 5, ..Range::new(9, 3, -2) });
        assert_eq!(beside(&over), ["7", "3"]);
        over.set_last();
        over.increment();
        assert_eq!(beside(&over), ["5", "3"]);
        let list = ["x", "y"].map(Text::from).to_vec();
        assert_eq!(beside(&Over::Text(List { items: list, index: 1 })), ["x", "y"]);
    }

    #[test]
    fn times_of_later_versions_are_read_and_printed() {
        let seconds = instant_of_text("20240131T061502").expect("a time");
        assert_eq!(instant_text(seconds), "20240131T061502");
        assert_eq!(instant_of_text("2024-01-31T06:15:02"), Some(seconds));
        assert_eq!(instant_of_text("20240131T251502"), None);
    }
}
