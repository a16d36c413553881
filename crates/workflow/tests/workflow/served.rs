//! Servers in processes of their own: this program's, and ecFlow's.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use workflow::server::{BoundWorkflow, Environment, Limits, WorkflowServer};

use crate::place::Place;

/// The variable by which a process of this test serves: a folder and a port.
const SERVE: &str = "WORKFLOW_TEST_SERVES";

/// The variable by which a process of this test runs `serve workflow`: its words, a line each.
const RUN: &str = "WORKFLOW_TEST_RUNS";

/// A server, killed when it is dropped.
pub(crate) struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Served {
    /// This program's server, ready.
    pub(crate) fn ours(place: &Place) -> Self {
        let program = std::env::current_exe().expect("this program");
        Self::serving(place, Command::new(program))
    }

    /// The same, started by a program that ignores SIGCHLD, as some supervisors do.
    pub(crate) fn ignoring_ends(place: &Place) -> Self {
        let mut command = Command::new("env");
        command.arg("--ignore-signal=CHLD").arg(std::env::current_exe().expect("this program"));
        Self::serving(place, command)
    }

    /// The same, one of whose folders is on a disk of 1 MiB; none where such a one can't be had.
    pub(crate) fn on_small_disk(place: &Place, folder: &Path) -> Option<Self> {
        std::fs::create_dir_all(folder).expect("a folder");
        let mount = "mount -t tmpfs -o size=1m none \"$0\" && exec \"$@\"";
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--mount", "sh", "-c", mount]).arg(folder);
            command
        };
        let can = unshare().arg("true").stderr(Stdio::null()).status();
        if !can.is_ok_and(|status| status.success()) {
            testing::skip("no disk of its own can be mounted here (unshare, tmpfs)");
            return None;
        }
        let mut command = unshare();
        command.arg(std::env::current_exe().expect("this program"));
        Some(Self::serving(place, command))
    }

    /// A path as the server's process sees it.
    pub(crate) fn seen(&self, path: &Path) -> PathBuf {
        let path = path.strip_prefix("/").expect("an absolute path");
        PathBuf::from(format!("/proc/{}/root", self.0.id())).join(path)
    }

    fn serving(place: &Place, mut command: Command) -> Self {
        command.args(["--exact", "served::this_process_serves_where_it_is_told", "--nocapture"]);
        command.env(SERVE, format!("{}\n{}", place.home().display(), place.port));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let is_ready = lines.map_while(Result::ok).any(|line| line.contains("it serves"));
        assert!(is_ready, "the server didn't start");
        Self(child)
    }

    /// This program's server by its command and an environment, once it accepts.
    pub(crate) fn by_command(place: &Place, words: &[&str], more: &[(&str, &str)]) -> Self {
        let (home, port) = (place.home().display().to_string(), place.port.to_string());
        let common = ["--data", &home, "--port", &port, "--ecfinterval", "1"];
        let words: Vec<_> = common.iter().chain(words).copied().collect();
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "served::this_process_runs_the_command_it_is_told"]);
        command.env(RUN, words.join("\n")).envs(more.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let served = Self(command.spawn().expect("a process"));
        place.until("the server answers", || {
            std::net::TcpStream::connect(("127.0.0.1", place.port)).is_ok()
        });
        served
    }

    /// The memory that it has beside files.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")).expect("its memory");
        kilobytes.trim().parse::<u64>().expect("a number") << 10
    }

    /// Sends it a signal, and returns whether it ends well.
    pub(crate) fn stop(mut self) -> bool {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a signal");
        self.0.wait().expect("its end").success()
    }

    /// ecFlow's server, ready.
    pub(crate) fn theirs(place: &Place) -> Self {
        Self::theirs_with(place, &[], &[])
    }

    /// ecFlow's server with more arguments and environment.
    pub(crate) fn theirs_with(place: &Place, words: &[&str], more: &[(&str, &str)]) -> Self {
        let mut command = Command::new("ecflow_server");
        command.arg(format!("--port={}", place.port)).arg("--ecfinterval=1");
        command.args(words).envs(more.iter().copied());
        command.env("ECF_HOME", place.home()).current_dir(place.home());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let served = Self(command.spawn().expect("ecflow_server starts"));
        place.until("ecFlow's server answers", || {
            std::net::TcpStream::connect(("127.0.0.1", place.port)).is_ok()
        });
        served
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

/// Starts a server in this process.
pub(crate) fn start(home: &Path, port: u16) -> WorkflowServer {
    start_with(home, port, Duration::from_secs(60))
}

/// Starts a server in this process that waits this long for clients that take nothing.
pub(crate) fn start_with(home: &Path, port: u16, send_timeout: Duration) -> WorkflowServer {
    try_start(home, port, send_timeout).expect("it starts")
}

/// Why a server doesn't start.
pub(crate) fn refusal(home: &Path, port: u16) -> String {
    let started = try_start(home, port, Duration::from_secs(60));
    format!("{:#}", started.expect_err("it doesn't start"))
}

fn try_start(home: &Path, port: u16, send_timeout: Duration) -> anyhow::Result<WorkflowServer> {
    let address = format!("127.0.0.1:{port}").parse().expect("an address");
    let bound = BoundWorkflow::bind(&[address]).expect("the port is free");
    let environment = Environment::new(home, port, 1, |_| None).expect("an environment");
    let limits = Limits {
        log_flush: workflow::server::LogFlush::default(),
        max_message: 1 << 20,
        receive_memory: 8 << 20,
        send_memory: 8 << 20,
        max_jobs: 8,
        max_connections: 100,
        threads: 1,
        send_timeout,
        sync: journal::SyncPolicy::Always,
    };
    let data = home.join(".loadline");
    std::fs::create_dir_all(&data).expect("a folder");
    bound.start(environment, &data, limits, || {})
}

#[test]
fn this_process_serves_where_it_is_told() {
    let Ok(told) = std::env::var(SERVE) else { return };
    let (home, port) = told.split_once('\n').expect("a folder and a port");
    let _server = start(&PathBuf::from(home), port.parse().expect("a port"));
    println!("it serves");
    // The test that started it ends it.
    loop {
        std::thread::park();
    }
}

#[test]
fn this_process_runs_the_command_it_is_told() {
    let Ok(words) = std::env::var(RUN) else { return };
    let command = workflow::SERVICE.serve_command();
    let matches = command.get_matches_from(std::iter::once("serve").chain(words.lines()));
    let ended = workflow::SERVICE.serve.run(&matches);
    assert!(ended.is_ok(), "{ended:?}");
}
