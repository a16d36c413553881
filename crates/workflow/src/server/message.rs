//! Messages of other threads to the owner of the tree.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::mpsc::Sender;

use bytes::Bytes;
use journal::Progress;

use super::access::Loaded;
use super::core::{CommandKind, Definition, Submission};
use super::followers::Follower;
use super::places::Start;
use super::slot::{Held, Slot};
use crate::model::{Changed, NodeId, Snapshot, Tree};
use crate::protocol::{
    Body, Command, Header, PathsCommand, Reply, Report, Request, ServerCommand, Standard, SyncKind,
};

/// A request's bytes, and where its answer is put.
pub(super) struct Asked {
    pub(super) document: Bytes,
    pub(super) slot: Slot,
    /// The memory of the document, for as long as the owner has it.
    pub(super) held: Held,
    /// Whether a token stands for the user, who needs no password then.
    pub(super) is_trusted: bool,
    /// The definition in it, where it was read by another thread.
    pub(super) definition: Option<Definition>,
    /// What is this program's own of the request.
    pub(super) header: Option<Header>,
}

impl Asked {
    /// Passes the request on; the owner outlives all connections.
    pub(super) fn send(self, request: Request, owner: &Sender<Message>) {
        let _ = owner.send(Message::Request(Box::new(request), self));
    }
}

/// What has become of a command that the tree has asked for.
#[derive(Debug)]
pub(super) struct CommandEnd {
    pub(super) kind: CommandKind,
    pub(super) path: String,
    pub(super) try_no: i32,
    /// The password of the job, of which this is.
    pub(super) password: String,
    /// Whether it was to kill a zombie of the task, and not its own job.
    pub(super) is_for_zombie: bool,
    pub(super) what: CommandWhat,
}

/// What has become of a command.
#[derive(Debug)]
pub(super) enum CommandWhat {
    /// To make the job took longer than is meant: what the log says of it.
    Slow(String),
    /// The job's file is written, with this size where there is one.
    Written(Option<usize>),
    /// The script isn't found.
    NoScript(String),
    /// The job can't be made.
    NotMade(String),
    /// An alias's script can't be written.
    ScriptNotWritten(String),
    /// An archive is written.
    Filed,
    /// An archive can't be written.
    NotFiled(String),
    /// An archive is read: its text, and the tree that it is of.
    Read(String, Box<Tree>),
    /// An archive can't be read.
    NotRead(String),
    /// Another server has taken a node.
    Moved,
    /// Another server has not taken a node.
    NotMoved(String),
    /// Its process runs.
    Started,
    /// The process could not be started.
    NotStarted(String),
    /// The job, or its command, is not started: its task was killed before.
    Killed,
    /// The same: it isn't the task's own any more.
    Stale,
    /// It has ended.
    Ended { process: u32, status: ExitStatus, command: String },
    /// It has ended, and how is unknown: what the log says of it.
    Lost(String),
}

impl Submission {
    /// What has become of its command.
    pub(super) fn end(self, what: CommandWhat) -> CommandEnd {
        let Self { kind, path, try_no, password, is_for_zombie, .. } = self;
        CommandEnd { kind, path, try_no, password, is_for_zombie, what }
    }
}

impl Start {
    /// What has become of it.
    pub(super) fn end(self, what: CommandWhat) -> CommandEnd {
        let Self { kind, path, job: (try_no, password), is_for_zombie, .. } = self;
        CommandEnd { kind, path, try_no, password, is_for_zombie, what }
    }
}

impl CommandWhat {
    /// Whether a command that was to be started has no place any more.
    pub(super) const fn frees_place(&self) -> bool {
        matches!(self, Self::NotStarted(_) | Self::Ended { .. } | Self::Lost(_))
    }
}

/// How a command has ended.
pub(super) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, signal) => format!("died of signal {}", signal.unwrap_or(0)),
    }
}

/// What a server has counted since it started.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Requests of each kind, in the order of `SStatsCmd`.
    pub(super) requests: Vec<i64>,
    /// Changes that are in the journal, of any kind.
    pub(super) changes: u64,
    /// Groups that the journal has made durable.
    pub(super) groups: u64,
    /// Changes that wait for the journal.
    pub(super) pending: u64,
    /// Checkpoints that were written.
    pub(super) checkpoints: u64,
    /// What all of them took, and the most that commands waited for one, in microseconds.
    pub(super) checkpoints_us: u64,
    pub(super) waited_us: u64,
    /// Commands, such as jobs, that run, and that wait to be started.
    pub(super) running: u64,
    pub(super) waiting: u64,
}

/// The tree at one moment.
pub(super) struct Look {
    pub(super) counts: Counts,
    pub(super) snapshot: Snapshot,
    /// The nodes that have changed since a number; none where that is not remembered, or not asked.
    pub(super) changed: Option<BTreeMap<NodeId, Changed>>,
}

/// A message to the owner.
pub(super) enum Message {
    /// Someone looks at the tree, and at what has changed since a number.
    Look(Option<u32>, Box<dyn FnOnce(Look) + Send>),
    /// A client asks.
    Request(Box<Request>, Asked),
    /// Commands that are still to be started, of a change that has asked for many.
    Start(VecDeque<Box<Submission>>),
    /// Commands of a kind have waited, and there may be places for more of them.
    Places(CommandKind),
    /// A client is to be sent what changes; one that has just come, or one that has been sent all
    /// that its header says.
    Follow { header: Header, follower: Follower, is_new: bool },
    /// A job or a script of an alias is made, or can't be, and a command is to be started, if any.
    Made(CommandEnd, Option<Box<Start>>),
    /// A command has got further.
    Command(CommandEnd),
    /// A snapshot is written, with its length in bytes, or can't be.
    SnapshotDone(Result<u64, String>),
    /// A checkpoint is written, or can't be; with the seconds that it took.
    CheckpointDone(Result<f64, String>),
    /// A file of users was read again, or can't be; whom to answer.
    Users(Result<Loaded, String>, Slot),
    /// The journal has acknowledged all up to this record, of which what is short is applied.
    Acknowledged(u64),
    /// How far the journal is.
    Journal(Progress),
    /// A text is kept for others.
    Kept,
    /// The log goes on in this file.
    LogIn(String),
    /// End.
    Stop,
}

/// Whether a checkpoint is asked for, and not only when there are to be some.
pub(super) const fn is_checkpoint(body: &Body) -> bool {
    matches!(body, Body::User(_, Command::CheckPoint { mode: 3, interval: 0, alarm: 0 }))
}

/// The answer to what can't be done now. Jobs ask again, for as long as ECF_TIMEOUT lets them.
pub(super) fn not_now(body: &Body, why: String) -> Reply {
    match body {
        Body::Child(..) => Reply::Standard(Standard::Wait),
        Body::User(..) => Reply::Error(why),
    }
}

/// A change of more nodes than this is no short one.
const SHORT_PATHS: usize = 8;

/// Whether a request is done in microseconds, where it changes nothing; where it does, once it is
/// in the journal.
pub(super) fn is_short(request: &Request) -> bool {
    match &request.body {
        // The end of a task may begin a suite again, or free many others.
        Body::Child(_, report) => !matches!(report, Report::Complete(_) | Report::Abort(_)),
        Body::User(_, command) => match command {
            Command::Version | Command::Query { .. } | Command::Message(_) | Command::Show => true,
            Command::Server(command) => matches!(command, ServerCommand::Suites),
            Command::Sync { kind, .. } => *kind == SyncKind::News,
            Command::Alter { paths, .. } => paths.len() <= SHORT_PATHS,
            Command::Paths { command: PathsCommand::Suspend, paths, .. } => {
                paths.len() <= SHORT_PATHS
            }
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::not_now;
    use crate::protocol::{Body, Child, Command, Reply, Report, Standard, User};

    #[test]
    fn a_job_asks_again_and_a_user_gets_the_reason() {
        let child = Body::Child(Child::default(), Report::Complete(Vec::new()));
        assert_eq!(not_now(&child, "full".to_owned()), Reply::Standard(Standard::Wait));
        let user = Body::User(User::default(), Command::Version);
        assert_eq!(not_now(&user, "full".to_owned()), Reply::Error("full".to_owned()));
    }
}
