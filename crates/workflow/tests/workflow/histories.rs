//! `loadline workflow history`: runs by the log of either server, and every change in SQLite.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::commands::{Running, at_both, printed, run};
use crate::place::Place;

const SUITE: &str = "\
suite s
  limit l 2
  family f
    inlimit /s:l
    task a
    task b
      trigger a == complete
  endfamily
endsuite
";

/// The questions that the docs show.
const DOCS: &str = include_str!("../../../../docs/workflow-history.md");

/// Has the suite run to its end; returns its definition.
fn ran(place: &Place, at: &str) -> PathBuf {
    place.script("s/f/a", "sleep 1");
    place.script("s/f/b", "true");
    let file = place.write("s.def", SUITE);
    place.told(&["--restart"]);
    printed(&["load", at, file.to_str().expect("a path"), "--begin"]);
    place.until_state("/s", "complete");
    place.told(&["--log=flush"]);
    file
}

fn log(place: &Place) -> String {
    let log = std::fs::read_dir(place.home()).expect("home").flatten().map(|one| one.path());
    let log = log.into_iter().find(|path| path.to_string_lossy().ends_with(".ecf.log"));
    log.expect("a log").display().to_string()
}

/// All changes of states that a file has.
fn changes(file: &Path) -> Vec<(i64, String, String, String)> {
    let Ok(connection) = Connection::open(file) else { return Vec::new() };
    let select = "SELECT at, path, state, detail FROM change ORDER BY id";
    let Ok(mut select) = connection.prepare(select) else { return Vec::new() };
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    rows.expect("rows").collect::<Result<_, _>>().expect("changes")
}

#[test]
fn history_sums_up_the_runs_that_a_server_s_log_has() {
    at_both(|place, at| {
        let file = ran(place, at);
        let (file, log) = (file.to_str().expect("a path"), log(place));
        let json = printed(&["history", &log, "--defs", file, "--json"]);
        let json: Json = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&json["runs"], &json["tasks_run"]), (&2.into(), &2.into()), "{json}");
        assert_eq!(json["tasks"][0]["path"], "/s/f/a", "{json}");
        let chain = json["critical"].as_array().expect("runs").iter();
        let chain: Vec<_> = chain.filter_map(|run| run["path"].as_str()).collect();
        assert_eq!(chain, ["/s/f/a", "/s/f/b"], "{json}");
        assert_eq!(json["limits"][0]["limit"], "/s:l", "{json}");
        let text = printed(&["history", &log, "--under", "/s/f/b"]);
        assert!(text.starts_with("1 runs of 1 tasks\n") && text.ends_with("/s/f/b\n"), "{text}");
    });
    let (_, error, code) = run(&["history", "/nowhere.log"]);
    assert_eq!(code, 2, "{error}");
}

#[test]
fn every_change_of_a_state_is_kept_in_sqlite_by_the_log_and_by_following() {
    at_both(|place, at| {
        let followed = place.home().with_file_name("followed.sqlite");
        let to = followed.to_str().expect("a path");
        let words = ["history", "--follow", at, "--to", to, "--interval", "50ms"];
        let follower = Running::start(&words);
        let file = ran(place, at);
        let read = place.home().with_file_name("read.sqlite");
        let read_to = read.to_str().expect("a path");
        let (log, file) = (log(place), file.to_str().expect("a path"));
        let first = printed(&["history", &log, "--to", read_to, "--defs", file]);
        let all = changes(&read);
        let states = all.iter().filter(|(_, path, ..)| path == "/s/f/b");
        let states: Vec<&str> = states.map(|(_, _, state, _)| state.as_str()).collect();
        assert!(states.ends_with(&["active", "complete"]), "{all:?}");
        // What was read before isn't taken again, and what came since is.
        assert_eq!(first, printed(&["history", &log, "--to", read_to]));
        assert_eq!(changes(&read), all);
        place.told(&["--requeue=force", "/s"]);
        place.until_state("/s", "complete");
        place.told(&["--log=flush"]);
        printed(&["history", &log, "--to", read_to]);
        let all = changes(&read);
        place.until("the follower has all", || changes(&followed) == all);
        follower.terminate();
        follower.end();
        // Once more, from where it ended.
        place.told(&["--requeue=force", "/s"]);
        place.until_state("/s", "complete");
        printed(&[&words[..], &["--for", "1s"]].concat());
        place.told(&["--log=flush"]);
        printed(&["history", &log, "--to", read_to]);
        assert_eq!(changes(&followed), changes(&read));
        let gaps = Connection::open(&followed).expect("a database");
        let gaps = gaps.query_row("SELECT count(*) FROM gap", [], |row| row.get::<_, i64>(0));
        assert_eq!(gaps.expect("a number"), 0);
        let (_, error, code) = run(&["history", &log, "--to", to]);
        assert!(code == 2 && error.contains("it follows"), "{error}");
        for file in [&followed, &read] {
            questions(file);
        }
    });
}

/// Asks what the docs ask.
fn questions(file: &Path) {
    let connection = Connection::open(file).expect("a database");
    let blocks: Vec<&str> = DOCS.split("```sql\n").skip(1).collect();
    assert!(blocks.len() > 3, "the docs have questions");
    for block in blocks {
        let question = block.split("```").next().unwrap_or_default();
        let mut question = connection.prepare(question).expect(question);
        let mut rows = question.query([]).expect("rows");
        assert!(rows.next().expect("a row").is_some(), "{block}");
    }
    let first = "SELECT path FROM critical_path LIMIT 1";
    let first: String = connection.query_row(first, [], |row| row.get(0)).expect("a chain");
    assert_eq!(first, "/s/f/a");
}

const LOG: &str = "\
LOG:[00:00:02 2.1.1970]  submitted: /s/f/t
LOG:[00:00:03 2.1.1970]  active: /s/f/t
LOG:[00:00:05 2.1.1970]  complete: /s/f/t
LOG:[00:00:06 2.1.1970]  submitted: /s/f/t/alias0
LOG:[00:00:06 2.1.1970]  active: /s/f/t/alias0
LOG:[00:00:06 2.1.1970]  complete: /s/f/t/alias0
LOG:[00:00:07 2.1.1970]  submitted: /s/f
LOG:[00:00:08 2.1.1970]  submitted: /s/f/u
LOG:[00:00:09 2.1.1970]  queued: /s/f/u
LOG:[10:01:02 2.1.1970]  submitted: /s/f/u
LOG:[10:01:03 2.1.1970]  active: /s/f/u
LOG:[10:01:04 2.1.1970]  complete: /s/f/u
LOG:[10:01:04 2.1.1970]  submitted: /s/f/v
LOG:[10:01:04 2.1.1970]  active: /s/f/v
LOG:[10:01:04 2.1.1970]  complete: /s/f/v
";

#[test]
fn aliases_runs_taken_back_and_runs_within_a_second_count_as_what_they_are() {
    let place = Place::new();
    let log = place.write("x.log", LOG).display().to_string();
    let text = "suite s\n limit l 1\n family f\n inlimit /s:l\n task t\n task u\n task v\n";
    let defs = place.write("s.def", text).display().to_string();
    let json = printed(&["history", &log, "--defs", &defs, "--json"]);
    let json: Json = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["tasks_run"], 4, "{json}");
    let tasks = json["tasks"].as_array().expect("tasks");
    let of = |path: &str| tasks.iter().find(|task| task["path"] == path).expect(path);
    assert_eq!((&of("/s/f/t")["runs"], &of("/s/f/u")["longest_wait"]), (&1.into(), &1.into()));
    let limit = &json["limits"][0];
    assert_eq!((&limit["most"], &limit["full"]), (&1.into(), &5.into()), "{json}");
    let only = place.write("v.log", &LOG[LOG.len() - 120..]).display().to_string();
    let (_, error, code) = run(&["history", &only]);
    assert!(code == 2 && error.contains("no server's log"), "{error}");
    let (_, error, code) = run(&["history", &log, "--under", "s"]);
    assert!(code == 2 && error.contains("write a path"), "{error}");
}

#[test]
fn a_file_that_is_something_else_is_refused() {
    let place = Place::new();
    let log = place.write("x.log", "LOG:[00:00:02 2.1.1970]  submitted: /s/a\n");
    let other = place.home().with_file_name("other.sqlite");
    let made = Connection::open(&other).expect("a database");
    made.execute_batch("CREATE TABLE t (x)").expect("a table");
    let (log, to) = (log.to_str().expect("a path"), other.to_str().expect("a path"));
    let (_, error, code) = run(&["history", log, "--to", to]);
    assert!(code == 2 && error.contains("a database of something else"), "{error}");
    let (_, error, code) = run(&["history", log, "--to", log]);
    assert!(code == 2 && error.contains("not a database"), "{error}");
    let (_, error, code) = run(&["history", "--follow", "localhost:1"]);
    assert!(code == 2 && error.contains("--to"), "{error}");
}
