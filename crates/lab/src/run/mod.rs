//! A run: every point of a plan, round after round, written to the ledger as it goes.

mod advised;
mod answers;
mod capacity;
mod distribution;
mod early_end;
mod events;
mod limit_figures;
mod options;
mod persist;
mod profile;
mod progress;
mod require;
mod required;
mod round;
mod rounds;
mod runner;
mod slice;
mod slice_stats;
mod stopping;
mod strace;
mod stretches;
mod target_run;
mod trace;
mod trial;
mod usage;
mod warm_up;

use ledger::RunId;
use runner::{begin, end};

pub use capacity::{CapacitySearch, LEAST_DUE, capacity};
pub use options::{ABORTED, ENDED_EARLY, Ending, Extras, RunError, RunOptions};
pub use progress::{Activity, LiveFeed, RunEvent};
pub use slice_stats::{SliceStats, TargetStatus};
pub use trial::Trial;

/// Runs the plan. Whatever happens, what was measured is in the ledger and nothing is left
/// running.
///
/// # Errors
/// When the ledger can't be written or the lab's own means fail; a target's failures are results.
pub fn run(options: RunOptions<'_>) -> Result<(RunId, Ending), RunError> {
    let (plan, logs) = (options.plan, options.logs);
    let Extras { trace, profiles } = options.extras;
    let (mut writer, mut runner) = begin(options)?;
    let mut outcome = runner.all_rounds(&mut writer);
    runner.stop_kept();
    if trace && matches!(outcome, Ok(Ending::Finished)) {
        let folder = logs.join(writer.run().to_string());
        outcome = runner.trace(&mut writer, &folder).map(|()| Ending::Finished);
    }
    if profiles > 0 && matches!(outcome, Ok(Ending::Finished)) {
        let folder = logs.join(writer.run().to_string());
        outcome = runner.profile(&mut writer, &folder, profiles).map(|()| Ending::Finished);
    }
    if outcome.is_ok() {
        let mut points = runner.trials.iter().enumerate();
        let judged = points.try_for_each(|(index, trials)| {
            let (point, confidence) = (&plan.points[index], runner.stopping.confidence);
            let terms = require::Terms::at(point, confidence, judge::MIN_ROUNDS);
            writer.requirements(index, point, trials, terms)
        });
        outcome = judged.map_err(RunError::from).and(outcome);
    }
    end(writer, outcome)
}
