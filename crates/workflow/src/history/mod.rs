//! When jobs ran, by the lines of a server's log: this program's or ecFlow's own.
//!
//! [`Runs`] takes lines; [`tasks`] sums them up by task, [`critical`] follows back what the last
//! one waited for, [`limits`] says how full limits were. No I/O.

mod cause;

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::model::{Date, Instant};

pub use cause::{LimitUse, critical, limits};

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
    below: String,
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
        let below = format!("{}/", path.trim_end_matches('/'));
        Self { path: path.to_owned(), below, all: Vec::new(), now: 0, open: HashMap::new() }
    }

    /// Takes a line of the log.
    pub fn take(&mut self, line: &str) {
        let Some((at, rest)) = stamped(line) else { return };
        self.now = at;
        let Some((word, rest)) = rest.trim_start().split_once(": ") else { return };
        let name = rest.split_whitespace().next().unwrap_or_default();
        if name != self.path && !name.starts_with(&self.below) {
            return;
        }
        match (word, self.open.get(name).copied()) {
            // The same submission once more: its job is written.
            ("submitted", Some(place)) if self.all[place].active.is_none() => {}
            ("submitted", _) => {
                self.open.insert(name.to_owned(), self.all.len());
                let (path, state) = (name.to_owned(), "submitted");
                self.all.push(Run { path, submitted: at, active: None, end: None, state });
            }
            ("active", Some(place)) => {
                (self.all[place].active, self.all[place].state) = (Some(at), "active");
            }
            ("complete" | "aborted", Some(place)) => {
                let state = if word == "complete" { "complete" } else { "aborted" };
                (self.all[place].end, self.all[place].state) = (Some(at), state);
                self.open.remove(name);
            }
            _ => {}
        }
    }

    /// Leaves out families, which are submitted and complete as their tasks are.
    pub fn only_tasks(&mut self) {
        let mut around = HashSet::new();
        for run in &self.all {
            let ends = run.path.rmatch_indices('/').map(|(at, _)| &run.path[..at]);
            for above in ends.filter(|above| !above.is_empty()) {
                if !around.insert(above.to_owned()) {
                    break;
                }
            }
        }
        self.all.retain(|run| run.path != "/" && !around.contains(&run.path));
        self.open.clear();
    }
}

/// What the runs of a task come to, in seconds.
#[derive(Serialize, Debug, Default, PartialEq, Eq, Clone)]
pub struct Task {
    /// The task.
    pub path: String,
    /// How often it ran to an end.
    pub runs: usize,
    /// How often it was aborted.
    pub aborted: usize,
    /// From active, or else from submitted, to the end: of all runs.
    pub total: i64,
    /// Of the longest run.
    pub longest: i64,
    /// From submitted to active: the longest.
    pub longest_wait: i64,
}

/// The tasks, those with the longest runs first.
#[must_use]
pub fn tasks(runs: &[Run]) -> Vec<Task> {
    let mut by_path: HashMap<&str, Task> = HashMap::new();
    for run in runs {
        let Some(end) = run.end else { continue };
        let task = by_path.entry(&run.path).or_default();
        let took = (end - run.active.unwrap_or(run.submitted)).max(0);
        task.runs += 1;
        task.aborted += usize::from(run.state == "aborted");
        task.total += took;
        task.longest = task.longest.max(took);
        let waited = run.active.map_or(0, |active| active - run.submitted);
        task.longest_wait = task.longest_wait.max(waited);
    }
    let named = by_path.into_iter().map(|(path, task)| Task { path: path.to_owned(), ..task });
    let mut all: Vec<Task> = named.collect();
    all.sort_by(|a, b| (b.longest, b.total, &a.path).cmp(&(a.longest, a.total, &b.path)));
    all
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
                        LOG:[00:00:02 2.1.1970]  submitted: /s\n\
                        LOG:[00:00:03 2.1.1970]  active: /s/a\n\
                        LOG:[00:00:04 2.1.1970]  submitted: /sb/x\n\
                        LOG:[00:00:09 2.1.1970]  aborted: /s/a try-no: 1 reason: trap\n\
                        LOG:[00:00:10 2.1.1970]  submitted: /s/a\nLOG:[x] y\n\
                        LOG:[25:00:00 2.1.1970] z\n";

    #[test]
    fn runs_are_read_from_the_lines_of_the_log() {
        let mut seen = read(TEXT, "/s");
        seen.only_tasks();
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
        assert_eq!(read(TEXT, "/").all.len(), 4);
        let all = tasks(&seen.all);
        let path = "/s/a".to_owned();
        let meant = Task { path, runs: 1, aborted: 1, total: 6, longest: 6, longest_wait: 1 };
        assert_eq!(all, [meant]);
    }
}
