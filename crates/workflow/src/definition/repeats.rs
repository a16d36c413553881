//! `repeat` and its kinds.

use super::error::{Fault, Read, fault, short};
use super::line::{Words, check_name, form, items, number};
use super::reader::Reader;
use crate::model::{Attribute, Date, Duration, List, Over, Range, Repeat, Text, instant_of_text};

pub(super) fn read<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let kind = of.need(1, "kind")?;
    if kind == "file" {
        // An older form, which ecFlow reads and drops.
        let fix = "it is passed over, as ecFlow does".to_owned();
        reader.warn(Fault { message: "repeat file is not supported".to_owned(), fix });
        return Ok(());
    }
    let mut over = match kind {
        "day" => day(of)?,
        "date" => dates(of)?,
        "integer" => integers(of)?,
        "datetime" => date_times(of)?,
        "datelist" | "datetimelist" | "enumerated" | "string" => list(reader, of, kind)?,
        _ => {
            let message = format!("repeat has no kind '{}'", short(kind));
            let fix =
                "use date, datelist, integer, enumerated, string, day, datetime or datetimelist";
            return Err(fault(message, fix));
        }
    };
    let name = if kind == "day" { "day" } else { check_name("repeat", of.need(2, "name")?)? };
    if reader.style.has_state()
        && kind != "day"
        && let Some(word) = of.state(3).first()
    {
        over.set(place(kind, word)?);
    }
    const CRON: u8 = 14;
    if reader.scratch.has(CRON) {
        return Err(fault("a repeat beside a cron", "put one of them onto a family around it"));
    }
    let name = reader.tree.share(name);
    reader.scratch.push_only(Attribute::Repeat(Box::new(Repeat { name, over })))
}

/// Where a repeat stands: the word behind the comment sign.
fn place(kind: &str, word: &str) -> Read<i64> {
    if kind == "datetime" {
        return instant_of_text(word)
            .ok_or_else(|| fault(format!("repeat: '{}' is no time", short(word)), ""));
    }
    number("where the repeat stands:", word).map(i64::from)
}

fn day(of: &Words<'_, '_>) -> Read<Over> {
    let step = number("the step", of.need(2, "step")?)?;
    if of.value(3).is_some() {
        return Err(fault("repeat day with an end", "leave the end out"));
    }
    Ok(Over::Day { step, ended: false })
}

fn date(what: &str, word: &str) -> Read<i64> {
    let number = word.parse().ok().filter(|_| word.len() == 8);
    number.filter(|number| Date::of_number(*number).is_some()).ok_or_else(|| {
        fault(format!("{what} '{}' is no date", short(word)), "write yyyymmdd, such as 20261231")
    })
}

fn check_order(start: i64, end: i64, delta: i64) -> Read<()> {
    if delta == 0 {
        return Err(fault("the step of the repeat is 0", "use another, such as 1"));
    }
    if delta > 0 && start > end || delta < 0 && start < end {
        let message = format!("the repeat never gets from {start} to {end} by {delta}");
        return Err(fault(message, "exchange start and end, or turn the step's sign"));
    }
    Ok(())
}

fn step(of: &Words<'_, '_>) -> Read<i64> {
    of.value(5).map_or(Ok(1), |word| number("the step", word)).map(i64::from)
}

fn dates(of: &Words<'_, '_>) -> Read<Over> {
    let start = date("the start", of.need(3, "start")?)?;
    let end = date("the end", of.need(4, "end")?)?;
    let delta = step(of)?;
    check_order(start, end, delta)?;
    Ok(Over::Date(Range::new(start, end, delta)))
}

fn integers(of: &Words<'_, '_>) -> Read<Over> {
    let start = number("the start", of.need(3, "start")?)?.into();
    let end = number("the end", of.need(4, "end")?)?.into();
    Ok(Over::Integer(Range::new(start, end, step(of)?)))
}

fn instant(what: &str, word: &str) -> Read<i64> {
    instant_of_text(word).ok_or_else(|| {
        let fix = "write yyyymmddTHHMMSS, such as 20261231T060000";
        fault(format!("{what} '{}' is no time", short(word)), fix)
    })
}

fn date_times(of: &Words<'_, '_>) -> Read<Over> {
    let start = instant("the start", of.need(3, "start")?)?;
    let end = instant("the end", of.need(4, "end")?)?;
    let delta = match of.value(5) {
        None => 86_400,
        Some(word) => Duration::of_text(word).map(Duration::whole_seconds).ok_or_else(|| {
            fault(format!("the step '{}' is no span of time", short(word)), "write hh:mm:ss")
        })?,
    };
    check_order(start, end, delta)?;
    Ok(Over::DateTime(Range::new(start, end, delta)))
}

fn list<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>, kind: &str) -> Read<Over> {
    let items: Vec<&str> = items(of, 3).collect();
    if items.is_empty() {
        return Err(fault(format!("repeat {kind} has no values"), form("repeat")));
    }
    let mut texts = || items.iter().map(|item| reader.tree.share(item)).collect::<Vec<Text>>();
    Ok(match kind {
        "datelist" => {
            let list = items.iter().map(|item| date("the value", item).map(|date| date as i32));
            Over::DateList(List::new(list.collect::<Read<_>>()?))
        }
        "datetimelist" => {
            let list = items.iter().map(|item| instant("the value", item));
            Over::DateTimeList(List::new(list.collect::<Read<_>>()?))
        }
        "enumerated" => Over::Enumerated(List::new(texts())),
        _ => Over::Text(List::new(texts())),
    })
}
