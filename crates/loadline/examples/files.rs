//! A service of your own in the lab: a folder as a key-value store (docs/adding-a-service.md).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::{Address, Fault};
use workload::{Caller, Client, DialectRow, Finding, Kind, Op, Operation, Outcome, Room, Truth};

static ROOM: Room = Room {
    name: "files",
    doc: "A folder with one file for every key.",
    operations: &[
        Operation { name: "read", kind: Kind::Read, doc: "Reads a file." },
        Operation { name: "write", kind: Kind::Write, doc: "Replaces a file." },
    ],
    dialects: &[DialectRow::new("posix", "System calls.", Client::Calls(open))],
    longest_key_bytes: 100,
    longest_value_bytes: 1 << 20,
    prepares: true,
};

/// One slot's client. The truth knows what the files should hold.
struct Files {
    folder: PathBuf,
    truth: Arc<Truth>,
}

fn open(address: &Address, truth: &Arc<Truth>) -> Result<Box<dyn Caller>, Fault> {
    let Address::Unix(folder) = address else { return Err(Fault::new("write unix:FOLDER")) };
    Ok(Box::new(Files { folder: folder.clone(), truth: truth.clone() }))
}

impl Files {
    fn path(&self, key: u64) -> PathBuf {
        self.folder.join(key.to_string())
    }

    fn write(&self, key: u64, version: u32) -> Result<Outcome, Fault> {
        let mut value = Vec::new();
        self.truth.values.put(key, version, &mut value);
        // Renaming is what makes a reader see the old file or the new one and nothing between.
        let new = self.path(key).with_extension(format!("{:?}", std::thread::current().id()));
        let done = std::fs::write(&new, value).and_then(|()| std::fs::rename(new, self.path(key)));
        done.map(|()| Outcome::right()).map_err(|e| Fault::new(e.to_string()))
    }
}

impl Caller for Files {
    fn prepare(&mut self, key: u64) -> Result<Outcome, Fault> {
        self.write(key, self.truth.prepared_version())
    }

    fn call(&mut self, op: &Op<'_>) -> Result<Outcome, Fault> {
        let key = op.keys[0];
        if ROOM.operations[op.operation].kind == Kind::Write {
            let write = self.truth.begin_write(key);
            let outcome = self.write(key, write.version)?;
            self.truth.end_write(key, write);
            return Ok(outcome);
        }
        let floor = self.truth.begin_read(key);
        let received = std::fs::read(self.path(key)).map_err(|e| Fault::new(e.to_string()))?;
        Ok(match self.truth.check(key, floor, &received) {
            Ok(()) => Outcome::right(),
            Err(why) => Outcome::wrong(Finding {
                operation: "read",
                key: key.to_string().into_bytes(),
                expected: self.truth.example(key),
                received,
                note: why.to_string(),
            }),
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("guard") {
        lab::deploy::guard_main(); // The lab starts this program once more, to clean up after it.
        return Ok(());
    }
    let house = lab::plan::House { rooms: &[&ROOM], check_arguments: &|_, _| Ok(()) };
    let folder = std::env::temp_dir().join(format!("loadline-files-{}", std::process::id()));
    let suite = include_str!("files.toml").replace("FOLDER", &folder.display().to_string());
    let plan = lab::plan::Plan::parse(Path::new("files.toml"), suite, &[], house)?;
    let mut ledger = ledger::Ledger::open(folder.join("ledger/ledger.sqlite"))?;
    let (run, _) = lab::run::run(lab::run::Setting {
        plan: &plan,
        exe: &std::env::current_exe()?,
        ledger: &mut ledger,
        build: &[],
        logs: &folder.join("ledger/runs"),
        command: "files".into(),
        seed: 1,
        after: lab::run::After::default(),
        stop: Arc::default(),
        progress: &mut |_| {},
    })?;
    print!("{}", report::text(&report::Summary::of(ledger.run_view(run)?)?, false));
    Ok(std::fs::remove_dir_all(folder)?)
}
