//! When jobs ran, by the lines of a server's log: this program's or ecFlow's own.
//!
//! [`Change`] reads a line, [`Step`] pairs them, [`Runs`] keeps what comes of it; [`awaited`],
//! [`tokens`] and [`limits`] say what a definition has runs wait for and take. No I/O.

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

/// What is known of a task's last run.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Last {
    /// Submitted, and its job has not said that it runs.
    Submitted,
    /// Its job runs.
    Active,
    /// It has ended, or was requeued while its job ran: what comes then isn't its.
    Over,
}

impl Last {
    /// By the last state of a run.
    #[must_use]
    pub fn of(state: &str) -> Self {
        match state {
            "submitted" => Self::Submitted,
            "active" => Self::Active,
            _ => Self::Over,
        }
    }
}

/// What a change of a task's state means for its runs.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Step {
    /// A run begins.
    Begin,
    /// A run begins with its job: a log that lost lines in a crash, or that begins later, has no
    /// submission.
    BeginActive,
    /// The last run's job runs.
    Run,
    /// The last run ends.
    End,
    /// The last run was taken back before its job ran: it counts for nothing.
    TakeBack,
    /// The last run's job goes on unseen: when it ends isn't known.
    LoseSight,
}

impl Step {
    /// What a state means behind the last run, if there is one.
    #[must_use]
    pub const fn of(state: State, last: Option<Last>) -> Option<Self> {
        match (state, last) {
            // The same submission once more: its job is written.
            (State::Submitted, Some(Last::Submitted)) => None,
            (State::Submitted, _) => Some(Self::Begin),
            (State::Active, Some(Last::Submitted | Last::Active)) => Some(Self::Run),
            (State::Active, None | Some(Last::Over)) => Some(Self::BeginActive),
            (State::Complete | State::Aborted, Some(Last::Submitted | Last::Active)) => {
                Some(Self::End)
            }
            (State::Queued, Some(Last::Submitted)) => Some(Self::TakeBack),
            (State::Queued, Some(Last::Active)) => Some(Self::LoseSight),
            _ => None,
        }
    }
}

/// One run of a task's job; times as the log has them, in seconds since 1970 of its clock.
#[derive(Serialize, Debug, PartialEq, Eq, Clone)]
pub struct Run {
    /// The task.
    pub path: String,
    /// When it was submitted; none where the log doesn't have that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<i64>,
    /// When its job said that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<i64>,
    /// When it was complete or aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// The last state; queued where it was requeued while its job ran.
    pub state: &'static str,
}

impl Run {
    fn last(&self) -> Last {
        Last::of(self.state)
    }
}

/// Runs of tasks at and below a path, as lines say them.
#[derive(Debug)]
pub struct Runs {
    path: String,
    /// The runs in the order of submission; of one that was taken back nothing is left.
    all: Vec<Option<Run>>,
    /// The time of the last line.
    now: i64,
    /// The place of each task's last run.
    last: HashMap<String, usize>,
}

impl Runs {
    /// None yet, of a node and those below it; of `/` all.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), all: Vec::new(), now: 0, last: HashMap::new() }
    }

    /// Takes a line of the log.
    pub fn take(&mut self, line: &str) {
        let Some((at, _)) = stamped(line) else { return };
        self.now = at;
        let Some(change) = Change::read(line).filter(|change| change.is_under(&self.path)) else {
            return;
        };
        let place = self.last.get(change.path).copied();
        let run = place.and_then(|place| self.all[place].as_mut());
        let Some(step) = Step::of(change.state, run.as_deref().map(Run::last)) else { return };
        match (step, run) {
            (Step::Begin | Step::BeginActive, _) => {
                self.last.insert(change.path.to_owned(), self.all.len());
                let (path, state) = (change.path.to_owned(), change.state.word());
                let is_active = step == Step::BeginActive;
                let (submitted, active) =
                    if is_active { (None, Some(at)) } else { (Some(at), None) };
                self.all.push(Some(Run { path, submitted, active, end: None, state }));
            }
            (Step::Run, Some(run)) => (run.active, run.state) = (Some(at), change.state.word()),
            (Step::End, Some(run)) => (run.end, run.state) = (Some(at), change.state.word()),
            (Step::LoseSight, Some(run)) => run.state = change.state.word(),
            (Step::TakeBack, _) => {
                let place = self.last.remove(change.path);
                place.and_then(|place| self.all[place].take());
            }
            (_, None) => {}
        }
    }

    /// The runs in the order of submission, families among them that have lines of their own, and
    /// the time of the last line.
    #[must_use]
    pub fn end(self) -> (Vec<Run>, i64) {
        (self.all.into_iter().flatten().collect(), self.now)
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

    fn read(text: &str, path: &str) -> (Vec<Run>, i64) {
        let mut runs = Runs::new(path);
        text.lines().for_each(|line| runs.take(line));
        runs.end()
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
        let (runs, _) = read(text, "/");
        assert_eq!((runs.len(), runs[0].submitted), (1, Some(86_400 + 36_062)));
        assert_eq!(runs[0].state, "submitted");
    }

    #[test]
    fn a_requeue_takes_a_run_back_or_has_its_end_unseen() {
        let line = |time: &str, state: &str| format!("LOG:[{time}:00 2.1.1970]  {state}: /s/a\n");
        let text = ["submitted", "queued", "complete", "submitted", "active", "queued", "complete"];
        let hours = ["01:00", "02:00", "03:00", "04:00", "05:00", "06:00", "18:00"];
        let text: String = hours.iter().zip(text).map(|(time, state)| line(time, state)).collect();
        let (runs, _) = read(&text, "/");
        let hour = |count: i64| 86_400 + count * 3600;
        let (path, submitted, active) = ("/s/a".to_owned(), Some(hour(4)), Some(hour(5)));
        assert_eq!(runs, [Run { path, submitted, active, end: None, state: "queued" }]);
    }

    #[test]
    fn a_run_whose_submission_the_log_lost_counts() {
        let line =
            |second: u8, state: &str| format!("LOG:[00:00:{second:02} 2.1.1970]  {state}: /s/a\n");
        let text = [line(1, "queued"), line(2, "active"), line(4, "complete"), line(6, "active")];
        let (runs, _) = read(&text.concat(), "/");
        let at = |second: i64| Some(86_400 + second);
        let seen = runs.iter().map(|run| (run.submitted, run.active, run.end, run.state));
        let expected = [(None, at(2), at(4), "complete"), (None, at(6), None, "active")];
        assert!(seen.eq(expected), "{runs:?}");
    }

    #[test]
    fn runs_are_read_from_the_lines_of_the_log() {
        let (seen, now) = read(TEXT, "/s");
        let day = 86_400;
        let first = Run {
            path: "/s/a".to_owned(),
            submitted: Some(day + 2),
            active: Some(day + 3),
            end: Some(day + 9),
            state: "aborted",
        };
        assert_eq!((seen.len(), &seen[0], now), (2, &first, day + 10));
        assert_eq!(seen[1].state, "submitted");
        assert_eq!(read(TEXT, "/").0.len(), 3);
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
