//! Programs as clients: a command of the suite's loads the target and reports in JSON lines what
//! came of it. Control plane.
//!
//! A program is started for every run of load and prints a line when its load begins, and one
//! whenever it has something to report, each about the time since the one before. The format is
//! documented in `docs/programs.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Cost, DialectRow, Done, Events, Finding, Kind, Operation, Reach, Scenario, Service};
use serde::Deserialize;
use wire::{Ns, ProtocolError, clock};

use super::once::{self, Once, Run};
use super::plain::Plain;
use super::recorder::Recorder;
use super::result::LoadResult;
use crate::cpus::pin_this_thread;
use crate::last_lines::last_lines;
use crate::observe::Cpu;
use crate::placeholders;

/// The service of services that only their own clients can load.
pub static SERVICE: Service = Service {
    name: "program",
    doc: "What a program of the suite's does; its client says what came of it.",
    read: |part| Plain::read(part, &OPERATIONS),
    dialects: &[DialectRow::new("program", "A program speaks it.", Reach::Calls)],
};

static OPERATIONS: [Operation; 1] =
    [Operation::new("request", Kind::Read, "Whatever the program asks.")];

/// A program gets this long beyond its time to start and to end.
const GRACE: Duration = Duration::from_secs(30);

/// A program that loads a target.
#[derive(Clone, Debug)]
pub struct Program {
    /// This program, which watches it.
    pub exe: PathBuf,
    /// The program and its arguments; `{seconds}` is still in them.
    pub command: Vec<String>,
    /// Environment variables beside the lab's own.
    pub env: BTreeMap<String, String>,
    /// The CPUs it is pinned to; empty is all.
    pub cpus: Vec<usize>,
    /// Where its output goes; each run overwrites the one before.
    pub folder: PathBuf,
    /// Whether it is the target as well: what it costs is then the target's cost.
    pub is_target: bool,
}

/// A line, as it is printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    t_ns: u64,
    #[serde(default)]
    operations: u64,
    operation: Option<String>,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    latency_ns: Vec<u64>,
    #[serde(default)]
    latency_counts: Vec<(u64, u64)>,
    #[serde(default)]
    checked: bool,
    #[serde(default)]
    wrong: u64,
    #[serde(default)]
    refused: u64,
    #[serde(default)]
    misses: u64,
    #[serde(default)]
    missing: u64,
    note: Option<String>,
    user_ns: Option<u64>,
    system_ns: Option<u64>,
    #[serde(default)]
    figures: BTreeMap<String, f64>,
}

impl Program {
    /// Runs it for `length_ns` nanoseconds, and returns the result.
    pub(super) fn run(
        &self,
        scenario: &Scenario,
        length_ns: u64,
        clock_zero: Ns,
        stop: &Arc<AtomicBool>,
    ) -> LoadResult {
        let started = clock::now();
        let outcome = self.once(length_ns, stop);
        let wall_ns = clock::now() - started;
        let mut recorder = Recorder::new(0, scenario.operations(), clock_zero);
        let said = once::printed(&self.output());
        let read = Reading { scenario, started, wall_ns }.read(&said, &mut recorder);
        recorder.end_second();
        let trouble = match (&outcome, &read) {
            (Err(fault), _) => Some(fault.to_string()),
            (Ok(once), _) if once.failure().is_some() => {
                let how = once.failure().unwrap_or_default();
                let last = last_lines(&once::output(&self.output()));
                Some(format!("{how}; {last}"))
            }
            (_, Err(problem)) => Some(problem.clone()),
            (Ok(_), Ok(_)) => None,
        };
        let trouble = trouble.map(|trouble| format!("the client {}: {trouble}", self.command[0]));
        let sums = read.unwrap_or_default();
        let once = outcome.ok();
        let used = |of: fn(&Once) -> u64| once.as_ref().map_or(0, of);
        let cost = Cost {
            user_ns: sums.user_ns.unwrap_or_else(|| used(|once| once.user_ns)),
            system_ns: sums.system_ns.unwrap_or_else(|| used(|once| once.system_ns)),
            peak_bytes: used(|once| once.peak_bytes.unwrap_or(0)),
            watcher_ns: used(|once| once.watcher_ns),
        };
        let spent = Cpu::exact(cost.user_ns, cost.system_ns);
        let generator = if self.is_target { Cpu::default() } else { spent };
        LoadResult {
            duration_ns: sums.duration_ns,
            generator,
            program_ns: used(|once| once.user_ns + once.system_ns + once.watcher_ns),
            generator_bytes: Some(cost.peak_bytes).filter(|bytes| *bytes > 0 && !self.is_target),
            busy: generator.total_ns as f64 / wall_ns.max(1) as f64,
            trouble,
            figures: sums.figures,
            cost: self.is_target.then_some(cost),
            ..recorder.result()
        }
    }

    fn output(&self) -> PathBuf {
        self.folder.join("client")
    }

    /// Runs it from a thread that is pinned first, so that it is pinned from its first instruction.
    fn once(&self, length_ns: u64, stop: &AtomicBool) -> Result<Once, ProtocolError> {
        let failed = |error: std::io::Error| ProtocolError::new(error.to_string());
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        // The output of the last run must not be taken for that of this one.
        let _ = std::fs::remove_file(self.output());
        let seconds = (length_ns as f64 / 1e9).to_string();
        let value = |name: &str| (name == "seconds").then(|| seconds.clone());
        let fill = |argument: &String| placeholders::complete(argument, &value);
        let command: Vec<String> = self.command.iter().map(fill).collect();
        let output = self.output();
        let (exe, env) = (&self.exe, &self.env);
        let run = Run { exe, command: &command, env, output: &output };
        let within = Some(Duration::from_nanos(length_ns) + GRACE);
        std::thread::scope(|scope| {
            let runner = scope.spawn(|| {
                pin_this_thread(&self.cpus).map_err(failed)?;
                once::run(&run, stop, within)
            });
            runner
                .join()
                .unwrap_or_else(|_| Err(ProtocolError::new("the thread that ran it ended")))
        })
    }
}

/// The sums of all lines, beside what the recorder holds.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    duration_ns: u64,
    user_ns: Option<u64>,
    system_ns: Option<u64>,
    figures: Vec<(String, f64)>,
}

/// How lines are read.
struct Reading<'a> {
    scenario: &'a Scenario,
    /// When the program was started, and how long it ran.
    started: Ns,
    wall_ns: u64,
}

impl Reading<'_> {
    /// Reads every line into the recorder.
    fn read(&self, text: &str, recorder: &mut Recorder) -> Result<Sums, String> {
        let mut sums = Sums::default();
        let mut times: Option<(u64, u64)> = None;
        let mut bytes = 0;
        for (number, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let wrong = |what: String| format!("line {number} of its output: {what}");
            let line: Line = serde_json::from_str(text)
                .map_err(|error| wrong(format!("{error}; it says {:?}", cut(text))))?;
            let (first, last) = *times.get_or_insert((line.t_ns, line.t_ns));
            if line.t_ns < last {
                return Err(wrong(format!("t_ns is {}, before {last}", line.t_ns)));
            }
            if first == last && last == line.t_ns && line.operations > 0 && sums.duration_ns == 0 {
                let help = "the first line says when the load begins, with no operations";
                return Err(wrong(help.to_owned()));
            }
            times = Some((first, line.t_ns));
            sums.duration_ns = line.t_ns - first;
            bytes = line.bytes.saturating_add(bytes);
            let add = |sum: &mut Option<u64>, more: Option<u64>| {
                if let Some(more) = more {
                    *sum = Some(sum.unwrap_or(0).saturating_add(more));
                }
            };
            add(&mut sums.user_ns, line.user_ns);
            add(&mut sums.system_ns, line.system_ns);
            sums.figures.extend(line.figures.clone());
            self.count(line, first, recorder).map_err(wrong)?;
        }
        if times.is_none() {
            return Err("it printed no line; see docs/programs.md".to_owned());
        }
        if bytes > 0 && sums.duration_ns > 0 {
            let rate = bytes as f64 * 1e9 / sums.duration_ns as f64;
            sums.figures.push(("bytes_per_s".to_owned(), rate));
        }
        Ok(sums)
    }

    fn count(&self, line: Line, first: u64, recorder: &mut Recorder) -> Result<(), String> {
        let operations = self.scenario.operations();
        let operation = match &line.operation {
            None => 0,
            Some(name) => {
                operations.iter().position(|row| row.name == **name).ok_or_else(|| {
                    let known: Vec<_> = operations.iter().map(|row| &row.name[..]).collect();
                    let service = self.scenario.service.name;
                    format!("no operation \"{name}\"; {service} has {}", known.join(", "))
                })?
            }
        };
        let pairs =
            line.latency_counts.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
        let timed = pairs.saturating_add(line.latency_ns.len() as u64);
        let bad = line.wrong.saturating_add(line.refused);
        if timed > line.operations.saturating_add(line.missing) || bad > line.operations {
            return Err("more latencies, wrong answers or refusals than operations".to_owned());
        }
        // A program whose clock is the host's is placed exactly, another from its start on.
        let is_ours = (self.started..=self.started + self.wall_ns).contains(&first);
        let begun = if is_ours { first } else { self.started };
        let at = begun.saturating_add(line.t_ns - first);
        let mut events = Events::default();
        if bad > 0 {
            events.found(|| Finding {
                operation: operations[operation].name.clone(),
                key: Vec::new(),
                expected: Vec::new(),
                received: Vec::new(),
                note: line.note.unwrap_or_else(|| "the client says so".to_owned()),
            });
            // What the note is about; the line's counts are added below.
            let (wrong, refused) = (u32::from(line.wrong > 0), u32::from(line.refused > 0));
            events.done.push(Done { wrong, refused, ..Done::right(0) });
        }
        recorder.answers_at(at, &mut events);
        let counts = &mut recorder.counts;
        counts.operations = counts.operations.saturating_add(line.operations);
        let unchecked = if line.checked { 0 } else { line.operations };
        counts.unchecked = counts.unchecked.saturating_add(unchecked);
        counts.wrong = counts.wrong.saturating_add(line.wrong);
        counts.refused = counts.refused.saturating_add(line.refused);
        counts.misses = counts.misses.saturating_add(line.misses);
        counts.missing = counts.missing.saturating_add(line.missing);
        let each = line.latency_ns.iter().map(|ns| (*ns, 1));
        for (ns, times) in each.chain(line.latency_counts.iter().copied()) {
            recorder.timed(operation, ns, times);
        }
        Ok(())
    }
}

/// What came of a load by the lines that a program has printed, each of an operation of `scenario`.
///
/// # Errors
/// Which line can't be read, and why.
pub fn read_lines(scenario: &Scenario, text: &str) -> Result<LoadResult, String> {
    let mut recorder = Recorder::new(0, scenario.operations(), 0);
    let sums = Reading { scenario, started: 0, wall_ns: u64::MAX }.read(text, &mut recorder)?;
    recorder.end_second();
    let (duration_ns, figures) = (sums.duration_ns, sums.figures);
    Ok(LoadResult { duration_ns, figures, ..recorder.result() })
}

/// The beginning of a line that can't be read.
fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::batch::SERVICE;
    use proptest::prelude::*;

    fn scenario() -> Scenario {
        Scenario::parse("service = 'batch'\noperation = 'run'", &SERVICE).unwrap()
    }

    fn read(text: &str) -> (Result<Sums, String>, Recorder) {
        let scenario = scenario();
        let mut recorder = Recorder::new(0, scenario.operations(), 1_000);
        let reading = Reading { scenario: &scenario, started: 5_000_000_000, wall_ns: 10 };
        let read = reading.read(text, &mut recorder);
        recorder.end_second();
        (read, recorder)
    }

    #[test]
    fn lines_add_up_and_are_unchecked_unless_they_say_otherwise() {
        let text = "{\"t_ns\":100}\n\n\
            {\"t_ns\":1100,\"operations\":3,\"latency_ns\":[5,7,9],\"bytes\":60,\"user_ns\":4}\n\
            {\"t_ns\":2100,\"operations\":5,\"operation\":\"run\",\"latency_counts\":[[8,4]],\
             \"checked\":true,\"wrong\":1,\"note\":\"stale\",\"figures\":{\"hot\":2.5}}\n";
        let (sums, recorder) = read(text);
        let figures = vec![("hot".to_owned(), 2.5), ("bytes_per_s".to_owned(), 3e7)];
        let expected = Sums { duration_ns: 2_000, user_ns: Some(4), system_ns: None, figures };
        assert_eq!(sums, Ok(expected));
        let counts = recorder.counts;
        assert_eq!((counts.operations, counts.unchecked, counts.wrong), (8, 3, 1));
        let timed: u64 = recorder.finished.iter().map(|one| one.histogram.len()).sum();
        assert_eq!((timed, recorder.finished[0].second), (7, 5));
        assert_eq!(recorder.wrong_answers[0].finding.note, "stale");
    }

    #[test]
    fn what_is_no_line_is_said_with_its_number() {
        let wrong = |text: &str| read(text).0.unwrap_err();
        assert!(wrong("").contains("printed no line"));
        assert!(wrong("hello").starts_with("line 1 of its output: expected"), "{}", wrong("hello"));
        assert!(wrong("{\"t_ns\":1,\"ops\":2}").contains("unknown field `ops`"));
        assert!(wrong("{\"t_ns\":5}\n{\"t_ns\":4}").contains("line 2 of its output: t_ns is 4"));
        assert!(wrong("{\"t_ns\":5,\"operations\":1}").contains("when the load begins"));
        let more = "{\"t_ns\":5}\n{\"t_ns\":6,\"operations\":1,\"latency_ns\":[1,2]}";
        assert!(wrong(more).contains("more latencies"));
        let other = "{\"t_ns\":5}\n{\"t_ns\":6,\"operations\":1,\"operation\":\"fly\"}";
        assert!(wrong(other).contains("no operation \"fly\"; batch has run"));
    }

    #[test]
    fn the_last_moment_there_is_may_be_said() {
        let last = format!("{{\"t_ns\":0}}\n{{\"t_ns\":{},\"operations\":1}}", u64::MAX);
        assert_eq!(read_lines(&scenario(), &last).unwrap().counts.operations, 1);
    }

    proptest! {
        #[test]
        fn no_output_breaks_the_reader(
            text in "[ -~\n]{0,200}",
            times: [u64; 3],
            ns: u64,
            count: u64,
        ) {
            let _ = read(&text);
            let [a, b, c] = times;
            let _ = read(&format!(
                "{{\"t_ns\":{a}}}\n{{\"t_ns\":{b},\"operations\":{c},\
                 \"latency_counts\":[[{ns},{count}]],\"missing\":{c},\"user_ns\":{c}}}\n"
            ));
        }
    }
}
