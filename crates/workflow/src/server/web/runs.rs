//! When jobs ran: the lines of the log, which outlive the server.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use super::fault::Fault;
use crate::server::disk::Disk;

/// One run of a task's job; times as the log has them, in seconds since 1970 of its clock.
#[derive(Serialize, Debug, PartialEq, Eq, Clone)]
pub(super) struct Run {
    path: String,
    submitted: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<i64>,
    state: &'static str,
}

/// The last runs of the tasks at and below a path.
#[derive(Serialize, Debug)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// The time of the last line.
    now: i64,
}

/// The last runs of jobs at and below a path, at most this many, the oldest first; of the end of
/// the log.
///
/// # Errors
/// When it can't be read.
pub(super) fn of(
    log: &Path,
    path: &str,
    most: usize,
    is_job: impl Fn(&str) -> bool,
) -> Result<Runs, Fault> {
    let bytes = Disk::read_end(&log.to_string_lossy())
        .map_err(|why| Fault::of_owner(&format!("{}: {why}", log.display())))?;
    let mut seen = read(&String::from_utf8_lossy(&bytes), path);
    seen.runs.retain(|run| is_job(&run.path));
    seen.runs.drain(..seen.runs.len().saturating_sub(most));
    Ok(seen)
}

fn read(text: &str, path: &str) -> Runs {
    let mut runs: Vec<Run> = Vec::new();
    // The place of each task's last run.
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut now = 0;
    let below = format!("{}/", path.trim_end_matches('/'));
    for line in text.lines() {
        let Some((at, rest)) = stamped(line) else { continue };
        now = at;
        let Some((word, rest)) = rest.trim_start().split_once(": ") else { continue };
        let name = rest.split_whitespace().next().unwrap_or_default();
        if name != path && !name.starts_with(&below) {
            continue;
        }
        match (word, open.get(name)) {
            // The same submission once more: its job is written.
            ("submitted", Some(place)) if runs[*place].active.is_none() => {}
            ("submitted", _) => {
                open.insert(name, runs.len());
                let (path, state) = (name.to_owned(), "submitted");
                runs.push(Run { path, submitted: at, active: None, end: None, state });
            }
            ("active", Some(place)) => {
                (runs[*place].active, runs[*place].state) = (Some(at), "active");
            }
            ("complete" | "aborted", Some(place)) => {
                let state = if word == "complete" { "complete" } else { "aborted" };
                (runs[*place].end, runs[*place].state) = (Some(at), state);
                open.remove(name);
            }
            _ => {}
        }
    }
    Runs { runs, now }
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
    let date = crate::model::Date::new(number(year)?, number(month)?, number(day)?)?;
    let midnight = crate::model::Instant::midnight(date).us / 1_000_000;
    let in_range = (0..24).contains(&hours) && (0..60).contains(&minutes);
    let in_range = in_range && (0..=60).contains(&seconds);
    in_range.then_some((midnight + hours * 3600 + minutes * 60 + seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::{Run, read};

    #[test]
    fn runs_are_read_from_the_lines_of_the_log() {
        let text = "MSG:[00:00:01 2.1.1970] --begin=s :me@h\n\
                    LOG:[00:00:02 2.1.1970]  submitted: /s/a job_size:3\n\
                    LOG:[00:00:02 2.1.1970]  submitted: /s/a\n\
                    LOG:[00:00:03 2.1.1970]  active: /s/a\n\
                    LOG:[00:00:04 2.1.1970]  submitted: /sb/x\n\
                    LOG:[00:00:09 2.1.1970]  aborted: /s/a try-no: 1 reason: trap\n\
                    LOG:[00:00:10 2.1.1970]  submitted: /s/a\nLOG:[x] y\n\
                    LOG:[25:00:00 2.1.1970] z\n";
        let seen = read(text, "/s");
        let day = 86_400;
        let first = Run {
            path: "/s/a".to_owned(),
            submitted: day + 2,
            active: Some(day + 3),
            end: Some(day + 9),
            state: "aborted",
        };
        assert_eq!((seen.runs.len(), &seen.runs[0], seen.now), (2, &first, day + 10));
        assert_eq!(seen.runs[1].state, "submitted");
        assert_eq!(read(text, "/").runs.len(), 3);
    }
}
