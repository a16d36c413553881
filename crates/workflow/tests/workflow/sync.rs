//! Synchronisation: a client that follows by what has changed has what a new client gets.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use testing::program;

use crate::definition::{PYTHON, has_ecflow};
use crate::place::Place;
use crate::served::Served;

/// The environment variable with another seed than [`DEFAULT_SEED`].
const SEED: &str = "WORKFLOW_SEED";
/// One whose commands come upon a deleted node that is put back and then unknown.
const DEFAULT_SEED: u64 = 25_887;

fn seed() -> u64 {
    let given = std::env::var(SEED).map(|text| text.parse().expect("a number"));
    let seed = given.unwrap_or(DEFAULT_SEED);
    println!("{SEED}={seed}");
    seed
}

/// Loads the definition, begins it without jobs, and has the script send commands and compare.
/// Returns how many syncs brought changes and not the whole, and what it wrote.
fn follow(place: &Place, seed: u64, commands: u32, peer: &[&str]) -> (u32, String) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflow");
    let definition = tests.join("sync.def");
    place.told(&[&format!("--load={}", definition.display())]);
    place.told(&["--shutdown=yes"]);
    place.told(&["--begin"]);
    let out = place.write("sync.out", "");
    let mut command = Command::new(PYTHON);
    command.arg(tests.join("sync.py")).arg(place.port.to_string());
    command.arg(seed.to_string()).arg(commands.to_string()).arg(&out).args(peer);
    let output = command.output().expect("python starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "seed {seed}\n{error}");
    let printed = String::from_utf8_lossy(&output.stdout);
    // ecFlow's own client prints before it.
    let last = printed.lines().last().and_then(|line| line.trim().parse().ok());
    let followed = last.unwrap_or_else(|| panic!("no number of syncs: {printed}"));
    (followed, std::fs::read_to_string(out).expect("written"))
}

#[test]
fn a_client_that_follows_the_changes_has_what_a_new_client_gets() {
    if !has_ecflow() {
        return;
    }
    let seed = seed();
    let place = Place::new();
    let _server = Served::ours(&place);
    let (followed, _) = follow(&place, seed, 400, &[]);
    assert!(followed > 100, "seed {seed}: {followed} of 400 syncs were of changes only");
}

#[test]
fn a_client_that_follows_has_nodes_that_come_and_go() {
    if !has_ecflow() {
        return;
    }
    let seed = seed();
    let place = Place::new();
    let _server = Served::ours(&place);
    let (followed, _) = follow(&place, seed, 200, &["structure"]);
    assert!(followed > 40, "seed {seed}: {followed} of 200 syncs were of changes only");
}

#[test]
fn children_are_written_as_ecflow_writes_them() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let run = |place: &Place| -> Vec<String> {
        let text = include_str!("children.def");
        let file = place.write("home/children.def", text).display().to_string();
        place.write("home/s/f/b.ecf", "echo %V:1%\n");
        for words in [
            &["--load", &file][..],
            &["--begin=s"],
            &["--suspend=/s/f/g"],
            &["--alter=set_flag", "message", "/s/f/b", "/s/f"],
            &["--force=active", "/s/f/c"],
            &["--alter=change", "label", "lab", "new", "/s/f/a"],
        ] {
            place.told(words);
        }
        let edited = place.told(&["--edit_script", "/s/f/b", "edit"]);
        let edited = place.write("home/edited", &edited).display().to_string();
        let of = |words: &[&str]| {
            let known = numbers(place);
            place.told(words);
            format!("{words:?}\n{}", changes(&sync(place, 1, known)))
                .replace(&place.home().display().to_string(), "HOME")
        };
        let alias =
            of(&["--edit_script", "/s/f/b", "submit_file", &edited, "create_alias", "no_run"]);
        // ecFlow sends what is new of an alias once more behind it.
        let (children, _) = alias.split_once("AliasNumberMemento").expect("a number");
        vec![
            children.to_owned(),
            of(&["--delete", "yes", "/s/f/gone"]),
            of(&["--delete", "yes", "/s/f/b/alias0"]),
        ]
    };
    let (own, other) = (Place::new(), Place::new());
    let _ours = Served::ours(&own);
    let _theirs = Served::theirs(&other);
    crate::edited::assert_same(&run(&own), &run(&other));
}

/// Asks as a client that knows the changes up to these numbers; `kind` 1 is a sync, 2 a full one.
fn sync(place: &Place, kind: u8, (state, modify): (u64, u64)) -> String {
    let document = format!(
        r#"{{"r":{{"cmd_":{{"polymorphic_id":2147483649,"polymorphic_name":"CSyncCmd",
        "ptr_wrapper":{{"id":2147483649,"data":{{"cereal_class_version":0,
        "value0":{{"cereal_class_version":0,"value0":{{"cereal_class_version":0,"cl_host_":"vm"}},
        "user_":"root"}},"api_":{kind},"client_handle_":0,"client_state_change_no_":{state},
        "client_modify_change_no_":{modify}}}}}}}}}}}"#
    );
    let mut stream = TcpStream::connect(("127.0.0.1", place.port)).expect("connected");
    write!(stream, "{:8x}{document}", document.len()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The numbers of the last changes, of states and of structure.
fn numbers(place: &Place) -> (u64, u64) {
    let text = sync(place, 2, (0, 0));
    let number = |name: &str| {
        let behind = text.split(name).nth(1).unwrap_or_default();
        let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    (number("state_change:"), number("modify_change:"))
}

/// The answer's changes, without numbers, times, and a calendar: that is there where a minute of
/// the server has passed.
fn changes(answer: &str) -> String {
    let varies = |line: &&str| {
        let names = ["_change_no_\"", "\"duration\"", "\"ptime\""];
        !names.iter().any(|name| line.contains(name))
    };
    let from = answer.find("\"full_defs_\"").expect("an answer to a sync");
    let lines: Vec<&str> = answer[from..].lines().filter(varies).collect();
    let has = |what: &str| lines.iter().position(|line| line.contains(what));
    // The calendar's element begins eight lines above its type.
    let end = has("SuiteCalendarMemento").map(|line| line - 8).or_else(|| has("\"server_defs_\""));
    let kept = lines[..end.expect("an end")].join("\n");
    kept.trim_end_matches(['\n', ' ', '[', ']', '{', '}', ',']).to_owned()
}

/// A change of each kind; flags where attributes are added are left out by ecFlow, so that those
/// nodes have theirs before.
const CHANGES: &[&str] = &[
    "--suspend=/s/f/b",
    "--resume=/s/f/b",
    "--alter=change event e set /s/f/a",
    "--force=set /s/f/b:e",
    "--alter=change label lab new /s/f/a",
    "--alter=change meter m 33 /s/f/a",
    "--alter=change variable X y /s/f",
    "--alter=add variable N y /s/f/b",
    "--alter=add variable N y /s/f",
    "--alter=delete variable N /s/f/b",
    "--alter=add variable P y /",
    "--alter=change limit_max L 4 /s",
    "--alter=change limit_value L 2 /s",
    "--alter=add variable N y /s",
    "--alter=change defstatus complete /s/f/c",
    "--alter=set_flag late /s/f/c",
    "--alter=add variable N y /s/f/c",
    "--alter=clear_flag late /s/f/c",
    "--order=/s/f/c top",
    "--order=/t top",
    "--free-dep=trigger /s/f/b",
    "--free-dep=date /s/f/c",
    "--free-dep=time /s/f/c",
    "--force=active /s/f/a",
    "--force=complete /s/f/b",
    "--halt=yes",
    "--shutdown=yes",
];

/// What a sync brings after each change.
fn of_each(place: &Place) -> Vec<String> {
    let definition =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflow/sync.def").display().to_string();
    for before in [&["--load", &definition][..], &["--shutdown=yes"], &["--begin"]] {
        place.told(before);
    }
    place.told(&["--suspend", "/s", "/t"]);
    place.told(&["--alter=set_flag", "message", "/s/f/b", "/s/f/c", "/s/f"]);
    let of = |change: &&str| {
        let known = numbers(place);
        place.told(&change.split(' ').collect::<Vec<_>>());
        format!("{change}\n{}", changes(&sync(place, 1, known)))
    };
    CHANGES.iter().map(of).collect()
}

#[test]
fn a_change_of_each_kind_is_written_as_ecflow_writes_it() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    // A second, which is a minute of the suites, moves times of nodes: where it passes between a
    // change and its sync at one of the servers only, that change is made once more.
    let mut unequal: Vec<usize> = (0..CHANGES.len()).collect();
    for left in (0..8).rev() {
        let (own, other) = (Place::new(), Place::new());
        let _ours = Served::ours(&own);
        let _theirs = Served::theirs(&other);
        let (ours, theirs) = (of_each(&own), of_each(&other));
        unequal.retain(|change| ours[*change] != theirs[*change]);
        match unequal.first() {
            None => return,
            Some(change) if left == 0 => assert_eq!(ours[*change], theirs[*change]),
            Some(_) => {}
        }
    }
}

#[test]
fn a_client_of_the_future_or_from_before_a_restart_gets_the_whole() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let served = Served::ours(&place);
    let file = place.write("s.def", "suite s\n  task t\n    label l \"\"\nendsuite\n");
    place.told(&["--load", &file.display().to_string()]);
    let before = numbers(&place);
    place.told(&["--alter=change", "label", "l", "x", "/s/t"]);
    let is_full = |known| sync(&place, 1, known).contains("\"full_defs_\": true");
    assert!(!is_full(before), "one change behind");
    let last = numbers(&place);
    assert!(is_full((last.0 + 1, last.1)) && is_full((last.0, last.1 + 1)), "of the future");
    served.kill();
    let _served = Served::ours(&place);
    assert!(is_full(before) && is_full(last), "from before the restart");
    let now = numbers(&place);
    assert!(now.0 >= last.0 && now.1 > last.1, "{last:?}, and then {now:?}");
    assert!(!is_full(now), "up to date");
}
