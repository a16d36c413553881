//! Where a target's CPU time goes: `perf` beside short trials of their own, each with the target
//! started fresh, because the function at the head of one profile is often not that of the next.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use wire::clock::MILLISECOND_NS;

use super::options::RunError;
use super::persist::RunWriter;
use super::runner::Runner;
use crate::observe::group_members;
use crate::plan::Target;

/// How long the load runs while `perf` finds its processes, and how long it is profiled then.
const BEFORE_NS: u64 = 300 * MILLISECOND_NS;
const PROFILED_NS: u64 = 1_000 * MILLISECOND_NS;

/// Samples a second: a prime, so as not to beat with what happens every millisecond.
const SAMPLES_PER_S: &str = "997";

/// Functions of a profile that are kept: those with the greatest shares.
const MAX_FUNCTIONS: usize = 32;

impl Runner<'_> {
    /// Profiles every target `times` times at the first point. What can't be profiled is reported
    /// and left out.
    pub(super) fn profile(
        &mut self,
        writer: &mut RunWriter<'_>,
        folder: &Path,
        times: u32,
    ) -> Result<(), RunError> {
        if let Some(why) = crate::deploy::missing_program("perf") {
            self.note(&format!("nothing is profiled: {why}"));
            return Ok(());
        }
        let Some(here) = self.plan.points.first() else { return Ok(()) };
        for ordinal in 1..=times {
            let targets = here.targets.iter().enumerate();
            for (index, target) in targets.filter(|(_, target)| target.is_measured()) {
                if self.stopped() {
                    return Ok(());
                }
                self.report_activity(
                    0,
                    0,
                    &format!("profiling {}, {ordinal} of {times}", target.name),
                );
                match self.profile_one(folder, (index, target)) {
                    Ok(shares) => writer.profile(index, ordinal, shares)?,
                    Err(why) => {
                        self.note(&format!("{} is not profiled: {why}", target.name));
                    }
                }
            }
        }
        Ok(())
    }

    fn profile_one(
        &mut self,
        folder: &Path,
        (index, target): (usize, &Target),
    ) -> Result<Vec<(String, f64)>, String> {
        let mut target_run = self.start(index, target, 0);
        if target_run.deployed.is_some() {
            self.make_ready(&mut target_run, 0, target, 0);
        }
        let group = target_run.deployed.as_ref().and_then(crate::deploy::Deployed::group);
        let processes = group.map(group_members).unwrap_or_default();
        let profiled = (|| {
            let session = target_run.session.as_mut().ok_or("it can't be loaded")?;
            let file = folder.join("perf.data");
            record(&processes, &file, || {
                let loaded = session.run(BEFORE_NS).and_then(|_| session.run(PROFILED_NS));
                loaded.map(|_| ()).map_err(|error| error.to_string())
            })?;
            report(&file)
        })();
        self.end(target_run);
        profiled
    }
}

/// Has `perf` sample these processes while `load` runs.
fn record(
    processes: &[u32],
    file: &Path,
    load: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    if processes.is_empty() {
        return Err("it has no process here".to_owned());
    }
    let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-F", SAMPLES_PER_S, "-o"]).arg(file);
    command.args(["-p", &processes.join(",")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("perf: {error}"))?;
    let loaded = load();
    // Interrupted, it writes what it has.
    if let Some(pid) = Pid::from_raw(child.id() as i32)
        && matches!(child.try_wait(), Ok(None))
    {
        let _ = kill_process(pid, Signal::INT);
    }
    let output = child.wait_with_output().map_err(|error| format!("perf: {error}"))?;
    loaded?;
    if !file.exists() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it kept nothing");
        return Err(format!("perf: {} (may this user profile? see perf(1))", first.trim()));
    }
    Ok(())
}

/// The functions of a recording with their shares, the greatest first.
fn report(file: &Path) -> Result<Vec<(String, f64)>, String> {
    let mut command = Command::new("perf");
    command.args(["report", "--stdio", "--no-children", "-F", "overhead,symbol", "-i"]).arg(file);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("perf: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let functions: Vec<_> = text.lines().filter_map(parse).take(MAX_FUNCTIONS).collect();
    match functions.is_empty() {
        true => Err("perf saw no sample of it".to_owned()),
        false => Ok(functions),
    }
}

/// `    28.17%  [.] function`; `k` instead of the dot is the kernel's.
fn parse(line: &str) -> Option<(String, f64)> {
    let (share, rest) = line.trim().split_once('%')?;
    let share: f64 = share.parse().ok()?;
    let (place, function) = rest.trim().split_once(' ')?;
    let kernel = if place == "[k]" { " [kernel]" } else { "" };
    Some((format!("{}{kernel}", function.trim()), share / 100.0))
}

#[test]
fn perfs_report_is_read_as_it_was_recorded() {
    let text = "\
# Overhead  Symbol
# ........  ..............................
#
    28.17%  [.] cache::model::shard::Shard::get
     7.75%  [k] __softirqentry_text_start
";
    let functions: Vec<_> = text.lines().filter_map(parse).collect();
    let expected = [
        ("cache::model::shard::Shard::get".to_owned(), 0.2817),
        ("__softirqentry_text_start [kernel]".to_owned(), 0.0775),
    ];
    assert_eq!(functions.len(), 2);
    for ((name, share), (wanted, close)) in functions.iter().zip(expected) {
        assert!(*name == wanted && (share - close).abs() < 1e-9, "{name} {share}");
    }
}
