//! What the owner has others do for a change: jobs, archives, moves, and giving memory back.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::Waker;

use super::core::{CommandKind, Effect, Submission};
use super::log::Category;
use super::message::Message;
use super::owner::Owner;
use super::{filing, job};
use crate::script::may_be_printed;

/// How many commands are started at a time.
const STARTS: usize = 64;

impl Owner {
    /// Has what the tree asks for done: what asked for it is durable.
    pub(super) fn effects(&mut self, at_us: i64) {
        let mut starts = VecDeque::new();
        for effect in self.core.effects() {
            match effect {
                Effect::Log(category, text) => self.say(at_us, category, &text),
                Effect::Start(submission)
                    if !self.environment.starts_jobs && submission.kind != CommandKind::Script =>
                {
                    self.not_started(at_us, &submission);
                }
                Effect::Start(submission) => starts.push_back(submission),
                Effect::File(filing) => {
                    let owner = self.shared.owner.clone();
                    // The queue has no limit but the number of suites and families.
                    let work = move || filing::run(filing, &owner);
                    let _ = self.files.submit(Waker::new(|| {}), work);
                }
                Effect::Move(one) => self.mover.start(*one, &self.environment, &self.shared.owner),
                Effect::Discard(gone) => {
                    let work = move || {
                        drop(gone);
                        base::memory::give_back();
                    };
                    // One that finds no room drops it here.
                    let _ = self.shared.in_background(work);
                }
            }
        }
        match starts.len() {
            ..=STARTS => self.start_some(starts),
            _ => self.start_later(starts),
        }
    }

    /// Has commands started behind what waits. Who has asked for thousands is answered first: their
    /// threads and processes compete for cores with whoever has the owner.
    fn start_later(&self, starts: VecDeque<Box<Submission>>) {
        // Its thread reads until the owner's end.
        let _ = self.shared.owner.send(Message::Start(starts));
    }

    /// Has some commands started, and the others later.
    pub(super) fn start_some(&self, mut starts: VecDeque<Box<Submission>>) {
        for submission in starts.drain(..starts.len().min(STARTS)) {
            let (spawner, owner) = (Arc::clone(&self.spawner), self.shared.owner.clone());
            let is_printed = submission.kind == CommandKind::Job
                && may_be_printed(|name| submission.scope.any(name));
            let pool = if is_printed { &self.printed_jobs } else { &self.jobs };
            let meant = self.environment.task_threshold;
            let work = move || job::start(*submission, &spawner, &owner, meant);
            // The queue has no limit but the number of tasks.
            let _ = pool.submit(Waker::new(|| {}), work);
        }
        if !starts.is_empty() {
            self.start_later(starts);
        }
    }

    /// Logs a command of a job that is not started (`--dis_job_gen`). Jobs themselves are many.
    fn not_started(&self, at_us: i64, submission: &Submission) {
        let Submission { kind, path, .. } = submission;
        if *kind != CommandKind::Job {
            let why = "is not started, as no jobs are (--dis_job_gen)";
            self.say(at_us, Category::Message, &format!("{} of {path} {why}", kind.variable()));
        }
    }
}
