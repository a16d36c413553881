//! A PostgreSQL, a service of S3, and servers that share what is in them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use conditions::server::{BoundConditions, TierSettings, check_shared};
use postgres::NoTls;
use serde_json::{Value as Json, json};
use service::{Face, HttpSettings};
use wire::{TlsStream, TlsTrust};

use crate::kill::{Killed, program, serve_on, start_as};
use crate::postgres_server::{self, PROGRAMS, server};

const METADATA: &str = "CONDITIONS_TEST_METADATA";
const SEGMENTS: &str = "CONDITIONS_TEST_SEGMENTS";
const ENDPOINT: &str = "CONDITIONS_TEST_ENDPOINT";
const COPIES: &str = "CONDITIONS_TEST_COPIES";
const SEAL_AFTER: &str = "CONDITIONS_TEST_SEAL_AFTER";
const CACHE_BYTES: &str = "CONDITIONS_TEST_CACHE_BYTES";
/// Files of authorities, of PostgreSQL and of S3.
const METADATA_CA: &str = "CONDITIONS_TEST_METADATA_CA";
const ENDPOINT_CA: &str = "CONDITIONS_TEST_ENDPOINT_CA";

fn text(name: &str) -> String {
    std::env::var(name).expect("it is set")
}

fn settings() -> TierSettings {
    let pem = |name| std::env::var_os(name).map(|path| std::fs::read(path).expect("a file"));
    TierSettings {
        metadata: text(METADATA),
        password: None,
        metadata_authorities: pem(METADATA_CA),
        segments: text(SEGMENTS),
        endpoint: Some(text(ENDPOINT)),
        endpoint_authorities: pem(ENDPOINT_CA),
        cache_bytes: std::env::var(CACHE_BYTES)
            .map_or(1 << 30, |bytes| bytes.parse().expect("a number")),
    }
}

/// Not a test: what a process runs that has credentials of S3 in its environment.
#[test]
#[ignore = "it is run by the tests of several servers, in a process of its own"]
fn check_what_is_shared() {
    let Some(report) = std::env::var_os(COPIES) else { return };
    let checked = check_shared(&settings(), &mut |_, _| {}).expect("a report");
    let numbers = json!([checked.revision, checked.sealed, checked.groups, checked.segments]);
    let said = json!({
        "numbers": numbers, "files": checked.files, "damaged": checked.damaged.join("\n"),
    });
    std::fs::write(report, said.to_string()).expect("written");
}

/// Not a test: what a process runs that is killed.
#[test]
#[ignore = "it is run by the tests of several servers, in a process of its own"]
fn serve_until_killed() {
    let Some(copies) = std::env::var_os(COPIES) else { return };
    let settings = settings();
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
    authorities: Option<Authorities>,
    /// The database, and what the names of objects begin with.
    names: (&'static str, &'static str),
}

/// What servers share unless it is restored.
const NAMES: (&str, &str) = ("postgres", "shared");

/// Files of the authorities that vouch for PostgreSQL and for S3.
#[derive(Clone)]
pub(super) struct Authorities {
    pub(super) metadata: PathBuf,
    pub(super) endpoint: PathBuf,
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

/// Runs a program to its end.
fn done(command: &mut Command) {
    let output = command.output().expect("it is installed");
    assert!(output.status.success(), "{output:?}");
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

fn moto(more: &[&str]) -> Option<Moto> {
    let mut command = Command::new(python()?);
    command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]).args(more);
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
    Some(moto)
}

/// A certificate with its key in a folder, for this machine.
fn certified(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
    let made = made.expect("a certificate");
    let (certificate, key) =
        (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("its owner's");
    (certificate, key)
}

impl Place {
    /// A new place, or none where what it takes isn't installed: then the test is skipped.
    pub(super) fn new() -> Option<Self> {
        let (s3, postgres) = (moto(&[])?, server(&[])?);
        let made = ureq::put(format!("{}/conditions", s3.address)).send_empty();
        assert_eq!(made.expect("a bucket").status(), 200);
        let folder = tempfile::tempdir().expect("a folder");
        Some(Self { postgres, s3, folder, authorities: None, names: NAMES })
    }

    /// A place that is reached encrypted.
    pub(super) fn encrypted() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let metadata = certified(folder.path(), "postgres");
        let endpoint = certified(folder.path(), "s3");
        let shown = |path: &Path| path.to_str().expect("text").to_owned();
        let (certificate, key) = (shown(&endpoint.0), shown(&endpoint.1));
        let s3 = moto(&["--ssl-cert", &certificate, "--ssl-key", &key])?;
        let set = |name: &str, path: &Path| format!("{name}={}", shown(path));
        let settings =
            [set("ssl_cert_file", &metadata.0), set("ssl_key_file", &metadata.1), "ssl=on".into()];
        let postgres = server(&settings.each_ref().map(String::as_str))?;
        let authorities = Authorities { metadata: metadata.0, endpoint: endpoint.0 };
        let authorities = Some(authorities);
        let place = Self { postgres, s3, folder, authorities, names: NAMES };
        place.make_bucket();
        Some(place)
    }

    fn make_bucket(&self) {
        let authorities = self.authorities.as_ref().expect("it is encrypted");
        let pem = std::fs::read(&authorities.endpoint).expect("a file");
        let at = self.s3.address.strip_prefix("https://").expect("it is encrypted");
        let socket = TcpStream::connect(at).expect("a connection");
        let trust = TlsTrust { authorities: &pem, identity: None };
        let mut stream = TlsStream::connect(socket, "127.0.0.1", &trust).expect("a handshake");
        let rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
        let request = format!("PUT /conditions HTTP/1.1\r\nHost: {at}\r\n{rest}");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
    }

    /// The files of the authorities of a place that is reached encrypted.
    pub(super) fn authorities(&self) -> Authorities {
        self.authorities.clone().expect("it is encrypted")
    }

    /// What a server says that doesn't start where others vouch.
    pub(super) fn refused_with(&self, authorities: &Authorities) -> String {
        let mut command = self.command("refused", 1 << 20);
        command.env(METADATA_CA, &authorities.metadata).env(ENDPOINT_CA, &authorities.endpoint);
        let output = command.output().expect("it starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Starts a server, whose copies have this name.
    pub(super) fn start(&self, copies: &str, seal_after: u64) -> (Killed, SocketAddr) {
        start_as(&mut self.command(copies, seal_after))
    }

    /// Starts a server whose copies may have this many bytes.
    pub(super) fn start_within(&self, copies: &str, cache_bytes: u64) -> (Killed, SocketAddr) {
        let mut command = self.command(copies, 1 << 20);
        start_as(command.env(CACHE_BYTES, cache_bytes.to_string()))
    }

    /// What a server says that doesn't start.
    pub(super) fn refused(&self, copies: &str) -> String {
        let output = self.command(copies, 1 << 20).output().expect("it starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn command(&self, copies: &str, seal_after: u64) -> Command {
        self.command_of("serve_until_killed", copies, seal_after)
    }

    fn command_of(&self, what: &str, copies: &str, seal_after: u64) -> Command {
        let mut command = program(&format!("tier::place::{what}"));
        command.env(METADATA, self.metadata()).env(ENDPOINT, &self.s3.address);
        command.env(SEGMENTS, format!("s3://conditions/{}", self.names.1));
        command.env(COPIES, self.folder.path().join(copies));
        command.env(SEAL_AFTER, seal_after.to_string());
        command.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
        command.env("AWS_REGION", "us-east-1");
        if let Some(Authorities { metadata, endpoint }) = &self.authorities {
            command.env(METADATA_CA, metadata).env(ENDPOINT_CA, endpoint);
        }
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
        postgres::Client::connect(&self.metadata(), NoTls).expect("a connection")
    }

    fn metadata(&self) -> String {
        format!("postgres://postgres@{}/{}", self.postgres.address, self.names.0)
    }

    /// The revision through which segments stand for all changes.
    pub(super) fn sealed(&self) -> i64 {
        let row = self.postgres().query_one("SELECT base FROM conditions_head", &[]);
        row.expect("an answer").get(0)
    }

    /// What a check of all that is shared says.
    pub(super) fn check(&self) -> Json {
        let output = self.command_of("check_what_is_shared", "report", 0).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let report = std::fs::read(self.folder.path().join("report")).expect("a report");
        serde_json::from_slice(&report).expect("JSON")
    }

    /// Puts other bytes in an object's place.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        let content = self.folder.path().join("content");
        std::fs::write(&content, bytes).expect("written");
        let put = "client.put_object(Bucket='conditions', Key=sys.argv[2],
                  Body=open(sys.argv[3], 'rb').read())";
        self.boto(put, &[name, content.to_str().expect("text")]);
    }

    /// Removes an object.
    pub(super) fn delete(&self, name: &str) {
        self.boto("client.delete_object(Bucket='conditions', Key=sys.argv[2])", &[name]);
    }

    /// An object's bytes.
    pub(super) fn object(&self, name: &str) -> Vec<u8> {
        let content = self.folder.path().join("content");
        let get = "client.download_file('conditions', sys.argv[2], sys.argv[3])";
        self.boto(get, &[name, content.to_str().expect("text")]);
        std::fs::read(&content).expect("its bytes")
    }

    /// Has Python do this with a `client` of the service of S3.
    fn boto(&self, script: &str, words: &[&str]) {
        let begin = "import boto3, sys\nclient = boto3.client('s3', endpoint_url=sys.argv[1])\n";
        let mut command = Command::new(python().expect("it is installed"));
        command.args(["-c", &format!("{begin}{script}"), &self.s3.address]).args(words);
        command.env("AWS_ACCESS_KEY_ID", "any").env("AWS_SECRET_ACCESS_KEY", "any");
        done(command.env("AWS_DEFAULT_REGION", "us-east-1"));
    }

    /// Dumps the database.
    pub(super) fn dump(&self) {
        let dump = self.folder.path().join("dump");
        done(
            Command::new(format!("{PROGRAMS}/pg_dump"))
                .args(["-Fc", "-f"])
                .arg(dump)
                .args(["-d", &self.metadata()]),
        );
    }

    /// Copies all objects.
    pub(super) fn copy_objects(&self) {
        let script = "
for page in client.get_paginator('list_objects_v2').paginate(Bucket='conditions', Prefix='shared/'):
    for one in page['Contents']:
        source = {'Bucket': 'conditions', 'Key': one['Key']}
        name = one['Key'].replace('shared/', 'copied/', 1)
        client.copy_object(Bucket='conditions', Key=name, CopySource=source)";
        self.boto(script, &[]);
    }

    /// Restores the dump into another database: it and the copies of objects are what is shared
    /// from now on.
    pub(super) fn restore(&mut self) {
        self.postgres().batch_execute("CREATE DATABASE restored").expect("a database");
        self.names = ("restored", "copied");
        let dump = self.folder.path().join("dump");
        let mut restore = Command::new(format!("{PROGRAMS}/pg_restore"));
        done(restore.args(["-d", &self.metadata()]).arg(dump));
    }

    /// The names of all segments in the bucket.
    pub(super) fn objects(&self) -> Vec<String> {
        let of = format!("{}/segments/", self.names.1);
        let url = format!("{}/conditions?list-type=2&prefix={of}", self.s3.address);
        let listed = ureq::get(url).call().expect("a list").body_mut().read_to_string();
        let listed = listed.expect("text");
        let names = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        names.map(str::to_owned).collect()
    }
}
