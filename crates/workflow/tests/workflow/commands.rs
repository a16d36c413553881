//! `loadline workflow why`, `watch`, `get`, `load` and others, in processes of their own: against
//! this program's server, and against ecFlow's where that is here.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;
use service::Failure;

use crate::definition::has_ecflow;
use crate::place::Place;
use crate::served::Served;

/// The variable by which a process of this test runs `loadline workflow`: its words, a line each.
const COMMAND: &str = "WORKFLOW_TEST_COMMAND";

/// The line behind which the command's output begins.
const BEGIN: &str = "the command's output";

#[test]
#[expect(clippy::exit, reason = "the exit code is what the command's user sees")]
fn this_process_runs_the_client_command_it_is_told() {
    let Ok(words) = std::env::var(COMMAND) else { return };
    // On one core the name of the test is on the line before it.
    println!("\n{BEGIN}");
    let (doc, command) = workflow::SERVICE.command.expect("a command");
    let all = std::iter::once("workflow").chain(words.lines());
    let ended = match command.command("workflow", doc).try_get_matches_from(all) {
        Ok(matches) => command.run(&matches),
        Err(why) => Err(Failure::Explained(why.to_string())),
    };
    let ended = ended.unwrap_or_else(Failure::report);
    let code = (0..=u8::MAX).find(|code| ExitCode::from(*code) == ended);
    std::process::exit(code.map_or(1, i32::from));
}

/// A command that runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::start_with(words, &[])
    }

    /// The same with more of an environment.
    pub(crate) fn start_with(words: &[&str], more: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.envs(more.iter().copied());
        command.args(["--exact", "commands::this_process_runs_the_client_command_it_is_told"]);
        command.arg("--nocapture").env(COMMAND, words.join("\n")).env("USER", "tester");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while line.trim_end() != BEGIN {
            line.clear();
            assert!(output.read_line(&mut line).expect("a line") > 0, "it has not begun");
        }
        Self { child, output }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a signal");
    }

    /// What else it prints, on both outputs, and its exit code.
    pub(crate) fn end(mut self) -> (String, String, i32) {
        let (mut out, mut error) = (String::new(), String::new());
        self.output.read_to_string(&mut out).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        (out, error, self.child.wait().expect("its end").code().unwrap_or(-1))
    }
}

/// Rows and columns of a terminal.
const SIZE: (usize, usize) = (20, 100);

/// A command on a terminal of its own, which `script` is; it loses it when this is dropped.
struct OnTerminal {
    script: Child,
    seen: Arc<Mutex<String>>,
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

impl OnTerminal {
    fn start(words: &[&str]) -> Self {
        let program = std::env::current_exe().expect("this program");
        let test = "commands::this_process_runs_the_client_command_it_is_told";
        let line = format!(
            "stty rows {} cols {}; {} --exact {test} --nocapture; echo CODE $?",
            SIZE.0,
            SIZE.1,
            program.display()
        );
        let mut command = Command::new("script");
        command.args(["--quiet", "--command", &line, "/dev/null"]);
        command.env("TERM", "xterm").env("SHELL", "/bin/sh").env_remove("NO_COLOR");
        command.env(COMMAND, words.join("\n")).env("USER", "tester");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut script = command.spawn().expect("script runs");
        let mut out = script.stdout.take().expect("a pipe");
        let seen = Arc::new(Mutex::new(String::new()));
        let its = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                its.lock().expect("whole").push_str(&text);
            }
        });
        Self { script, seen }
    }

    fn press(&mut self, keys: &[u8]) {
        self.script.stdin.as_mut().expect("piped").write_all(keys).expect("pressed");
    }

    fn seen(&self) -> String {
        self.seen.lock().expect("whole").clone()
    }

    /// What the screen shows: a frame only has what is different from the one before.
    fn screen(&self) -> String {
        let mut cells = vec![vec![' '; SIZE.1]; SIZE.0];
        let (mut row, mut column) = (0, 0);
        for (place, part) in self.seen().split("\u{1b}[").enumerate() {
            let is_end = |one: char| one.is_ascii_alphabetic();
            let (order, text) = match part.find(is_end).filter(|_| place > 0) {
                Some(at) => part.split_at(at + 1),
                None => ("", part),
            };
            if let Some(at) = order.strip_suffix('H') {
                let mut numbers = at.split(';').map(|number| number.parse().unwrap_or(1));
                row = numbers.next().unwrap_or(1_usize).saturating_sub(1);
                column = numbers.next().unwrap_or(1_usize).saturating_sub(1);
            } else if order == "2J" {
                cells = vec![vec![' '; SIZE.1]; SIZE.0];
            }
            for one in text.chars() {
                if let Some(cell) = cells.get_mut(row).and_then(|cells| cells.get_mut(column)) {
                    *cell = one;
                }
                column += 1;
            }
        }
        cells.into_iter().map(|row| row.into_iter().chain(['\n']).collect::<String>()).collect()
    }
}

pub(crate) fn run(words: &[&str]) -> (String, String, i32) {
    Running::start(words).end()
}

/// What it prints, at its good end.
pub(crate) fn printed(words: &[&str]) -> String {
    let (out, error, code) = run(words);
    assert_eq!(code, 0, "{words:?}: {out}{error}");
    out
}

pub(crate) const DEFINITION: &str = "\
suite s
  edit ECF_JOB_CMD 'true'
  limit l 1
  family f
    task a
      label info 'nothing yet'
      meter progress 0 100 100
      event done
    task b
      trigger a == complete and a:done
      inlimit /s:l
  endfamily
endsuite
";

/// Both servers, each with what is asked of it: `HOST:PORT`.
pub(crate) fn at_both(ask: impl Fn(&Place, &str)) {
    if !has_ecflow() {
        return;
    }
    for start in [Served::ours as fn(&Place) -> Served, Served::theirs] {
        let place = Place::new();
        let _server = start(&place);
        ask(&place, &format!("localhost:{}", place.port));
    }
}

#[test]
fn a_definition_is_loaded_checked_and_printed_again() {
    at_both(|place, at| {
        let bad = place.write("bad.def", "suite s\n  tusk a\nendsuite\n");
        let (_, error, code) = run(&["load", at, bad.to_str().expect("a path")]);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("bad.def:2") && error.contains("tusk"), "{error}");
        let file = place.write("s.def", DEFINITION);
        let file = file.to_str().expect("a path");
        let said = printed(&["load", at, file, "--begin"]);
        assert_eq!(said, format!("s: 4 nodes at {at}, begun\n"));
        let (_, error, code) = run(&["load", at, file]);
        assert_eq!(code, 1, "{error}");
        assert!(error.contains("already exist"), "{error}");
        assert_eq!(place.told(&["--query", "dstate", "/s/f/b"]).trim(), "queued");
        let again = place.write("again.def", &printed(&["get", at]));
        printed(&["load", at, again.to_str().expect("a path"), "--force"]);
        let task = printed(&["get", at, "/s/f/a"]);
        assert!(task.contains("meter progress 0 100 100") && !task.contains("task b"), "{task}");
        let nodes = printed(&["get", at, "--json"]);
        let nodes: Vec<Json> =
            nodes.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let paths: Vec<&str> = nodes.iter().filter_map(|node| node["path"].as_str()).collect();
        assert_eq!(paths, ["/s", "/s/f", "/s/f/a", "/s/f/b"]);
        assert_eq!(nodes[3]["attributes"][0], "trigger a == complete and a:done");
    });
}

#[test]
fn why_names_all_that_holds_a_node() {
    at_both(|place, at| {
        let file = place.write("s.def", DEFINITION);
        place.told(&["--restart"]);
        place.told(&["--halt=yes"]);
        printed(&["load", at, file.to_str().expect("a path"), "--begin"]);
        let why = printed(&["why", at, "/s/f/b"]);
        assert!(why.starts_with("/s/f/b is queued\n  the server is HALTED\n"), "{why}");
        let trigger = "task /s/f/b waits for its trigger a == complete and a:done: \
                       a is queued, a:done is 0";
        assert!(why.contains(trigger), "{why}");
        place.told(&["--suspend=/s/f"]);
        place.told(&["--alter=change", "limit_value", "l", "1", "/s"]);
        let why: Json = serde_json::from_str(&printed(&["why", at, "/s", "--json"])).expect("JSON");
        assert_eq!((&why["path"], &why["waiting_below"]), (&"/s".into(), &2.into()));
        let of_b = why["below"][1]["why"].as_array().expect("lines");
        assert!(
            of_b.iter().any(|line| line
                .as_str()
                .is_some_and(|line| { line.contains("waits for 1 of the limit l, 1 of 1 taken") })),
            "{why}"
        );
        let (_, error, code) = run(&["why", at, "/s/f/x"]);
        assert_eq!((code, error.trim()), (2, "error: there is no node /s/f/x: /s/f has a, b"));
    });
}

#[test]
fn watch_names_each_change_once_and_ends_when_a_state_is_reached() {
    at_both(|place, at| {
        let file = place.write("s.def", DEFINITION);
        place.told(&["--restart"]);
        place.told(&["--halt=yes"]);
        printed(&["load", at, file.to_str().expect("a path"), "--begin"]);
        let mut watch = Running::start(&[
            "watch",
            at,
            "--interval",
            "20ms",
            "--json",
            "--until",
            "/s/f/a=complete",
            "--what",
            "label,meter,event,edit,state,added,deleted,server",
        ]);
        let mut next = |path: &str, what: &str, name: &str, value: &str| {
            let line = watch.line();
            let seen: Json = serde_json::from_str(&line).expect("JSON");
            let seen = [&seen["path"], &seen["what"], &seen["name"], &seen["value"]];
            assert_eq!(seen, [path, what, name, value], "{line}");
        };
        // It follows once it has asked what has changed.
        place.until("it follows", || place.told(&["--log=get", "100"]).contains("--sync="));
        place.told(&["--alter=change", "label", "info", "one", "/s/f/a"]);
        next("/s/f/a", "label", "info", "one");
        for (words, seen) in [
            (
                vec!["--alter=change", "meter", "progress", "40", "/s/f/a"],
                ("/s/f/a", "meter", "progress", "40"),
            ),
            (
                vec!["--alter=change", "event", "done", "set", "/s/f/a"],
                ("/s/f/a", "event", "done", "set"),
            ),
            (vec!["--suspend=/s/f/b"], ("/s/f/b", "state", "", "suspended")),
            (
                vec!["--alter=add", "variable", "NEW", "value", "/s/f"],
                ("/s/f", "edit", "NEW", "value"),
            ),
            (vec!["--delete=force", "yes", "/s/f/b"], ("/s/f/b", "deleted", "", "")),
        ] {
            place.told(&words);
            next(seen.0, seen.1, seen.2, seen.3);
        }
        place.told(&["--force=complete", "/s/f/a"]);
        let (rest, error, code) = watch.end();
        assert_eq!(code, 0, "{rest}{error}");
        assert!(rest.contains(r#""path":"/s/f/a","value":"complete","what":"state""#), "{rest}");
        let (_, error, code) =
            run(&["watch", at, "--until", "/s/f/a=aborted", "--for", "50ms", "--interval", "10ms"]);
        assert!(code == 3 && error.contains("/s/f/a is complete, not aborted"), "{error}");
        let file = file.to_str().expect("a path");
        let (_, error, code) = run(&["load", at, file]);
        assert!(code == 1 && error.contains("already exist: --force takes"), "{error}");
        let (_, error, code) = run(&["load", at, file, "--force", "--begin"]);
        assert!(code == 0 && error.contains("the server is HALTED"), "{error}");
    });
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_reason() {
    let place = Place::new();
    let at = format!("localhost:{}", place.port);
    let (_, error, code) = run(&["why", &at, "/s"]);
    assert_eq!(code, 1);
    assert!(error.contains(&at) && error.contains("refused"), "{error}");
    let start = format!("`loadline serve workflow --data HOME --port {}` starts one", place.port);
    assert!(error.contains(&start), "{error}");
    let (_, error, code) = run(&["why", "localhost:x", "/s"]);
    assert_eq!((code, error.contains("is no address")), (2, true), "{error}");
}

#[test]
fn stats_counts_what_a_definition_has_and_what_it_costs() {
    let place = Place::new();
    let file = place.write("s.def", DEFINITION);
    let file = file.to_str().expect("a path");
    let stats: Json = serde_json::from_str(&printed(&["stats", file, "--json"])).expect("JSON");
    for (name, count) in [
        ("bytes", DEFINITION.len()),
        ("suites", 1),
        ("families", 1),
        ("tasks", 2),
        ("nodes", 4),
        ("variables", 1),
        ("trigger", 1),
        ("limit", 1),
        ("inlimit", 1),
        ("cron", 0),
    ] {
        assert_eq!(stats["counts"][name], count, "{name}: {stats}");
    }
    assert_eq!(stats["memory"]["nodes"]["count"], 5);
    let text = printed(&["stats", file]);
    assert!(text.lines().any(|line| line.starts_with("trigger") && line.ends_with('1')), "{text}");
}

#[test]
fn top_shows_the_tree_and_does_what_is_pressed_and_confirmed() {
    at_both(|place, at| {
        let file = place.write("s.def", DEFINITION);
        place.told(&["--restart"]);
        place.told(&["--halt=yes"]);
        printed(&["load", at, file.to_str().expect("a path"), "--begin"]);
        let once = printed(&["top", at, "--once", "--filter", "b"]);
        assert_eq!(once, "▾ queued s\n  ▾ queued f\n      queued b\n");
        let mut top = OnTerminal::start(&["top", at, "--interval", "50ms"]);
        let shows = |top: &OnTerminal, what: &str| {
            place.until(what, || top.screen().contains(what));
        };
        shows(&top, "q quit");
        // The filter's one task, and down to it.
        top.press(b"/b\r\x1b[Fs");
        shows(&top, "suspend /s/f/b? y or n");
        top.press(b"n");
        shows(&top, "not done");
        top.press(b"sy");
        let state = |what: &str| {
            place.until(what, || place.told(&["--query", "dstate", "/s/f/b"]).trim() == what);
        };
        state("suspended");
        shows(&top, "suspended  b");
        top.press(b"wuy");
        state("queued");
        shows(&top, "waits for its trigger a == complete and a:done: a is queued");
        top.press(b"q");
        place.until("its end", || top.seen().contains("CODE 0"));
        let seen = top.seen();
        assert!(seen.contains("\u{1b}[?1049h") && seen.contains("\u{1b}[?1049l"), "{seen}");
    });
}

/// Writes jobs of a definition by ecFlow's own module.
const THEIR_JOBS: &str = "\
import ecflow, sys
defs = ecflow.Defs(sys.argv[1])
control = ecflow.JobCreationCtrl()
control.set_dir_for_job_creation(sys.argv[2])
defs.check_job_creation(control)
print(control.get_error_msg(), end='')
";

#[test]
fn jobs_are_the_files_that_ecflow_s_own_module_writes() {
    if !has_ecflow() {
        return;
    }
    let place = Place::new();
    let home = place.home().display().to_string();
    place.write("home/head.h", "# %ECF_NAME% %ECF_TRYNO% %TASK% %FAMILY% %SUITE% %ECF_JOBOUT%\n");
    place.write("home/s/f/a.ecf", "%include <head.h>\n%manual\nx\n%end\necho %V% %NO:def% %R%\n");
    place.write("home/s/f/b.ecf", "%nopp\n%V%\n%end\n%ecfmicro &\n&V& &ECF_PORT&\n");
    place.write("home/s/f/bad.ecf", "echo %MISSING%\n");
    let file = place.write(
        "s.def",
        &format!(
            "suite s\n edit ECF_HOME '{home}'\n edit ECF_INCLUDE '%ECF_HOME%'\n \
             edit ECF_OUT '%ECF_HOME%/%SUITE%/%ECF_TRYNO%'\n family f\n \
             repeat integer R 3 9\n edit V 'value'\n task a\n task b\n trigger a == complete\n \
             task bad\n task none\n task dummy\n edit ECF_DUMMY_TASK ''\n endfamily\n \
             family g\n defstatus complete\n task off\n endfamily\nendsuite\n"
        ),
    );
    let file = file.to_str().expect("a path");
    let folders = ["ours", "theirs"].map(|name| place.write(&format!("{name}/x"), ""));
    let [ours, theirs] = folders.map(|path| path.parent().expect("a folder").to_owned());
    let (out, error, code) = run(&[
        "jobs",
        file,
        "--generate-only",
        "--home",
        &home,
        "--out",
        ours.to_str().expect("a path"),
    ]);
    assert_eq!(code, 3, "{out}{error}");
    assert!(out.starts_with("2 jobs written in ") && out.contains("1 without a script"), "{out}");
    assert!(out.trim_end().ends_with("2 could not be made"), "{out}");
    let python = Command::new(crate::definition::PYTHON)
        .args(["-c", THEIR_JOBS, file])
        .arg(&theirs)
        .output()
        .expect("python starts");
    let said = String::from_utf8_lossy(&python.stdout);
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&error), words(&said));
    let files = |folder: &std::path::Path| {
        let found = std::fs::read_dir(folder.join("s/f")).expect("jobs").flatten();
        let mut found: Vec<_> = found
            .map(|one| {
                let text = std::fs::read_to_string(one.path()).expect("a job");
                (one.file_name(), text)
            })
            .collect();
        found.sort();
        found
    };
    let (ours, theirs) = (files(&ours), files(&theirs));
    assert_eq!(ours.len(), 2);
    assert_eq!(ours, theirs);
    let (_, error, code) = run(&["jobs", file, "--home", "nowhere", "--generate-only"]);
    assert_eq!((code, error.trim()), (2, "error: --home nowhere: it is no folder"));
}

#[test]
fn what_a_job_writes_does_not_steer_the_terminal() {
    at_both(|place, at| {
        let file = place.write("s.def", DEFINITION).display().to_string();
        printed(&["load", at, &file]);
        let mut watch = Running::start(&["watch", at, "--interval", "10ms", "--what", "label"]);
        place.until("it follows", || place.told(&["--log=get", "100"]).contains("--sync="));
        place.told(&["--alter=change", "label", "info", "A\u{1b}]0;title\u{7}B\rC", "/s/f/a"]);
        let line = watch.line();
        assert!(line.contains("A\\u{1b}]0;title\\u{7}B\\rC"), "{line}");
        watch.terminate();
        watch.end();
        let text = printed(&["top", at, "--once", "--filter", "a"]);
        assert!(text.contains("info: A\\u{1b}]0;"), "{text}");
    });
}

#[test]
fn a_definition_that_comes_through_a_pipe_is_read_once() {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "commands::this_process_runs_the_client_command_it_is_told"]);
    command.arg("--nocapture").env(COMMAND, "stats\n/dev/stdin\n--json");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(DEFINITION.as_bytes()).expect("written");
    drop(input);
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = text.lines().find(|line| line.starts_with('{')).expect(&text);
    let json: Json = serde_json::from_str(json).expect("JSON");
    assert_eq!((&json["counts"]["suites"], &json["counts"]["tasks"]), (&1.into(), &2.into()));
}

#[test]
fn commands_of_a_definition_are_run_by_lint_only_where_that_is_said() {
    let place = Place::new();
    let ran = place.home().with_file_name("ran");
    let command = format!("touch {}; echo true", ran.display());
    let text = format!("suite s\n task t\n  edit ECF_SCRIPT_CMD '{command}'\nendsuite\n");
    let file = place.write("s.def", &text).display().to_string();
    let home = place.home().display().to_string();
    let lint = printed(&["lint", &file, "--home", &home]);
    assert!(lint.contains("--run-commands") && !ran.exists(), "{lint}");
    printed(&["lint", &file, "--home", &home, "--run-commands"]);
    assert!(ran.exists(), "it is run with --run-commands");
}

#[test]
fn what_is_misspelt_is_refused_and_what_is_not_there_yet_is_said() {
    let place = Place::new();
    let at = format!("localhost:{}", place.port);
    let _server = Served::ours(&place);
    let (_, error, code) = run(&["watch", &at, "--what", "sate"]);
    assert!(code == 2 && error.contains("--what sate") && error.contains("autocancel"), "{error}");
    let (_, error, code) = run(&["watch", &at, "--until", "/no=complete", "--for", "1ms"]);
    assert!(code == 3 && error.contains("there is no node /no yet"), "{error}");
    let none = place.write("none.def", "").display().to_string();
    let (_, error, code) = run(&["load", &at, &none]);
    assert!(code == 2 && error.contains("there is no suite"), "{error}");
}
