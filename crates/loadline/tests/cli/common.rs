//! What the black-box tests share: a folder of their own with a suite in it, and the command.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing in a test may take longer than this; it only guards against hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder with a suite, a ledger and logs, gone at the end of the test.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A folder with `suite` written to `suite.toml`.
    pub(crate) fn with(suite: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("suite.toml"), suite).expect("the suite is written");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path().join(".loadline/ledger.sqlite")
    }

    /// `loadline ARGUMENTS` in this folder. The lock of measured runs lies in it too, so that
    /// tests run side by side: none of them judges a figure that the others could disturb.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command.current_dir(self.path()).args(arguments).stdin(Stdio::null());
        command.env("LOADLINE_LOCK", self.path().join("loadline.lock"));
        command
    }

    /// Makes `.loadline` here, so that no folder further up is taken, and runs to the end.
    pub(crate) fn loadline(&self, arguments: &[&str]) -> Output {
        std::fs::create_dir_all(self.path().join(".loadline")).expect("a folder");
        self.command(arguments).output().expect("loadline runs")
    }

    /// What it prints as JSON, after an end with one of these codes.
    pub(crate) fn json(&self, arguments: &[&str], codes: &[i32]) -> serde_json::Value {
        let output = self.loadline(arguments);
        assert!(codes.contains(&code(&output)), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("JSON")
    }

    /// The trials of a run of its suite, each right.
    pub(crate) fn trials(&self) -> Vec<serde_json::Value> {
        let output = self.loadline(&["run", "suite.toml", "--json", "--wait"]);
        let json: serde_json::Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        let trials = json["trials"].as_array().expect("trials").clone();
        for trial in &trials {
            assert_eq!(trial["wrong"], 0, "{trial:#} {:#}", json["findings"]);
            assert_ne!(trial["validity"], "invalid", "{trial:#}");
            assert!(trial["operations"].as_u64().expect("a number") > 0, "{trial:#}");
        }
        trials
    }

    /// That it ends with this code and says this on standard error.
    pub(crate) fn refuses(&self, arguments: &[&str], with: i32, said: &str) {
        let output = self.loadline(arguments);
        assert_eq!(code(&output), with, "{said}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

/// A suite of small reads whose rounds take a blink: of these targets, by name and with the lines
/// that say what they are, and with more in `[rounds]` and behind it.
pub(crate) fn small_reads(targets: &[(&str, &str)], rounds: &str) -> String {
    let target = |(name, lines): &(&str, &str)| format!("[[target]]\nname = \"{name}\"\n{lines}\n");
    let targets: String = targets.iter().map(target).collect();
    format!(
        r#"title = "Small reads"
{targets}[workload]
service = "cache"
operation = "get"
keys = {{ count = 100 }}
value = {{ bytes = 40 }}
[[clients]]
connections = 2
[rounds]
disturbed = "ignore"
warm_up = "10ms"
{rounds}
"#
    )
}

/// The exit code.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Waits until `happened`, looking again and again; fails with `what` when it never does.
pub(crate) fn await_that(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a child's end.
pub(crate) fn await_end(child: &mut Child) -> std::process::ExitStatus {
    let mut status = None;
    await_that("the program ends", || {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    status.expect("awaited")
}

/// A signal to one process, by the system's own command.
pub(crate) fn send_signal(signal: &str, process: u32) {
    let sent = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// The processes whose command line holds `text`, such as a test's folder.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |process: &u32| {
        let read = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&read).contains(text)
    };
    processes.filter(holds).collect()
}

/// A number of its own for each of these tests, which marks the processes that it starts, also
/// beside another run of the tests. It is a size of memory that a cache may have.
pub(crate) fn unique(test: u32) -> u32 {
    assert!(test < 100);
    (64 << 20) + std::process::id() % 1_000_000 * 100 + test
}

/// Where this repository lies.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Has every suite of this repository planned whose file has such a name: `least` are there.
pub(crate) fn plans_every_suite(is_one: impl Fn(&str) -> bool, least: usize) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        testing::skip("these suites need two processors");
        return;
    }
    let mut planned = 0;
    for entry in std::fs::read_dir(repository().join("suites")).expect("suites").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_one(&name) {
            continue;
        }
        let path = entry.path().display().to_string();
        let output = Place::with("").loadline(&["plan", &path]);
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        let is_tour = name.starts_with("tour");
        assert!(!is_tour || !stdout(&output).contains("carry no verdict"), "{name}");
        planned += 1;
    }
    assert!(planned >= least, "{planned} suites");
}
