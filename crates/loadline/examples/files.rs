//! A service of your own in the lab: a folder as a key-value store (docs/adding-a-service.md).

use load::{Caller, Client, DialectRow, Finding, Kind, Op, Operation, Oracle, Outcome, Service};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::{Address, ProtocolError as Error};

static SERVICE: Service = Service {
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

/// One slot's client. The oracle knows what the files should hold.
struct Files {
    folder: PathBuf,
    oracle: Arc<Oracle>,
}

fn open(address: &Address, oracle: &Arc<Oracle>) -> Result<Box<dyn Caller>, Error> {
    let Address::Unix(folder) = address else {
        return Err(Error::new("write unix:FOLDER"));
    };
    Ok(Box::new(Files { folder: folder.clone(), oracle: oracle.clone() }))
}

impl Files {
    fn path(&self, key: u64) -> PathBuf {
        self.folder.join(key.to_string())
    }

    fn write(&self, key: u64, version: u32) -> Result<Outcome, Error> {
        let mut value = Vec::new();
        self.oracle.values.put(key, version, &mut value);
        // Renaming is what makes a reader see the old file or the new one and nothing between.
        let new = self.path(key).with_extension(format!("{:?}", std::thread::current().id()));
        let done = std::fs::write(&new, value).and_then(|()| std::fs::rename(new, self.path(key)));
        done.map(|()| Outcome::right()).map_err(|e| Error::new(e.to_string()))
    }
}

impl Caller for Files {
    fn prepare(&mut self, key: u64) -> Result<Outcome, Error> {
        self.write(key, self.oracle.prepared_version())
    }

    fn call(&mut self, op: &Op<'_>) -> Result<Outcome, Error> {
        let key = op.keys[0];
        if SERVICE.operations[op.operation].kind == Kind::Write {
            let write = self.oracle.begin_write(key);
            let outcome = self.write(key, write.version)?;
            self.oracle.end_write(key, write);
            return Ok(outcome);
        }
        let floor = self.oracle.begin_read(key);
        let received = std::fs::read(self.path(key)).map_err(|e| Error::new(e.to_string()))?;
        Ok(match self.oracle.check(key, floor, &received) {
            Ok(()) => Outcome::right(),
            Err(why) => Outcome::wrong(Finding {
                operation: "read",
                key: key.to_string().into_bytes(),
                expected: self.oracle.example(key),
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
    let registry = lab::plan::Registry { services: &[&SERVICE], check_arguments: &|_, _| Ok(()) };
    let folder = std::env::temp_dir().join(format!("loadline-files-{}", std::process::id()));
    let suite = include_str!("files.toml").replace("FOLDER", &folder.display().to_string());
    let plan = lab::plan::Plan::parse(Path::new("files.toml"), suite, &[], registry)?;
    let mut ledger = ledger::Ledger::open(folder.join("ledger/ledger.sqlite"))?;
    let (run, _) = lab::run::run(lab::run::RunOptions {
        plan: &plan,
        exe: &std::env::current_exe()?,
        ledger: &mut ledger,
        build: &[],
        logs: &folder.join("ledger/runs"),
        command: "files".into(),
        seed: 1,
        extras: lab::run::Extras::default(),
        stop: Arc::default(),
        progress: &mut |_| {},
    })?;
    print!("{}", report::text(&report::Summary::of(ledger.run_view(run)?)?, false));
    Ok(std::fs::remove_dir_all(folder)?)
}
