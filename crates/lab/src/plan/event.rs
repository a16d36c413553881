//! Things that happen at a time: a target stopped for a while, a signal, a command.

use std::fmt;

use base::units::Span;
use serde::{Deserialize, Deserializer, de::Error as _};

/// `[[event]]` as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventSpec {
    name: Option<String>,
    at: Span,
    every: Option<Span>,
    #[serde(rename = "do")]
    action: ActionSpec,
    #[serde(rename = "for")]
    length: Option<Span>,
    target: Option<String>,
}

/// `do = "stop"`, `do = "SIGHUP"` or `do = ["program", "argument"]`
#[derive(Clone, Debug)]
enum ActionSpec {
    Word(String),
    Command(Vec<String>),
}

impl<'de> Deserialize<'de> for ActionSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(word) => Ok(Self::Word(word)),
            list @ toml::Value::Array(_) => {
                list.try_into().map(Self::Command).map_err(D::Error::custom)
            }
            _ => Err(D::Error::custom("do = \"stop\", \"SIGHUP\" or [\"program\", …]")),
        }
    }
}

/// Something that happens at a time, in every slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What reports call it.
    pub name: String,
    /// When it first happens, from the start of the slice.
    pub at: Span,
    /// And again after each of these.
    pub every: Option<Span>,
    /// What happens.
    pub action: Action,
    /// To which target; `None` is every one, each in its own slices.
    pub target: Option<String>,
}

/// What happens to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Its processes are stopped for so long, and then go on.
    Stop(Span),
    /// Its processes get a signal, by number.
    Signal(i32),
    /// A command is run, with `{address}` and `{pid}` filled in.
    Command(Vec<String>),
}

/// The signals that a suite may name, with their numbers on Linux.
const SIGNALS: &[(&str, i32)] = &[
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGKILL", 9),
    ("SIGUSR1", 10),
    ("SIGUSR2", 12),
    ("SIGTERM", 15),
];

/// The number of a signal that a suite may name.
pub(super) fn signal_number(name: &str) -> Option<i32> {
    SIGNALS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// Their names, for errors.
pub(super) fn signal_names() -> String {
    SIGNALS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl EventSpec {
    /// What is written means this; `targets` are the names that there are.
    pub(crate) fn resolve<'a>(
        &self,
        mut targets: impl Iterator<Item = &'a str>,
    ) -> Result<Event, String> {
        if let Some(name) = &self.target
            && !targets.any(|target| target == name)
        {
            return Err(format!("there is no target \"{name}\""));
        }
        if self.every.is_some_and(|every| every < Span::from_ms(1)) {
            return Err("every has to be at least 1ms".into());
        }
        let action = match (&self.action, self.length) {
            (ActionSpec::Word(word), Some(length)) if word == "stop" => Action::Stop(length),
            (ActionSpec::Word(word), None) if word == "stop" => {
                return Err("say for how long it stops: for = \"200ms\"".into());
            }
            (_, Some(_)) => return Err("`for` belongs to do = \"stop\"".into()),
            (ActionSpec::Command(command), None) if command.is_empty() => {
                return Err("a command needs a program".into());
            }
            (ActionSpec::Command(command), None) => Action::Command(command.clone()),
            (ActionSpec::Word(word), None) => {
                let number = signal_number(word).ok_or_else(|| {
                    let names = signal_names();
                    format!(
                        "do = \"{word}\" is neither \"stop\", nor a command, nor one of {names}"
                    )
                })?;
                Action::Signal(number)
            }
        };
        let name = match &self.name {
            None => shortened(&action.to_string()),
            Some(name) if name.trim().is_empty() || name.chars().count() > LONGEST_NAME => {
                return Err(format!("a name has from 1 to {LONGEST_NAME} characters"));
            }
            Some(name) => name.clone(),
        };
        let (at, every, target) = (self.at, self.every, self.target.clone());
        Ok(Event { name, at, every, action, target })
    }
}

/// The most characters of a name: it stands in the legends of charts.
const LONGEST_NAME: usize = 60;

/// As much of a text as a name may have, on one line.
fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.chars().count() > LONGEST_NAME {
        true => text.chars().take(LONGEST_NAME - 1).chain(['…']).collect(),
        false => text,
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop(length) => write!(f, "stop for {length}"),
            Self::Signal(number) => {
                let known = SIGNALS.iter().find(|(_, known)| known == number);
                known.map_or(Ok(()), |(name, _)| f.write_str(name))
            }
            Self::Command(command) => f.write_str(&command.join(" ")),
        }
    }
}

impl Event {
    /// The times at which it happens in a slice of this length, in nanoseconds from its start.
    pub(crate) fn times(&self, length_ns: u64) -> impl Iterator<Item = u64> {
        let every_ns = self.every.map_or(u64::MAX, |every| every.ns);
        std::iter::successors(Some(self.at.ns), move |at| at.checked_add(every_ns))
            .take_while(move |at| *at < length_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Event, String> {
        let spec: EventSpec = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        spec.resolve(["a", "b"].into_iter())
    }

    #[test]
    fn events_happen_at_their_times_within_a_slice() {
        let event = read("at = '500ms'\nevery = '2s'\ndo = 'stop'\nfor = '200ms'").unwrap();
        assert_eq!(event.action, Action::Stop(Span::from_ms(200)));
        assert_eq!(event.name, "stop for 200 ms");
        let times: Vec<_> = event.times(5_000_000_000).collect();
        assert_eq!(times, [500_000_000, 2_500_000_000, 4_500_000_000]);
        let once = read("at = '1s'\ndo = ['true']").unwrap();
        assert_eq!(once.times(5_000_000_000).count(), 1);
        let named = read("name = 'a backup'\nat = '1s'\ndo = 'SIGHUP'").unwrap();
        assert_eq!((&named.name[..], &named.action.to_string()[..]), ("a backup", "SIGHUP"));
    }

    #[test]
    fn what_is_no_event_is_said() {
        assert!(read("at = '1s'\ndo = 'stop'").unwrap_err().contains("for how long"));
        assert!(read("at = '1s'\ndo = 'dance'").unwrap_err().contains("SIGHUP"));
        assert!(read("at = '1s'\ndo = []").unwrap_err().contains("needs a program"));
        let nameless = read("name = ' '\nat = '1s'\ndo = 'SIGHUP'").unwrap_err();
        assert!(nameless.contains("from 1 to 60 characters"), "{nameless}");
        assert!(
            read("at = '1s'\ndo = 'stop'\nfor = '1s'\ntarget = 'c'").unwrap_err().contains("\"c\"")
        );
    }
}
