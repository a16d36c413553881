//! The state of a run from round to round, and what every phase of a run needs of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ledger::{RunId, RunState};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use wire::Ns;

use super::early_end::DisturbedRounds;
use super::options::{ABORTED, ENDED_EARLY, Ending, RunError, RunOptions};
use super::persist::RunWriter;
use super::progress::{Activity, LiveFeed, RunEvent};
use super::stopping::Stopping;
use super::target_run::TargetRun;
use super::trial::Trial;
use crate::deploy::Deployer;
use crate::drive::LiveStats;
use crate::observe::Watch;
use crate::plan::Plan;

/// From this message size on, that of 10,000 doubles, what the host's memory and loopback carry is
/// measured before each round.
const LARGE_BYTES: u64 = 80_000;

/// The state of a run.
pub(super) struct Runner<'a> {
    pub(super) plan: &'a Plan,
    pub(super) exe: &'a Path,
    pub(super) watch: Watch,
    pub(super) deployer: Deployer,
    pub(super) random: SmallRng,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) clock_zero: Ns,
    /// Where load threads publish the figures of each second, for live views.
    pub(super) live_stats: Arc<LiveStats>,
    pub(super) started: Instant,
    /// Every trial so far, by point.
    pub(super) trials: Vec<Vec<Trial>>,
    pub(super) stopping: Stopping,
    pub(super) disturbed: DisturbedRounds,
    /// Targets that keep running from round to round, by point.
    pub(super) kept: Vec<Vec<TargetRun>>,
    pub(super) finished_rounds: u64,
    /// Whether the points are the loads of a capacity search.
    pub(super) is_search: bool,
    pub(super) progress: &'a mut dyn FnMut(&RunEvent<'_>),
}

/// Begins a run in the ledger, and starts watching the host.
pub(super) fn begin(options: RunOptions<'_>) -> Result<(RunWriter<'_>, Runner<'_>), RunError> {
    let RunOptions { plan, exe, ledger, build, logs, command, seed, stop, progress, .. } = options;
    let fingerprint = crate::observe::fingerprint_with(exe, build);
    let mut writer = RunWriter::begin(ledger, plan, fingerprint, command, seed)?;
    let clock_zero = wire::clock::now();
    let (watch, deployer) = match prepare(plan, exe, logs, writer.run(), clock_zero) {
        Ok(prepared) => prepared,
        Err(error) => return Err(failed(writer, error)),
    };
    let mut runner = Runner {
        plan,
        exe,
        watch,
        deployer,
        random: SmallRng::seed_from_u64(seed),
        stop,
        clock_zero,
        live_stats: Arc::new(LiveStats::new(clock_zero)),
        started: Instant::now(),
        trials: plan.points.iter().map(|_| Vec::new()).collect(),
        stopping: Stopping::of(plan),
        disturbed: DisturbedRounds::default(),
        kept: plan.points.iter().map(|_| Vec::new()).collect(),
        finished_rounds: 0,
        is_search: false,
        progress,
    };
    let feed = LiveFeed::new(runner.watch.recent_samples(), runner.live_stats.clone());
    runner.report(&RunEvent::Begins(&feed));
    writer.copy_bytes_per_s = crate::observe::copied_bytes_per_s();
    Ok((writer, runner))
}

/// What watches the host, and what starts targets.
fn prepare(
    plan: &Plan,
    exe: &Path,
    logs: &Path,
    run: RunId,
    clock_zero: Ns,
) -> Result<(Watch, Deployer), RunError> {
    let failed = |what: String| move |source| RunError::System { what, source };
    let watch =
        Watch::start(clock_zero, &[]).map_err(failed("starting to watch the host".to_owned()))?;
    watch.follow_own("generator");
    let folder = logs.join(run.to_string());
    let deployer = Deployer::new(exe, &folder, &logs.with_file_name("data"))
        .map_err(failed(format!("preparing {}", folder.display())))?;
    Ok((watch, deployer.with_cold_data(plan.rounds.is_cold)))
}

/// Ends a run in the ledger that has failed, and returns why: a ledger that can't be written either
/// is not the first cause.
fn failed(mut writer: RunWriter<'_>, error: RunError) -> RunError {
    let _ = writer.end(RunState::Failed, Some(&error.to_string()));
    error
}

/// Ends a run in the ledger, however it ended.
pub(super) fn end(
    mut writer: RunWriter<'_>,
    outcome: Result<Ending, RunError>,
) -> Result<(RunId, Ending), RunError> {
    match outcome {
        Ok(ending) => {
            match &ending {
                Ending::Finished => writer.end(RunState::Finished, None)?,
                Ending::Interrupted => writer.end(RunState::Interrupted, None)?,
                Ending::Aborted(condition) => {
                    let note = format!("{ABORTED}{condition}");
                    writer.end(RunState::Failed, Some(&note))?;
                }
                Ending::Hopeless(why) => {
                    writer.end(RunState::Failed, Some(&format!("{ENDED_EARLY}{why}")))?;
                }
            }
            Ok((writer.run(), ending))
        }
        Err(error) => Err(failed(writer, error)),
    }
}

impl Runner<'_> {
    pub(super) fn over_budget(&self) -> bool {
        let budget = self.plan.rounds.budget.map(base::units::Span::duration);
        budget.is_some_and(|budget| self.started.elapsed() > budget)
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Measures what the host moves at most, right before a round of large messages: neighbours
    /// change it from minute to minute.
    pub(super) fn measure_ceilings(&self, writer: &mut RunWriter<'_>, point: usize) {
        let is_large = self.plan.points[point].workload.workload.message_bytes() >= LARGE_BYTES;
        writer.loopback_bytes_per_s = None;
        if is_large {
            writer.copy_bytes_per_s = crate::observe::copied_bytes_per_s();
            writer.loopback_bytes_per_s = crate::observe::loopback_bytes_per_s();
        }
    }

    /// The run's clock.
    pub(super) fn now(&self) -> wire::Ns {
        wire::clock::now() - self.clock_zero
    }

    /// Reports what is done now, and at which point and round.
    pub(super) fn report_activity(&mut self, point: usize, round: u32, words: &str) {
        let rounds = &self.plan.rounds;
        let each = if self.stopping.is_contest() { rounds.at_most } else { rounds.at_least };
        let least = u64::from(each) * self.plan.points.len() as u64;
        let done = self.finished_rounds as f64 / least as f64;
        // The number of loads that a search will try is unknown.
        let known = !self.is_search && done > 0.0 && done < 1.0;
        let left = known.then(|| self.started.elapsed().mul_f64((1.0 - done) / done));
        let point = &self.plan.points[point].label;
        let done = done.min(1.0);
        self.report(&RunEvent::Activity(Activity { point, round, words, done, left }));
    }

    /// Reports a message worth a line of its own.
    pub(super) fn note(&mut self, text: &str) {
        self.report(&RunEvent::Note(text));
    }

    /// Reports an event.
    pub(super) fn report(&mut self, event: &RunEvent<'_>) {
        (self.progress)(event);
    }
}
