//! What the owner has others do for a change: jobs, archives, moves, and giving memory back.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::Waker;

use super::core::{CommandKind, Effect, Submission};
use super::log::{Category, unix_us};
use super::message::{CommandEnd, CommandWhat, Message};
use super::owner::Owner;
use super::signals::{MOST_WAITING, Signals};
use super::{filing, job};
use crate::protocol::{Body, Command, PathsCommand, Request, ZombieAction};
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
                Effect::Start(submission) => {
                    if let Some(mut submission) = self.signal(submission) {
                        self.submitted += 1;
                        submission.number = self.submitted;
                        starts.push_back(submission);
                    }
                }
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
    pub(super) fn start_some(&mut self, mut starts: VecDeque<Box<Submission>>) {
        for submission in starts.drain(..starts.len().min(STARTS)) {
            let job = (submission.try_no, &*submission.password);
            if submission.kind == CommandKind::Job
                && let Some(what) = self.core.unwanted(&submission.path, job)
            {
                let Submission { path, try_no, password, .. } = *submission;
                self.not_wanted(path, (try_no, password), what);
                continue;
            }
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

    /// The kill or status commands, if it is one of these kinds.
    fn signals(&mut self, kind: CommandKind) -> Option<&mut Signals> {
        match kind {
            CommandKind::Kill => Some(&mut self.kills),
            CommandKind::Status => Some(&mut self.statuses),
            _ => None,
        }
    }

    /// Why no kill or status command is taken, where a request asks for some.
    pub(super) fn refused_signals(&self, request: &Request) -> Option<String> {
        let Body::User(_, command) = &request.body else { return None };
        let (signals, kind) = match command {
            Command::Group(all) => return all.iter().find_map(|one| self.refused_signals(one)),
            Command::Paths { command: PathsCommand::Kill, .. }
            | Command::Zombie { action: ZombieAction::Kill, .. } => {
                (&self.kills, CommandKind::Kill)
            }
            Command::Paths { command: PathsCommand::Status, .. } => {
                (&self.statuses, CommandKind::Status)
            }
            _ => return None,
        };
        let kind = kind.variable();
        signals.is_full().then(|| format!("{MOST_WAITING} of {kind} wait: try again"))
    }

    /// Has a kill or status command started; gives back any other. A kill of a task whose job's
    /// command is made and not started takes that back, and has nothing to end. A job that is still
    /// being made is started where a place is free for it then, and its kill command may find
    /// nothing.
    fn signal(&mut self, submission: Box<Submission>) -> Option<Box<Submission>> {
        let Submission { kind, path, is_for_zombie, .. } = &*submission;
        if *kind == CommandKind::Kill && !is_for_zombie {
            let job = (submission.try_no, &*submission.password);
            if let Some(start) = self.shared.spawner.take_out(path, job) {
                self.not_wanted(start.path, start.job, CommandWhat::Killed);
                return None;
            }
        }
        let Some(signals) = self.signals(*kind) else { return Some(submission) };
        if let Some(submission) = signals.add(*submission) {
            self.start_signal(submission);
        }
        None
    }

    /// It needs no file: to start it waits for nothing.
    fn start_signal(&self, submission: Submission) {
        let meant = self.environment.task_threshold;
        job::start(submission, &self.shared.spawner, &self.shared.owner, meant);
    }

    /// Where a kill or status command is over, the next one that is still meant has its place.
    pub(super) fn signal_over(&mut self, end: &CommandEnd) {
        let is_over = matches!(
            end.what,
            CommandWhat::NotStarted(_) | CommandWhat::Ended { .. } | CommandWhat::Lost(_)
        );
        if let Some(signals) = self.signals(end.kind).filter(|_| is_over) {
            signals.over();
            self.next_signals(end.kind);
        }
    }

    /// Has kill or status commands started that have waited and are still meant: some, and the
    /// others later.
    pub(super) fn next_signals(&mut self, kind: CommandKind) {
        let Self { core, kills, statuses, .. } = self;
        let signals = if kind == CommandKind::Kill { kills } else { statuses };
        let looked = signals
            .look(|path, job| core.signal(kind, (path, &job.process), (job.try_no, &job.password)));
        looked.starts.into_iter().for_each(|submission| self.start_signal(submission));
        for path in looked.gone {
            let why = "is not run: the job that it was asked for has ended since";
            let line = format!("{} of {path} {why}", kind.variable());
            self.say(unix_us(), Category::Warning, &line);
        }
        if looked.has_more {
            // Its thread reads until the owner's end.
            let _ = self.shared.owner.send(Message::Signals(kind));
        }
    }

    /// Has jobs' commands started that have waited for places, where their jobs are still the
    /// tasks' own: some, and the spawner asks again where there are more.
    pub(super) fn next_places(&mut self) {
        let spawner = Arc::clone(&self.shared.spawner);
        for start in spawner.take_waiting() {
            match self.core.unwanted(&start.path, (start.job.0, &start.job.1)) {
                None => spawner.submit_taken(start),
                Some(what) => {
                    spawner.free();
                    self.not_wanted(start.path, start.job, what);
                }
            }
        }
    }

    /// A job's command isn't started.
    fn not_wanted(&mut self, path: String, (try_no, password): (i32, String), what: CommandWhat) {
        let kind = CommandKind::Job;
        if matches!(what, CommandWhat::Stale) {
            let why = "is not run: its task isn't submitted any more, or was submitted again";
            self.say(unix_us(), Category::Warning, &format!("{} of {path} {why}", kind.variable()));
        }
        self.command_end(CommandEnd { kind, path, try_no, password, what });
    }
}
