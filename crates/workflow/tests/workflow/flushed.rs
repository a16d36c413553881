//! What the log's file has when the server is killed, by what its lines wait for (`--log-flush`).

use testing::program;

use crate::answers::undated;
use crate::place::Place;
use crate::served::Served;

/// What of the changes that [`changed`] makes is logged: two commands, each with what comes of it.
const CHANGED: [&str; 8] = [
    "MSG: --force=complete /s/t",
    "LOG:  complete: /s/t",
    "LOG:  complete: /s",
    "LOG:  complete: /",
    "MSG: --force=aborted /s/t",
    "LOG:  aborted: /s/t try-no: 0 reason: ",
    "LOG:  aborted: /s",
    "LOG:  aborted: /",
];

/// A server whose lines wait for this, with a change of a task's state and another, both answered.
/// No checkpoint is made by itself.
fn changed(flush: &str) -> (Place, Served) {
    let place = Place::new();
    let served = Served::by_command(&place, &["--log-flush", flush], &[]);
    let file = place.write("s.def", "suite s\n  task t\nendsuite\n");
    place.told(&["--check_pt=never"]);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--force=complete", "/s/t"]);
    place.told(&["--force=aborted", "/s/t"]);
    (place, served)
}

/// The lines of the file from the first change on, without times and users.
fn lines(place: &Place) -> Vec<String> {
    let log = undated(&place.log());
    let lines = log.lines().map(|line| line.split(" :").next().unwrap_or_default().to_owned());
    lines.skip_while(|line| line != CHANGED[0]).collect()
}

fn are(lines: &[String], expected: &[&str]) -> bool {
    lines.iter().eq(expected)
}

fn has_ecflow() -> bool {
    program("ecflow_client").is_some()
}

#[test]
fn a_killed_server_leaves_the_lines_that_waited_for_what_had_come() {
    if !has_ecflow() {
        return;
    }
    for (flush, expected) in [
        ("write", &CHANGED[..]),
        ("command", &CHANGED),
        ("group", &CHANGED),
        ("checkpoint", &[]),
        ("error", &[]),
        // The lines of requests take with them what waited before them.
        ("message=write,change=checkpoint", &CHANGED[..5]),
        ("message=checkpoint,change=write", &CHANGED),
    ] {
        let (place, served) = changed(flush);
        // No answer waits for lines, not even for those that wait for nothing.
        place.until(flush, || lines(&place).len() >= expected.len());
        served.kill();
        assert!(are(&lines(&place), expected), "{flush}: {:?}", lines(&place));
    }
}

#[test]
fn lines_that_wait_for_a_checkpoint_come_with_it_and_those_for_an_error_do_not() {
    if !has_ecflow() {
        return;
    }
    for flush in ["checkpoint", "error"] {
        let (place, served) = changed(flush);
        place.told(&["--check_pt"]);
        let expected = match flush {
            "checkpoint" => [&CHANGED[..], &["MSG: --check_pt"]].concat(),
            _ => Vec::new(),
        };
        place.until(flush, || lines(&place).len() >= expected.len());
        served.kill();
        assert!(are(&lines(&place), &expected), "{flush}: {:?}", lines(&place));
    }
}

#[test]
fn errors_and_warnings_wait_for_nothing_and_take_with_them_what_was_before() {
    if !has_ecflow() {
        return;
    }
    let error = ["--suspend=/nope"];
    let warning = ["--alter=add", "time", "10:00", "/"];
    for flush in ["write", "command", "group", "checkpoint", "error"] {
        for (words, kind) in [(&error[..], "ERR:"), (&warning, "WAR:")] {
            let (place, served) = changed(flush);
            // An error is one to the client, too; a warning is the log's alone.
            assert_eq!(place.client(words).status.success(), kind == "WAR:", "{words:?}");
            let is_there = || lines(&place).iter().any(|line| line.starts_with(kind));
            place.until(kind, is_there);
            served.kill();
            let lines = lines(&place);
            assert!(are(&lines[..CHANGED.len()], &CHANGED), "{flush}: {lines:?}");
            let more = &lines[CHANGED.len()..];
            let [request, line] = more else { panic!("{flush}: {more:?}") };
            assert!(request.starts_with("MSG:") && line.starts_with(kind), "{flush}: {more:?}");
        }
    }
}
