//! What the owner has: the tree and what clients know of it. It gets what happens, and
//! gives out what is to be done; so the journal's records, applied again, make the same of it.

mod alter;
mod archives;
mod check;
mod children;
mod cut;
mod edit;
mod escape;
mod file;
mod filings;
mod get;
mod handles;
mod history;
mod nodes;
mod parts;
mod plug;
mod query;
mod refusals;
mod restarted;
mod signals;
mod statistics;
mod sync;
#[cfg(test)]
mod tests;
mod text;
mod unstarted;
mod users;
mod zombies;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use super::environment::{CheckSettings, Environment};
use super::log::Category;
use super::message::{CommandEnd, CommandWhat, Counts, Look, how};
use super::record::{Record, What};
use super::store::{Restore, Stored};
use crate::model::{
    Flag, Instant, Moment, OwnText, Rules, ServerState, Snapshot, State, Submit, Text, Tree,
    Variable,
};
use crate::protocol::{
    Body, Command, Edit, HandleCommand, Header, NodeCommand, PathsCommand, Reply, Report, Request,
    ServerCommand, read,
};
use crate::script::Scopes;
use filings::Filings;
use handles::Handles;
use parts::{JOB_FAILED, KILL_FAILED, NOT_STARTED, Parts, STARTED, STATUS_FAILED, next_submission};
use statistics::Statistics;
use unstarted::{Unstarted, Waiting};
use zombies::Zombies;

pub(super) use filings::{Filing, MOVING, Move, READING, WRITING};
pub(super) use nodes::{read_definition, said};
pub(super) use parts::{
    ARCHIVED, CommandKind, Definition, Due, Effect, Key, MOVED, NO_SCRIPT, NOT_ARCHIVED, NOT_MADE,
    NOT_MOVED, NOT_RESTORED, RESTORED, SCRIPT_NOT_WRITTEN, SCRIPT_WRITTEN, SLOW, Submission, Told,
    WRITTEN, Write, submissions,
};
pub(super) use text::{Render, TreeText, archive_text, node_text, read_archive};
pub(super) use unstarted::Edited;

/// From which number on changes are numbered anew: ecFlow's clients read none of 2^31 or more.
const NUMBERS_LIMIT: u32 = 1 << 30;

/// What a snapshot's lines of nodes that are left awake begin with.
const AWAKE: &str = "awake:";

/// The tree, and what clients were told.
pub(super) struct Core {
    tree: Tree,
    environment: Arc<Environment>,
    handles: Handles,
    zombies: Zombies,
    pub(super) statistics: Statistics,
    /// As users have set them.
    pub(super) checks: CheckSettings,
    effects: Vec<Effect>,
    /// Submitted tasks whose command was not seen to start.
    unstarted: Unstarted,
    filings: Filings,
    /// What was read of an archive, parsed: that of the next record.
    pub(super) parsed: Option<Box<Tree>>,
    /// The definition of the next request, where another thread has read it.
    pub(super) definition: Option<Definition>,
    started_us: i64,
    /// The file that the log is written to now.
    pub(super) log_file: String,
    /// The host and port of the server, which the journal keeps: the next one may have others.
    pub(super) address: String,
    /// Changes of any kind, for checkpoints.
    change_no: u64,
}

impl Core {
    /// An empty tree of a server that is halted.
    pub(super) fn new(environment: Arc<Environment>) -> Self {
        let mut core = Self {
            address: format!("{}:{}", environment.host, environment.port),
            statistics: Statistics::default(),
            checks: CheckSettings::of(&environment),
            log_file: environment.log.display().to_string(),
            tree: Tree::default(),
            environment,
            handles: Handles::default(),
            zombies: Zombies::default(),
            effects: Vec::new(),
            unstarted: Unstarted::default(),
            filings: Filings::default(),
            parsed: None,
            definition: None,
            started_us: super::log::unix_us(),
            change_no: 0,
        };
        core.set_variables();
        core.tree.server_mut().state = ServerState::Halted;
        core
    }

    /// Gives the tree the server's variables of this process.
    fn set_variables(&mut self) {
        let variable = |(name, value): (String, String)| Variable {
            name: Text::from(name),
            value: OwnText::from(value),
        };
        let all = self.environment.variables().into_iter().map(variable).collect();
        self.tree.server_mut().variables = all;
    }

    /// What is to be done, once.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A number that is another after each change.
    pub(super) fn change_no(&self) -> u64 {
        self.change_no
    }

    /// ECF_LOG as users, or a `--log=new` with a path, may have set it.
    pub(super) fn log_path(&self) -> String {
        let path = self.tree.server_variable("ECF_LOG");
        path.map_or_else(String::new, ToString::to_string)
    }

    /// The tree as it is now, with what was counted here and elsewhere.
    pub(super) fn look(&self, since: Option<u32>, counts: Counts) -> Look {
        let (requests, changes) = (self.statistics.sent(), self.change_no);
        let counts = Counts { requests, changes, ..counts };
        let changed = since.and_then(|no| self.tree.changed_since(no));
        Look { counts, snapshot: self.tree.snapshot(), changed }
    }

    /// Whether a request may change the tree, so that the journal keeps it.
    pub(super) fn changes(&self, request: &Request) -> bool {
        match &request.body {
            Body::Child(child, Report::Wait(expression)) => {
                self.is_changed_by_wait(child, expression)
            }
            Body::Child(..) => true,
            Body::User(_, command) => match command {
                Command::Server(command) => matches!(
                    command,
                    ServerCommand::Restart
                        | ServerCommand::Shutdown
                        | ServerCommand::Halt
                        | ServerCommand::EvaluateAll
                        | ServerCommand::Restore
                ),
                Command::Handle(command) => !matches!(command, HandleCommand::Suites),
                Command::Node(command, _) => *command == NodeCommand::Submit,
                Command::Paths { command, .. } => {
                    !matches!(command, PathsCommand::Check | PathsCommand::History)
                }
                Command::EditScript { edit, .. } => {
                    matches!(edit, Edit::Submit | Edit::SubmitFile)
                }
                Command::Group(all) => all.iter().any(|request| self.changes(request)),
                Command::Version
                | Command::CheckPoint { .. }
                | Command::Sync { .. }
                | Command::Log(_)
                | Command::Message(_)
                | Command::Show
                | Command::File { .. }
                | Command::Query { .. } => false,
                _ => true,
            },
        }
    }

    /// Whether a job that waits changes what is known of it; most only ask again.
    fn is_changed_by_wait(&self, child: &crate::protocol::Child, expression: &str) -> bool {
        let who = children::credentials(child);
        let is_halted = self.tree.server().state == ServerState::Halted;
        let is_known = |program| is_halted || self.tree.is_wait_known(&who, &program);
        !children::program(expression).is_ok_and(is_known)
    }

    /// The tree as it is now.
    pub(super) fn tree(&self) -> &Snapshot {
        &self.tree
    }

    /// Whether a job, by the path of its task, its try and its password, is submitted or active.
    pub(super) fn runs(&self, path: &str, job: (i32, &str)) -> bool {
        self.tree.find(path).is_some_and(|id| {
            let runs = matches!(self.tree.node(id).state, State::Submitted | State::Active);
            runs && signals::is_own(&self.tree, id, job)
        })
    }

    /// What comes of a job, by its try and password, instead of its start: where it isn't its
    /// task's own any more, or that was killed since it was submitted.
    pub(super) fn unwanted(&self, path: &str, job: (i32, &str)) -> Option<CommandWhat> {
        let id = self.tree.find(path).filter(|id| signals::is_own(&self.tree, *id, job));
        if id.is_none_or(|id| self.tree.node(id).state != State::Submitted) {
            return Some(CommandWhat::Stale);
        }
        self.unstarted.is_killed(path, job).then_some(CommandWhat::Killed)
    }

    /// Whether a task is submitted and it isn't known of its job, by its try and password, that it
    /// was started. One that was started by a server that crashed then may be active.
    pub(super) fn is_unstarted(&self, path: &str, job: (i32, &str)) -> bool {
        let id = self.tree.find(path);
        let is_submitted = id.is_some_and(|id| self.tree.node(id).state == State::Submitted);
        is_submitted && self.unstarted.has(path, job)
    }

    /// What starts a kill or status command that has waited, where it is still meant: for a job,
    /// by its path and process, of this try and password.
    pub(super) fn signal(
        &self,
        kind: CommandKind,
        of: (&str, &str),
        job: (i32, &str),
    ) -> Option<Submission> {
        signals::signal(&self.tree, &self.zombies, kind, of, job)
    }

    /// The numbers of the tree's last changes, of states and of structure.
    pub(super) fn numbers(&self) -> (u32, u32) {
        (self.tree.state_change_no(), self.tree.modify_change_no())
    }

    /// Answers a request that has this program's own header.
    ///
    /// # Errors
    /// With another answer, when a node isn't there.
    pub(super) fn cut(&self, header: &Header) -> Result<Write, Reply> {
        cut::cut(&self.tree, header)
    }

    /// Carries a request out.
    pub(super) fn request(&mut self, at_us: i64, random: u64, request: &Request) -> Told {
        let told = self.within(at_us, random, |parts, rules| match &request.body {
            Body::Child(child, report) => {
                Told::Reply(children::report(parts, rules, &request.host, child, report))
            }
            Body::User(user, command) => users::command(parts, rules, &user.name, request, command),
        });
        if self.changes(request) {
            self.change_no += 1;
        }
        let all = self.asked();
        match (told, &request.body) {
            (Told::Reply(Reply::OK), Body::User(..)) if !all.is_empty() => {
                // What is below the nodes is there when the client looks.
                Told::Made(Due { all, is_lenient: true, ..Due::default() })
            }
            (told, _) => told,
        }
    }

    /// Does something to the tree, and has what is free then submitted.
    fn within<R>(
        &mut self,
        at_us: i64,
        random: u64,
        work: impl FnOnce(&mut Parts<'_>, &mut Rules<'_>) -> R,
    ) -> R {
        let Self { tree, environment, handles, zombies, effects, unstarted, .. } = self;
        let (filings, statistics) = (&mut self.filings, &mut self.statistics);
        let (started_us, checks, log_file) = (self.started_us, self.checks, &*self.log_file);
        let (edited, edit_room) = (BTreeMap::new(), unstarted.edit_room());
        let mut parts = Parts {
            environment,
            address: &self.address,
            handles,
            zombies,
            statistics,
            checks,
            effects,
            filings,
            edited,
            unstarted,
            edit_room,
            started_us,
            log_file,
            at_us,
            definition: self.definition.take(),
        };
        let now = Instant::seconds(at_us.div_euclid(1_000_000));
        let mut rules = Rules::new(tree, Moment { now, entropy: random });
        let made = work(&mut parts, &mut rules);
        let ruled = rules.finish();
        if tree.state_change_no() >= NUMBERS_LIMIT {
            tree.number_anew();
        }
        let mut edited = parts.edited;
        let filings = (&mut *parts.filings, &mut *parts.effects);
        let jobs = children::effects(ruled, tree, environment, filings);
        // A group may have deleted a node since it was submitted, or queued it again.
        let is_due = |job: &&Submit| {
            let known = tree.has(job.node).then(|| tree.node(job.node).job.as_ref()).flatten();
            known.is_some_and(|known| known.password == job.password)
        };
        let due = jobs.iter().filter(is_due).map(|job| (job.node, CommandKind::Job));
        let mut made_now: Vec<_> = due.collect();
        for (path, edited) in &edited {
            if let (Edited::Create(_), Some(node)) = (&**edited, tree.find(path))
                && made_now.iter().all(|(job, _)| *job != node)
            {
                made_now.push((node, CommandKind::Script));
            }
        }
        let mut scopes = Scopes::new(tree);
        for (node, kind) in made_now {
            let mut start = next_submission(&mut scopes, node, kind);
            start.edited = edited.remove(&start.path);
            if start.scope.user("ECF_DUMMY_TASK").is_none() {
                let (try_no, password) = (start.try_no, start.password.clone());
                let (is_killed, edited) = (false, start.edited.clone());
                let waiting = Waiting { kind, try_no, password, is_killed, edited };
                unstarted.add(start.path.clone(), waiting);
            }
            effects.push(Effect::Start(Box::new(start)));
        }
        for effect in &*effects {
            if let Effect::Start(start) = effect
                && start.kind == CommandKind::Kill
                && !start.is_for_zombie
            {
                unstarted.kill(&start.path, (start.try_no, &start.password));
            }
        }
        made
    }

    /// What the journal keeps of a command's end: a code and a text; `None` where nothing follows
    /// from it.
    pub(super) fn outcome_of(&self, end: &CommandEnd) -> Option<(u8, String)> {
        let path = &end.path;
        Some(match (&end.what, end.kind) {
            (CommandWhat::Slow(text), _) => (SLOW, text.clone()),
            (CommandWhat::Written(Some(size)), CommandKind::Job) => {
                (WRITTEN, format!("job_size:{size}"))
            }
            (CommandWhat::Written(None), CommandKind::Job) => (WRITTEN, String::new()),
            (CommandWhat::Started, CommandKind::Job) => (STARTED, String::new()),
            // Nothing of it is to be started any more, as if it had been.
            (CommandWhat::Stale, CommandKind::Job) => {
                (STARTED, format!("{path} was submitted again, or isn't submitted any more"))
            }
            (CommandWhat::Killed, CommandKind::Job) => {
                let why = "is not started: its task was killed before";
                (JOB_FAILED, format!("{} of {path} {why}", end.kind.variable()))
            }
            (CommandWhat::Written(_), CommandKind::Script) => (SCRIPT_WRITTEN, String::new()),
            (CommandWhat::ScriptNotWritten(why), _) => (SCRIPT_NOT_WRITTEN, why.clone()),
            (CommandWhat::Filed, _) => (ARCHIVED, String::new()),
            (CommandWhat::NotFiled(why), _) => (NOT_ARCHIVED, why.clone()),
            (CommandWhat::Read(text, _), _) => (RESTORED, text.clone()),
            (CommandWhat::NotRead(why), _) => (NOT_RESTORED, why.clone()),
            (CommandWhat::Moved, _) => (MOVED, String::new()),
            (CommandWhat::NotMoved(why), _) => (NOT_MOVED, why.clone()),
            (
                CommandWhat::Written(_)
                | CommandWhat::Started
                | CommandWhat::Killed
                | CommandWhat::Stale
                | CommandWhat::Lost(_),
                _,
            ) => return None,
            (CommandWhat::NoScript(why), _) => (NO_SCRIPT, why.clone()),
            (CommandWhat::NotMade(why), _) => (NOT_MADE, why.clone()),
            (CommandWhat::NotStarted(why), CommandKind::Job) => (NOT_STARTED, why.clone()),
            (CommandWhat::NotStarted(why), CommandKind::Kill) => (KILL_FAILED, why.clone()),
            (CommandWhat::NotStarted(why), CommandKind::Status) => (STATUS_FAILED, why.clone()),
            (
                CommandWhat::NotStarted(_) | CommandWhat::Ended { .. },
                CommandKind::Script
                | CommandKind::Archive
                | CommandKind::Restore
                | CommandKind::Move,
            ) => return None,
            (CommandWhat::Ended { status, .. }, _) if status.success() => return None,
            (CommandWhat::Ended { process, status, command }, kind) => {
                let how = how(*status);
                let variable = kind.variable();
                let code = match kind {
                    CommandKind::Kill => KILL_FAILED,
                    CommandKind::Status => STATUS_FAILED,
                    _ => JOB_FAILED,
                };
                (code, format!("{variable} PID({process}) path({path}) {how} [ {command} ]"))
            }
        })
    }

    /// Takes what is no request.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        match &record.what {
            What::Tick { is_minute } => self.within(record.at_us, record.random, |parts, rules| {
                parts.zombies.expire(parts.at_us);
                rules.tick(is_minute.then(|| crate::model::Duration::minutes(1)));
            }),
            What::Outcome { code, path, text, .. } if *code >= ARCHIVED => {
                let parsed = self.parsed.take();
                if *path == "/" {
                    self.reload(*code, text, parsed);
                } else {
                    self.within(record.at_us, record.random, |parts, rules| {
                        archives::filed(parts, rules, (*code, path, text), parsed);
                    });
                }
            }
            What::Outcome { code, try_no, path, password, text } => {
                let of = (*try_no, *password);
                let is_edited = *code == WRITTEN && self.unstarted.is_edited(path, of);
                if !matches!(*code, SLOW | WRITTEN | KILL_FAILED | STATUS_FAILED) {
                    self.unstarted.over(path, of);
                }
                self.within(record.at_us, record.random, |parts, rules| {
                    nodes::outcome(parts, rules, (*code, of), path, text);
                    if let Some(id) = rules.tree.find(path).filter(|_| is_edited) {
                        rules.alter_flag(id, Flag::UserEdit, true);
                    }
                });
            }
            // What clients knew was of another process: they take all anew.
            What::Started(address) => {
                self.tree.forget_changes();
                self.prune_histories(record.at_us);
                // Nodes that were on their way then were not moved by this one.
                self.filings.moved.clear();
                (*address).clone_into(&mut self.address);
            }
            What::Request(_) => return,
        }
        self.change_no += 1;
    }

    /// Drops what users have done to nodes before as many days as ECF_PRUNE_NODE_LOG says.
    fn prune_histories(&mut self, at_us: i64) {
        let days = i32::try_from(self.environment.history_days).unwrap_or(i32::MAX);
        if days > 0 {
            let today = Instant::seconds(at_us.div_euclid(1_000_000)).date();
            let first = today.plus_days(-days);
            self.tree.retain_history(|line| history::is_since(line, first));
        }
    }

    /// Takes a checkpoint in the place of no suites at all.
    fn reload(&mut self, code: u8, text: &str, parsed: Option<Box<Tree>>) {
        self.filings.read.remove("/");
        let is_free = self.tree.suites().next().is_none();
        let parsed = match parsed {
            Some(parsed) => Ok(*parsed),
            None => text::read_archive(text),
        };
        let (category, line) = match parsed {
            Ok(tree) if code == RESTORED && is_free => {
                let numbers = (self.tree.state_change_no(), self.tree.modify_change_no());
                self.tree = tree;
                self.tree.index_all();
                self.set_variables();
                self.tree.server_mut().state = ServerState::Halted;
                self.tree.set_change_numbers(numbers.0, numbers.1);
                self.tree.forget_changes();
                let suites = self.tree.suites().count();
                let line = "Loading of *DEFS* check point file SUCCEDED. Loaded";
                (Category::Message, format!("{line} {suites} suites"))
            }
            _ => (Category::Error, text.to_owned()),
        };
        self.effects.push(Effect::Log(category, line));
    }

    /// Why the node that another server has taken is not deleted here, for who has asked for that.
    pub(super) fn kept(&mut self) -> Option<String> {
        self.filings.undeleted.take()
    }

    /// The nodes whose archives were asked for since this was last called.
    pub(super) fn asked(&mut self) -> Vec<Key> {
        let asked = std::mem::take(&mut self.filings.asked).into_iter();
        asked.map(|path| Key::of_filing(path, READING)).collect()
    }

    /// Whether archives are being written or read.
    pub(super) fn is_filing(&self) -> bool {
        !self.filings.is_empty()
    }

    /// When the server started, as ecFlow writes it.
    pub(super) fn started(&self) -> String {
        text::instant(self.started_us)
    }

    /// The word of the server's state in the log.
    pub(super) fn state_word(&self) -> &'static str {
        self.tree.server().state.word()
    }

    /// Takes the checkpoint of an ecFlow server.
    ///
    /// # Errors
    /// When it can't be read, or is none.
    pub(super) fn adopt(&mut self, path: &Path) -> anyhow::Result<()> {
        const MOST_BYTES: u64 = 4 << 30;
        let text = base::into_text(path, base::read_regular(path, MOST_BYTES)?)?;
        self.tree = text::read(&text).with_context(|| path.display().to_string())?;
        self.tree.index_all();
        self.set_variables();
        self.tree.server_mut().state = ServerState::Halted;
        self.change_no += 1;
        tracing::info!("took the checkpoint {}", path.display());
        Ok(())
    }

    /// What a snapshot has: the head, and the tree.
    pub(super) fn stored(&self) -> (Vec<(String, String)>, Snapshot) {
        let snapshot = self.tree.snapshot();
        let mut head = vec![
            ("state_change_no".to_owned(), snapshot.state_change_no().to_string()),
            ("modify_change_no".to_owned(), snapshot.modify_change_no().to_string()),
            ("address".to_owned(), self.address.clone()),
        ];
        head.extend(self.handles.stored());
        head.extend(self.unstarted.stored());
        head.extend(self.zombies.stored());
        let left = self.tree.left_awake().iter().filter(|id| snapshot.has(**id));
        head.extend(left.map(|id| (format!("{AWAKE}{}", snapshot.path(*id)), String::new())));
        (head, snapshot)
    }

    /// What renders a checkpoint of the tree as it is now.
    pub(super) fn checkpoint(&self) -> Render {
        text::checkpoint(self.tree.snapshot())
    }
}

impl Restore for Core {
    fn snapshot(&mut self, stored: Stored) -> anyhow::Result<()> {
        self.tree = stored.tree;
        self.tree.index_all();
        self.set_variables();
        let number = |name: &str| -> u32 {
            stored.head.get(name).and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let numbers = (number("state_change_no"), number("modify_change_no"));
        self.tree.set_change_numbers(numbers.0, numbers.1);
        self.handles.restore(&stored.head);
        for (name, value) in &stored.head {
            self.unstarted.restore(name, value);
            self.zombies.restore(name, value, &self.tree);
            let left = name.strip_prefix(AWAKE).and_then(|path| self.tree.find(path));
            left.into_iter().for_each(|id| self.tree.leave_awake(id));
        }
        if let Some(address) = stored.head.get("address") {
            self.address.clone_from(address);
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        match &record.what {
            What::Request(document) => {
                let request = read(document)?;
                self.request(record.at_us, record.random, &request);
            }
            _ => Self::record(self, record),
        }
        // What it led to was done when it was told first.
        self.effects.clear();
        self.filings.asked.clear();
        self.filings.undeleted = None;
        Ok(())
    }
}
