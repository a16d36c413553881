//! `--alter`: what users do to the attributes of a node.

use crate::definition::{is_name, parse_attribute, parse_condition};
use crate::model::{
    Attribute, Clock, Cron, Displayed, Kind, Label, NodeId, Rules, Series, Text, ZombieType,
};
use crate::protocol::Alteration;

use super::parts::{Effect, Parts, flag_of};
use super::refusals;
use crate::server::log::Category;

/// Alters a node.
pub(super) fn alter(
    rules: &mut Rules<'_>,
    id: NodeId,
    alteration: Alteration,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let (what, done) = match alteration {
        Alteration::Add(word) => ("add", add(rules, id, word, name, value)),
        Alteration::Delete(word) => ("delete", delete(rules, id, word, name, value)),
        Alteration::Change(word) => ("change", change(rules, id, word, name, value)),
        Alteration::Flag(bit, is_set) => return flag(rules, id, bit, is_set),
        Alteration::Sort => ("sort", sort(rules, id, name, value)),
    };
    done.map_err(|why| {
        let path = rules.tree.path(id);
        match what {
            "add" => format!("Alter (add) failed for {path}: Could not parse {name} : {why}"),
            _ => format!("Alter ({what}) failed for {path} : {why}"),
        }
    })
}

/// Alters the server itself: its variables and flags. Over all else ecFlow's passes, and answers
/// that all is well.
pub(super) fn alter_server(
    parts: &mut Parts<'_>,
    rules: &mut Rules<'_>,
    alteration: Alteration,
    name: &str,
    value: &str,
) -> Result<(), String> {
    match alteration {
        Alteration::Add("variable") | Alteration::Change("variable") if !is_name(name) => {
            return Err(bad_name(name));
        }
        Alteration::Add("variable") | Alteration::Change("variable") => {
            rules.set_server_variable(name, Some(value));
        }
        Alteration::Delete("variable") => {
            let known = rules.tree.server().user_variables.iter();
            let all = known.map(|known| known.name.to_string());
            let gone: Vec<String> = all.filter(|known| name.is_empty() || known == name).collect();
            for name in gone {
                rules.set_server_variable(&name, None);
            }
        }
        Alteration::Flag(bit, is_set) => flag(rules, NodeId::ROOT, bit, is_set)?,
        _ => {
            let line = "of the server only variables and flags can be altered: nothing is changed";
            parts.effects.push(Effect::Log(Category::Warning, line.to_owned()));
        }
    }
    Ok(())
}

/// Sets or clears a flag, by its bit.
fn flag(rules: &mut Rules<'_>, id: NodeId, bit: u8, is_set: bool) -> Result<(), String> {
    let flag = flag_of(bit).ok_or_else(|| format!("there is no flag {bit}"))?;
    rules.alter_flag(id, flag, is_set);
    Ok(())
}

fn add(
    rules: &mut Rules<'_>,
    id: NodeId,
    word: &str,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let attribute = match word {
        "variable" | "label" if !is_name(name) => return Err(bad_name(name)),
        "variable" => {
            rules.set_variable(id, name, value);
            return Ok(());
        }
        "label" => {
            let (name, value) = (Text::from(name), Text::from(value));
            Attribute::Label(Label { name, value, new_value: Text::default() })
        }
        "limit" | "inlimit" => parse_attribute(word, &format!("{name} {value}"))?,
        "time" | "today" | "date" | "day" if rules.tree.node(id).kind == Kind::Suite => {
            return Err("Cannot add time based dependency on a suite".to_owned());
        }
        _ => parse_attribute(word, name)?,
    };
    let is_double = |known: &Attribute| match (known, &attribute) {
        (Attribute::Label(known), Attribute::Label(new)) => known.name == new.name,
        (Attribute::Limit(known), Attribute::Limit(new)) => known.name == new.name,
        (Attribute::InLimit(known), Attribute::InLimit(new)) => {
            (&known.name, &known.path) == (&new.name, &new.path)
        }
        (Attribute::Zombie(known), Attribute::Zombie(new)) => known.kind == new.kind,
        (Attribute::Late(_), Attribute::Late(_)) => true,
        _ => false,
    };
    if rules.tree.node(id).attributes.iter().any(is_double) {
        return Err(refusals::added_twice(rules.tree, id, &attribute));
    }
    rules.add_attribute(id, attribute);
    Ok(())
}

/// Why a name isn't taken.
pub(super) fn bad_name(name: &str) -> String {
    format!("{name:?} is no name: use letters, digits, _ and, behind the first, dots")
}

fn delete(
    rules: &mut Rules<'_>,
    id: NodeId,
    word: &str,
    name: &str,
    value: &str,
) -> Result<(), String> {
    if word == "limit_path" {
        let is_it = |one: &Attribute| matches!(one, Attribute::Limit(one) if one.name == *name);
        if !rules.tree.node(id).attributes.iter().any(is_it) {
            return Err(format!("Node::delete_limit_path: Cannot find limit: {name}"));
        }
        rules.delete_holder(id, name, value);
        return Ok(());
    }
    let keyword = if word == "variable" { "edit" } else { word };
    // One of several equal times is deleted.
    let is_timed = matches!(word, "time" | "today" | "date" | "day" | "cron");
    let stated = match name {
        "" => None,
        name if is_timed => Some(bare(&parse_attribute(word, name)?)),
        _ => None,
    };
    let kind = match (word, name) {
        ("zombie", name) if !name.is_empty() => {
            Some(ZombieType::of_word(name).ok_or_else(|| format!("{name:?} is no zombie's type"))?)
        }
        _ => None,
    };
    let mut is_over = false;
    let is_deleted = rules.delete_attributes(id, |one| {
        if one.word() != keyword || is_over {
            return false;
        }
        let is_it = match one {
            _ if name.is_empty() => true,
            Attribute::Zombie(rule) => kind.is_none_or(|kind| rule.kind == kind),
            Attribute::Event(event) if event.name.is_empty() => event.is_called(name),
            Attribute::Event(event) => event.name == *name,
            Attribute::InLimit(inlimit) => match name.rsplit_once(':') {
                Some((path, name)) => inlimit.name == *name && inlimit.path == *path,
                None => inlimit.name == *name,
            },
            one if stated.is_some() => stated.as_ref() == Some(&bare(one)),
            one => one.name().is_none_or(|own| *own == *name),
        };
        is_over = is_it && stated.is_some();
        is_it
    });
    let may_lack = ["trigger", "complete", "repeat", "late", "zombie", "queue", "generic"];
    if is_deleted || name.is_empty() || may_lack.contains(&word) {
        return Ok(());
    }
    Err(refusals::not_deleted(word, name))
}

/// A time, day or date as it was stated, without its state.
fn bare(attribute: &Attribute) -> Attribute {
    let plain = |series: &Series| Series::new(series.start, series.until, series.relative);
    match attribute {
        Attribute::Time(series) => Attribute::Time(Box::new(plain(series))),
        Attribute::Today(series) => Attribute::Today(Box::new(plain(series))),
        Attribute::Cron(cron) => {
            let series = plain(&cron.series);
            Attribute::Cron(Box::new(Cron { series, ..(**cron).clone() }))
        }
        Attribute::Date(date) => {
            let mut date = *date;
            date.free = false;
            Attribute::Date(date)
        }
        Attribute::Day(day) => {
            let mut day = *day;
            (day.free, day.expired, day.date) = (false, false, None);
            Attribute::Day(day)
        }
        other => other.clone(),
    }
}

fn change(
    rules: &mut Rules<'_>,
    id: NodeId,
    word: &'static str,
    name: &str,
    value: &str,
) -> Result<(), String> {
    match word {
        "variable" => {
            if rules.tree.own_variable(id, name).is_none() {
                return Err(format!("Node::changeVariable: Could not find variable {name}"));
            }
            rules.set_variable(id, name, value);
        }
        "defstatus" => {
            let none = || format!("Node::changeDefstatus expected a state but found {name}");
            rules.set_default(id, Displayed::of_word(name).ok_or_else(none)?);
        }
        "trigger" | "complete" => {
            let condition = parse_condition(rules.tree, id, name)
                .map_err(|why| refusals::no_condition(rules.tree, id, (word, name), why))?;
            if rules.tree.node(id).kind == Kind::Suite {
                let what = if word == "trigger" { "trigger" } else { "complete trigger" };
                return Err(format!("Cannot add {what} on a suite"));
            }
            let new = match word {
                "trigger" => Attribute::Trigger(condition),
                _ => Attribute::Complete(condition),
            };
            put(rules, id, new, |one| one.word() == word);
        }
        "late" => put(rules, id, parse_attribute(word, name)?, |one| one.word() == word),
        "time" | "today" => {
            let (old, new) = (bare(&parse_attribute(word, name)?), parse_attribute(word, value)?);
            let is_old = |one: &Attribute| one.word() == word && bare(one) == old;
            if !rules.tree.node(id).attributes.iter().any(is_old) {
                return Err(format!("Node::change_{word} : Cannot find {word} attribute: {name}"));
            }
            put(rules, id, new, is_old);
        }
        "repeat" => {
            let Some(repeat) = rules.tree.repeat(id) else {
                let path = rules.tree.path(id);
                return Err(format!("Node::changeRepeat: Could not find repeat on {path}"));
            };
            let mut over = repeat.over.clone();
            over.change(name)
                .map_err(|why| refusals::no_value(rules.tree, repeat, name).unwrap_or(why))?;
            rules.change_attributes(id, |one| match one {
                Attribute::Repeat(repeat) => {
                    repeat.over.clone_from(&over);
                    true
                }
                _ => false,
            });
        }
        "clock_type" | "clock_gain" | "clock_date" | "clock_sync" => {
            return change_clock(rules, id, word, name);
        }
        _ => return change_value(rules, id, word, name, value),
    }
    Ok(())
}

/// Puts an attribute in the place of the first that is `old`, or behind those of its kind.
fn put(rules: &mut Rules<'_>, id: NodeId, new: Attribute, old: impl Fn(&Attribute) -> bool) {
    let mut left = Some(new);
    rules.change_attributes(id, |one| match left.take() {
        Some(new) if old(one) => {
            *one = new;
            true
        }
        kept => {
            left = kept;
            false
        }
    });
    if let Some(new) = left {
        rules.add_attribute(id, new);
    }
}

/// Changes the clock of a node's suite.
fn change_clock(rules: &mut Rules<'_>, id: NodeId, word: &str, value: &str) -> Result<(), String> {
    let Some(suite) = rules.tree.suite(id) else { return Err("there is no suite".to_owned()) };
    let known = rules.tree.node(suite).attributes.iter().find_map(|one| match one {
        Attribute::Clock(clock) => Some(**clock),
        _ => None,
    });
    let none = Clock { hybrid: false, date: None, gain_s: 0, plus: false };
    let mut clock = known.unwrap_or(none);
    match word {
        "clock_type" => {
            clock.hybrid = match value {
                "hybrid" => true,
                "real" => false,
                _ => {
                    let meant = "expected clock type to be 'hybrid' or 'real' ";
                    return Err(format!("Suite::changeClockType: {meant} but found {value}"));
                }
            }
        }
        "clock_gain" => {
            let gain: i32 = value.parse().map_err(|_| {
                let name = &rules.tree.node(suite).name;
                format!(
                    "Suite::changeClockGain: value '{value}' is not convertible to an long, for \
                     suite {name}"
                )
            })?;
            (clock.gain_s, clock.plus) = (gain.into(), gain > 0);
        }
        "clock_date" => match parse_attribute("date", value)? {
            Attribute::Date(date) if date.day != 0 && date.month != 0 && date.year != 0 => {
                clock.date = Some((date.day, date.month, date.year));
            }
            _ => return Err(format!("Suite::changeClockDate Invalid clock date:{value}")),
        },
        _ => clock = Clock { hybrid: clock.hybrid, ..none },
    }
    rules.set_clock(suite, clock);
    Ok(())
}

/// Changes the value of an attribute that jobs change, too.
fn change_value(
    rules: &mut Rules<'_>,
    id: NodeId,
    word: &str,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let who = format!("Node::change{}", refusals::title(word));
    let none = |_| format!("{who} expected integer value but found {value}");
    let number = || value.parse::<i32>().map_err(none);
    let is_changed = match word {
        "label" => rules.set_label(id, name, value),
        "event" if !matches!(value, "" | "set" | "clear") => {
            let meant = "Expected empty string, 'set' or 'clear'";
            return Err(format!("{who}: {meant} but found {value} for event {name}"));
        }
        "event" => rules.set_event(id, name, value != "clear"),
        "meter" => rules.set_meter(id, name, number()?),
        _ => {
            let number = number()?;
            rules.change_attributes(id, |one| match one {
                Attribute::Limit(limit) if limit.name == *name => {
                    let field = if word == "limit_max" { &mut limit.max } else { &mut limit.value };
                    *field = number;
                    true
                }
                _ => false,
            })
        }
    };
    if is_changed {
        return Ok(());
    }
    let range = rules.tree.node(id).attributes.iter().find_map(|one| match one {
        Attribute::Meter(meter) if word == "meter" && meter.name == *name => {
            Some((meter.min, meter.max))
        }
        _ => None,
    });
    Err(match range {
        Some((min, max)) => format!(
            "Meter::set_value(int): The meter({name}) value must be in the range[{min}->{max}] but \
             found '{value}'"
        ),
        None => {
            let what = word.split('_').next().unwrap_or_default();
            format!("{who}: Could not find {what} {name}")
        }
    })
}

fn sort(rules: &mut Rules<'_>, id: NodeId, which: &str, how: &str) -> Result<(), String> {
    let words: &[&str] = match which {
        "event" => &["event"],
        "meter" => &["meter"],
        "label" => &["label"],
        "variable" => &["edit"],
        "limit" => &["limit"],
        "all" => &["event", "meter", "label", "edit", "limit"],
        _ => return Err(format!("{which:?} can't be sorted")),
    };
    let all: Vec<NodeId> = match how {
        "recursive" => rules.tree.walk(id).collect(),
        _ => vec![id],
    };
    for id in all {
        rules.sort_attributes(id, words);
    }
    Ok(())
}
