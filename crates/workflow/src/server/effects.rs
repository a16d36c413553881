//! What the owner has others do for a change: jobs, archives, moves, and giving memory back.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::Waker;

use super::core::{CommandKind, Effect, Submission};
use super::log::{Category, unix_us};
use super::message::{CommandEnd, CommandWhat, Message};
use super::owner::Owner;
use super::signals::{MOST_RUNNING, MOST_WAITING, Signals};
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
                Effect::Start(submission) => starts.extend(self.signal(submission)),
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
            let (spawner, owner) = (Arc::clone(&self.shared.spawner), self.shared.owner.clone());
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

    fn signals(&mut self, kind: CommandKind) -> Option<&mut Signals> {
        match kind {
            CommandKind::Kill => Some(&mut self.kills),
            CommandKind::Status => Some(&mut self.statuses),
            _ => None,
        }
    }

    /// Has a kill or status command started; gives back any other.
    pub(super) fn signal(&mut self, submission: Box<Submission>) -> Option<Box<Submission>> {
        let kind = submission.kind;
        let Some(signals) = self.signals(kind) else { return Some(submission) };
        if signals.running < MOST_RUNNING {
            signals.running += 1;
            self.start_signal(*submission);
            return None;
        }
        let process = submission.scope.any("ECF_RID").unwrap_or_default().to_owned();
        let Submission { path, try_no, password, .. } = *submission;
        if signals.waiting.len() < MOST_WAITING {
            signals.waiting.insert((path, process), (try_no, password));
            return None;
        }
        let what = CommandWhat::NotStarted(format!(
            "{} of {path} is not run: {MOST_WAITING} such commands wait",
            kind.variable()
        ));
        self.command_end(CommandEnd { kind, path, try_no, password, what });
        None
    }

    /// It needs no file: to start it waits for nothing.
    fn start_signal(&self, submission: Submission) {
        let meant = self.environment.task_threshold;
        job::start(submission, &self.shared.spawner, &self.shared.owner, meant);
    }

    /// Where a kill or status command is over, the next one that is still meant has its place.
    pub(super) fn signal_over(&mut self, end: &CommandEnd) {
        let kind = end.kind;
        let is_over = matches!(end.what, CommandWhat::NotStarted(_) | CommandWhat::Ended { .. });
        let Some(signals) = self.signals(kind).filter(|_| is_over) else { return };
        signals.running = signals.running.saturating_sub(1);
        while let Some(((path, process), (try_no, password))) =
            self.signals(kind).and_then(|signals| signals.waiting.pop_first())
        {
            let of = (try_no, &*password);
            if let Some(submission) = self.core.signal(kind, (&path, &process), of) {
                drop(self.signal(Box::new(submission)));
                return;
            }
            let line = format!(
                "{} of {path} is not run: the job that it was asked for has ended since",
                kind.variable()
            );
            self.say(unix_us(), Category::Warning, &line);
        }
    }
}
