//! A run: every point of a plan, round after round, written to the ledger as it goes.

mod capacity;
mod events;
mod glimpse;
mod keep;
mod looking;
mod profile;
mod require;
mod round;
mod stopping;
mod trace;
mod trial;
mod usage;
mod warm_up;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ledger::{Ledger, LedgerError, RunId, RunState};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::deploy::{DeployError, Deployer};
use crate::drive::Seconds;
use crate::observe::Watch;
use crate::plan::Plan;
pub use capacity::{Quest, capacity};
pub use glimpse::{Glimpse, Standing};
use keep::Keeper;
use looking::Looking;
use round::Bench;
use stopping::Stopping;
pub use trial::Trial;

/// What a run needs beside its plan.
pub struct Setting<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// This program, which serves services and guards targets.
    pub exe: &'a Path,
    /// Where results go.
    pub ledger: &'a mut Ledger,
    /// What is known of how this program was built, for the fingerprint.
    pub build: &'a [(&'a str, String)],
    /// Logs go to a folder of the run's id under this one.
    pub logs: &'a Path,
    /// The command line, for the ledger.
    pub command: String,
    /// Chooses orders and operations.
    pub seed: u64,
    /// Short trials at the end.
    pub after: After,
    /// Set from outside when the run is to stop.
    pub stop: Arc<AtomicBool>,
    /// Told what happens.
    pub progress: &'a mut dyn FnMut(&Progress<'_>),
}

/// Short trials behind the last round, whose timings count for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct After {
    /// Whether the system calls of an operation are counted.
    pub trace: bool,
    /// How often each target is profiled.
    pub profiles: u32,
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The point in words.
    pub point: &'a str,
    /// The round at this point, from 1.
    pub round: u32,
    /// Which target is worked on, and how.
    pub activity: &'a str,
    /// How much of the least work is done, from 0 to 1.
    pub done: f64,
    /// The time that is left at this pace.
    pub left: Option<Duration>,
    /// What has just come to be known, once.
    pub news: Option<News<'a>>,
    /// What sensors see: a look at it may outlast the call.
    pub watch: &'a Watch,
    /// What long slices show while they are measured, for who says that it is wanted.
    pub seconds: &'a Arc<Seconds>,
}

/// What has just come to be known.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// Something worth a line of its own.
    Said(&'a str),
    /// A slice begins that is looked into while it is measured.
    Begins {
        /// The target, as an index into the plan's.
        target: usize,
        /// The second of the run's clock in which it begins.
        second: u64,
    },
    /// A slice is over.
    Slice(&'a Glimpse),
    /// A round is over: where each of its targets stands.
    Round(&'a [Standing]),
}

/// Arrays of so many elements are held against what the host's loopback carries.
const LARGE_ELEMENTS: u64 = 10_000;

/// Slices that are longer are looked into while they are measured, once a second.
const LOOKED_INTO_NS: u64 = 1_000_000_000;

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The ledger can't be written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A target can't be built.
    #[error(transparent)]
    Build(#[from] DeployError),
    /// Something the lab itself needs failed.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All rounds are measured.
    Finished,
    /// It was told to stop; what was measured is kept.
    Interrupted,
    /// A condition of the suite's `abort_on` was met; what was measured is kept.
    Aborted(String),
}

/// Runs the plan. Whatever happens, what was measured is in the ledger and nothing is left
/// running.
///
/// # Errors
/// When the ledger can't be written or the lab's own means fail; a target's failures are results.
pub fn run(setting: Setting<'_>) -> Result<(RunId, Ending), RunError> {
    let (plan, logs) = (setting.plan, setting.logs);
    let After { trace, profiles } = setting.after;
    let (mut keeper, mut conductor) = begin(setting)?;
    let mut outcome = conductor.all_rounds(&mut keeper);
    conductor.stop_kept();
    if trace && matches!(outcome, Ok(Ending::Finished)) {
        let folder = logs.join(keeper.run().to_string());
        outcome = conductor.trace(&mut keeper, &folder).map(|()| Ending::Finished);
    }
    if profiles > 0 && matches!(outcome, Ok(Ending::Finished)) {
        let folder = logs.join(keeper.run().to_string());
        outcome = conductor.profile(&mut keeper, &folder, profiles).map(|()| Ending::Finished);
    }
    if outcome.is_ok() {
        for (index, trials) in conductor.trials.iter().enumerate() {
            let confidence = conductor.stopping.confidence;
            keeper.requirements(index, &plan.points[index], trials, confidence)?;
        }
    }
    end(keeper, outcome)
}

/// Begins a run in the ledger, and watches the host from here on.
fn begin(setting: Setting<'_>) -> Result<(Keeper<'_>, Conductor<'_>), RunError> {
    let Setting { plan, exe, ledger, build, logs, command, seed, stop, progress, .. } = setting;
    let fingerprint = crate::observe::fingerprint_with(exe, build);
    let mut keeper = Keeper::begin(ledger, plan, fingerprint, command, seed)?;
    let folder: PathBuf = logs.join(keeper.run().to_string());
    let clock_zero = wire::clock::now();
    let watch = Watch::start(clock_zero, &[]).map_err(|source| RunError::System {
        what: "starting to watch the host".to_owned(),
        source,
    })?;
    watch.follow_own("generator");
    let deployer = Deployer::new(exe, &folder, &logs.with_file_name("data"));
    let deployer = deployer.map_err(|source| RunError::System {
        what: format!("preparing {}", folder.display()),
        source,
    })?;
    let deployer = deployer.with_cold_data(plan.rounds.is_cold);
    let conductor = Conductor {
        plan,
        exe,
        watch,
        deployer,
        random: SmallRng::seed_from_u64(seed),
        stop,
        clock_zero,
        seconds: Arc::new(Seconds::new(clock_zero)),
        started: Instant::now(),
        trials: plan.points.iter().map(|_| Vec::new()).collect(),
        looking: Looking::of(plan),
        stopping: Stopping::of(&plan.rounds),
        kept: plan.points.iter().map(|_| Vec::new()).collect(),
        finished_rounds: 0,
        is_search: false,
        progress,
    };
    keeper.copy_bytes_per_s = crate::observe::copied_bytes_per_s();
    let is_large = |point: &crate::plan::Point| point.workload.size >= Some(LARGE_ELEMENTS);
    if plan.points.iter().any(is_large) {
        keeper.loopback_bytes_per_s = crate::observe::loopback_bytes_per_s();
    }
    Ok((keeper, conductor))
}

/// Ends a run in the ledger, however it ended.
fn end(
    mut keeper: Keeper<'_>,
    outcome: Result<Ending, RunError>,
) -> Result<(RunId, Ending), RunError> {
    match outcome {
        Ok(ending) => {
            match &ending {
                Ending::Finished => keeper.end(RunState::Finished, None)?,
                Ending::Interrupted => keeper.end(RunState::Interrupted, None)?,
                Ending::Aborted(condition) => {
                    let note = format!("aborted, because {condition}");
                    keeper.end(RunState::Failed, Some(&note))?;
                }
            }
            Ok((keeper.run(), ending))
        }
        Err(error) => {
            keeper.end(RunState::Failed, Some(&error.to_string()))?;
            Err(error)
        }
    }
}

/// Keeps what a run needs from round to round.
struct Conductor<'a> {
    plan: &'a Plan,
    exe: &'a Path,
    watch: Watch,
    deployer: Deployer,
    random: SmallRng,
    stop: Arc<AtomicBool>,
    clock_zero: wire::Ns,
    /// Where threads of load tell who looks on what they measure.
    seconds: Arc<Seconds>,
    started: Instant,
    /// Every trial so far, by point.
    trials: Vec<Vec<Trial>>,
    /// When the run is a comparison that is looked at while it runs.
    looking: Option<Looking>,
    /// When it is another run.
    stopping: Stopping,
    /// Targets that run on from round to round, by point.
    kept: Vec<Vec<Bench>>,
    finished_rounds: u64,
    /// Whether the points are loads, chosen as it goes.
    is_search: bool,
    progress: &'a mut dyn FnMut(&Progress<'_>),
}

impl Conductor<'_> {
    /// Rounds over all points in shuffled order, until every point has enough.
    fn all_rounds(&mut self, keeper: &mut Keeper<'_>) -> Result<Ending, RunError> {
        self.build_targets(keeper)?;
        let rounds = &self.plan.rounds;
        for ordinal in 1..=rounds.at_most {
            let mut order: Vec<usize> = (0..self.plan.points.len()).collect();
            order.shuffle(&mut self.random);
            order.retain(|point| !self.is_enough(*point, ordinal - 1));
            if order.is_empty() {
                return Ok(Ending::Finished);
            }
            for point in order {
                if self.stopped() {
                    return Ok(Ending::Interrupted);
                }
                if ordinal > rounds.at_least && self.over_budget() {
                    return Ok(Ending::Finished);
                }
                let reason = self.one_round(keeper, point, ordinal)?;
                self.look(keeper, point, ordinal)?;
                if let Some(condition) = reason {
                    return Ok(Ending::Aborted(condition));
                }
            }
        }
        Ok(if self.stopped() { Ending::Interrupted } else { Ending::Finished })
    }

    /// Runs what targets need to be built, and notes what they are built from.
    fn build_targets(&mut self, keeper: &mut Keeper<'_>) -> Result<(), RunError> {
        for target in self.plan.targets().iter().filter(|target| target.skipped.is_none()) {
            self.tell(0, 0, &format!("building {}", target.name));
            let stop = || self.stop.load(Ordering::Relaxed);
            match self.deployer.build(target, &stop) {
                // Whoever looks next sees that the run is stopped.
                Err(DeployError::Interrupted) => break,
                built => built?,
            }
        }
        keeper.facts(self.plan, self.exe)?;
        Ok(())
    }

    /// Measures one round of a point and keeps it. Gives the condition under which the suite wants
    /// the run to be aborted, if one is met.
    fn one_round(
        &mut self,
        keeper: &mut Keeper<'_>,
        point: usize,
        ordinal: u32,
    ) -> Result<Option<String>, RunError> {
        let seed = self.random.next_u64();
        let round = keeper.begin_round(point, ordinal, seed, self.now())?;
        let mut trials = self.round(point, ordinal, seed)?;
        self.finished_rounds += 1;
        let here = &self.plan.points[point];
        keeper.end_round(round, here, &mut trials, &self.watch)?;
        let copied = keeper.copy_bytes_per_s;
        let standings: Vec<Standing> =
            trials.iter().map(|trial| Standing::of(trial, here, copied)).collect();
        self.say(point, ordinal, "round over", Some(News::Round(&standings)));
        let trials: Vec<Trial> = trials.into_iter().map(Trial::condensed).collect();
        let reason = require::reason_to_abort(&self.plan.points[point].abort_on, &trials);
        self.trials[point].extend(trials);
        Ok(reason)
    }

    /// Looks at a comparison's verdict when it is time to.
    fn look(
        &mut self,
        keeper: &mut Keeper<'_>,
        point: usize,
        ordinal: u32,
    ) -> Result<(), RunError> {
        let Some(looking) = &mut self.looking else { return Ok(()) };
        let is_last = ordinal == self.plan.rounds.at_most;
        let Some(look) = looking.look(point, &self.trials[point], is_last) else { return Ok(()) };
        keeper.look(point, look.rounds)?;
        if let Some(said) = look.said {
            self.say(point, ordinal, "looking", Some(News::Said(&said)));
        }
        Ok(())
    }

    fn is_enough(&self, point: usize, rounds: u32) -> bool {
        match &self.looking {
            Some(looking) => looking.is_told(point),
            None => self.stopping.is_enough(&self.trials[point], rounds),
        }
    }

    fn over_budget(&self) -> bool {
        let budget = self.plan.rounds.budget.map(load::units::Span::duration);
        budget.is_some_and(|budget| self.started.elapsed() > budget)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The run's clock.
    fn now(&self) -> wire::Ns {
        wire::clock::now() - self.clock_zero
    }

    fn tell(&mut self, point: usize, round: u32, activity: &str) {
        self.say(point, round, activity, None);
    }

    fn say(&mut self, point: usize, round: u32, activity: &str, news: Option<News<'_>>) {
        let rounds = &self.plan.rounds;
        let each = if self.looking.is_some() { rounds.at_most } else { rounds.at_least };
        let least = u64::from(each) * self.plan.points.len() as u64;
        let done = self.finished_rounds as f64 / least as f64;
        // How many loads a search will try, nobody knows.
        let known = !self.is_search && done > 0.0 && done < 1.0;
        let left = known.then(|| self.started.elapsed().mul_f64((1.0 - done) / done));
        let point = &self.plan.points[point].label;
        let done = done.min(1.0);
        let (watch, seconds) = (&self.watch, &self.seconds);
        (self.progress)(&Progress { point, round, activity, done, left, news, watch, seconds });
    }
}
