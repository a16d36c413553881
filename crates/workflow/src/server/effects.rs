//! What the owner has others do for a change: jobs, archives, moves, and giving memory back.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::Waker;

use super::core::{CommandKind, Effect, Submission};
use super::log::{Category, unix_us};
use super::making::When;
use super::message::{CommandEnd, CommandWhat, Message};
use super::owner::Owner;
use super::places::Start;
use super::signals::{MOST_WAITING, Signals};
use super::{filing, job};
use crate::protocol::{Body, Command, PathsCommand, Request, ZombieAction};
use crate::script::may_be_printed;
use crate::words::each_or_count;

/// How many jobs and scripts are given at a time to the threads that make them.
const MADE_AT_ONCE: usize = 64;

/// Why the command of a job is not run.
const STALE: &str = "its task isn't submitted any more, or was submitted again";

impl Owner {
    /// Has what the tree asks for done: what asked for it is durable.
    pub(super) fn effects(&mut self, at_us: i64) {
        let (mut starts, mut signals, mut replaced) = (VecDeque::new(), Vec::new(), Vec::new());
        for effect in self.core.effects() {
            match effect {
                Effect::Log(category, text) => self.say(at_us, category, &text),
                Effect::Start(submission)
                    if !self.environment.starts_jobs && submission.kind != CommandKind::Script =>
                {
                    self.note_not_started(at_us, &submission);
                }
                Effect::Start(submission) => match submission.kind {
                    CommandKind::Kill | CommandKind::Status => signals.push(submission),
                    _ => match self.add_making(submission) {
                        When::Now(submission) => starts.push_back(submission),
                        When::Later(older) => replaced.extend(older),
                    },
                },
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
                    // Where the pool has no room, they are dropped here, on the owner's thread.
                    let _ = self.shared.in_background(work);
                }
            }
        }
        self.not_run(replaced.into_iter().map(|older| older.end(CommandWhat::Stale)));
        // A group may submit a task and kill it.
        signals.into_iter().for_each(|submission| self.signal(*submission));
        match starts.len() {
            ..=MADE_AT_ONCE => self.make_some(starts),
            _ => self.make_later(starts),
        }
    }

    /// Adds a job or a script that is to be made, in the order of the tree.
    fn add_making(&mut self, mut submission: Box<Submission>) -> When {
        self.submitted += 1;
        submission.number = self.submitted;
        if submission.kind == CommandKind::Job {
            let Submission { path, try_no, password, .. } = &*submission;
            self.shared.fates.note_making(path, (*try_no, password));
        }
        self.making.add(submission)
    }

    /// Puts them behind the messages that wait, so that who asked for thousands is answered before
    /// their threads and processes take the cores.
    fn make_later(&self, starts: VecDeque<Box<Submission>>) {
        // It fails only once the owner has ended.
        let _ = self.shared.owner.send(Message::Start(starts));
    }

    /// Has some jobs and scripts made, and the others later.
    pub(super) fn make_some(&mut self, mut starts: VecDeque<Box<Submission>>) {
        let mut unwanted = Vec::new();
        for submission in starts.drain(..starts.len().min(MADE_AT_ONCE)) {
            self.make(submission, &mut unwanted);
        }
        self.not_run(unwanted);
        if !starts.is_empty() {
            self.make_later(starts);
        }
    }

    /// Has a job or a script made, where it is still meant, or else what waits behind it.
    fn make(&mut self, submission: Box<Submission>, unwanted: &mut Vec<CommandEnd>) {
        let mut now = Some(submission);
        while let Some(submission) = now {
            let (path, job) = (&submission.path, (submission.try_no, &*submission.password));
            let is_job = submission.kind == CommandKind::Job;
            if is_job && let Some(what) = self.core.unwanted(path, job) {
                self.shared.fates.note_made(path, job);
                now = self.making.next(path);
                unwanted.push(submission.end(what));
                continue;
            }
            let is_printed = is_job && may_be_printed(|name| submission.scope.any(name));
            let pool = if is_printed { &self.printed_jobs } else { &self.jobs };
            let (owner, meant) = (self.shared.owner.clone(), self.environment.task_threshold);
            let shared = Arc::clone(&self.shared);
            let work = move || {
                if is_job {
                    let Submission { path, try_no, password, .. } = &*submission;
                    shared.fates.note_made_now(path, (*try_no, password));
                }
                job::make(*submission, &owner, meant);
            };
            // The queue has no limit but the number of tasks.
            let _ = pool.submit(Waker::new(|| {}), work);
            return;
        }
    }

    /// Takes what was made, and has its command started, where it is still meant: so the log says
    /// that the job was made before it says anything of it.
    pub(super) fn made(&mut self, end: CommandEnd, start: Option<Box<Start>>) {
        let is_signal = matches!(end.kind, CommandKind::Kill | CommandKind::Status);
        let next = if is_signal { None } else { self.making.next(&end.path) };
        let of = (end.kind == CommandKind::Job)
            .then(|| (end.path.clone(), end.try_no, end.password.clone()));
        self.command(end);
        let mut unwanted = Vec::new();
        if let Some(start) = start {
            unwanted.extend(self.start_made(*start));
        }
        // The spawner knows it by now.
        if let Some((path, try_no, password)) = of {
            self.shared.fates.note_made(&path, (try_no, &password));
        }
        if let Some(next) = next {
            self.make(next, &mut unwanted);
        }
        self.not_run(unwanted);
    }

    /// Has a command started, or says why not.
    fn start_made(&mut self, start: Start) -> Option<CommandEnd> {
        let Start { kind, path, job, command, .. } = &start;
        if command.trim().is_empty() {
            let why = format!("{} of {path} is empty.", kind.variable());
            return Some(start.end(CommandWhat::NotStarted(why)));
        }
        let is_job = *kind == CommandKind::Job;
        match is_job.then(|| self.core.unwanted(path, (job.0, &job.1))).flatten() {
            None => {
                self.shared.spawner.submit(start);
                None
            }
            Some(what) => Some(start.end(what)),
        }
    }

    /// Logs a command that is not started (`--dis_job_gen`), and notes it for `why`. Of jobs
    /// nothing is logged: they are too many.
    fn note_not_started(&self, at_us: i64, submission: &Submission) {
        let Submission { kind, path, try_no, password, is_for_zombie, .. } = submission;
        if *kind != CommandKind::Job {
            let why = "no jobs are started (--dis_job_gen)";
            if !is_for_zombie {
                self.shared.fates.not_started((*kind, path, (*try_no, password)), why);
            }
            let why = "is not started, as no jobs are (--dis_job_gen)";
            self.say(at_us, Category::Message, &format!("{} of {path} {why}", kind.variable()));
            self.shared.fates.prune(|path, job| self.core.runs(path, job));
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

    /// Has a kill or status command started. A kill of a task whose job isn't started yet keeps it
    /// from being started, and has nothing to end.
    fn signal(&mut self, submission: Submission) {
        let Submission { kind, path, is_for_zombie, .. } = &submission;
        if *kind == CommandKind::Kill && !is_for_zombie {
            let (job, spawner) = ((submission.try_no, &*submission.password), &self.shared.spawner);
            if self.core.is_unstarted(path, job) && !spawner.has_begun(path, job) {
                self.shared.fates.note_killed(path, job);
                if let Some(start) = spawner.take_out(path, job) {
                    self.command(start.end(CommandWhat::Killed));
                    self.next_places(CommandKind::Job);
                }
                // One that isn't with the spawner yet is dropped in `make` or `start_made`.
                return;
            }
        }
        let (kind, path, is_for_zombie) = (*kind, path.clone(), *is_for_zombie);
        let job = (submission.try_no, submission.password.clone());
        let Some(signals) = self.signals(kind) else { return };
        match signals.add(submission) {
            Some(submission) => self.start_signal(submission),
            None if is_for_zombie => {}
            None => self.shared.fates.waits((kind, &path, (job.0, &job.1))),
        }
        self.shared.fates.prune(|path, job| self.core.runs(path, job));
    }

    /// It is made on this thread: that takes values of variables, and no file.
    fn start_signal(&self, submission: Submission) {
        let Submission { kind, path, try_no, password, is_for_zombie, .. } = &submission;
        if !is_for_zombie {
            self.shared.fates.begun((*kind, path, (*try_no, password)));
        }
        job::make(submission, &self.shared.owner, self.environment.task_threshold);
    }

    /// Takes how far a command has got. Where it is over, others that wait may have its place.
    pub(super) fn command(&mut self, end: CommandEnd) {
        if let CommandWhat::Lost(text) = &end.what {
            self.say(unix_us(), Category::Warning, text);
        }
        let (kind, frees_place) = (end.kind, end.what.frees_place());
        let is_noted = match (kind, &end.what) {
            (CommandKind::Kill | CommandKind::Status, _) => !end.is_for_zombie,
            // Those that end well are too many.
            (CommandKind::Job, CommandWhat::Ended { status, .. }) => !status.success(),
            _ => false,
        };
        if frees_place && is_noted {
            self.shared.fates.ended(&end);
            self.shared.fates.prune(|path, job| self.core.runs(path, job));
        }
        self.command_end(end);
        if frees_place {
            if let Some(signals) = self.signals(kind) {
                signals.over();
            }
            self.next_places(kind);
        }
    }

    /// Has commands of a kind started that have waited for places and are still meant: some, and
    /// the others later.
    pub(super) fn next_places(&mut self, kind: CommandKind) {
        let has_more = match kind {
            CommandKind::Job => self.next_jobs(),
            CommandKind::Kill | CommandKind::Status => self.next_signals(kind),
            _ => false,
        };
        if has_more {
            // It fails only once the owner has ended.
            let _ = self.shared.owner.send(Message::Places(kind));
        }
    }

    /// Returns whether there are more.
    fn next_signals(&mut self, kind: CommandKind) -> bool {
        let Self { core, kills, statuses, .. } = self;
        let signals = if kind == CommandKind::Kill { kills } else { statuses };
        let looked = signals
            .look(|path, job| core.signal(kind, (path, &job.process), (job.try_no, &job.password)));
        looked.starts.into_iter().for_each(|submission| self.start_signal(submission));
        let own = looked.gone.iter().filter(|(_, is_for_zombie)| !is_for_zombie);
        own.for_each(|(path, _)| self.shared.fates.dropped(kind, path));
        let gone: Vec<String> = looked.gone.into_iter().map(|(path, _)| path).collect();
        self.warn_not_run(
            kind,
            &gone,
            "the job that it was asked for has ended since, or has another process",
        );
        looked.has_more
    }

    /// Returns whether there are more.
    fn next_jobs(&mut self) -> bool {
        let (spawner, mut unwanted) = (Arc::clone(&self.shared.spawner), Vec::new());
        for start in spawner.take_waiting() {
            match self.core.unwanted(&start.path, (start.job.0, &start.job.1)) {
                None => spawner.submit_taken(start),
                Some(what) => {
                    spawner.free();
                    unwanted.push(start.end(what));
                }
            }
        }
        self.not_run(unwanted);
        spawner.has_next()
    }

    /// Ends commands that are not run, and warns of those of jobs that are not meant any more.
    fn not_run(&mut self, ends: impl IntoIterator<Item = CommandEnd>) {
        let mut stale = Vec::new();
        for end in ends {
            stale.extend(matches!(end.what, CommandWhat::Stale).then(|| end.path.clone()));
            self.command(end);
        }
        self.warn_not_run(CommandKind::Job, &stale, STALE);
    }

    /// Warns of commands of these tasks that are not run.
    fn warn_not_run(&self, kind: CommandKind, paths: &[String], why: &str) {
        for line in each_or_count(paths, "task", |of| {
            format!("{} of {of} is not run: {why}", kind.variable())
        }) {
            self.say(unix_us(), Category::Warning, &line);
        }
    }
}
