//! Load before measuring begins: for a fixed time, or until throughput and the 99th percentile are
//! steady.

use ledger::FailedAt;

use super::runner::Runner;
use super::trial::Trial;
use crate::drive::{DriveError, Figure, LoadResult, Session, empty_histogram};

/// The length of the buckets in which throughput and latency are judged.
const BUCKET_NS: u64 = 100_000_000;

/// Buckets between two checks for a steady state.
const LOOK_EVERY: usize = 5;

impl Runner<'_> {
    /// Loads a target before it is measured. Its wrong answers count; its figures don't.
    pub(super) fn warm_up(
        &self,
        session: &mut Session,
        trial: &mut Trial,
    ) -> Result<(), DriveError> {
        let rounds = &self.plan.rounds;
        let Some(most) = rounds.warm_up_most else {
            keep_wrong_answers(trial, session.run(rounds.warm_up.ns)?);
            return Ok(());
        };
        let (least, most) = (rounds.warm_up.ns / BUCKET_NS, most.ns / BUCKET_NS);
        let (mut rates, mut tails) = (Vec::new(), Vec::new());
        trial.stationary = Some(false);
        while (rates.len() as u64) < most && trial.is_valid() && !self.stopped() {
            let result = session.run(BUCKET_NS)?;
            rates.push(result.counts.operations as f64 / result.rate_ns().max(1) as f64);
            tails.push(tail_ns(&result));
            keep_wrong_answers(trial, result);
            if (rates.len() as u64) < least || rates.len() % LOOK_EVERY != 0 {
                continue;
            }
            let steady = judge::steady_from(&rates).zip(judge::steady_from(&tails));
            if let Some((rate, tail)) = steady {
                trial.stationary = Some(true);
                trial.steady_after_ns = Some(rate.max(tail) as u64 * BUCKET_NS);
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The 99th percentile of a piece's latencies, on the scale on which percentiles vary evenly.
fn tail_ns(result: &LoadResult) -> f64 {
    let mut all = empty_histogram();
    let latencies = result.intervals.iter().filter(|one| one.figure == Figure::Latency);
    latencies.for_each(|interval| interval.histogram.add_to(&mut all));
    (all.value_at_quantile(0.99).max(1) as f64).ln()
}

fn keep_wrong_answers(trial: &mut Trial, result: LoadResult) {
    trial.add_outside(&result);
    if let Some(trouble) = result.trouble {
        trial.fail(FailedAt::WarmUp, trouble);
    }
    trial.keep(result.wrong_answers);
}
