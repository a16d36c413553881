//! Archives that are being written or read: after a crash they are again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::{Archived, NodeId, Restoring, Snapshot};
use crate::protocol::User;
use crate::server::environment::Environment;

/// The number in place of the try of a node whose archive is written, and read.
pub(in crate::server) const WRITING: i32 = -1;
pub(in crate::server) const READING: i32 = -2;

/// The number in place of the try of a node that is moved.
pub(in crate::server) const MOVING: i32 = -3;

/// A node that goes to another server.
#[derive(Debug)]
pub(in crate::server) struct Move {
    pub(in crate::server) path: String,
    /// Its text is rendered of this.
    pub(in crate::server) before: Snapshot,
    pub(in crate::server) host: String,
    pub(in crate::server) port: String,
    pub(in crate::server) destination: String,
    /// Who asks: the other server lets them in, or doesn't.
    pub(in crate::server) user: User,
}

/// What is done with files, in order.
#[derive(Debug)]
pub(in crate::server) enum Filing {
    /// What was below a node is written.
    Write { file: PathBuf, archived: Archived },
    /// The archive of the node at this path, or of `/` a checkpoint, is read: the first file that
    /// can be.
    Read { path: String, files: Vec<PathBuf> },
    /// A file is removed.
    Remove(PathBuf),
    /// The archive of a node that was deleted, and those of nodes below it, are removed.
    RemoveBelow { folder: PathBuf, name: String },
}

/// All of them, by path.
#[derive(Debug, Default)]
pub(in crate::server) struct Filings {
    pub(super) written: BTreeMap<String, Archived>,
    pub(super) read: BTreeMap<String, Restoring>,
    /// Nodes that are being sent to other servers, as they were.
    pub(super) moved: BTreeMap<String, Snapshot>,
    /// Why a node that another server has taken is not deleted here, until who asked is answered.
    pub(super) undeleted: Option<String>,
    /// Whose reading was asked for since this was last taken.
    pub(super) asked: Vec<String>,
}

impl Filings {
    /// Whether there is nothing to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.read.is_empty() && self.moved.is_empty()
    }

    /// What is to be done again after a crash.
    pub(super) fn again(&self, tree: &Snapshot, environment: &Environment) -> Vec<Filing> {
        let written = self.written.values().map(|one| writing(tree, environment, one));
        let read = self.read.keys().map(|path| reading(tree, environment, path));
        written.chain(read).collect()
    }
}

/// How the file of a node's archive is called, without `.check`.
fn name(environment: &Environment, path: &str) -> String {
    format!("{}.{}.{}", environment.host, environment.port, path.replace('/', ":"))
}

/// The file of a node's archive, as ecFlow calls it.
pub(super) fn archive_file(tree: &Snapshot, environment: &Environment, path: &str) -> PathBuf {
    let id = tree.find(path).unwrap_or(NodeId::ROOT);
    let home = tree.user_variable(id, "ECF_HOME").unwrap_or_default();
    PathBuf::from(home).join(format!("{}.check", name(environment, path)))
}

pub(super) fn writing(tree: &Snapshot, environment: &Environment, archived: &Archived) -> Filing {
    let file = archive_file(tree, environment, &archived.path);
    Filing::Write { file, archived: archived.clone() }
}

pub(super) fn reading(tree: &Snapshot, environment: &Environment, path: &str) -> Filing {
    let files = match path {
        "/" => vec![environment.check.clone(), environment.check_old.clone()],
        _ => vec![archive_file(tree, environment, path)],
    };
    Filing::Read { path: path.to_owned(), files }
}

/// What removes the archives of a node, and of those below it.
pub(super) fn removing(environment: &Environment, path: &str, home: String) -> Filing {
    Filing::RemoveBelow { folder: home.into(), name: name(environment, path) }
}
