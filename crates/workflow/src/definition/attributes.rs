//! Attributes of nodes: each from the words of its line.

use super::check::Place;
use super::error::{Read, fault, short};
use super::line::{Words, check_name, form, items, number, unquote};
use super::reader::{Reader, Style};
use super::{repeats, times};
use crate::model::{
    Attribute, Child, Event, Generic, InLimit, Kind, Label, Limit, Meter, Queue, State, Text,
    Verify, ZombieAction, ZombieRule, ZombieType,
};
use base::many;

/// Reads an attribute onto the node that is being read.
pub(super) fn read<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    match of.all[0] {
        "label" => label(reader, of),
        "meter" => meter(reader, of),
        "event" => event(reader, of),
        "limit" => limit(reader, of),
        "inlimit" => in_limit(reader, of),
        "repeat" => repeats::read(reader, of),
        "zombie" => zombie(reader, of),
        "verify" => verify(reader, of),
        "queue" => queue(reader, of),
        "generic" => generic(reader, of),
        "autorestore" => auto_restore(reader, of),
        "aviso" | "mirror" => later(reader, of),
        _ => times::read(reader, of),
    }
}

/// Whether names are checked and doubles refused: not in what a server sends to its clients, nor
/// in what it has kept of what it took.
pub(super) fn is_checked(reader: &Reader<'_>) -> bool {
    reader.style != Style::Net && !reader.is_kept
}

fn named<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>, place: usize) -> Read<Text> {
    let name = of.need(place, "name")?;
    let name = if is_checked(reader) { check_name(of.all[0], name)? } else { name };
    Ok(reader.tree.share(name))
}

fn label<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let name = named(reader, of, 1)?;
    if of.all.len() < 3 {
        return Err(fault("label has no text", format!("write {}", form("label"))));
    }
    let mut text = std::mem::take(&mut reader.scratch.text);
    let value = if of.all.len() == 3 { of.all[2] } else { of.join(2, &mut text) };
    let value = lines(reader, unquote(value));
    reader.scratch.text = text;
    let has_state = reader.style.has_state() && of.all.len() > 3;
    let new_value = if has_state { new_label(of) } else { "" };
    let new_value = lines(reader, new_value);
    let checked = is_checked(reader);
    reader.scratch.push_named(Attribute::Label(Label { name, value, new_value }), checked)
}

/// A text in which `\n` stands for a line's end.
fn lines(reader: &mut Reader<'_>, text: &str) -> Text {
    if text.contains("\\n") {
        reader.tree.share(&text.replace("\\n", "\n"))
    } else {
        reader.tree.share(text)
    }
}

/// The new text of a label: behind a comment sign, between the outermost quotes.
fn new_label<'a>(of: &Words<'a, '_>) -> &'a str {
    let between = |text: &'a str| {
        let start = text.find('"')?;
        let end = text.rfind('"')?;
        text.get(start + 1..end)
    };
    // Behind the last sign, as ecFlow has it; where that lies within the text, behind the first.
    let last = of.line.rfind('#').and_then(|at| between(&of.line[at..]));
    let first = || {
        let word = of.all.iter().skip(3).find(|word| word.starts_with('#'))?;
        let at = word.as_ptr() as usize - of.line.as_ptr() as usize;
        between(of.line.get(at..)?)
    };
    last.or_else(first).unwrap_or("")
}

fn meter<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let name = named(reader, of, 1)?;
    let min = number("the least value", of.need(2, "least value")?)?;
    let max = number("the largest value", of.need(3, "largest value")?)?;
    let threshold = of.value(4).map(|word| number("the threshold", word)).transpose()?;
    let threshold = threshold.filter(|number| *number != i32::MAX).unwrap_or(max);
    let state = if reader.style.has_state() { of.state(3).first().copied() } else { None };
    let value = state.map(|word| number("the value", word)).transpose()?.unwrap_or(min);
    if min > max {
        return Err(fault(
            format!("meter {name}: {min} is more than {max}"),
            "write the least value first",
        ));
    }
    if !(min..=max).contains(&threshold) {
        return Err(fault(
            format!("meter {name}: the threshold {threshold} is not between {min} and {max}"),
            "use one between them, or leave it out",
        ));
    }
    let meter = Meter { name, min, max, threshold, value };
    let checked = is_checked(reader);
    reader.scratch.push_named(Attribute::Meter(meter), checked)
}

fn event<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let first = of.all.get(1).copied().unwrap_or("");
    if first.is_empty() {
        return Err(fault("event has no name", format!("write {}", form("event"))));
    }
    let number = first.parse().ok().filter(|_| first.as_bytes()[0].is_ascii_digit());
    let (name, set) = match (number, of.value(2)) {
        (Some(_), Some(name)) => (name, of.all.get(3).copied()),
        (Some(_), None) => ("", of.all.get(2).copied()),
        (None, _) => (first, of.all.get(2).copied()),
    };
    let initial = set == Some("set");
    let checked = is_checked(reader);
    if checked && !name.is_empty() {
        check_name("event", name)?;
    }
    let mut value = initial;
    // A last word `set` is the state behind a sign only: an event may be called so.
    if reader.style.has_state() {
        match of.state(1).last().copied() {
            Some("set") => value = true,
            Some("clear") => value = false,
            _ => {}
        }
    }
    let event = Event { name: reader.tree.share(name), number, initial, value };
    let is_double = |known: &Attribute| match known {
        Attribute::Event(known) => {
            let by_name = !event.name.is_empty() && known.name == event.name;
            by_name || event.number.is_some() && known.number == event.number
        }
        _ => false,
    };
    let new = Attribute::Event(event.clone());
    if checked && reader.scratch.has_same(&new, is_double) {
        return Err(fault(
            format!("a second event '{}'", short(first)),
            "give it another name and number, or drop one",
        ));
    }
    reader.scratch.push(new)
}

fn limit<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let name = named(reader, of, 1)?;
    let max = number("the limit", of.need(2, "number")?)?;
    let mut limit = Limit { name, max, value: 0, holders: None };
    if reader.style.has_state()
        && let [value, holders @ ..] = of.state(3)
    {
        limit.value = number("the limit's value", value)?;
        if !holders.is_empty() {
            let holders = holders.iter().map(|path| reader.tree.share(path)).collect();
            limit.holders = Some(std::sync::Arc::new(holders));
        }
    }
    let checked = is_checked(reader);
    reader.scratch.push_named(Attribute::Limit(limit), checked)
}

fn in_limit<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let mut place = 1;
    let node_only = of.all.get(place) == Some(&"-n");
    place += usize::from(node_only);
    let submission = of.all.get(place) == Some(&"-s");
    place += usize::from(submission);
    if node_only && submission {
        return Err(fault("-n and -s exclude each other", "use one of them"));
    }
    let word = of.need(place, "limit")?;
    let (path, name) = match word.split_once(':') {
        Some(parts) => parts,
        None if word.starts_with('/') => (word, ""),
        None => ("", word),
    };
    let checked = is_checked(reader);
    if checked {
        check_name("limit", name)?;
    }
    let tokens = of.value(place + 1).map(|word| number("the tokens", word)).transpose()?;
    let incremented = reader.style.has_state()
        && of.all.iter().skip(place + 2).any(|word| word.contains("incremented:1"));
    let (path, name) = (reader.tree.share(path), reader.tree.share(name));
    let tokens = tokens.unwrap_or(1);
    let is_double = |known: &Attribute| match known {
        Attribute::InLimit(known) => known.name == name && known.path == path,
        _ => false,
    };
    let (own, of) = (name.clone(), path.clone());
    let new = InLimit { name: own, path: of, tokens, node_only, submission, incremented };
    let new = Attribute::InLimit(new);
    if checked && reader.scratch.has_same(&new, is_double) {
        return Err(fault(format!("a second inlimit '{}'", short(word)), "drop one"));
    }
    reader.scratch.push(new)
}

fn zombie<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let word = of.need(1, "type")?;
    let rule = zombie_rule(word)?;
    let is_double =
        |known: &Attribute| matches!(known, Attribute::Zombie(known) if known.kind == rule.kind);
    if reader.scratch.attributes.iter().any(is_double) {
        return Err(fault(format!("a second zombie of type {}", rule.kind.word()), "drop one"));
    }
    reader.scratch.push(Attribute::Zombie(Box::new(rule)))
}

/// The rule of `ecf:fob:init,complete:300`.
pub(super) fn zombie_rule(word: &str) -> Read<ZombieRule> {
    let bad = |what: &str, part: &str, fix: &str| {
        Err(fault(format!("zombie: '{}' is no {what}", short(part)), fix))
    };
    let parts: Vec<&str> = word.split(':').collect();
    let (2..=4) = parts.len() else {
        return bad("rule", word, form("zombie"));
    };
    let part = |place: usize| parts.get(place).copied().unwrap_or("");
    let Some(kind) = ZombieType::of_word(part(0)) else {
        return bad("type", part(0), "use user, ecf, ecf_pid, ecf_passwd, ecf_pid_passwd or path");
    };
    let action = match part(1) {
        "" => ZombieAction::Block,
        word => match ZombieAction::of_word(word) {
            Some(action) => action,
            None => return bad("action", word, "use fob, fail, adopt, remove, block or kill"),
        },
    };
    let mut children = Vec::new();
    for word in part(2).split(',').filter(|word| !word.is_empty()) {
        match Child::of_word(word) {
            Some(child) => children.push(child),
            None => {
                let fix = "use init, event, meter, label, wait, queue, abort or complete";
                return bad("child command", word, fix);
            }
        }
    }
    let lifetime_s = match part(3) {
        "" if part(1).is_empty() => return bad("rule", word, "add an action or a lifetime"),
        "" => kind.lifetime_s(),
        word => match number("the lifetime", word)? {
            ..=0 => kind.lifetime_s(),
            seconds => seconds.max(60),
        },
    };
    Ok(ZombieRule { kind, action, children, lifetime_s })
}

fn verify<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let word = of.need(1, "state")?;
    let parts = word.split_once(':').and_then(|(s, n)| Some((State::of_word(s)?, n)));
    let Some((state, expected)) = parts else {
        return Err(fault(format!("verify: '{}' is none", short(word)), form("verify")));
    };
    let expected = number("the count", expected)?;
    let actual = if reader.style.has_state() && of.all.get(2) == Some(&"#") {
        of.all.get(3).and_then(|word| word.parse().ok()).unwrap_or(0)
    } else {
        0
    };
    let new = Attribute::Verify(Verify { state, expected, actual });
    let is_double = |known: &Attribute| {
        matches!(known, Attribute::Verify(known) if known.state == state
            && known.expected == expected)
    };
    if reader.scratch.has_same(&new, is_double) {
        return Err(fault(format!("a second verify '{}'", short(word)), "drop one"));
    }
    reader.scratch.push(new)
}

fn queue<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let name = reader.tree.share(check_name("queue", of.need(1, "name")?)?);
    let steps: Vec<Text> = items(of, 2).map(|step| reader.tree.share(step)).collect();
    if steps.is_empty() {
        return Err(fault(format!("queue {name} has no steps"), form("queue")));
    }
    let (mut index, mut states) = (0, vec![State::Queued; steps.len()]);
    if reader.style.has_state()
        && let [first, rest @ ..] = of.state(3)
    {
        index = number("the queue's index", first)?;
        if !rest.is_empty() {
            let known = rest.iter().map(|word| State::of_word(word).ok_or(*word));
            states = known.collect::<Result<_, _>>().map_err(|word: &str| {
                fault(format!("queue {name}: '{}' is no state", short(word)), "")
            })?;
        }
        if states.len() != steps.len() {
            let (steps, states) = (many(steps.len(), "step"), many(states.len(), "state"));
            return Err(fault(format!("queue {name}: {steps}, but {states}"), ""));
        }
    }
    let queue = Queue { name, steps, states, index };
    reader.scratch.push_named(Attribute::Queue(Box::new(queue)), true)
}

fn generic<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    let name = reader.tree.share(check_name("generic", of.need(1, "name")?)?);
    let words = of.all.get(2..).unwrap_or(&[]).iter();
    let words = words.take_while(|word| !word.starts_with('#'));
    let values = words.map(|word| reader.tree.share(word)).collect();
    reader.scratch.push_named(Attribute::Generic(Box::new(Generic { name, values })), true)
}

fn auto_restore<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    of.need(1, "path")?;
    let words = of.all[1..].iter().take_while(|word| !word.starts_with('#'));
    let paths = words.map(|path| reader.tree.share(path)).collect();
    if let Some(node) = reader.node {
        let (word, line) = ("autorestore", reader.lines.number);
        reader.places.push(Place { node, word, line });
    }
    reader.scratch.push_only(Attribute::AutoRestore(std::sync::Arc::new(paths)))
}

/// An attribute of later versions, kept as it stands.
fn later<'a>(reader: &mut Reader<'a>, of: &Words<'a, '_>) -> Read<()> {
    if reader.kind == Kind::Suite {
        return Err(fault(format!("{} at a suite", of.all[0]), "put it onto a task"));
    }
    let text = reader.tree.share(of.line.trim());
    reader.scratch.push(if of.all[0] == "aviso" {
        Attribute::Aviso(text)
    } else {
        Attribute::Mirror(text)
    })
}
