//! The thread that has the tree: it applies what others ask, in order, and drives its time. It
//! never waits for a file, a process or the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use journal::Journal;
use wire::{TaskPool, Waker};

use super::access::{Access, Part};
use super::checkpoint::Checkpoint;
use super::connection::Shared;
use super::core::{Core, Effect, Told};
use super::environment::{CheckMode, Environment};
use super::flush::Until;
use super::job;
use super::log::{Category, Log, last_lines, stamp, unix_us};
use super::message::{Asked, CommandEnd, Message};
use super::pending::Pending;
use super::record::{Record, What, pieces};
use super::slot::Answer;
use super::spawn::Spawner;
use super::store;
use crate::protocol::{Body, Command, LogCommand, Reply, Request, ServerCommand};

/// The most messages that are taken before the journal is passed what they wrote.
const BATCH: usize = 1024;

/// What the owner works with.
pub(super) struct Owner {
    pub(super) core: Core,
    pub(super) access: Access,
    pub(super) environment: Arc<Environment>,
    pub(super) messages: Receiver<Message>,
    pub(super) own: Sender<Message>,
    pub(super) shared: Arc<Shared>,
    pub(super) journal: Journal,
    pub(super) pending: Arc<Pending>,
    pub(super) log: Log,
    pub(super) jobs: Arc<TaskPool>,
    pub(super) spawner: Arc<Spawner>,
    /// Bytes of records behind the snapshot.
    pub(super) logged: u64,
    pub(super) is_snapshotting: bool,
    pub(super) clock: Clock,
    pub(super) checkpoints: Checkpoint,
    /// Ends the whole server, for `--terminate`.
    pub(super) terminate: Box<dyn Fn() + Send>,
}

/// When the next minute of the calendars and the next checkpoint are due.
pub(super) struct Clock {
    pub(super) tick: Instant,
    pub(super) interval: Duration,
    pub(super) check: Instant,
    second: i64,
    stamp: String,
}

impl Clock {
    /// The first tick is on the next whole minute, where the interval is one.
    pub(super) fn new(environment: &Environment) -> Self {
        let now = Instant::now();
        let interval = Duration::from_secs(environment.interval_s.into());
        let passed = unix_us().rem_euclid(60_000_000).unsigned_abs();
        let first = match environment.interval_s {
            60 => now + Duration::from_micros(60_000_000 - passed),
            _ => now + interval,
        };
        let check = now + Duration::from_secs(environment.check_interval_s.into());
        Self { tick: first, interval, check, second: 0, stamp: String::new() }
    }

    /// The stamp of the log's lines now.
    fn stamp(&mut self, at_us: i64) -> &str {
        let second = at_us.div_euclid(1_000_000);
        if second != self.second || self.stamp.is_empty() {
            (self.second, self.stamp) = (second, stamp(second));
        }
        &self.stamp
    }
}

/// A random number of the system.
fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard library's hash maps begin with random numbers of the system.
    std::hash::RandomState::new().build_hasher().finish()
}

impl Owner {
    /// Serves until it is stopped, and then makes all durable.
    pub(super) fn run(mut self) {
        self.started();
        loop {
            let due = self.clock.tick.min(self.clock.check);
            let wait = due.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(wait) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let mut is_over = false;
            for _ in 0..BATCH {
                match self.messages.try_recv() {
                    Ok(Message::Stop) => is_over = true,
                    Ok(message) => self.take(message),
                    Err(_) => break,
                }
            }
            self.time();
            self.journal.commit();
            self.log.came(Until::Group);
            self.snapshot();
            if is_over {
                break;
            }
        }
        self.end();
    }

    /// Notes in the journal that the server has started, so that no change number is given again.
    fn started(&mut self) {
        let record = Record { at_us: unix_us(), random: random(), what: What::Started };
        if let Err(why) = self.append(&record) {
            tracing::error!("that the server has started: {why}");
        }
        self.core.record(&record);
    }

    fn end(mut self) {
        let at_us = unix_us();
        self.say(at_us, Category::Message, "svr:terminate");
        self.log.write();
        let checkpoint = self.checkpoints.begin(&self.core, &self.environment);
        if let Err(why) = checkpoint.write() {
            tracing::error!("the checkpoint can't be written: {why}");
        }
        if let Err(error) = self.journal.close() {
            tracing::error!("the journal: {error}");
        }
    }

    fn say(&mut self, at_us: i64, category: Category, text: &str) {
        let stamp = self.clock.stamp(at_us);
        self.log.add(category, stamp, text);
    }

    fn take(&mut self, message: Message) {
        self.take_one(message);
        self.log.came(Until::Command);
    }

    fn take_one(&mut self, message: Message) {
        match message {
            Message::Request(request, asked) => self.request(&request, asked),
            Message::Command(end) => self.command_end(&end),
            Message::SnapshotDone(done) => {
                self.is_snapshotting = false;
                if let Err(why) = done {
                    tracing::error!("the snapshot can't be written: {why}");
                }
            }
            Message::CheckpointDone(done) => {
                let at_us = unix_us();
                match self.checkpoints.done(done, self.core.checks.alarm_s) {
                    Ok(text) => self.say(at_us, Category::Message, &text),
                    Err(text) => self.say(at_us, Category::Error, &text),
                }
            }
            Message::Users(loaded, slot) => {
                let reply = match loaded {
                    Ok(loaded) => {
                        self.access.take(loaded);
                        Reply::OK
                    }
                    Err(why) => {
                        self.say(unix_us(), Category::Error, &why);
                        Reply::Error(why)
                    }
                };
                slot.put(Answer::Reply(reply));
            }
            Message::Stop => {}
        }
    }

    /// Appends a record; nothing has changed when it can't be.
    fn append(&mut self, record: &Record<'_>) -> Result<(), String> {
        for piece in pieces(record.encode()) {
            self.logged += piece.len() as u64;
            self.journal.append(&piece).map_err(|error| {
                format!("nothing is changed, because it could not be kept: {error}")
            })?;
        }
        Ok(())
    }

    fn request(&mut self, request: &Request, asked: Asked) {
        let at_us = unix_us();
        let line = request.line();
        if let Err(why) = self.access.check(request) {
            self.say(at_us, Category::Message, &line);
            self.say(at_us, Category::Error, &why);
            return asked.slot.put(Answer::Reply(Reply::Error(why)));
        }
        self.core.statistics.count(&request.body);
        self.say(at_us, Category::Message, &line);
        if self.of_the_log(request, &asked) || self.of_the_users(request, &asked) {
            return;
        }
        let changes = self.core.changes(request);
        let random = random();
        if changes {
            let record = Record { at_us, random, what: What::Request(&asked.document) };
            if let Err(why) = self.append(&record) {
                self.say(at_us, Category::Error, &why);
                return asked.slot.put(Answer::Reply(Reply::Error(why)));
            }
        }
        let told = self.core.request(at_us, random, request);
        self.effects(at_us);
        if let Told::Reply(Reply::Error(why)) = &told {
            self.say(at_us, Category::Error, why);
        }
        self.after_server_command(request, &told);
        self.answer(told, asked, !changes);
    }

    /// Answers once all that came before is durable.
    fn answer(&mut self, told: Told, asked: Asked, reads: bool) {
        let Asked { slot, held, .. } = asked;
        let pool = Arc::clone(&self.shared);
        let number = self.journal.last();
        self.pending.after(number, reads, move |kept| {
            drop(held);
            match (kept, told) {
                (Err(why), _) => {
                    slot.put(Answer::Reply(Reply::Error(format!("it may be lost: {why}"))));
                }
                (Ok(()), Told::Reply(reply)) => slot.put(Answer::Reply(reply)),
                (Ok(()), Told::Later(make)) => {
                    let late = slot.clone();
                    let work = move || {
                        let mut bytes = Vec::new();
                        make().write(&mut bytes);
                        late.put(Answer::Bytes(bytes.into()));
                    };
                    if pool.pool.submit(Waker::new(|| {}), work).is_err() {
                        let why = "too many large answers at once: try again";
                        slot.put(Answer::Reply(Reply::error(why)));
                    }
                }
            }
        });
    }

    /// Answers what is asked of the log.
    fn of_the_log(&mut self, request: &Request, asked: &Asked) -> bool {
        let Body::User(_, Command::Log(command)) = &request.body else { return false };
        let slot = asked.slot.clone();
        let put = move |reply| slot.put(Answer::Reply(reply));
        match command {
            LogCommand::Path => {
                let path = self.environment.log.display().to_string();
                put(Reply::Text(path));
            }
            LogCommand::Flush => self.log.flushed(move |_| put(Reply::OK)),
            LogCommand::Clear => {
                self.log.clear();
                put(Reply::OK);
            }
            LogCommand::Get(lines) => {
                let most = usize::try_from(*lines).unwrap_or(0);
                self.log.flushed(move |path| {
                    put(match last_lines(path, most) {
                        Ok(text) => Reply::Text(text),
                        Err(why) => Reply::Error(format!("{}: {why}", path.display())),
                    });
                });
            }
            LogCommand::New(path) => {
                let path = if path.is_empty() { self.core.log_path() } else { path.clone() };
                let whole = self.environment.home.join(path);
                self.log.go_on_in(whole, move |opened| {
                    put(match opened {
                        Ok(()) => Reply::OK,
                        Err(why) => Reply::Error(format!("the log can't be written: {why}")),
                    });
                });
            }
        }
        true
    }

    /// Has a file of users read again.
    fn of_the_users(&mut self, request: &Request, asked: &Asked) -> bool {
        let Body::User(_, Command::Server(command)) = &request.body else { return false };
        let Some(part) = Part::reloaded_by(*command) else { return false };
        let (own, environment) = (self.own.clone(), Arc::clone(&self.environment));
        let slot = asked.slot.clone();
        let work = move || {
            let _ = own.send(Message::Users(part.read_again(&environment), slot));
        };
        if self.shared.pool.submit(Waker::new(|| {}), work).is_err() {
            asked.slot.put(Answer::Reply(Reply::error("too much to do: try again")));
        }
        true
    }

    /// What a command asks of the server beside the tree.
    fn after_server_command(&mut self, request: &Request, told: &Told) {
        if matches!(told, Told::Reply(Reply::Error(_))) {
            return;
        }
        match &request.body {
            Body::User(_, Command::Server(ServerCommand::Terminate)) => (self.terminate)(),
            Body::User(_, Command::CheckPoint { mode, interval, alarm }) => {
                if *mode == 3 && *interval == 0 && *alarm == 0 {
                    self.checkpoint();
                }
                self.core.checks.set(CheckMode::of_number(*mode), *interval, *alarm);
                self.clock.check = Instant::now() + self.core.checks.interval();
            }
            _ => {}
        }
    }

    /// Has what the tree asks for done, once the record that caused it is durable.
    fn effects(&mut self, at_us: i64) {
        let number = self.journal.last();
        for effect in self.core.effects() {
            match effect {
                Effect::Log(category, text) => self.say(at_us, category, &text),
                Effect::Start(submission) => {
                    if !self.environment.starts_jobs {
                        continue;
                    }
                    let (jobs, spawner) = (Arc::clone(&self.jobs), Arc::clone(&self.spawner));
                    let owner = self.own.clone();
                    self.pending.after(number, false, move |kept| {
                        if kept.is_ok() {
                            let work = move || job::start(*submission, &spawner, &owner);
                            // The queue has no limit but the number of tasks.
                            let _ = jobs.submit(Waker::new(|| {}), work);
                        }
                    });
                }
            }
        }
    }

    fn command_end(&mut self, end: &CommandEnd) {
        let at_us = unix_us();
        let Some((code, text)) = self.core.outcome_of(end) else { return };
        let what = What::Outcome { code, try_no: end.try_no, path: &end.path, text: &text };
        let record = Record { at_us, random: random(), what };
        if let Err(why) = self.append(&record) {
            tracing::error!("{}: {why}", end.path);
        }
        self.core.record(&record);
        self.effects(at_us);
    }

    /// Does what is due.
    fn time(&mut self) {
        let now = Instant::now();
        if now >= self.clock.tick {
            while self.clock.tick <= now {
                self.clock.tick += self.clock.interval;
            }
            self.core.statistics.look();
            let at_us = unix_us();
            let record = Record { at_us, random: random(), what: What::Tick };
            match self.append(&record) {
                Ok(()) => self.core.record(&record),
                Err(why) => self.say(at_us, Category::Error, &why),
            }
            self.effects(at_us);
            self.log.came(Until::Command);
        }
        if now >= self.clock.check {
            self.clock.check = now + self.core.checks.interval();
            self.due_checkpoint();
        } else if self.core.checks.mode == CheckMode::Always {
            self.due_checkpoint();
        }
    }

    fn due_checkpoint(&mut self) {
        if self.checkpoints.is_due(&self.core) {
            self.checkpoint();
        }
    }

    /// Has a checkpoint written.
    fn checkpoint(&mut self) {
        if self.checkpoints.is_running() {
            return;
        }
        self.log.came(Until::Checkpoint);
        let work = self.checkpoints.begin(&self.core, &self.environment);
        let own = self.own.clone();
        let work = move || {
            let _ = own.send(Message::CheckpointDone(work.write()));
        };
        if self.shared.pool.submit(Waker::new(|| {}), work).is_err() {
            self.checkpoints.give_up();
        }
    }

    /// Replaces the journal's records by a snapshot, once there are enough.
    fn snapshot(&mut self) {
        if self.logged < store::SNAPSHOT_AFTER_BYTES || self.is_snapshotting {
            return;
        }
        let Ok(snapshot) = self.journal.snapshot() else { return };
        (self.logged, self.is_snapshotting) = (0, true);
        let (head, render) = self.core.stored();
        let own = self.own.clone();
        let work = move || {
            let done = store::write(snapshot, &head, &render());
            let _ = own.send(Message::SnapshotDone(done.map_err(|error| error.to_string())));
        };
        if self.shared.pool.submit(Waker::new(|| {}), work).is_err() {
            self.is_snapshotting = false;
        }
    }
}
