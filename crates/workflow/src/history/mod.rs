//! When jobs ran, by the lines of a server's log: this program's or ecFlow's own.
//!
//! [`Change`] reads a line, [`Runs`] pairs them; [`awaited`], [`tokens`] and [`limits`] say what a
//! definition has runs wait for and take. No I/O.

mod cause;

use std::collections::HashMap;

use serde::Serialize;

use crate::model::{Date, Instant, State};

pub use cause::{Token, awaited, limits, tokens};

/// A change of a node's state, as a line of the log has it.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct Change<'a> {
    /// Seconds since 1970 of the log's clock.
    pub at: i64,
    /// The node.
    pub path: &'a str,
    /// Its state from then on.
    pub state: State,
    /// What else the line says: `try-no: 1 reason: trap`.
    pub detail: &'a str,
}

impl<'a> Change<'a> {
    /// Reads a line; none where it is about something else.
    #[must_use]
    pub fn read(line: &'a str) -> Option<Self> {
        let (at, rest) = stamped(line)?;
        let (word, rest) = rest.trim_start().split_once(": ")?;
        let state = State::of_word(word)?;
        let (path, detail) = rest.split_once(' ').unwrap_or((rest, ""));
        path.starts_with('/').then_some(Self { at, path, state, detail: detail.trim() })
    }

    /// Whether its node is this one or below it; of `/` all are.
    #[must_use]
    pub fn is_under(&self, path: &str) -> bool {
        let rest = self.path.strip_prefix(path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// The state of a run that was taken back before its job ran.
const TAKEN_BACK: &str = "queued";

/// One run of a task's job; times as the log has them, in seconds since 1970 of its clock.
#[derive(Serialize, Debug, PartialEq, Eq, Clone)]
pub struct Run {
    /// The task.
    pub path: String,
    /// When it was submitted.
    pub submitted: i64,
    /// When its job said that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<i64>,
    /// When it was complete or aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// The last state.
    pub state: &'static str,
}

/// Runs of tasks at and below a path, as lines say them.
#[derive(Debug)]
pub struct Runs {
    path: String,
    /// The runs, in the order of submission; families among them have lines of their own.
    pub all: Vec<Run>,
    /// The time of the last line.
    pub now: i64,
    /// The place of each task's last run.
    open: HashMap<String, usize>,
}

impl Runs {
    /// None yet, of a node and those below it; of `/` all.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), all: Vec::new(), now: 0, open: HashMap::new() }
    }

    /// Takes a line of the log.
    pub fn take(&mut self, line: &str) {
        let Some((at, _)) = stamped(line) else { return };
        self.now = at;
        let Some(change) = Change::read(line).filter(|change| change.is_under(&self.path)) else {
            return;
        };
        let name = change.path;
        match (change.state, self.open.get(name).copied()) {
            // The same submission once more: its job is written.
            (State::Submitted, Some(place)) if self.all[place].active.is_none() => {
                let run = &mut self.all[place];
                if run.state == TAKEN_BACK {
                    (run.submitted, run.state) = (at, "submitted");
                }
            }
            // It was taken back before it ran: only the next submission counts.
            (State::Queued, Some(place)) if self.all[place].active.is_none() => {
                self.all[place].state = TAKEN_BACK;
            }
            (State::Submitted, _) => {
                self.open.insert(name.to_owned(), self.all.len());
                let (path, state) = (name.to_owned(), "submitted");
                self.all.push(Run { path, submitted: at, active: None, end: None, state });
            }
            (State::Active, Some(place)) => {
                (self.all[place].active, self.all[place].state) = (Some(at), "active");
            }
            (State::Complete | State::Aborted, Some(place)) => {
                (self.all[place].end, self.all[place].state) = (Some(at), change.state.word());
                self.open.remove(name);
            }
            _ => {}
        }
    }
}

/// The seconds of a line of changes, and what is behind the stamp: `LOG:[14:02:41 22.11.2026] …`.
fn stamped(line: &str) -> Option<(i64, &str)> {
    let (stamp, rest) = line.strip_prefix("LOG:[")?.split_once(']')?;
    let (time, date) = stamp.split_once(' ')?;
    let three = |text: &str, sign: char| -> Option<[i64; 3]> {
        let mut parts = text.split(sign).map(str::parse);
        let all = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
        parts.next().is_none().then_some(all)
    };
    let ([hours, minutes, seconds], [day, month, year]) = (three(time, ':')?, three(date, '.')?);
    let number = |part: i64| i32::try_from(part).ok();
    let date = Date::new(number(year)?, number(month)?, number(day)?)?;
    let midnight = Instant::midnight(date).us / 1_000_000;
    let in_range = (0..24).contains(&hours) && (0..60).contains(&minutes);
    let in_range = in_range && (0..=60).contains(&seconds);
    in_range.then_some((midnight + hours * 3600 + minutes * 60 + seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, path: &str) -> Runs {
        let mut runs = Runs::new(path);
        text.lines().for_each(|line| runs.take(line));
        runs
    }

    const TEXT: &str = "MSG:[00:00:01 2.1.1970] --begin=s :me@h\n\
                        LOG:[00:00:02 2.1.1970]  submitted: /s/a job_size:3\n\
                        LOG:[00:00:02 2.1.1970]  submitted: /s/a\n\
                        LOG:[00:00:03 2.1.1970]  active: /s/a\n\
                        LOG:[00:00:04 2.1.1970]  submitted: /sb/x\n\
                        LOG:[00:00:09 2.1.1970]  aborted: /s/a try-no: 1 reason: trap\n\
                        LOG:[00:00:10 2.1.1970]  submitted: /s/a\nLOG:[x] y\n\
                        LOG:[25:00:00 2.1.1970] z\n";

    #[test]
    fn a_submission_that_was_taken_back_counts_from_the_next() {
        let text = "LOG:[00:00:02 2.1.1970]  submitted: /s/a\nLOG:[00:00:09 2.1.1970]  queued: \
                    /s/a\nLOG:[10:01:02 2.1.1970]  submitted: /s/a\n";
        let runs = read(text, "/").all;
        assert_eq!((runs.len(), runs[0].submitted), (1, 86_400 + 36_062));
        assert_eq!(runs[0].state, "submitted");
    }

    #[test]
    fn runs_are_read_from_the_lines_of_the_log() {
        let seen = read(TEXT, "/s");
        let day = 86_400;
        let first = Run {
            path: "/s/a".to_owned(),
            submitted: day + 2,
            active: Some(day + 3),
            end: Some(day + 9),
            state: "aborted",
        };
        assert_eq!((seen.all.len(), &seen.all[0], seen.now), (2, &first, day + 10));
        assert_eq!(seen.all[1].state, "submitted");
        assert_eq!(read(TEXT, "/").all.len(), 3);
    }

    #[test]
    fn a_line_says_a_change_of_state_with_its_reason() {
        let changes: Vec<Change<'_>> = TEXT.lines().filter_map(Change::read).collect();
        assert_eq!(changes.len(), 6);
        let (at, path, detail) = (86_409, "/s/a", "try-no: 1 reason: trap");
        assert_eq!(changes[4], Change { at, path, state: State::Aborted, detail });
        assert!(changes[3].is_under("/") && changes[3].is_under("/sb"), "below it");
        assert!(!changes[3].is_under("/s"), "a name that only begins so");
        assert_eq!(Change::read("LOG:[00:00:02 2.1.1970]  late: /s"), None);
        assert_eq!(Change::read("LOG:[00:00:02 2.1.1970]  queued: s"), None);
    }
}
