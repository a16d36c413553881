//! What the core and its commands share: what is to be done, and what a task's commands need.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::filings::{Filing, Filings, Move};
use super::handles::Handles;
use super::statistics::Statistics;
use super::text::TreeText;
pub(in crate::server) use super::unstarted::CommandKind;
use super::unstarted::{Edited, Unstarted};
use super::zombies::Zombies;
use crate::definition::DefinitionError;
use crate::model::{Discarded, Displayed, Flag, Kind, NodeId, ServerState, Snapshot, Tree};
use crate::protocol::Reply;
use crate::script::{Scope, Scopes, may_be_printed};
use crate::server::environment::{CheckSettings, Environment};
use crate::server::log::Category;

/// A command that is to be started for a task, and what it needs.
#[derive(Debug)]
pub(in crate::server) struct Submission {
    pub(in crate::server) kind: CommandKind,
    pub(in crate::server) path: String,
    pub(in crate::server) is_alias: bool,
    pub(in crate::server) try_no: i32,
    /// The password of its job.
    pub(in crate::server) password: String,
    /// The process of its job, where that is known; or of the zombie that a kill command is for.
    pub(in crate::server) process: String,
    pub(in crate::server) is_for_zombie: bool,
    /// Larger than those of what was submitted before: given by the owner to a job's.
    pub(in crate::server) number: u64,
    pub(in crate::server) scope: Scope,
    /// What a user gives for it.
    pub(in crate::server) edited: Option<Arc<Edited>>,
}

/// What is to be done.
#[derive(Debug)]
pub(in crate::server) enum Effect {
    /// Write a line of the log.
    Log(Category, String),
    /// Start a command.
    Start(Box<Submission>),
    /// Write, read or remove an archive.
    File(Filing),
    /// Send a node to another server.
    Move(Box<Move>),
    /// Drop what is left of many nodes.
    Discard(Discarded),
}

/// Appends an answer, on another thread; returns whether its client lacked any of it.
pub(in crate::server) type Write = Box<dyn FnOnce(&mut Vec<u8>) -> bool + Send>;

/// What a client is answered.
pub(in crate::server) enum Told {
    /// This.
    Reply(Reply),
    /// The text of a tree, or of a node.
    Text(TreeText),
    /// What another thread makes, of a state of the tree.
    Later(Box<dyn FnOnce() -> Reply + Send>),
    /// The same of what commands print, which may take long.
    OfCommands(Box<dyn FnOnce() -> Reply + Send>),
    /// Whether jobs can be made of the tasks at and below a node of such a tree: they are written,
    /// and not started.
    Jobs(Box<dyn FnOnce() -> (Snapshot, NodeId) + Send>),
    /// Whether what is due could be made: jobs, scripts and archives, by path and try.
    Made(Due),
    /// What is cut out of a tree, in a frame of this program's own.
    Cut(Write),
    /// The answers of a group.
    Group(Vec<Told>),
}

impl Told {
    /// What another thread makes of the script of a node, which a command may print.
    pub(super) fn of_script(
        tree: &Snapshot,
        id: NodeId,
        make: impl FnOnce() -> Reply + Send + 'static,
    ) -> Self {
        match may_be_printed(|name| tree.user_variable(id, name)) {
            true => Self::OfCommands(Box::new(make)),
            false => Self::Later(Box::new(make)),
        }
    }

    /// Whether it is made of what commands print.
    pub(in crate::server) fn is_of_commands(&self) -> bool {
        match self {
            Self::OfCommands(_) | Self::Jobs(_) => true,
            Self::Group(all) => all.iter().any(Self::is_of_commands),
            Self::Reply(_) | Self::Text(_) | Self::Later(_) | Self::Made(_) | Self::Cut(_) => false,
        }
    }

    /// The answer as a group's member.
    pub(in crate::server) fn of_member(self) -> Reply {
        match self {
            Self::Reply(reply) => reply,
            Self::Text(text) => text.made().1,
            Self::Later(make) | Self::OfCommands(make) => make(),
            // It has begun; what comes of it is the log's.
            Self::Made(due) if due.errors.is_empty() => Reply::OK,
            Self::Made(due) => Reply::Error(due.errors),
            Self::Jobs(_) => Reply::error("jobs are checked by a command of its own, in no group"),
            Self::Cut(_) => Reply::error("a header goes with no group"),
            Self::Group(_) => Reply::error("a group within a group"),
        }
    }
}

/// What is made for a node, and known by this when it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) struct Key {
    pub(in crate::server) path: String,
    /// Of a job or script; or else [`WRITING`](super::filings::WRITING) and the like.
    pub(in crate::server) try_no: i32,
    /// Of a job or script: after a requeue the tries begin anew.
    pub(in crate::server) password: String,
}

impl Key {
    /// That of a node's job or script.
    pub(super) fn of_job(tree: &Tree, id: NodeId) -> Self {
        let job = tree.node(id).job();
        let password = job.password.to_string();
        Self { path: tree.path(id), try_no: job.try_no, password }
    }

    /// That of what is done to a node itself.
    pub(super) fn of_filing(path: String, what: i32) -> Self {
        Self { path, try_no: what, password: String::new() }
    }
}

/// What a client waits for.
#[derive(Debug, Default)]
pub(in crate::server) struct Due {
    pub(in crate::server) all: Vec<Key>,
    /// What the error of a job begins with.
    pub(in crate::server) before: &'static str,
    /// What has failed already.
    pub(in crate::server) errors: String,
    /// Whether what fails from here on is the log's only.
    pub(in crate::server) is_lenient: bool,
}

/// What came of a command, as the journal keeps it.
pub(in crate::server) const SLOW: u8 = 0;
pub(in crate::server) const WRITTEN: u8 = 1;
pub(in crate::server) const NO_SCRIPT: u8 = 2;
pub(in crate::server) const NOT_MADE: u8 = 3;
pub(in crate::server) const NOT_STARTED: u8 = 4;
pub(in crate::server) const JOB_FAILED: u8 = 5;
pub(in crate::server) const KILL_FAILED: u8 = 6;
pub(in crate::server) const STATUS_FAILED: u8 = 7;
pub(in crate::server) const STARTED: u8 = 8;
pub(in crate::server) const SCRIPT_WRITTEN: u8 = 9;
pub(in crate::server) const SCRIPT_NOT_WRITTEN: u8 = 10;
pub(in crate::server) const ARCHIVED: u8 = 11;
pub(in crate::server) const NOT_ARCHIVED: u8 = 12;
pub(in crate::server) const RESTORED: u8 = 13;
pub(in crate::server) const NOT_RESTORED: u8 = 14;
pub(in crate::server) const MOVED: u8 = 15;
pub(in crate::server) const NOT_MOVED: u8 = 16;

/// A definition that has been read, or why it can't be.
pub(in crate::server) type Definition = Result<(Box<Tree>, Vec<DefinitionError>), String>;

/// What commands see of the core beside the tree.
pub(in crate::server) struct Parts<'a> {
    pub(in crate::server) environment: &'a Arc<Environment>,
    /// The host and port of this server.
    pub(in crate::server) address: &'a str,
    pub(in crate::server) handles: &'a mut Handles,
    pub(in crate::server) zombies: &'a mut Zombies,
    pub(in crate::server) statistics: &'a mut Statistics,
    pub(in crate::server) checks: CheckSettings,
    pub(in crate::server) effects: &'a mut Vec<Effect>,
    pub(in crate::server) filings: &'a mut Filings,
    /// What users give for jobs or scripts of nodes, by their paths.
    pub(in crate::server) edited: BTreeMap<String, Arc<Edited>>,
    /// Jobs that were submitted before, and are not started yet.
    pub(super) unstarted: &'a Unstarted,
    /// The bytes that may be added to what users give.
    pub(in crate::server) edit_room: usize,
    pub(in crate::server) started_us: i64,
    /// The file that the log is written to now.
    pub(in crate::server) log_file: &'a str,
    pub(in crate::server) at_us: i64,
    /// The definition of the request, where it has been read already.
    pub(in crate::server) definition: Option<Definition>,
}

/// What a task's command needs.
pub(in crate::server) fn submission(tree: &Snapshot, id: NodeId, kind: CommandKind) -> Submission {
    next_submission(&mut Scopes::new(tree), id, kind)
}

/// The same of one task after another.
pub(in crate::server) fn next_submission(
    scopes: &mut Scopes<'_>,
    id: NodeId,
    kind: CommandKind,
) -> Submission {
    let tree = scopes.tree();
    Submission {
        kind,
        path: tree.path(id),
        is_alias: tree.node(id).kind == Kind::Alias,
        try_no: tree.node(id).try_no(),
        password: tree.node(id).job().password.to_string(),
        process: tree.node(id).job().rid.to_string(),
        is_for_zombie: false,
        number: 0,
        scope: scopes.of(id),
        edited: None,
    }
}

/// The jobs of all tasks below a node, but for those that are complete from the start: one after
/// another, since each has all the variables that its script may name.
pub(in crate::server) fn submissions(
    tree: &Snapshot,
    id: NodeId,
) -> impl Iterator<Item = Submission> {
    let (mut walk, mut scopes) = (tree.walk(id), Scopes::new(tree));
    std::iter::from_fn(move || {
        while let Some(at) = walk.next() {
            let node = tree.node(at);
            if node.kind == Kind::Task {
                walk.skip_below(at);
                return Some(next_submission(&mut scopes, at, CommandKind::Job));
            } else if node.default == Displayed::Complete && node.kind != Kind::Root {
                walk.skip_below(at);
            }
        }
        None
    })
}

/// The number of a state of the server.
pub(in crate::server) const fn number_of(state: ServerState) -> i64 {
    match state {
        ServerState::Halted => 0,
        ServerState::Shutdown => 1,
        ServerState::Running => 2,
    }
}

/// The flag that a bit stands for.
pub(in crate::server) fn flag_of(bit: u8) -> Option<Flag> {
    crate::protocol::FLAGS.get(usize::from(bit)).and_then(|word| Flag::of_word(word))
}
