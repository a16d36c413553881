//! Attributes of time: `time`, `today`, `date`, `day`, `cron`, `late`, `clock`, `calendar`,
//! `autocancel` and `autoarchive`.

use super::error::{Read, fault, short};
use super::line::{Words, form, number, time};
use super::reader::Reader;
use crate::model::{
    After, Attribute, Calendar, Clock, Cron, Date, DateRule, DayRule, Duration, Instant, Late,
    Series, Slot, WEEKDAYS,
};

pub(super) fn read<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let has_state = reader.style.has_state();
    let attribute = match of.all[0] {
        "time" => Attribute::Time(Box::new(series(of, 1, has_state)?.0)),
        "today" => Attribute::Today(Box::new(series(of, 1, has_state)?.0)),
        "date" => Attribute::Date(date(of, has_state)?),
        "day" => Attribute::Day(day(of, has_state)?),
        "cron" => return cron(reader, of),
        "late" => return reader.scratch.push_only(Attribute::Late(Box::new(late(of, has_state)?))),
        "autocancel" | "autoarchive" => return after(reader, of),
        "clock" => {
            let clock = clock(of, 2)?;
            check_clocks(reader, clock, true)?;
            return reader.scratch.push_only(Attribute::Clock(Box::new(clock)));
        }
        "endclock" => {
            let clock = clock(of, 1)?;
            check_clocks(reader, clock, false)?;
            return reader.scratch.push_only(Attribute::EndClock(Box::new(clock)));
        }
        "calendar" => {
            return reader.scratch.push_only(Attribute::Calendar(Box::new(calendar(of)?)));
        }
        keyword => return Err(fault(format!("unexpected keyword '{}'", short(keyword)), "")),
    };
    reader.scratch.push(attribute)
}

/// A time, or start, end and step, from this place on; and the place behind it.
fn series(of: &Words<'_, '_>, from: usize, has_state: bool) -> Read<(Series, usize)> {
    let word = of.need(from, "time")?;
    let (relative, word) = match word.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let (start, _) = time(word, true)?;
    let mut end = from + 1;
    let mut until = None;
    if let Some(finish) = of.value(end) {
        let step = of.need(end + 1, "step")?;
        let ((finish, _), (step, _)) = (time(finish, true)?, time(step, true)?);
        end += 2;
        if start > finish {
            let message = format!("the start {start} is later than the end {finish}");
            return Err(fault(message, "write the earlier time first"));
        }
        if step.minutes == 0 || step.minutes > finish.minutes - start.minutes {
            let message = format!("the step {step} does not fit between {start} and {finish}");
            return Err(fault(message, "use a step between 00:01 and the time between them"));
        }
        until = Some((finish, step));
    }
    let mut series = Series::new(start, until, relative);
    if has_state {
        series_state(&mut series, of, end.saturating_sub(1))?;
    }
    Ok((series, end))
}

fn series_state(series: &mut Series, of: &Words<'_, '_>, from: usize) -> Read<()> {
    for word in of.state(from) {
        if let Some(next) = word.strip_prefix("nextTimeSlot/") {
            series.next = time(next, false)?.0;
        } else if let Some(waited) = word.strip_prefix("relativeDuration/") {
            series.waited = duration(waited)?;
        } else if *word == "isValid:false" {
            series.is_valid = false;
        } else if *word == "free" {
            series.free = true;
        }
    }
    Ok(())
}

pub(super) fn duration(word: &str) -> Read<Duration> {
    Duration::of_text(word)
        .ok_or_else(|| fault(format!("'{}' is no span of time", short(word)), "write hh:mm:ss"))
}

/// Day, month and year of `1.12.2026`; 0 for `*`.
fn date_parts(word: &str) -> Read<(u8, u8, u16)> {
    let bad = || {
        let word = short(word);
        fault(format!("'{word}' is no date"), "write DAY.MONTH.YEAR, such as 1.12.2026 or 1.*.*")
    };
    let mut parts = word.splitn(3, '.');
    let mut part = || {
        let part = parts.next().ok_or_else(bad)?;
        let is_any = part == "*";
        let number: u16 = if is_any { 0 } else { part.parse().map_err(|_| bad())? };
        if number == 0 && !is_any { Err(bad()) } else { Ok(number) }
    };
    let (day, month, year) = (part()?, part()?, part()?);
    if day > 31 || month > 12 {
        return Err(bad());
    }
    let is_whole = day != 0 && month != 0 && year != 0;
    if is_whole && Date::new(year.into(), month.into(), day.into()).is_none() {
        return Err(bad());
    }
    Ok((day as u8, month as u8, year))
}

fn date(of: &Words<'_, '_>, has_state: bool) -> Read<DateRule> {
    let (day, month, year) = date_parts(of.need(1, "date")?)?;
    let free = has_state && of.all.iter().skip(3).any(|word| *word == "free");
    Ok(DateRule { day, month, year, free })
}

fn day(of: &Words<'_, '_>, has_state: bool) -> Read<DayRule> {
    let word = of.need(1, "day")?;
    let Some(weekday) = WEEKDAYS.iter().position(|name| *name == word) else {
        let message = format!("'{}' is no day of a week", short(word));
        return Err(fault(message, "use monday, tuesday, …, sunday"));
    };
    let mut rule = DayRule { weekday: weekday as u8, free: false, expired: false, date: None };
    if has_state {
        for word in of.all.iter().skip(3) {
            match *word {
                "free" => rule.free = true,
                "expired" => rule.expired = true,
                _ => {
                    let date = word.strip_prefix("date:").filter(|date| !date.contains("not"));
                    rule.date = match date {
                        Some(text) => Some(Date::of_text(text).ok_or_else(|| {
                            fault(format!("'{}' is no date", short(text)), "write 2026-Nov-22")
                        })?),
                        None => rule.date,
                    };
                }
            }
        }
    }
    Ok(rule)
}

fn is_option(word: &str) -> bool {
    ["-w", "-d", "-m"].iter().any(|option| word.contains(option))
}

fn cron<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let has_state = reader.style.has_state();
    let mut cron = Cron {
        weekdays: Vec::new(),
        last_weekdays: Vec::new(),
        days: Vec::new(),
        last_day: false,
        months: Vec::new(),
        series: Series::new(Slot::default(), None, false),
    };
    let mut place = 1;
    let mut is_timed = false;
    while let Some(word) = of.value(place) {
        place += 1;
        if is_option(word) {
            let start = place;
            while of.value(place).is_some_and(|word| !is_option(word) && !word.contains(':')) {
                place += 1;
            }
            let list = of.all[start..place].concat();
            option(&mut cron, word, &list)?;
        } else if word.contains(':') {
            let (series, _) = series(of, place - 1, has_state)?;
            cron.series = series;
            is_timed = true;
            break;
        }
    }
    if !is_timed {
        return Err(fault("cron has no time", format!("write {}", form("cron"))));
    }
    let is_double = cron.weekdays.iter().any(|day| cron.last_weekdays.contains(day));
    if is_double {
        return Err(fault("cron -w has a day both plain and with L", "drop one of them"));
    }
    const REPEAT: u8 = 3;
    if cron.series.until.is_some() && reader.scratch.has(REPEAT) {
        return Err(fault("a cron with a step beside a repeat", "put one of them onto a family"));
    }
    reader.scratch.push(Attribute::Cron(Box::new(cron)))
}

fn option(cron: &mut Cron, option: &str, list: &str) -> Read<()> {
    let within = |what: &str, word: &str, range: std::ops::RangeInclusive<u8>| {
        let number: Option<u8> = word.parse().ok();
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = range.into_inner();
            fault(format!("cron: '{}' is no {what}", short(word)), format!("use {least}–{most}"))
        })
    };
    for word in list.split(',').filter(|word| !word.is_empty()) {
        match option {
            "-w" => match word.strip_suffix('L') {
                Some(day) => cron.last_weekdays.push(within("day of the week", day, 0..=6)?),
                None => cron.weekdays.push(within("day of the week", word, 0..=6)?),
            },
            "-d" if word == "L" => cron.last_day = true,
            "-d" => cron.days.push(within("day of the month", word, 1..=31)?),
            "-m" => cron.months.push(within("month", word, 1..=12)?),
            _ => {
                let message = format!("cron has no option '{}'", short(option));
                return Err(fault(message, "use -w, -d or -m"));
            }
        }
    }
    Ok(())
}

fn late(of: &Words<'_, '_>, has_state: bool) -> Read<Late> {
    let mut late = Late::default();
    let mut place = 1;
    while let Some(option) = of.value(place) {
        let known = match option {
            "-s" => &mut late.submitted,
            "-a" => &mut late.active,
            "-c" => &mut late.complete,
            _ => {
                let message = format!("late has no option '{}'", short(option));
                return Err(fault(message, format!("write {}", form("late"))));
            }
        };
        let (slot, is_relative) = time(of.need(place + 1, "time behind its option")?, true)?;
        if known.replace(slot).is_some() {
            return Err(fault(format!("late has {option} twice"), "drop one of them"));
        }
        if option == "-c" {
            late.complete_relative = is_relative;
        }
        place += 2;
    }
    if late == Late::default() {
        return Err(fault("late has no time", format!("write {}", form("late"))));
    }
    late.is_late = has_state && of.all.last() == Some(&"late");
    Ok(late)
}

fn after<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let keyword = of.all[0];
    let word = of.need(1, "time")?;
    let mut after = if word.contains(':') {
        let (time, relative) = time(word, true)?;
        After { time, relative, days: false, idle: false }
    } else {
        let days = number("the number of days", word)?;
        if !(0..=50_000).contains(&days) {
            let message = format!("{keyword}: {days} days");
            return Err(fault(message, "use 0 to 50000 days"));
        }
        After { time: Slot::new(days * 24, 0), relative: true, days: true, idle: false }
    };
    let is_archive = keyword == "autoarchive";
    after.idle = is_archive && of.all.get(2) == Some(&"-i");
    const CANCEL: u8 = 17;
    const ARCHIVE: u8 = 18;
    if reader.scratch.has(if is_archive { CANCEL } else { ARCHIVE }) {
        return Err(fault("autocancel and autoarchive of one node", "drop one of them"));
    }
    reader.scratch.push_only(if is_archive {
        Attribute::AutoArchive(after)
    } else {
        Attribute::AutoCancel(after)
    })
}

/// A clock, whose particulars stand from this place on.
fn clock(of: &Words<'_, '_>, from: usize) -> Read<Clock> {
    let mut clock = Clock { hybrid: false, date: None, gain_s: 0, plus: false };
    if from == 2 {
        clock.hybrid = match of.need(1, "kind")? {
            "real" => false,
            "hybrid" => true,
            word => {
                let message = format!("'{}' is no kind of clock", short(word));
                return Err(fault(message, "use real or hybrid"));
            }
        };
    }
    let mut gain = of.value(from);
    if let Some(word) = gain.filter(|word| word.contains('.')) {
        let (day, month, year) = date_parts(word)?;
        if day == 0 || month == 0 || year == 0 {
            return Err(fault(format!("clock: '{}' is no date", short(word)), "write it in full"));
        }
        clock.date = Some((day, month, year));
        gain = of.value(from + 1);
    }
    if let Some(word) = gain.filter(|word| *word != "-s") {
        if word.contains(':') {
            let (slot, plus) = time(word, true)?;
            (clock.gain_s, clock.plus) = (i64::from(slot.minutes) * 60, plus);
        } else {
            clock.plus = word.starts_with('+');
            clock.gain_s = number("the gain in seconds", word)?.into();
        }
    }
    Ok(clock)
}

/// Whether a suite's end comes after its start, as far as both are stated alike.
fn check_clocks(reader: &Reader<'_>, new: Clock, is_start: bool) -> Read<()> {
    let other = reader.scratch.attributes.iter().find_map(|attribute| match attribute {
        Attribute::Clock(clock) if !is_start => Some(**clock),
        Attribute::EndClock(clock) if is_start => Some(**clock),
        _ => None,
    });
    let Some(other) = other.filter(|other| other.date.is_some() == new.date.is_some()) else {
        return Ok(());
    };
    let (start, end) = if is_start { (new, other) } else { (other, new) };
    if end.start(Instant::default()) > start.start(Instant::default()) {
        return Ok(());
    }
    Err(fault("the end clock is not later than the clock", "write a later endclock"))
}

fn calendar(of: &Words<'_, '_>) -> Read<Calendar> {
    let mut calendar = Calendar::default();
    of.need(1, "time")?;
    for (place, word) in of.all.iter().enumerate().skip(1) {
        let Some((key, value)) = word.split_once(':') else { continue };
        let instant = || {
            let time = of.all.get(place + 1).copied().unwrap_or("");
            Instant::of_text(value, time).ok_or_else(|| {
                fault(
                    format!("calendar: '{}' is no time", short(word)),
                    "write 2026-Nov-22 10:00:00",
                )
            })
        };
        match key {
            "initTime" => calendar.init = instant()?,
            "suiteTime" => calendar.suite = instant()?,
            "initLocalTime" => calendar.init_local = instant()?,
            "lastTime" => calendar.last = instant()?,
            "duration" => calendar.duration = duration(value)?,
            "calendarIncrement" => calendar.increment = duration(value)?,
            "dayChanged" => calendar.day_changed = value == "1",
            _ => {}
        }
    }
    Ok(calendar)
}
