//! The runs of the checks: measured by the program itself, kept in a ledger of their own, and read
//! back as the JSON that everybody gets.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::checks::{Check, Kind};
use crate::process::{program, repository};

/// All runs so far.
pub(crate) struct Runs {
    ledger: PathBuf,
    /// Every finished run's report, in the order of their measuring.
    reports: Vec<Value>,
}

impl Runs {
    /// Reads what there is.
    pub(crate) fn open(fresh: bool) -> Result<Self> {
        let folder = repository().join(".loadline/credibility");
        if fresh && folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let mut runs = Self { ledger: folder.join("ledger.sqlite"), reports: Vec::new() };
        if runs.ledger.exists() {
            // Only what writes brings an older version's ledger up to date; it deletes nothing.
            runs.ask(&["ledger", "prune", "--keep", "1000000", "--json"])?;
            let list = runs.ask(&["ledger", "list", "--json"])?;
            let mut finished: Vec<u64> = list["runs"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|run| run["state"] == "finished")
                .filter_map(|run| run["run"].as_u64())
                .collect();
            finished.sort_unstable();
            for run in finished {
                let report = runs.ask(&["report", &run.to_string(), "--json"])?;
                runs.reports.push(report);
            }
        }
        Ok(runs)
    }

    /// Runs a suite once, with a seed of its own.
    pub(crate) fn measure(&mut self, check: &Check, kind: &Kind, number: usize) -> Result<()> {
        // The seed encodes the kind, so that the ledger alone identifies what was done.
        let seed = seed(kind, number);
        let mut arguments: Vec<String> =
            check.command.split_whitespace().map(str::to_owned).collect();
        arguments.insert(1, check.suite.to_owned());
        arguments.push("--wait".to_owned());
        arguments.extend(["--seed".to_owned(), seed.to_string(), "--json".to_owned()]);
        let settings = (check.settings)(kind, number);
        for (key, value) in settings.iter().map(|(key, value)| (key, value)) {
            arguments.extend(["--set".to_owned(), format!("{key}={value}")]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let report = self.ask(&arguments)?;
        self.reports.push(report);
        Ok(())
    }

    /// The runs of a check, each with the name of its kind. Those of another version of its suite
    /// don't count.
    pub(crate) fn of(&self, check: &Check) -> Result<Vec<(&'static str, Value)>> {
        let path = repository().join(check.suite);
        let text = fs::read(&path).with_context(|| check.suite.to_owned())?;
        let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        let same = self.reports.iter().filter(|report| report["suite"]["hash"] == hash[..]);
        let kind = |report: &Value| {
            let of_kind = report["run"]["seed"].as_u64()? >> KIND_SHIFT;
            check.kinds.iter().find(|kind| kind.number == of_kind).map(|kind| kind.name)
        };
        Ok(same.filter_map(|report| Some((kind(report)?, report.clone()))).collect())
    }

    /// How many runs of that kind there are.
    pub(crate) fn count(&self, check: &Check, kind: &Kind) -> Result<usize> {
        Ok(self.of(check)?.iter().filter(|(name, _)| *name == kind.name).count())
    }

    /// What the program prints as JSON. A broken requirement is a result, and so is one that
    /// can't be told.
    fn ask(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(program());
        command.args(arguments).arg("--ledger").arg(&self.ledger).current_dir(repository());
        let finished = command.stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
        if !matches!(finished.status.code(), Some(0 | 3 | 4)) {
            let said = String::from_utf8_lossy(&finished.stderr);
            bail!("`loadline {}` failed: {}", arguments.join(" "), said.trim());
        }
        serde_json::from_slice(&finished.stdout).context("the program's JSON")
    }
}

/// A seed's upper bits are the kind, its lower ones the run's number.
const KIND_SHIFT: u32 = 32;

fn seed(kind: &Kind, number: usize) -> u64 {
    kind.number << KIND_SHIFT | number as u64
}
