//! Rounds over all points of a plan, until every point has enough.

use std::sync::atomic::Ordering;

use rand::Rng;
use rand::seq::SliceRandom;

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
                let reason = self.one_round(writer, point, ordinal)?;
                self.look(writer, point, ordinal)?;
                if let Some(condition) = reason {
                    return Ok(Ending::Aborted(condition));
                }
            }
        }
        Ok(if self.stopped() { Ending::Interrupted } else { Ending::Finished })
    }

    /// Runs the targets' `build` commands, and keeps the facts of their programs.
    pub(super) fn build_targets(&mut self, writer: &mut RunWriter<'_>) -> Result<(), RunError> {
        for target in self.plan.targets().iter().filter(|target| target.skipped.is_none()) {
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

    /// Measures one round of a point and writes it to the ledger. Returns the condition of the
    /// suite's `abort_on` that was met, if one was.
    pub(super) fn one_round(
        &mut self,
        writer: &mut RunWriter<'_>,
        point: usize,
        ordinal: u32,
    ) -> Result<Option<String>, RunError> {
        let seed = self.random.next_u64();
        let round = writer.begin_round(point, ordinal, seed, self.now())?;
        let mut trials = self.round(point, ordinal, seed)?;
        self.finished_rounds += 1;
        let here = &self.plan.points[point];
        writer.end_round(round, here, &mut trials, &self.watch)?;
        let copied = writer.copy_bytes_per_s;
        let statuses: Vec<TargetStatus> =
            trials.iter().map(|trial| TargetStatus::of(trial, here, copied)).collect();
        self.report(point, ordinal, "round over", Some(RunEvent::RoundEnds(&statuses)));
        let trials: Vec<Trial> = trials.into_iter().map(Trial::condensed).collect();
        let reason = require::reason_to_abort(&self.plan.points[point].abort_on, &trials);
        self.trials[point].extend(trials);
        Ok(reason)
    }

    /// Judges a comparison if a look is due after this round.
    fn look(
        &mut self,
        writer: &mut RunWriter<'_>,
        point: usize,
        ordinal: u32,
    ) -> Result<(), RunError> {
        let Some(looks) = &mut self.looks else { return Ok(()) };
        let is_last = ordinal == self.plan.rounds.at_most;
        let Some(look) = looks.look(point, &self.trials[point], is_last) else { return Ok(()) };
        writer.look(point, look.rounds)?;
        if let Some(text) = look.note {
            self.report(point, ordinal, "looking", Some(RunEvent::Note(&text)));
        }
        Ok(())
    }

    fn is_enough(&self, point: usize, rounds: u32) -> bool {
        match &self.looks {
            Some(looks) => looks.is_decided(point),
            None => self.stopping.is_enough(&self.trials[point], rounds),
        }
    }
}
