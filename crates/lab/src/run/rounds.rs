//! Rounds over all points of a plan, until every point has enough.

use std::sync::atomic::Ordering;

use rand::Rng;
use rand::seq::SliceRandom;

use super::early_end::{DISTURBED_ROUNDS, is_hopeless, never_answers};
use super::options::{Ending, RunError};
use super::persist::RunWriter;
use super::progress::RunEvent;
use super::require;
use super::runner::Runner;
use super::slice_stats::TargetStatus;
use super::trial::Trial;
use crate::deploy::DeployError;

impl Runner<'_> {
    /// Rounds over all points in shuffled order, until every point has enough.
    pub(super) fn all_rounds(&mut self, writer: &mut RunWriter<'_>) -> Result<Ending, RunError> {
        if self.plan.targets().iter().all(|target| target.skipped.is_some()) {
            return Ok(Ending::Finished);
        }
        self.build_targets(writer)?;
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
                let ending = self.one_round(writer, point, ordinal)?;
                self.look(writer, point, ordinal)?;
                if let Some(ending) = ending {
                    return Ok(ending);
                }
            }
        }
        Ok(if self.stopped() { Ending::Interrupted } else { Ending::Finished })
    }

    /// Runs the targets' `build` commands, and keeps the facts of their programs.
    pub(super) fn build_targets(&mut self, writer: &mut RunWriter<'_>) -> Result<(), RunError> {
        for target in self.plan.targets().iter().filter(|target| target.skipped.is_none()) {
            if target.build.is_none() {
                continue;
            }
            self.report_activity(0, 0, &format!("building {}", target.name));
            let stop = || self.stop.load(Ordering::Relaxed);
            match self.deployer.build(target, &stop) {
                // The next check of the stop flag ends the run.
                Err(DeployError::Interrupted) => break,
                built => built?,
            }
        }
        writer.facts(self.plan, self.exe)?;
        Ok(())
    }

    /// Measures one round of a point and writes it to the ledger. Returns how the run ends with it,
    /// if it does: a condition of the suite's `abort_on` was met, or a target never answers.
    pub(super) fn one_round(
        &mut self,
        writer: &mut RunWriter<'_>,
        point: usize,
        ordinal: u32,
    ) -> Result<Option<Ending>, RunError> {
        let seed = self.random.next_u64();
        self.measure_ceilings(writer, point);
        let round = writer.begin_round(point, ordinal, seed, self.now())?;
        let mut trials = self.round(point, ordinal, seed)?;
        self.finished_rounds += 1;
        let here = &self.plan.points[point];
        writer.end_round(round, here, &mut trials, &self.watch)?;
        let copied = writer.copy_bytes_per_s;
        let primary = &self.plan.rounds.primary.suite;
        let status = |trial| TargetStatus::of(trial, here, primary, copied);
        let statuses: Vec<TargetStatus> = trials.iter().map(status).collect();
        self.report_activity(point, ordinal, "round over");
        self.report(&RunEvent::RoundEnds(&statuses));
        let trials: Vec<Trial> = trials.into_iter().map(Trial::condensed).collect();
        let reason = require::reason_to_abort(&self.plan.points[point].abort_on, &trials);
        let plan = self.plan;
        let names: Vec<&str> = plan.targets().iter().map(|target| &*target.name).collect();
        if let Some(causes) = self.disturbed.add(&trials) {
            let named = causes.into_iter().filter_map(|(at, one)| Some((*names.get(at)?, one)));
            let (rounds, causes) = (DISTURBED_ROUNDS, &named.collect::<Vec<_>>()[..]);
            self.report(&RunEvent::StaysDisturbed { rounds, causes });
        }
        self.trials[point].extend(trials);
        if self.stopped() {
            return Ok(None);
        }
        let hopeless = || never_answers(&self.trials, &names).map(Ending::Hopeless);
        Ok(reason.map(Ending::Aborted).or_else(hopeless))
    }

    /// Judges a comparison if a look is due after this round.
    fn look(
        &mut self,
        writer: &mut RunWriter<'_>,
        point: usize,
        ordinal: u32,
    ) -> Result<(), RunError> {
        let is_last = ordinal == self.plan.rounds.at_most;
        let look = self.stopping.look(point, &self.trials[point], is_last);
        let Some(look) = look else { return Ok(()) };
        writer.look(point, look.rounds)?;
        if let Some(text) = look.note {
            self.note(&text);
        }
        Ok(())
    }

    fn is_enough(&self, point: usize, rounds: u32) -> bool {
        if is_hopeless(&self.trials[point], self.plan.targets().len()) {
            return true;
        }
        self.stopping.is_enough(point, &self.trials[point], rounds)
    }
}
