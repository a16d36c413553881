//! The service as a process, and its own client.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::Value as Json;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rpc-program");

/// A server that is ended with this value.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) ready: Json,
}

impl Served {
    /// At any port, with these arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"]).args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).expect("a ready line");
        Self { child, ready }
    }

    pub(crate) fn address(&self) -> String {
        self.ready["address"].as_str().expect("an address").to_owned()
    }

    pub(crate) fn socket(&self) -> SocketAddr {
        self.address().parse().expect("a socket's address")
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the client.
pub(crate) fn rpc(args: &[&str]) -> Output {
    rpc_with(args, "")
}

/// Runs the client with standard input.
pub(crate) fn rpc_with(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    testing::output(command.arg("rpc").args(args), input.as_bytes())
}

/// What it printed, which has to be JSON.
pub(crate) fn lines(output: &Output) -> Vec<Json> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What it said.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
