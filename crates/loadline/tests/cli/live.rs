//! The view on a terminal: that the terminal is as it was, whatever ends the run. The terminal is
//! the system's own `script`.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::{Place, await_end, await_that, processes_with, unique};

/// Two rounds of half a minute.
const SUITE: &str = r#"
title = "A long look"
[[target]]
name = "ours"
serve = "cache"
options = { memory = MEMORY }
[workload]
service = "cache"
operation = "get"
keys = { count = 500 }
value = { bytes = 40 }
[[clients]]
[rounds]
measure = "MEASURE"
slice = "50ms"
warm_up = "10ms"
at_least = 2
at_most = 2
disturbed = "ignore"
"#;

/// The suite with these rounds; no other test has a target of so much memory.
fn suite(measure: &str, memory: u32) -> String {
    SUITE.replace("MEASURE", measure).replace("MEMORY", &memory.to_string())
}

/// Whether all that is told to the terminal is how text looks: nothing is moved, hidden or kept.
fn is_plain(text: &str) -> bool {
    let looks = |told: &str| {
        let number = |one: char| one == '[' || one == ';' || one.is_ascii_digit();
        told.trim_start_matches(number).starts_with('m')
    };
    text.split('\u{1b}').skip(1).all(looks)
}

/// Takes and hides; shows and gives back.
const TAKEN: &str = "\u{1b}[?1049h\u{1b}[?25l";
const GIVEN_BACK: &str = "\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l";

/// `loadline run` on a terminal, and everything that came to be seen there. What the terminal is
/// set to is asked before and after, by a shell that outlives Ctrl-C.
struct OnTerminal {
    script: Child,
    seen: Arc<Mutex<String>>,
}

impl OnTerminal {
    fn run(place: &Place, arguments: &str, environment: &[(&str, &str)]) -> Self {
        std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
        let loadline = env!("CARGO_BIN_EXE_loadline");
        let line = format!(
            "trap : INT; stty rows 24 cols 80; echo BEFORE $(stty -g); \
             {loadline} run suite.toml --wait {arguments}; \
             echo CODE $?; echo AFTER $(stty -g)"
        );
        let mut command = Command::new("script");
        command.args(["--quiet", "--command", &line, "/dev/null"]).current_dir(place.path());
        command.env("TERM", "xterm").env("SHELL", "/bin/sh").env_remove("NO_COLOR");
        command.env("LOADLINE_LOCK", place.path().join("loadline.lock"));
        command.envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().expect("script runs");
        let mut out = script.stdout.take().expect("a pipe");
        let seen = Arc::new(Mutex::new(String::new()));
        let its = seen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                its.lock().expect("whole").push_str(&text);
            }
        });
        Self { script, seen }
    }

    fn seen(&self) -> String {
        self.seen.lock().expect("whole").clone()
    }

    /// Waits until the view is there and the target runs.
    fn await_target(&self, memory: u32) {
        self.await_seen(TAKEN);
        let marker = format!("--memory={memory}");
        await_that("the target runs", || !processes_with(&marker).is_empty());
    }

    fn await_seen(&self, what: &str) {
        await_that(what, || self.seen().contains(what));
    }

    fn type_in(&mut self, keys: &[u8]) {
        let input = self.script.stdin.as_mut().expect("a pipe");
        input.write_all(keys).and_then(|()| input.flush()).expect("it is read");
    }

    /// Everything seen, once the shell has said how the terminal is left.
    fn end(mut self) -> String {
        self.await_seen("AFTER ");
        drop(self.script.stdin.take());
        await_end(&mut self.script);
        self.seen()
    }
}

/// The terminal was taken once, nothing but text came after it was given back, and it is set as it
/// was before.
fn assert_restored(seen: &str) {
    assert_eq!(seen.matches(TAKEN).count(), 1, "{seen:?}");
    let (view, after) = seen.split_once(GIVEN_BACK).expect("it is given back");
    assert!(view.contains(TAKEN) && is_plain(after), "{after:?}");
    assert!(!view.contains("\u{1b}[6n"), "what the terminal answers would be typed into the shell");
    let set = |word: &str| seen.split_once(word).expect(word).1.split_whitespace().next();
    assert_eq!(set("BEFORE "), set("AFTER "));
}

#[test]
fn a_long_slice_is_looked_into_and_ctrl_c_gives_the_terminal_back_as_it_was() {
    let memory = unique(41);
    let one_slice = suite("30s", memory).replace("\"50ms\"", "\"none\"");
    let place = Place::with(&one_slice);
    let mut terminal = OnTerminal::run(&place, "", &[]);
    terminal.await_target(memory);
    // A slice of half a minute is looked into: "slice" becomes "second", letter by letter.
    terminal.await_seen("econd");
    // What is typed meanwhile is not shown; Ctrl-C is a signal as ever.
    terminal.type_in(b"\x03");
    let seen = terminal.end();
    assert_restored(&seen);
    let after = seen.split_once(GIVEN_BACK).expect("given back").1;
    assert!(after.contains("CODE 130") && after.contains("interrupted"), "{after}");
}

#[test]
fn a_run_to_its_end_leaves_its_report_on_the_screen_that_was_there() {
    let place = Place::with(&suite("100ms", unique(42)));
    let terminal = OnTerminal::run(&place, "", &[("NO_COLOR", "1")]);
    let seen = terminal.end();
    assert_restored(&seen);
    let after = seen.split_once(GIVEN_BACK).expect("given back").1;
    assert!(after.contains("0 wrong of"), "{after}");
    let view = seen.split_once(GIVEN_BACK).expect("given back").0;
    assert!(view.contains("conns") && !view.contains("\u{1b}[38;"), "NO_COLOR: {view:?}");
}

#[test]
fn a_second_signal_and_a_hang_up_give_it_back_too() {
    for signal in ["-TERM -TERM", "-HUP", "-QUIT"] {
        let memory = unique(43);
        let place = Place::with(&suite("30s", memory));
        let terminal = OnTerminal::run(&place, "", &[]);
        terminal.await_target(memory);
        let folder = place.path().display().to_string();
        let run = processes_with("suite.toml").into_iter().find(|process| {
            let at = std::fs::read_link(format!("/proc/{process}/cwd"));
            let exe = std::fs::read_link(format!("/proc/{process}/exe"));
            at.is_ok_and(|at| at.display().to_string() == folder)
                && exe.is_ok_and(|exe| exe.ends_with("loadline"))
        });
        let run = run.expect("the run").to_string();
        for signal in signal.split(' ') {
            let sent = Command::new("kill").args([signal, &run]).status();
            assert!(sent.expect("kill runs").success());
        }
        assert_restored(&terminal.end());
    }
}

#[test]
fn plain_lines_come_where_a_view_is_not_wanted() {
    let place = Place::with(&suite("100ms", unique(44)));
    for (arguments, environment) in
        [("--plain", &[][..]), ("", &[("TERM", "dumb")]), ("| cat", &[])]
    {
        let seen = OnTerminal::run(&place, arguments, environment).end();
        assert!(is_plain(&seen) && seen.contains("round 2"), "{arguments}: {seen:?}");
    }
}
