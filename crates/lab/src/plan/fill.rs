//! Placeholders in what a suite says of its targets, rungs and events: `{workload.size}`, the
//! point's own numbers and texts, and `{suite}`, the folder that the suite is in, are filled in
//! here. So a sweep that changes the workload changes its targets with it. What only a start
//! knows, such as `{port}`, stays for it; what nothing knows is an error.

use std::cell::Cell;

use super::near::nearest;
use crate::placeholders;

/// The value at a dotted key: of several tables the one of that `name`, else the first.
pub(super) fn value_at<'t>(table: &'t toml::Table, key: &str) -> Option<&'t toml::Value> {
    let mut value = None;
    let mut table = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        value = table.get(part);
        match value? {
            toml::Value::Table(inner) => table = inner,
            toml::Value::Array(items) => {
                let wanted = parts.peek().copied();
                let named =
                    |item: &&toml::Value| item.get("name").and_then(toml::Value::as_str) == wanted;
                let found = items.iter().find(named);
                if found.is_some() {
                    parts.next();
                }
                table = found.or(items.first())?.as_table()?;
            }
            _ if parts.peek().is_some() => return None,
            _ => {}
        }
    }
    value
}

/// A placeholder that nothing fills in.
#[derive(Debug)]
pub(super) struct Unfilled {
    /// Where it stands: `target[1].command[2]`.
    pub(super) key: String,
    /// What is wrong with it.
    pub(super) message: String,
    /// What may have been meant.
    pub(super) help: String,
}

/// What the start of a target fills in.
const AT_START: &[&str] =
    &["port", "host", "address", "socket", "dir", "data", "loadline", "worktree"];

/// What the start of its client fills in.
const AT_CLIENT: &[&str] = &[
    "address",
    "host",
    "port",
    "socket",
    "dir",
    "data",
    "loadline",
    "seconds",
    "connections",
    "pipeline",
    "threads",
];

/// What the running target fills in.
const AT_PAGE: &[&str] = &["address", "host", "port", "dir", "data"];

/// What an event fills in.
const AT_EVENT: &[&str] = &["address", "pid"];

/// What is filled in later in the texts of each key; in those of other keys nothing is.
const LATER: &[(&str, &[&str])] = &[
    ("command", AT_START),
    ("batch", AT_START),
    ("build", AT_START),
    ("setup", AT_START),
    ("wrap", AT_START),
    ("options", AT_START),
    ("env", AT_START),
    ("client", AT_CLIENT),
    ("counters", AT_PAGE),
    ("do", AT_EVENT),
];

/// The most bytes of the values that are filled in for one point.
const MAX_FILLED_BYTES: usize = 1 << 20;

/// Fills in what is known now, in all texts of `[[target]]`, `[[rung]]` and `[[event]]`; the suite
/// is in `folder`.
///
/// # Errors
/// Which placeholder means nothing, or in which text there are too many.
pub(super) fn fill(table: &mut toml::Table, folder: &str) -> Result<(), Unfilled> {
    let filled_bytes = Cell::new(0);
    for section in ["target", "rung", "event"] {
        let Some(mut value) = table.remove(section) else { continue };
        let filling = Filling { table, folder, filled_bytes: &filled_bytes };
        let outcome = filling.fill(&mut value, section, None);
        table.insert(section.to_owned(), value);
        outcome?;
    }
    Ok(())
}

struct Filling<'a> {
    table: &'a toml::Table,
    folder: &'a str,
    filled_bytes: &'a Cell<usize>,
}

impl Filling<'_> {
    /// `later` is what is filled in later in these texts, once the key is known that says so.
    fn fill(
        &self,
        value: &mut toml::Value,
        key: &str,
        later: Option<&[&str]>,
    ) -> Result<(), Unfilled> {
        match value {
            toml::Value::String(text) => {
                self.check_size(text, key)?;
                self.check(text, key, later)?;
                *text = placeholders::fill(text, &|name| self.value(name));
            }
            toml::Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.fill(item, &format!("{key}[{index}]"), later)?;
                }
            }
            toml::Value::Table(inner) => {
                for (name, value) in inner {
                    let own = LATER.iter().find(|(key, _)| key == name).map(|(_, names)| *names);
                    self.fill(value, &format!("{key}.{name}"), later.or(own))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Option<String> {
        if name == "suite" {
            return Some(self.folder.to_owned());
        }
        match value_at(self.table, name).filter(|_| name.contains('.'))? {
            toml::Value::String(text) => Some(text.clone()),
            toml::Value::Table(_) | toml::Value::Array(_) => None,
            value => Some(value.to_string()),
        }
    }

    /// Counts what is filled in: a long text in many places would fill the memory.
    fn check_size(&self, text: &str, key: &str) -> Result<(), Unfilled> {
        for name in placeholders::names(text) {
            let bytes = self.value(name).map_or(0, |value| value.len());
            self.filled_bytes.set(self.filled_bytes.get() + bytes);
            if self.filled_bytes.get() > MAX_FILLED_BYTES {
                let limit = MAX_FILLED_BYTES >> 20;
                let message = format!("more than {limit} MiB are filled in, here by {{{name}}}");
                let help =
                    "a text of this length belongs in a file: write its name here".to_owned();
                return Err(Unfilled { key: key.to_owned(), message, help });
            }
        }
        Ok(())
    }

    fn check(&self, text: &str, key: &str, later: Option<&[&str]>) -> Result<(), Unfilled> {
        let is_known = |name: &str| {
            let is_later = later.is_some_and(|later| later.contains(&name));
            is_later || self.value(name).is_some()
        };
        // Other texts, such as patterns, have braces of their own.
        let is_meant = |name: &str| name.contains('.') || later.is_some();
        let mut names = placeholders::names(text).into_iter();
        let Some(name) = names.find(|name| is_meant(name) && !is_known(name)) else {
            return Ok(());
        };
        let own = plain_keys("", self.table);
        let ends = |key: &&String| key.rsplit_once('.').is_some_and(|(_, last)| last == name);
        let own = || own.iter();
        let later = later.unwrap_or_default();
        let near = own().find(ends).map(|key| &key[..]).or_else(|| {
            let known = own().map(|key| &key[..]).chain(later.iter().copied());
            nearest(name, known.chain(["suite"]))
        });
        let message = match name.contains('.') {
            true => format!("{{{name}}} names no number or text of the suite"),
            false => {
                let known: Vec<_> = later.iter().map(|name| format!("{{{name}}}")).collect();
                format!("nothing fills in {{{name}}}; here there are {}", known.join(", "))
            }
        };
        let near = near.map(|near| format!("did you mean {{{near}}}? ")).unwrap_or_default();
        let help = format!("{near}For the text itself double the braces: {{{{{name}}}}}");
        Err(Unfilled { key: key.to_owned(), message, help })
    }
}

/// The dotted keys of all numbers and texts.
fn plain_keys(prefix: &str, table: &toml::Table) -> Vec<String> {
    let mut keys = Vec::new();
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => keys.extend(plain_keys(&key, inner)),
            toml::Value::Array(items) => {
                for inner in items.iter().filter_map(toml::Value::as_table) {
                    let name = inner.get("name").and_then(toml::Value::as_str);
                    let key = name.map_or(key.clone(), |name| format!("{key}.{name}"));
                    keys.extend(plain_keys(&key, inner));
                }
            }
            _ => keys.push(key),
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = r#"
        [workload]
        size = 10_000_000
        keys = { count = 7 }
        [parameters]
        turns = 3
        [[clients]]
        name = "slow"
        arrivals = { pause = "200ms" }
        [[target]]
        name = "a"
        options = { size = "{workload.size}" }
        command = [
            "{dir}/x", "{workload.keys.count}", "{clients.slow.arrivals.pause}",
            "awk { print $1.5 }", "{suite}/y", "{{port}} ${x}",
        ]
        figures = { took = 'took{x} (.*)' }
    "#;

    #[test]
    fn targets_take_the_points_values_and_keep_what_is_none() {
        let mut table: toml::Table = SUITE.parse().unwrap();
        fill(&mut table, "/s").unwrap();
        let target = &table["target"][0];
        assert_eq!(target["options"]["size"].as_str(), Some("10000000"));
        let command: Vec<_> =
            target["command"].as_array().unwrap().iter().filter_map(toml::Value::as_str).collect();
        let expected = ["{dir}/x", "7", "200ms", "awk { print $1.5 }", "/s/y", "{{port}} ${x}"];
        assert_eq!(command, expected);
    }

    #[test]
    fn more_than_a_point_may_fill_in_is_refused_with_the_key() {
        let long = "x".repeat(100_000);
        let bomb = |places: usize| {
            let text = "{parameters.long}".repeat(places);
            let text =
                format!("[parameters]\nlong = '{long}'\n[[target]]\nsetup = ['a', '{text}']");
            fill(&mut text.parse().unwrap(), "/s")
        };
        assert!(bomb(10).is_ok());
        let Unfilled { key, message, .. } = bomb(20_000).unwrap_err();
        assert_eq!(key, "target[0].setup[1]");
        assert_eq!(message, "more than 1 MiB are filled in, here by {parameters.long}");
    }

    #[test]
    fn what_nothing_fills_in_is_refused_with_what_may_have_been_meant() {
        let wrong = |section: &str| {
            let text = format!("{SUITE}\n{section}");
            let mut table: toml::Table = text.parse().unwrap();
            let Unfilled { key, message, help } = fill(&mut table, "/s").unwrap_err();
            assert!(table.contains_key("target"));
            format!("{key}: {message} ({help})")
        };
        let said = wrong("env = { A = '{prot}' }");
        assert!(said.starts_with("target[0].env.A: nothing fills in {prot}; here"), "{said}");
        assert!(said.contains("did you mean {port}? For the text itself"), "{said}");
        let said = wrong("client = ['x', '{turns}']");
        assert!(said.starts_with("target[0].client[1]:"), "{said}");
        assert!(said.contains("mean {parameters.turns}?") && said.contains("{{turns}}"), "{said}");
        let said = wrong("setup = ['{workload.sise}']");
        assert!(said.contains("{workload.sise} names no number or text"), "{said}");
        assert!(said.contains("did you mean {workload.size}?"), "{said}");
        let said = wrong("[[event]]\ndo = ['kill', '{port}']");
        assert!(said.starts_with("event[0].do[1]: nothing fills in {port}; here"), "{said}");
        assert!(said.contains("{address}, {pid}"), "{said}");
    }
}
