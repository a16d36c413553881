//! A service of your own in the lab: folders in a folder. Whether an answer is right depends on all
//! that was done before (docs/adding-a-service.md).

mod shared;

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use load::{
    Caller, DialectRow, Draw, Finding, Kind, Op, Operation, Outcome, Reach, Service, Speaks,
    UniformDraw, Workload,
};
use wire::{Address, ProtocolError as Error};

pub(crate) static SERVICE: Service = Service {
    name: "tree",
    doc: "Folders that are made, moved, removed and listed.",
    read: |part| Ok(Arc::new(part.read::<Tree>()?)),
    dialects: &[DialectRow::new("posix", "System calls.", Reach::Calls)],
};

static OPERATIONS: [Operation; 4] = [
    Operation::new("create", Kind::Write, "Makes a folder."),
    Operation::new("move", Kind::Write, "Renames a folder, over another one if that is there."),
    Operation::new("remove", Kind::Write, "Removes a folder."),
    Operation::new("list", Kind::Read, "Names all folders."),
];

/// `[workload]`: each slot has a folder of its own, with folders of this number of names in it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    names: u64,
    #[serde(skip)]
    slots: AtomicU64,
}

impl Workload for Tree {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        self
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: self.names * self.names })
    }

    fn caller(self: Arc<Self>, _: &Speaks, at: &Address) -> Result<Box<dyn Caller>, Error> {
        let Address::Unix(folder) = at else { return Err(Error::new("write unix:FOLDER")) };
        let folder = folder.join(self.slots.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir_all(&folder).map_err(|error| Error::new(error.to_string()))?;
        Ok(Box::new(Folder { folder, names: self.names, model: BTreeSet::new() }))
    }
}

/// One slot's client, and the names that its folder should hold.
struct Folder {
    folder: PathBuf,
    names: u64,
    model: BTreeSet<String>,
}

impl Caller for Folder {
    fn call(&mut self, op: Op) -> Result<Outcome, Error> {
        let [one, other] = [op.what % self.names, op.what / self.names].map(|n| n.to_string());
        let at = |name: &str| self.folder.join(name);
        let missing = || Err(ErrorKind::NotFound);
        let is_there = self.model.contains(&one);
        let (expected, received) = match &OPERATIONS[op.operation].name[..] {
            "create" if is_there => (Err(ErrorKind::AlreadyExists), std::fs::create_dir(at(&one))),
            "create" => (Ok(self.model.insert(one.clone())), std::fs::create_dir(at(&one))),
            "move" if !is_there => (missing(), std::fs::rename(at(&one), at(&other))),
            "move" => {
                self.model.remove(&one);
                (Ok(self.model.insert(other.clone())), std::fs::rename(at(&one), at(&other)))
            }
            "remove" if !is_there => (missing(), std::fs::remove_dir(at(&one))),
            "remove" => (Ok(self.model.remove(&one)), std::fs::remove_dir(at(&one))),
            _ => {
                let entries = std::fs::read_dir(&self.folder).and_then(Iterator::collect);
                let entries: io::Result<Vec<std::fs::DirEntry>> = entries;
                let name = |entry: std::fs::DirEntry| entry.file_name().display().to_string();
                let names = entries.map(|all| all.into_iter().map(name).collect());
                return Ok(outcome(op, &Ok(self.model.clone()), &names.map_err(|e| e.kind())));
            }
        };
        Ok(outcome(op, &expected.map(drop), &received.map_err(|error| error.kind())))
    }
}

fn outcome<T: std::fmt::Debug + PartialEq>(op: Op, expected: &T, received: &T) -> Outcome {
    if expected == received {
        return Outcome::right();
    }
    Outcome::wrong(Finding {
        operation: OPERATIONS[op.operation].name.clone(),
        key: op.what.to_string().into_bytes(),
        expected: format!("{expected:?}").into_bytes(),
        received: format!("{received:?}").into_bytes(),
        note: "not what the operations before lead to".to_owned(),
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    shared::main(&SERVICE, include_str!("tree.toml"))
}
