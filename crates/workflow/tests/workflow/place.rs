//! A place for one server: its folder, its port, and ecFlow's client.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The longest that anything is waited for.
const WITHIN: Duration = Duration::from_secs(60);

/// A folder and a port.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) port: u16,
}

/// A port that is free, of those that ecFlow's programs take.
fn free_port() -> u16 {
    loop {
        let port = testing::free_port();
        if workflow::server::PORTS.contains(&port) {
            return port;
        }
    }
}

const HEAD: &str = "\
export ECF_HOST=localhost ECF_PORT=%ECF_PORT% ECF_NAME=%ECF_NAME% ECF_PASS=%ECF_PASS%
export ECF_TRYNO=%ECF_TRYNO% ECF_RID=$$
set -e
trap 'ecflow_client --abort=trap; exit 0' EXIT
ecflow_client --init=$$
";

const TAIL: &str = "\
trap - EXIT
ecflow_client --complete
";

impl Place {
    /// A new one, with the includes of scripts.
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder"), port: free_port() };
        std::fs::create_dir(place.home()).expect("a folder");
        place.write("home/head.h", &format!("#!/bin/sh\n{HEAD}"));
        place.write("home/tail.h", TAIL);
        place
    }

    /// ECF_HOME.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// A script with a body between head and tail.
    pub(crate) fn script(&self, task: &str, body: &str) {
        let text =
            format!("%include <head.h>\n%manual\nWhat it is.\n%end\n{body}\n%include <tail.h>\n");
        self.write(&format!("home/{task}.ecf"), &text);
    }

    /// Runs ecFlow's client.
    pub(crate) fn client(&self, arguments: &[&str]) -> Output {
        self.client_of(arguments, &[])
    }

    /// Runs ecFlow's client with more of an environment.
    pub(crate) fn client_of(&self, arguments: &[&str], more: &[(&str, &str)]) -> Output {
        let mut command = Command::new("timeout");
        command.arg("60").arg("ecflow_client").args(arguments).stdin(Stdio::null());
        command.env("ECF_HOST", "localhost").env("ECF_PORT", self.port.to_string());
        command.envs(more.iter().copied());
        command.output().expect("the client starts")
    }

    /// What ecFlow's client prints; it has to succeed.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments);
        let [out, error] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{arguments:?}: {out}{error}");
        out.into_owned()
    }

    /// The server's log, as far as there is one.
    pub(crate) fn log(&self) -> String {
        let files = std::fs::read_dir(self.home()).expect("home").flatten();
        let mut log = files.map(|one| one.path());
        let log = log.find(|path| path.to_string_lossy().ends_with("ecf.log"));
        log.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
    }

    /// Waits until `is_so`, asked again and again.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < WITHIN, "{what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a node has a state.
    pub(crate) fn until_state(&self, path: &str, state: &str) {
        self.until(&format!("{path} {state}"), || {
            self.told(&["--query", "state", path]).trim() == state
        });
    }
}
