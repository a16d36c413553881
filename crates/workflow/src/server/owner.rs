//! The owner of the tree: it applies what others ask, in order, and drives its time. Whoever has
//! the owner ([`super::dispatch`]) never waits for a file, a process or the disk.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use journal::{Journal, Progress};
use wire::{TaskPool, Waker};

use super::awaited::Awaited;
use super::checkpoint::Checkpoint;
use super::clock::Clock;
use super::core::{CommandKind, Core, Key, NOT_MOVED, Told};
use super::environment::{CheckMode, Environment};
use super::flush::Until;
use super::followers::Followers;
use super::job;
use super::log::{Category, unix_us};
use super::making::Making;
use super::message::{Asked, CommandEnd, CommandWhat, Counts, Message, is_checkpoint, not_now};
use super::mover::Mover;
use super::pending::{Change, Pending, Recorded};
use super::record::{Record, What, random};
use super::shared::{Shared, in_background, written};
use super::signals::Signals;
use super::slot::Answer;
use super::store::Logged;
use super::texts::{KEPT, Texts};
use crate::protocol::{Reply, Request};
use base::many;

/// The most messages that are taken before the journal is passed what they wrote.
pub(super) const BATCH: usize = 1024;

/// The most that is waited at the end for a report of the journal.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The most that is waited at the end for a checkpoint that is being written.
const LAST_CHECKPOINT: Duration = Duration::from_secs(120);

/// What the owner works with.
pub(super) struct Owner {
    pub(super) core: Core,
    pub(super) environment: Arc<Environment>,
    pub(super) shared: Arc<Shared>,
    pub(super) journal: Journal,
    pub(super) pending: Pending,
    pub(super) followers: Followers,
    /// What clients are sent at a time, made once for all.
    pub(super) texts: Texts,
    pub(super) awaited: Awaited,
    pub(super) jobs: TaskPool,
    /// For jobs of scripts that commands print (ECF_SCRIPT_CMD, ECF_FETCH), so that a slow command
    /// holds up no other jobs.
    pub(super) printed_jobs: TaskPool,
    /// For answers that are made of such scripts, so that it holds up no other answers.
    pub(super) scripts: TaskPool,
    /// One thread, for archives.
    pub(super) files: TaskPool,
    /// For checkpoints and snapshots, of which one each is written at a time, so that they wait
    /// behind no one's answers.
    pub(super) writers: TaskPool,
    pub(super) mover: Mover,
    pub(super) kills: Signals,
    pub(super) statuses: Signals,
    /// What is made for tasks.
    pub(super) making: Making,
    /// How many jobs were submitted.
    pub(super) submitted: u64,
    /// What is behind the snapshot.
    pub(super) logged: Logged,
    pub(super) is_snapshotting: bool,
    pub(super) clock: Clock,
    pub(super) checkpoints: Checkpoint,
    /// Groups that the journal has made durable.
    pub(super) groups: u64,
    /// Ends the whole server, for `--terminate`.
    pub(super) terminate: Box<dyn Fn() + Send>,
}

impl Owner {
    /// Ends the server without a checkpoint, as a crash would: the next one applies what is in the
    /// journal.
    pub(super) fn give_up(self) {
        tracing::error!(
            "a change broke off: the server ends, and loses nothing that is acknowledged"
        );
        (self.terminate)();
    }

    /// Has the journal and the log keep what was taken, and those who follow sent what has come of
    /// it.
    pub(super) fn finish(&mut self) {
        self.push();
        if self.core.checks.mode == CheckMode::Always {
            self.due_checkpoint();
        }
        self.snapshot();
        self.journal.commit_here_if_short();
        self.shared.log.came(Until::Group);
    }

    /// Notes in the journal that the server has started, so that no change number is given again.
    pub(super) fn started(&mut self) {
        let address = self.core.address.clone();
        let record = Record { at_us: unix_us(), random: random(), what: What::Started(&address) };
        if let Err(why) = self.append(&record) {
            tracing::error!("that the server has started: {why}");
        }
        self.core.record(&record);
        self.note_running();
        // Jobs that the server before has not started, too.
        self.effects(record.at_us);
    }

    pub(super) fn end(mut self, messages: &Receiver<Message>) {
        // Jobs that aren't started now are started by the next server.
        self.shared.spawner.stop();
        // What is in the journal is applied, so that the checkpoint has it, and none is being
        // written by then.
        loop {
            let message = match messages.try_recv() {
                Ok(message) => message,
                Err(_) => {
                    self.journal.commit();
                    let wait = match self.checkpoints.is_running() {
                        true => LAST_CHECKPOINT,
                        false if self.pending.is_empty() && !self.core.is_filing() => break,
                        false => LAST_WAIT,
                    };
                    let Ok(message) = messages.recv_timeout(wait) else { break };
                    message
                }
            };
            match message {
                // Their connections are closed; and jobs that aren't made are made by the next one.
                Message::Request(..)
                | Message::Follow { .. }
                | Message::Users(..)
                | Message::Start(_)
                | Message::Places(_)
                | Message::Stop => {}
                message => self.take_one(message),
            }
        }
        self.warn_of_signals();
        // It counts to the memory that it is kept in.
        self.shared.answers.forget();
        self.last_snapshot();
        let at_us = unix_us();
        self.say(at_us, Category::Message, "svr:terminate");
        // What they would still make, the next server makes.
        for pool in [self.scripts, self.jobs, self.printed_jobs] {
            pool.abandon();
        }
        let checkpoint = self.checkpoints.begin(&self.core, &self.environment);
        if let Err(why) = checkpoint.write() {
            tracing::error!("the checkpoint can't be written: {why}");
        }
        if let Err(error) = self.journal.close() {
            tracing::error!("the journal: {error}");
        }
        self.shared.log.close();
    }

    /// Kill and status commands that aren't started are not started by the next server either.
    fn warn_of_signals(&self) {
        let waiting = self.kills.waiting() + self.statuses.waiting();
        let signals = waiting + self.shared.spawner.unstarted_signals();
        if signals > 0 {
            let text = format!(
                "the server ends before {} of ECF_KILL_CMD and ECF_STATUS_CMD could be started: \
                 ask again",
                many(signals as u64, "command")
            );
            self.say(unix_us(), Category::Warning, &text);
        }
    }

    pub(super) fn say(&self, at_us: i64, category: Category, text: &str) {
        self.shared.log.add(category, at_us, text);
    }

    pub(super) fn take(&mut self, message: Message) {
        self.take_one(message);
        self.shared.log.came(Until::Command);
    }

    fn take_one(&mut self, message: Message) {
        match message {
            Message::Request(request, asked) => self.request(request, asked),
            Message::Follow { header, follower, is_new } => self.follow(header, follower, is_new),
            Message::Look(since, answer) => {
                self.count_pings();
                answer(self.core.look(since, self.counts()));
            }
            Message::Kept => self.clock.forget = Some(Instant::now() + KEPT),
            Message::LogIn(file) => self.core.log_file = file,
            Message::Start(starts) => self.make_some(starts),
            Message::Places(kind) => self.next_places(kind),
            Message::Made(end, start) => self.made(end, start),
            Message::Command(end) => self.command(end),
            Message::Acknowledged(number) => {
                self.groups += u64::from(!self.pending.is_empty());
                self.acknowledged(number, true);
            }
            Message::Journal(progress) => self.progress(progress),
            Message::SnapshotDone(done) => self.snapshot_done(done),
            Message::CheckpointDone(done) => {
                self.checkpoint_done(done);
                if self.checkpoints.is_asked() {
                    self.checkpoint();
                }
            }
            Message::Users(loaded, slot) => {
                let reply = match loaded {
                    Ok(loaded) => {
                        let access = self.shared.access.write();
                        access.unwrap_or_else(PoisonError::into_inner).take(loaded);
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

    /// Counts the pings that connections' threads have answered.
    pub(super) fn count_pings(&mut self) {
        let pings = self.shared.pings.swap(0, Ordering::Relaxed);
        self.core.statistics.count_pings(pings);
    }

    fn counts(&self) -> Counts {
        let (running, waiting) = self.shared.spawner.counts();
        let signals = self.kills.waiting() + self.statuses.waiting();
        let waiting = waiting + signals as u64;
        let counts = Counts { groups: self.groups, running, waiting, ..Counts::default() };
        Counts { pending: self.pending.len() as u64, ..self.checkpoints.counted(counts) }
    }

    /// Appends a record; nothing has changed when it can't be.
    pub(super) fn append(&mut self, record: &Record<'_>) -> Result<(), String> {
        let journal = &mut self.journal;
        let bytes = record.append(|piece| journal.append(piece).map(drop)).map_err(|error| {
            format!("nothing is changed, because it could not be kept: {error}")
        })?;
        let tells_time = matches!(record.what, What::Tick { .. });
        self.logged.add(bytes, (!tells_time).then(Instant::now));
        Ok(())
    }

    /// Logs a request, and counts it where who asks may, or is trusted; returns when that was.
    ///
    /// # Errors
    /// In ecFlow's words, when they may not.
    pub(super) fn admit(&mut self, request: &Request, is_trusted: bool) -> Result<i64, String> {
        let at_us = unix_us();
        self.say(at_us, Category::Message, &request.line());
        if !is_trusted && let Some(why) = self.shared.refusal(request) {
            self.say(at_us, Category::Error, &why);
            return Err(why);
        }
        self.count_pings();
        self.core.statistics.count(&request.body);
        Ok(at_us)
    }

    fn request(&mut self, request: Box<Request>, asked: Asked) {
        let at_us = match self.admit(&request, asked.is_trusted) {
            Ok(at_us) => at_us,
            Err(why) => return asked.slot.put(Answer::Reply(Reply::Error(why))),
        };
        if self.of_the_log(&request, &asked)
            || self.of_the_users(&request, &asked)
            || self.of_the_places(&request, &asked)
        {
            return;
        }
        if is_checkpoint(&request.body) {
            // Answered when it is written; one that is being written lacks what came since.
            self.checkpoints.ask(asked.slot);
            return self.checkpoint();
        }
        if !self.core.changes(&request) {
            return self.carry_out(at_us, random(), &request, asked);
        }
        if let Some(why) = self.refused_signals(&request) {
            return self.refuse(&request, &asked, &why);
        }
        // Behind those that are held, in their order.
        let is_held = !self.pending.held.is_empty();
        if is_held || self.is_snapshot_due() && !self.pending.is_empty() {
            return self.pending.held.push((request, asked));
        }
        self.record_request(request, asked);
    }

    /// Has the journal keep a request, before anything is changed.
    pub(super) fn record_request(&mut self, request: Box<Request>, asked: Asked) {
        self.tick_before(&request);
        let (at_us, random) = (unix_us(), random());
        let record = Record { at_us, random, what: What::Request(&asked.document) };
        match self.append(&record) {
            Ok(()) => self.wait_for(at_us, random, Change::Request(request, asked)),
            Err(why) => self.refuse(&request, &asked, &why),
        }
    }

    /// What was appended last is applied when it is durable.
    pub(super) fn wait_for(&mut self, at_us: i64, random: u64, what: Change) {
        self.pending.push(self.journal.last(), Recorded { at_us, random, what });
    }

    /// Answers that nothing is changed.
    fn refuse(&mut self, request: &Request, asked: &Asked, why: &str) {
        self.say(unix_us(), Category::Error, why);
        asked.slot.put(Answer::Reply(not_now(&request.body, why.to_owned())));
    }

    /// Takes what the journal reports.
    fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Acknowledged { through, .. } => self.acknowledged(through, false),
            Progress::Refused(written, error) => {
                // What is written is durable, and its report may come behind this one.
                self.apply_through(written);
                self.journal.accept();
                self.drop_pending(&format!(
                    "nothing is changed, because it can't be kept: {error}"
                ));
            }
            Progress::Failed(error) => {
                self.apply_through(self.journal.watch().acknowledged());
                self.drop_pending(&format!("it may be lost: {error}"));
            }
            Progress::Stalled(error) => tracing::error!("the journal waits: {error}"),
            Progress::Resumed => tracing::info!("the journal goes on"),
        }
    }

    /// Applies what is durable through this record. The owner's thread goes on with each that is
    /// not short, by a message of its own, so that those before it are answered first; where only
    /// what is short is to be applied, with the first, too.
    fn acknowledged(&mut self, number: u64, only_short: bool) {
        let mut may_be_long = !only_short;
        while let Some(is_short) = self.pending.is_next_short(number) {
            if !is_short && !std::mem::take(&mut may_be_long) {
                let progress = Progress::Acknowledged { through: number, others_wait: false };
                let left = Message::Journal(progress);
                // Its thread reads until the owner's end.
                let _ = self.shared.owner.send(left);
                return;
            }
            let Some(recorded) = self.pending.pop_through(number) else { return };
            self.apply(recorded);
            may_be_long = false;
        }
    }

    fn apply_through(&mut self, number: u64) {
        while let Some(recorded) = self.pending.pop_through(number) {
            self.apply(recorded);
        }
    }

    /// Applies what is durable.
    fn apply(&mut self, Recorded { at_us, random, what }: Recorded) {
        match what {
            Change::Request(request, asked) => {
                return self.carry_out(at_us, random, &request, asked);
            }
            Change::Tick(is_minute) => {
                self.own_kept();
                self.core.record(&Record { at_us, random, what: What::Tick { is_minute } });
            }
            Change::Command { end, code, text } => {
                self.own_kept();
                let path = end.path.as_str();
                let is_begun = end.kind == CommandKind::Job
                    && matches!(end.what, CommandWhat::Started | CommandWhat::NotStarted(_));
                if let CommandWhat::Read(_, tree) = end.what {
                    self.core.parsed = Some(tree);
                }
                let (try_no, password) = (end.try_no, end.password.as_str());
                let what = What::Outcome { code, try_no, path, password, text: &text };
                self.core.record(&Record { at_us, random, what });
                if is_begun {
                    self.shared.spawner.begin_is_known(path, (try_no, password));
                }
                let CommandEnd { path, try_no, password, .. } = end;
                let key = Key { path, try_no, password };
                self.awaited.follow(&key, self.core.asked());
                if let Some(why) = self.core.kept() {
                    self.awaited.ended(&key, NOT_MOVED, &format!("Plug command failed. {why}"));
                } else if !matches!(end.kind, CommandKind::Kill | CommandKind::Status) {
                    self.awaited.ended(&key, code, &text);
                }
            }
        }
        self.effects(at_us);
    }

    /// Drops what is not applied, and answers so.
    fn drop_pending(&mut self, why: &str) {
        while let Some(recorded) = self.pending.pop_through(u64::MAX) {
            match recorded.what {
                Change::Request(request, asked) => self.refuse(&request, &asked, why),
                Change::Command { end, .. } => {
                    self.pending.refused.push(end);
                    self.own_refused(why);
                }
                // The next one makes up for it.
                Change::Tick(_) => self.own_refused(why),
            }
        }
    }

    /// What no client asked for could not be kept, and is tried again: logged once.
    pub(super) fn own_refused(&mut self, why: &str) {
        if !std::mem::replace(&mut self.pending.is_refusing, true) {
            let what = "the time and the ends of jobs, which are tried again";
            tracing::error!("{what}: {why}");
            self.say(unix_us(), Category::Error, &format!("{what}: {why}"));
        }
    }

    /// What no client asked for is kept: where it could not be, that is over.
    fn own_kept(&mut self) {
        if self.pending.refused.is_empty() && std::mem::take(&mut self.pending.is_refusing) {
            let what = "the time and the ends of jobs are kept again";
            tracing::info!("{what}");
            self.say(unix_us(), Category::Message, what);
        }
    }

    /// Tries again to record the ends of commands.
    pub(super) fn record_refused(&mut self) {
        for end in std::mem::take(&mut self.pending.refused) {
            self.command_end(end);
        }
    }

    /// Carries a request out and answers it.
    fn carry_out(&mut self, at_us: i64, random: u64, request: &Request, mut asked: Asked) {
        self.core.definition = asked.definition.take();
        let told = match asked.header.take() {
            Some(header) => self.core.cut(&header).map_or_else(Told::Reply, Told::Cut),
            None => self.core.request(at_us, random, request),
        };
        self.note_running();
        self.effects(at_us);
        if let Told::Reply(Reply::Error(why)) = &told {
            self.say(at_us, Category::Error, why.trim_end());
        }
        self.after_server_command(request, &told);
        let Asked { slot, held, .. } = asked;
        drop(held);
        let shared = &self.shared;
        let scripts = told.is_of_commands().then_some(&self.scripts);
        let make: Box<dyn FnOnce() -> Reply + Send> = match told {
            Told::Reply(reply) => return shared.answer(&slot, reply),
            Told::Text(text) => return self.send_text(text, &slot),
            Told::Made(mut due) => {
                if !self.environment.starts_jobs {
                    // Jobs, which have a try, are not made.
                    due.all.retain(|key| key.try_no < 1);
                }
                return self.awaited.add(due, slot);
            }
            Told::Cut(write) => {
                return shared.later(None, &slot, move |answers| {
                    written(answers, |out, has_room| {
                        let _ = write(out);
                        has_room(out.len())
                    })
                });
            }
            Told::Group(all) => {
                let replies = all.into_iter().map(Told::of_member);
                let mut replies = replies.filter(|reply| *reply != Reply::OK).peekable();
                return shared.later(scripts, &slot, move |answers| {
                    if replies.peek().is_none() {
                        return Answer::Reply(Reply::OK);
                    }
                    written(answers, |out, has_room| Reply::write_group(replies, out, has_room))
                });
            }
            Told::Later(make) | Told::OfCommands(make) => make,
            Told::Jobs(begun) => Box::new(|| {
                let (tree, id) = begun();
                job::check(&tree, id)
            }),
        };
        shared.later(scripts, &slot, move |answers| {
            let reply = make();
            written(answers, |out, has_room| {
                reply.write(out);
                has_room(out.len())
            })
        });
    }

    pub(super) fn command_end(&mut self, end: CommandEnd) {
        let (at_us, random) = (unix_us(), random());
        let Some((code, text)) = self.core.outcome_of(&end) else { return };
        let CommandEnd { path, try_no, password, .. } = &end;
        let what = What::Outcome { code, try_no: *try_no, path, password, text: &text };
        match self.append(&Record { at_us, random, what }) {
            Ok(()) => self.wait_for(at_us, random, Change::Command { end, code, text }),
            Err(why) => {
                self.pending.refused.push(end);
                self.own_refused(&why);
            }
        }
    }

    fn checkpoint_done(&mut self, done: Result<f64, String>) {
        let done = self.checkpoints.done(done, self.core.checks.alarm_s);
        let (category, text) = match done {
            Ok(text) => (Category::Message, text),
            Err(text) => (Category::Error, text),
        };
        self.say(unix_us(), category, &text);
    }

    pub(super) fn due_checkpoint(&mut self) {
        if self.checkpoints.is_due(&self.core) {
            self.checkpoint();
        }
    }

    /// Has a checkpoint written.
    pub(super) fn checkpoint(&mut self) {
        if self.checkpoints.is_running() {
            return;
        }
        self.shared.log.came(Until::Checkpoint);
        let work = self.checkpoints.begin(&self.core, &self.environment);
        let own = self.shared.owner.clone();
        let work = move || {
            in_background();
            let _ = own.send(Message::CheckpointDone(work.write()));
        };
        // The queue has no limit.
        let _ = self.writers.submit(Waker::new(|| {}), work);
    }
}
