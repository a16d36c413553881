//! A cache that was started for a test, and is ended with it.
#![allow(dead_code, reason = "each test uses its own part of this")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// A running `loadline serve cache`.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) ready: serde_json::Value,
}

/// `loadline serve cache` with these arguments, not yet started.
pub(crate) fn serve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["serve", "cache"]).args(arguments).stdin(Stdio::null());
    command
}

impl Served {
    /// Starts it and waits until it is ready. What it logs is kept in a pipe: it is little.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(serve(arguments))
    }

    /// The same with a command that becomes the service.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("loadline starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).expect("the ready line");
        Self { child, ready }
    }

    /// Its first address.
    pub(crate) fn address(&self) -> &str {
        self.ready["address"].as_str().expect("an address")
    }

    /// The address of this name.
    pub(crate) fn named(&self, name: &str) -> &str {
        self.ready["addresses"][name].as_str().expect("an address")
    }

    /// Asks it with `loadline cache`.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["cache", "--server", self.address()])
            .args(arguments)
            .output()
            .expect("loadline runs")
    }

    /// Has it stop, and says whether it did so in order.
    pub(crate) fn stop(mut self) -> bool {
        terminate(&self.child);
        self.child.wait().expect("an end").success()
    }
}

/// Asks a process to end.
pub(crate) fn terminate(child: &Child) {
    let status = Command::new("kill").arg(child.id().to_string()).status();
    assert!(status.expect("kill runs").success());
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
