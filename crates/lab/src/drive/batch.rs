//! Batches: whole processes, run to their end again and again.
// Control plane.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Caller, Cost, DialectRow, Finding, Kind, Op, Operation, Outcome, Reach, Service, Took};
use regex_lite::Regex;
use wire::ProtocolError;

use super::once::{self, Once, Run};
use super::plain::Plain;
use crate::cpus::pin_this_thread;
use crate::last_lines::last_lines;

/// The service that batches are in: it has one operation, to run the command.
pub static SERVICE: Service = Service {
    name: "batch",
    doc: "Whole processes, run to their end.",
    read: |part| Plain::read(part, &OPERATIONS),
    dialects: &[DialectRow::new(
        "process",
        "Starts the command and waits for its end.",
        Reach::Calls,
    )],
};

static OPERATIONS: [Operation; 1] = [Operation::new("run", Kind::Write, "Runs the command.")];

/// The figures of every run, beside those that are picked out of its output.
pub(crate) const BATCH_FIGURES: [&str; 4] = ["wall_ns", "user_ns", "system_ns", "peak_bytes"];

/// A command that is run over and over.
#[derive(Clone, Debug)]
pub struct Batch {
    /// This program.
    pub exe: PathBuf,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables beside the lab's own.
    pub env: BTreeMap<String, String>,
    /// The CPUs it is pinned to; empty is all.
    pub cpus: Vec<usize>,
    /// Where its output goes; each run overwrites the one before.
    pub folder: PathBuf,
    /// What is picked out of its output, by name: the first group of each match, as a number.
    pub figures: Vec<(String, Regex)>,
}

/// Runs a batch: one call is one run.
pub(super) struct BatchCaller {
    batch: Batch,
    stop: Arc<AtomicBool>,
    /// A run that takes longer is ended.
    within: Duration,
}

impl BatchCaller {
    /// Pins the calling thread, from which every run is started.
    pub(super) fn new(
        batch: Batch,
        stop: Arc<AtomicBool>,
        within: Duration,
    ) -> std::io::Result<Self> {
        pin_this_thread(&batch.cpus)?;
        Ok(Self { batch, stop, within })
    }

    fn output(&self) -> PathBuf {
        let thread = std::thread::current().id();
        self.batch.folder.join(format!("output-{thread:?}"))
    }

    fn run(&self) -> Result<Once, ProtocolError> {
        let Batch { exe, command, env, .. } = &self.batch;
        std::fs::create_dir_all(&self.batch.folder).map_err(|error| {
            ProtocolError::new(format!("{}: {error}", self.batch.folder.display()))
        })?;
        once::run(&Run { exe, command, env, output: &self.output() }, &self.stop, Some(self.within))
    }

    /// The figures in the run's output, and its last lines.
    fn read_output(&self) -> Result<(Vec<(String, f64)>, String), ProtocolError> {
        let text = once::output(&self.output());
        let mut figures = Vec::new();
        for (name, pattern) in &self.batch.figures {
            figures.extend(picked(name, pattern, &text)?.map(|value| (name.clone(), value)));
        }
        Ok((figures, last_lines(&text)))
    }
}

/// The figure that a pattern picks out of a run's output; `None` when there is none.
///
/// # Errors
/// The pattern ends within a number with thousands separators: 1,234 would be read as 1.
fn picked(name: &str, pattern: &Regex, text: &str) -> Result<Option<f64>, ProtocolError> {
    let Some(captures) = pattern.captures(text) else { return Ok(None) };
    let (Some(all), Some(group)) = (captures.get(0), captures.get(1)) else { return Ok(None) };
    let mut rest = text[group.end()..].strip_prefix(',').into_iter().flat_map(str::chars);
    let group_of_three = (0..3).all(|_| rest.next().is_some_and(|c| c.is_ascii_digit()));
    let goes_on = rest.next().is_some_and(|c| c.is_ascii_digit());
    let number = group.as_str();
    // A pattern that says itself what follows the figure means it.
    if all.end() == group.end()
        && number.ends_with(|c: char| c.is_ascii_digit())
        && group_of_three
        && !goes_on
    {
        let whole = &text[group.start()..group.end() + 4];
        return Err(ProtocolError::new(format!(
            "{name} would be read as {number} of \"{whole}\" in the output: let its pattern take \
             the separators, such as ([0-9.,]+)"
        )));
    }
    Ok(number.replace(['_', ','], "").parse().ok())
}

/// What came of a single run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleRun {
    /// How long it took.
    pub took: Duration,
    /// How it failed, with its last lines; `None` where it ended well.
    pub failure: Option<String>,
}

impl SingleRun {
    /// Runs a command to its end, once, as it is run over and over.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn of(batch: Batch) -> Result<Self, ProtocolError> {
        let caller = BatchCaller::new(batch, Arc::default(), Duration::MAX);
        let caller = caller.map_err(|error| ProtocolError::new(error.to_string()))?;
        let once = caller.run()?;
        let (_, last) = caller.read_output()?;
        let failure = once.failure().map(|how| format!("{how}; {last}"));
        Ok(Self { took: Duration::from_nanos(once.wall_ns), failure })
    }
}

/// How the note of a run begins that ended well and says itself that it was wrong.
pub(crate) const REPORTED: &str = "it reports wrong = ";

/// A run that went wrong. There are no bytes to compare: what it printed is part of the note.
fn wrong(note: String) -> Outcome {
    let (key, expected, received) = (Vec::new(), Vec::new(), Vec::new());
    Outcome::wrong(Finding { operation: "run".into(), key, expected, received, note })
}

impl Caller for BatchCaller {
    fn call(&mut self, _: Op) -> Result<Outcome, ProtocolError> {
        let once = self.run()?;
        let (mut figures, last) = self.read_output()?;
        let Once { wall_ns, user_ns, system_ns, watcher_ns, peak_bytes, .. } = once;
        let own = [Some(wall_ns), Some(user_ns), Some(system_ns), peak_bytes];
        let own = BATCH_FIGURES.iter().zip(own);
        figures.extend(own.filter_map(|(name, n)| Some(((*name).into(), n? as f64))));
        let outcome = if let Some(how) = once.failure() {
            wrong(format!("{how}; {last}"))
        } else if let Some((_, wrong)) =
            figures.iter().find(|(name, n)| name == "wrong" && *n > 0.0)
        {
            self::wrong(format!("{REPORTED}{wrong}; {last}"))
        } else {
            Outcome::right()
        };
        let most_bytes = peak_bytes.unwrap_or(0);
        let cost = Some(Cost { user_ns, system_ns, watcher_ns, peak_bytes: most_bytes });
        let took = Some(Took { elapsed_ns: wall_ns, ..Took::default() });
        Ok(Outcome { took, cost, figures, ..outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_thousands_separators_is_read_whole_or_not_at_all() {
        let read = |pattern: &str, text: &str| picked("rate", &Regex::new(pattern).unwrap(), text);
        assert_eq!(read("rate: ([0-9.,]+)", "rate: 1,234.5 a second").unwrap(), Some(1234.5));
        assert_eq!(read("rate: ([0-9.]+)", "rate: 12.5, 300").unwrap(), Some(12.5));
        assert_eq!(read("([0-9]+),", "17,234").unwrap(), Some(17.0), "the pattern has the comma");
        assert_eq!(read("a=([0-9]+)", "a=1,2345").unwrap(), Some(1.0), "no group of three");
        assert_eq!(read("rate: ([0-9.]+)", "nothing").unwrap(), None);
        let cut = read("rate: ([0-9.]+)", "rate: 1,234 a second").unwrap_err().to_string();
        assert!(cut.contains("read as 1 of \"1,234\""), "{cut}");
    }
}
