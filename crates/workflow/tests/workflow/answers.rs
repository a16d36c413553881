//! What both servers answer to the same commands, remember of them, and write into their logs.

use testing::program;
use workflow::protocol::{Command, NodeCommand};

use crate::edited::said;
use crate::jobs::normalised;
use crate::levels::client;
use crate::place::Place;
use crate::served::Served;

const SUITES: &str = "\
suite s
  edit ECF_JOB_CMD 'true'
  edit ECF_DUMMY_TASK ''
  family f
    task a
      event e
  endfamily
  task b
endsuite
suite t
  task a
endsuite
";

/// Commands to a server that is halted, whose suites have not begun: words between bars.
const BEFORE_BEGIN: &[&str] = &[
    "--kill|/s",
    "--kill|/s/b|/nope",
    "--status|/s",
    "--run|/s",
    "--run|/nope|/s/f|/s/b",
    "--run|force|/s/b",
    "--requeue|/s/b",
    "--requeue|abort|/nope|/s",
    "--query|trigger|/s|b == complete",
    "--query|trigger|/s|f/a == complete",
    "--query|trigger|/s|f/a:e == 1",
    "--query|trigger|/s|../b == complete",
    "--query|trigger|/s|s == complete",
    "--query|trigger|/s|/s/b == complete",
    "--query|trigger|/s/b|c == complete",
    "--alter|change|trigger|b == complete|/s",
    "--alter|change|complete|f/a == complete|/s",
    "--alter|change|trigger|1 == 1|/s",
    "--alter|change|complete|s == complete|/s",
    "--edit_history|/s",
    "--edit_history|/s/b",
];

/// Of some only what changes something is remembered, and then at all their nodes.
const REMEMBERED: &[&str] = &[
    "--free-dep|/s/b|/s/f",
    "--free-dep|date|/s/b",
    "--free-dep|all|/s/b",
    "--edit_history|/s/b",
    "--alter|change|trigger|f == complete|/s/b",
    "--free-dep|/s/b|/s/f",
    "--free-dep|/s/b",
    "--edit_history|/s/b",
    "--edit_history|/s/f",
    "--force=set|/s/f/a:e",
    "--force=set|/s/f/a:nope|/s/b:nope|/:nope|/nope:e",
    "--force=clear|/s/f/a:nope",
    "--edit_history|/s/f/a",
    "--edit_history|/s/b",
    "--alter|add|variable|V|1|/",
    "--alter|change|event|e|set|/",
    "--alter|add|time|10:00|/",
    "--alter|delete|variable|NONE|/",
    "--alter|set_flag|late|/",
    "--edit_history|/",
    "--job_gen=/",
    "--restart",
    "--job_gen=/",
    "--job_gen=/nope",
    "--halt=yes",
];

/// Commands to handles, to the log, and those that only the client carries out.
const OTHERS: &[&str] = &[
    "--ch_register|true|s",
    "--ch_suites",
    "--ch_add|1|t",
    "--ch_add|9|t",
    "--ch_rem|1|s",
    "--ch_auto_add|1|false",
    "--ch_auto_add|9|true",
    "--ch_suites",
    "--ch_drop|1",
    "--ch_drop|1",
    "--ch_register|false|s|t",
    "--ch_register|true",
    "--ch_drop_user|other",
    "--ch_drop_user|root",
    "--ch_drop_user",
    "--ch_suites",
    "--show",
    "--show|state",
    "--group=get; show",
    "--group=get; show state",
    "--server_load|/nope",
    "--log=clear",
    "--log=get",
    "--log=get|1",
];

/// A text without the times of day in it.
pub(crate) fn undated(text: &str) -> String {
    let mut left = String::new();
    for line in text.lines() {
        match line.split_once(":[").and_then(|(kind, rest)| Some((kind, rest.split_once(']')?.1))) {
            Some((kind, rest)) => left.push_str(&format!("{kind}:{rest}\n")),
            None => left.push_str(&format!("{line}\n")),
        }
    }
    left
}

fn run(place: &Place, commands: &[&str]) -> Vec<String> {
    let file = place.write("suites.def", SUITES);
    place.told(&[&format!("--load={}", file.display())]);
    let said = |command: &&str| {
        let words: Vec<&str> = command.split('|').collect();
        undated(&normalised(place, &said(place, &words)).replace(&*file.to_string_lossy(), "FILE"))
    };
    commands.iter().map(said).collect()
}

/// Both servers answer the same.
fn compare(commands: &[&str]) {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let served = [Served::ours(&own), Served::theirs(&other)];
    let (ours, theirs) = (run(&own, commands), run(&other, commands));
    drop(served);
    let both = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs);
    let differ: Vec<String> = both.map(|(a, b)| format!("ours: {a}theirs: {b}")).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn what_is_asked_of_suites_that_have_not_begun_is_answered_as_ecflow_does() {
    compare(BEFORE_BEGIN);
}

#[test]
fn what_changes_nothing_is_remembered_where_ecflow_remembers_it() {
    compare(REMEMBERED);
}

#[test]
fn handles_the_log_and_what_only_the_client_does_are_as_with_ecflow() {
    compare(OTHERS);
}

/// The first word behind `defs_state` in the answer for who migrates, and its lines of history.
fn migrated(place: &Place) -> Vec<String> {
    run(place, &[]);
    place.told(&["--suspend", "/s/b"]);
    let text = client(place.port).text(Command::Node(NodeCommand::Migrate, String::new()));
    let text = text.expect("a text");
    let head = text.lines().find(|line| line.starts_with("defs_state")).expect("its state");
    let head = head.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let kept = text.lines().filter(|line| line.starts_with("history /s/b"));
    std::iter::once(head).chain(kept.map(undated)).collect()
}

/// What is the same at this server and at ecFlow's; nothing where that isn't installed.
fn same_at_both(of: fn(&Place) -> Vec<String>) -> Option<Vec<String>> {
    program("ecflow_client").and(program("ecflow_server"))?;
    let (own, other) = (Place::new(), Place::new());
    let _served = [Served::ours(&own), Served::theirs(&other)];
    let ours = of(&own);
    assert_eq!(ours, of(&other));
    Some(ours)
}

#[test]
fn who_migrates_is_sent_a_client_s_text_with_the_history() {
    let Some(ours) = same_at_both(migrated) else { return };
    assert!(ours[0] == "defs_state NET" && ours[1].contains("--suspend"), "{ours:?}");
}

/// The lines of the log with states of `/`.
fn of_the_root(place: &Place) -> Vec<String> {
    run(place, &["--begin=s"]);
    for command in [
        &["--force=submitted", "/s/b"][..],
        &["--force=active", "/s/b"],
        &["--force=complete", "recursive", "/s"],
        &["--force=aborted", "/s/b"],
        &["--requeue", "force", "/s"],
        &["--delete=force", "yes", "/s"],
        &["--delete=force", "yes", "_all_"],
        &["--log=flush"],
    ] {
        place.told(command);
    }
    let log = undated(&place.log());
    let lines = log.lines().filter(|line| line.starts_with("LOG:") && line.ends_with(": /"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_log_has_each_state_that_the_root_comes_to() {
    let Some(ours) = same_at_both(of_the_root) else { return };
    assert!(ours.iter().any(|line| line == "LOG:  aborted: /"), "{ours:?}");
}
