//! A served service, and the programs of others.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A service, ended with the test.
pub(crate) struct Served {
    child: Child,
    ready: serde_json::Value,
    _folder: tempfile::TempDir,
}

impl Served {
    pub(crate) fn start(records: &str, arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", records, arguments)
    }

    pub(crate) fn start_at(listen: &str, records: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("records.toml");
        std::fs::write(&config, records).expect("written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["serve", "records", "--listen", listen, "--config"])
            .arg(&config)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("loadline starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).expect("the ready line");
        Self { child, ready, _folder: folder }
    }

    pub(crate) fn address(&self) -> &str {
        self.ready["address"].as_str().expect("an address")
    }

    pub(crate) fn search(&self) -> &str {
        self.ready["addresses"]["search"].as_str().expect("an address")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that `cargo xtask peers` installs from Python's registry, and that needs a `package`.
/// Where one is missing, the test is skipped, and says so; in a CI it fails.
pub(crate) fn peer(program: &str, package: &str) -> Option<PathBuf> {
    let folder = target().join("venv/records/bin");
    let has_package = Command::new(folder.join("python"))
        .args(["-c", &format!("import {package}")])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    there(folder.join(program), has_package, &format!("{program} with {package}"))
}

/// A program of a peer that `cargo xtask peers` compiles; skipped where it is missing, as above.
pub(crate) fn built(program: &str) -> Option<PathBuf> {
    there(target().join("peers").join(program), true, program)
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

fn there(path: PathBuf, is_whole: bool, what: &str) -> Option<PathBuf> {
    if path.exists() && is_whole {
        return Some(path);
    }
    let missing = format!("{what} is missing: `cargo xtask peers` installs it");
    testing::skip(missing);
    None
}

/// What a program says on standard output, once it has succeeded.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("EPICS_PVA_AUTO_ADDR_LIST", "NO")
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}: {said}\n{told}", program.display());
    said
}

/// `loadline records` with these arguments: what it says, or what it complains of.
pub(crate) fn ask(server: &str, arguments: &[&str]) -> Result<String, String> {
    ask_as("tester", server, arguments)
}

/// As a user of this name.
pub(crate) fn ask_as(user: &str, server: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .env("USER", user)
        .args(["records", "--timeout", "20", "--server", server])
        .args(arguments)
        .output()
        .expect("loadline runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// A server that others wrote: it prints its address, by itself or in a ready line as ours, and
/// ends with its input.
pub(crate) struct Foreign {
    child: Child,
    address: String,
}

impl Foreign {
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let address = ready["address"].as_str().unwrap_or(line.trim()).to_owned();
        assert!(address.contains(':'), "{} says {line:?}", program.display());
        Self { child, address }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that goes on until the test ends it.
pub(crate) struct Background(Child);

impl Background {
    pub(crate) fn start(program: &Path, argument: &Path) -> Self {
        let child = Command::new(program)
            .arg(argument)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        Self(child)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Different ports that are free now.
pub(crate) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let mut ports = [0; COUNT];
    for at in 0..COUNT {
        while ports[at] == 0 || ports[..at].contains(&ports[at]) {
            ports[at] = testing::free_port();
        }
    }
    ports
}

/// Whether something that is asked again and again comes true within a minute.
pub(crate) fn comes_true(mut is_true: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// Waits until somebody listens.
pub(crate) fn until_ready(address: &str) {
    assert!(comes_true(|| TcpStream::connect(address).is_ok()), "{address} is not listened on");
}

/// What `loadline records get` says of a channel that it searches on a port of this host.
pub(crate) fn find_by(port: u16, name: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["records", "--timeout", "2", "get", name])
        .env("EPICS_PVA_AUTO_ADDR_LIST", "NO")
        .env("EPICS_PVA_ADDR_LIST", format!("127.0.0.1:{port}"))
        .output()
        .expect("loadline runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
