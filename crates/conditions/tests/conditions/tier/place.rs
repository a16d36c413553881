//! A PostgreSQL, a service of S3, and servers that share what is in them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use conditions::server::{BoundConditions, TierSettings};
use postgres::NoTls;
use service::{Face, HttpSettings};

use crate::kill::{Killed, program, serve_on, start_as};
use crate::postgres_server::{self, server};

const METADATA: &str = "CONDITIONS_TEST_METADATA";
const ENDPOINT: &str = "CONDITIONS_TEST_ENDPOINT";
const COPIES: &str = "CONDITIONS_TEST_COPIES";
const SEAL_AFTER: &str = "CONDITIONS_TEST_SEAL_AFTER";

/// Not a test: what a process runs that is killed.
#[test]
#[ignore = "it is run by the tests of several servers, in a process of its own"]
fn serve_until_killed() {
    let Some(copies) = std::env::var_os(COPIES) else { return };
    let text = |name| std::env::var(name).expect("it is set");
    let settings = TierSettings {
        metadata: text(METADATA),
        password: None,
        segments: "s3://conditions/shared".to_owned(),
        endpoint: Some(text(ENDPOINT)),
        cache_bytes: 1 << 30,
    };
    let seal_after = text(SEAL_AFTER).parse().expect("a number");
    // nginx asks by a name.
    let address = ([127, 0, 0, 1], 0).into();
    let http = HttpSettings { address, takes_names: true, tokens: None, face: Face::Api };
    let bound = BoundConditions::bind(vec![http]).expect("an address").seal_after(seal_after);
    serve_on(&bound.start_shared(&settings, Path::new(&copies)).expect("a server"))
}

/// Where servers share their data.
pub(super) struct Place {
    postgres: postgres_server::Server,
    s3: Moto,
    folder: tempfile::TempDir,
}

/// A service of S3 by moto, the library by which Python's programs are tested against AWS.
struct Moto {
    process: Child,
    address: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn python() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target/venv/conditions/bin/python");
    let has_moto = || {
        let found = Command::new(&python).args(["-c", "import moto, flask, flask_cors"]).output();
        found.is_ok_and(|found| found.status.success())
    };
    if !python.exists() || !has_moto() {
        testing::skip("moto is not installed (`cargo xtask peers` installs the peers)");
        return None;
    }
    Some(python)
}

fn moto() -> Option<Moto> {
    let mut command = Command::new(python()?);
    command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("Python");
    let mut lines = BufReader::new(process.stderr.take().expect("a pipe"));
    let mut moto = Moto { process, address: String::new() };
    let mut line = String::new();
    while moto.address.is_empty() {
        line.clear();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "moto has ended");
        if let Some((_, address)) = line.trim().split_once("Running on ") {
            moto.address = address.to_owned();
        }
    }
    // It writes a line for each request.
    std::thread::spawn(move || {
        let _ = lines.read_to_end(&mut Vec::new());
    });
    let made = ureq::put(format!("{}/conditions", moto.address)).send_empty();
    assert_eq!(made.expect("a bucket").status(), 200);
    Some(moto)
}

impl Place {
    /// A new place, or none where what it takes isn't installed: then the test is skipped.
    pub(super) fn new() -> Option<Self> {
        let (s3, postgres) = (moto()?, server(&[])?);
        Some(Self { postgres, s3, folder: tempfile::tempdir().expect("a folder") })
    }

    /// Starts a server, whose copies have this name.
    pub(super) fn start(&self, copies: &str, seal_after: u64) -> (Killed, SocketAddr) {
        start_as(&mut self.command(copies, seal_after))
    }

    /// What a server says that doesn't start.
    pub(super) fn refused(&self, copies: &str) -> String {
        let output = self.command(copies, 1 << 20).output().expect("it starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn command(&self, copies: &str, seal_after: u64) -> Command {
        let mut command = program("tier::place::serve_until_killed");
        let metadata = format!("postgres://postgres@{}/postgres", self.postgres.address);
        command.env(METADATA, metadata).env(ENDPOINT, &self.s3.address);
        command.env(COPIES, self.folder.path().join(copies));
        command.env(SEAL_AFTER, seal_after.to_string());
        command.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
        command.env("AWS_REGION", "us-east-1");
        command
    }

    /// Removes a server's copies.
    pub(super) fn lose(&self, copies: &str) {
        std::fs::remove_dir_all(self.folder.path().join(copies)).expect("it was there");
    }

    /// The folder of a server's copies of segments.
    pub(super) fn copies(&self, copies: &str) -> PathBuf {
        self.folder.path().join(copies).join("copies/segments")
    }

    /// Where a test may write.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends PostgreSQL.
    pub(super) fn end_postgres(&mut self) {
        self.postgres.end();
    }

    pub(super) fn postgres(&self) -> postgres::Client {
        let text = format!("postgres://postgres@{}/postgres", self.postgres.address);
        postgres::Client::connect(&text, NoTls).expect("a connection")
    }

    /// The revision through which segments stand for all changes.
    pub(super) fn sealed(&self) -> i64 {
        let row = self.postgres().query_one("SELECT base FROM conditions_head", &[]);
        row.expect("an answer").get(0)
    }

    /// The names of all segments in the bucket.
    pub(super) fn objects(&self) -> Vec<String> {
        let url = format!("{}/conditions?list-type=2&prefix=shared/segments/", self.s3.address);
        let listed = ureq::get(url).call().expect("a list").body_mut().read_to_string();
        let listed = listed.expect("text");
        let names = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        names.map(str::to_owned).collect()
    }
}
