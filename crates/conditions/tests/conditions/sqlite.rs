//! SQLite as a peer: its answers, and a row that is wrong.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use conditions::load::SERVICE;
use load::Speaks;
use rusqlite::Connection;
use wire::Address;

use crate::load::{SMALL, call, holds, holds_long, workload};

/// What lends a folder, until it is dropped.
struct Lender(Child);

impl Drop for Lender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lend(folder: &Path) -> Option<(Lender, SocketAddr)> {
    let python = testing::program("python3")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/sqlite/lend.py");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, testing::free_port()));
    let mut command = Command::new(python);
    command.arg(script).arg(folder).arg(address.port().to_string()).stdin(Stdio::null());
    let lender = Lender(command.spawn().expect("Python"));
    let start = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut line = String::new();
    let said = BufReader::new(TcpStream::connect(address).expect("a connection"));
    said.take(4096).read_line(&mut line).expect("a line");
    assert_eq!(Path::new(line.trim_end()), folder);
    Some((lender, address))
}

#[test]
fn what_sqlite_answers_is_held_against_the_seed() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_lender, address)) = lend(folder.path()) else { return };
    let made = workload(SMALL, 7).expect("a workload");
    let spoken = Speaks::plainly(SERVICE.dialect("sqlite").expect("a dialect"));
    let at = Address::Internet(address);
    let mut slot = made.clone().caller(&spoken, &at).expect("a client");
    // It is there before there are tables.
    let mut other = made.clone().caller(&spoken, &at).expect("a client");
    holds(&*made, &mut *slot);
    assert_eq!(call(&mut *other, "insert", 0).refused, 0);
    assert_eq!(call(&mut *other, "slice", 2).wrong, 0);
    let own = Connection::open(folder.path().join("conditions.sqlite")).expect("a database");
    let plant = "UPDATE conditions SET v1 = v1 + 1 WHERE channel = 3 AND folder = 1";
    for statement in [plant, "DELETE FROM conditions WHERE folder = 2"] {
        assert!(own.execute(statement, []).expect("a change") > 0);
        for operation in ["slice", "read-folders"] {
            let outcome = call(&mut *slot, operation, 4);
            assert_eq!((outcome.answers, outcome.wrong), (1, 1), "{operation}: {outcome:?}");
        }
    }
}

#[test]
fn sqlite_keeps_long_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_lender, address)) = lend(folder.path()) else { return };
    let spoken = Speaks::plainly(SERVICE.dialect("sqlite").expect("a dialect"));
    let at = Address::Internet(address);
    holds_long("scattered", |workload| workload.caller(&spoken, &at).expect("a client"));
}
