//! What `--stats` counts, beside ecFlow's server.

use testing::program;

use crate::place::Place;
use crate::served::Served;

const SUITE: &str = "\
suite s
  task t
    event e
    meter m 0 10
    label l \"\"
endsuite
";

/// The commands, in order; a `!` before one that fails.
const COMMANDS: [&[&str]; 43] = [
    &["--ping"],
    &["--load=DEFINITION"],
    &["--stats_reset"],
    &["--ping"],
    &["--server_version"],
    &["--restart"],
    &["--check_pt"],
    &["--check_pt=always"],
    &["--check_pt=30"],
    &["--check_pt=alarm:7"],
    &["--suspend=/s"],
    &["--begin=s"],
    &["--resume=/s"],
    &["--suspend=/s"],
    &["--get"],
    &["--get_state"],
    &["--migrate"],
    &["--why"],
    &["--sync", "0", "0", "0"],
    &["--news", "0", "0", "0"],
    &["--suites"],
    &["--ch_register", "true", "s"],
    &["--ch_suites"],
    &["--requeue=/s"],
    &["--force=complete", "/s/t"],
    &["--force-dep-eval"],
    &["--free-dep=/s/t"],
    &["--order=/s", "top"],
    &["--alter=add", "variable", "V", "1", "/s"],
    &["--edit_history=/s"],
    &["--edit_history=/"],
    &["--msg=hello"],
    &["--log=path"],
    &["--log=flush"],
    &["--query", "state", "/s"],
    &["--zombie_get"],
    &["--debug_server_on"],
    &["--debug_server_off"],
    &["--group=ping; get; ping"],
    &["--halt=yes"],
    &["--shutdown=yes"],
    &["!", "--reloadwsfile"],
    &["!", "--delete=yes", "/nowhere"],
];

/// Asks all, and returns the statistics without what is another for each server.
fn counted(place: &Place) -> String {
    let definition = place.write("s.def", SUITE).display().to_string();
    for &command in &COMMANDS {
        let fails = command[0] == "!";
        let words = command[usize::from(fails)..].iter();
        let words: Vec<_> = words.map(|word| word.replace("DEFINITION", &definition)).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        assert_eq!(place.client(&words).status.success(), !fails, "{words:?}");
    }
    let text = place.told(&["--stats"]);
    // ecFlow's number of suites is 0 here, however many there are.
    let own = [
        "Version",
        "Up since",
        "ECF_HOME",
        "ECF_LOG",
        "ECF_CHECK",
        "Port",
        "Request's per",
        "Number of Suites",
    ];
    let is_own = |line: &str| own.iter().any(|start| line.trim_start().starts_with(start));
    text.lines().filter(|line| !is_own(line)).fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn requests_are_counted_as_ecflow_counts_them() {
    let Some(_) = program("ecflow_server") else { return };
    let place = Place::new();
    let served = Served::theirs(&place);
    let theirs = counted(&place);
    served.kill();
    let place = Place::new();
    let _served = Served::ours(&place);
    let ours = counted(&place);
    assert_eq!(ours, theirs);
    assert!(ours.contains("Check pt mode"), "{ours}");
}

/// What a server says of its log after each of these, by the last part of the path.
fn rotated(place: &Place) -> Vec<String> {
    let home = place.home().display().to_string();
    let mut said = Vec::new();
    for words in [
        &["--log=new", "HOME/first.log"][..],
        &["--log=new", "HOME/second.log"],
        &["--log=new"],
        &["--alter=add", "variable", "ECF_LOG", "HOME/third.log", "/"],
        &["--log=new"],
        &["!", "--log=new", "HOME/nowhere/x.log"],
    ] {
        let fails = words[0] == "!";
        let words = words[usize::from(fails)..].iter().map(|word| word.replace("HOME", &home));
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(place.client(&words).status.success(), !fails, "{words:?}");
        let path = place.told(&["--log=path"]);
        let stats = place.told(&["--stats"]);
        let of_stats = stats.lines().find(|line| line.contains("ECF_LOG")).unwrap_or_default();
        let state = place.told(&["--get_state"]);
        let is_variable = |line: &&str| line.contains("edit ECF_LOG") && !line.contains("# server");
        let variable = state.lines().find(is_variable).unwrap_or_default();
        said.push([path.trim(), of_stats.trim(), variable.trim()].join(" ").replace(&home, "HOME"));
    }
    said
}

#[test]
fn a_log_that_goes_on_in_another_file_is_named_as_ecflow_names_it() {
    let Some(_) = program("ecflow_server") else { return };
    let place = Place::new();
    let served = Served::theirs(&place);
    let theirs = rotated(&place);
    served.kill();
    let place = Place::new();
    let served = Served::ours(&place);
    let ours = rotated(&place);
    assert_eq!(ours, theirs);
    assert!(ours[2].starts_with("HOME/second.log"), "{ours:?}");
    assert!(ours[4].starts_with("HOME/third.log"), "{ours:?}");
    served.kill();
}
