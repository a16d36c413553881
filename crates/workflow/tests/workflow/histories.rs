//! `loadline workflow history`: runs by the log of either server, and every change in SQLite.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value as Json;
use workflow::protocol::frame::{HEAD_BYTES, length};

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
        assert!(
            text.starts_with("1 run of 1 task ended\n")
                && text.ends_with("      1        0  /s/f/b\n"),
            "{text}"
        );
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
        let (_, error, code) = follower.end();
        assert_eq!(code, 0, "{error}");
        // All is in the one file.
        let alone = followed.with_file_name("alone.sqlite");
        std::fs::copy(&followed, &alone).expect("a copy");
        assert_eq!(changes(&alone), all);
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
fn a_node_that_is_not_there_is_an_error_and_one_that_has_not_run_is_noted() {
    let place = Place::new();
    let log = place.write("x.log", &format!("{LOG}LOG:[10:01:05 2.1.1970]  queued: /s/f/w\n"));
    let log = log.display().to_string();
    let defs = place.write("s.def", "suite s\n family g\n  task x\n").display().to_string();
    let to = place.home().with_file_name("x.sqlite").display().to_string();
    for words in [vec!["--under", "/nope"], vec!["--under", "/s/f/tt"]] {
        for more in [vec![], vec!["--to", &to], vec!["--defs", &defs], vec!["--json"]] {
            let all = [&["history", &log][..], &words, &more].concat();
            let (out, error, code) = run(&all);
            let under = words.last().expect("a node");
            assert!(code == 2 && error.contains(under) && out.is_empty(), "{all:?}: {out}{error}");
        }
    }
    // The file has the changes of the log, which isn't read again.
    for more in [vec![], vec!["--to", &to]] {
        let all = [&["history", &log, "--under", "/s/f/w"][..], &more].concat();
        let (out, error, code) = run(&all);
        assert_eq!((code, out.as_str()), (0, "0 runs of 0 tasks ended\n"), "{all:?}: {error}");
        assert!(error.contains("no task at or below /s/f/w has run"), "{error}");
    }
    let (_, error, code) = run(&["history", &log, "--under", "/s/g/x", "--defs", &defs]);
    assert!(code == 0 && error.contains("no task at or below /s/g/x has run"), "{error}");
    let (_, error, code) = run(&["history", &log, "--under", "/s/f/"]);
    assert!(code == 0 && error.is_empty(), "{error}");
    let json = printed(&["history", &log, "--under", "/s/f/w", "--json"]);
    assert!(json.contains("\"tasks\":[]"), "{json}");
}

/// Sums up logs, as JSON.
fn summed(words: &[&str]) -> Json {
    serde_json::from_str(&printed(&[&["history", "--json"], words].concat())).expect("JSON")
}

#[test]
fn tokens_are_given_back_when_the_job_is_active_where_the_limit_is_of_submissions() {
    let place = Place::new();
    let line = |second: u8, state: &str, task: &str| {
        format!("LOG:[00:00:{second:02} 2.1.1970]  {state}: /s/{task}\n")
    };
    // a runs on.
    let log = [
        line(2, "submitted", "a"),
        line(3, "active", "a"),
        line(4, "submitted", "b"),
        line(5, "active", "b"),
        line(50, "complete", "b"),
    ];
    let log = place.write("x.log", &log.concat()).display().to_string();
    let text = "suite s\n limit l 1\n task a\n inlimit -s l\n task b\n inlimit -s l\n";
    let defs = place.write("s.def", text).display().to_string();
    let json = summed(&[&log, "--defs", &defs]);
    let limit = &json["limits"][0];
    let seen = ["most", "full", "used"].map(|name| limit[name].as_i64());
    assert_eq!(seen, [Some(1), Some(2), Some(2)], "{json}");
    assert_eq!(json["not_ended"], 1, "{json}");
}

#[test]
fn what_a_run_without_an_end_holds_is_held_until_the_last_that_is_known_of_any_run() {
    let place = Place::new();
    let log: String = [(10, "submitted", "a"), (13, "active", "a"), (50, "submitted", "b")]
        .map(|(second, state, task)| format!("LOG:[00:00:{second} 2.1.1970]  {state}: /s/{task}\n"))
        .concat();
    let log = place.write("x.log", &log).display().to_string();
    let text = "suite s\n limit l 1\n task a\n inlimit l\n task b\n";
    let defs = place.write("s.def", text).display().to_string();
    let limit = &summed(&[&log, "--defs", &defs])["limits"][0];
    let seen = ["most", "full", "used"].map(|name| limit[name].as_i64());
    assert_eq!(seen, [Some(1), Some(40), Some(40)], "{limit}");
}

#[test]
fn what_submissions_held_counts_of_runs_whose_end_was_not_seen() {
    let place = Place::new();
    // While it was active a was requeued first, and then submitted again.
    let log: String = [
        (10, "submitted"),
        (13, "active"),
        (20, "queued"),
        (30, "submitted"),
        (34, "active"),
        (40, "submitted"),
        (45, "active"),
    ]
    .map(|(second, state)| format!("LOG:[00:00:{second} 2.1.1970]  {state}: /s/a\n"))
    .concat();
    let log = place.write("x.log", &log).display().to_string();
    let text = "suite s\n limit l 1\n task a\n inlimit -s l\n";
    let defs = place.write("s.def", text).display().to_string();
    let json = summed(&[&log, "--defs", &defs]);
    let limit = &json["limits"][0];
    let seen = ["most", "full", "used"].map(|name| limit[name].as_i64());
    assert_eq!(seen, [Some(1), Some(12), Some(12)], "{json}");
}

#[test]
fn a_run_that_was_requeued_while_it_ran_does_not_end_with_what_is_forced_later() {
    let place = Place::new();
    let log = "LOG:[09:59:00 2.1.1970]  submitted: /s/a\nLOG:[10:00:00 2.1.1970]  active: /s/a\n\
               LOG:[10:05:00 2.1.1970]  queued: /s/a\nLOG:[18:00:00 2.1.1970]  complete: /s/a\n";
    let log = place.write("x.log", log).display().to_string();
    let json = summed(&[&log]);
    assert_eq!((&json["runs"], &json["not_ended"]), (&0.into(), &0.into()), "{json}");
}

#[test]
fn a_run_counts_whose_submission_a_crash_took_and_those_not_ended_are_named() {
    let place = Place::new();
    let log = "LOG:[00:00:01 2.1.1970]  queued: /m/t\nLOG:[00:00:02 2.1.1970]  active: /m/t\n\
               LOG:[00:00:05 2.1.1970]  complete: /m/t\nLOG:[00:00:06 2.1.1970]  active: /m/u\n";
    let log = place.write("x.log", log).display().to_string();
    let json = summed(&[&log]);
    assert_eq!((&json["runs"], &json["not_ended"]), (&1.into(), &1.into()), "{json}");
    assert_eq!(
        (&json["tasks"][0]["longest"], &json["tasks"][0]["path"]),
        (&3.into(), &"/m/t".into())
    );
    let text = printed(&["history", &log]);
    assert!(text.starts_with("1 run of 1 task ended, 1 not\n"), "{text}");
    assert!(text.ends_with("\nNot ended:\n  /m/u  active since 1970-Jan-02 00:00:06\n"), "{text}");
    let file = place.home().with_file_name("runs.sqlite");
    printed(&["history", &log, "--to", file.to_str().expect("a path")]);
    let connection = Connection::open(&file).expect("a file");
    let none = "SELECT count(*) FROM run WHERE submitted IS NULL";
    assert_eq!(connection.query_row(none, [], |row| row.get::<_, i64>(0)).expect("a row"), 2);
}

#[test]
fn a_log_that_has_been_renamed_is_not_read_again() {
    let place = Place::new();
    let to = place.home().with_file_name("runs.sqlite");
    let file = to.to_str().expect("a path");
    let live = place.write("h.1.ecf.log", LOG);
    let live = live.to_str().expect("a path");
    printed(&["history", live, "--to", file]);
    let first = changes(&to);
    // ecFlow's --log=new: the name goes to another log.
    let old = live.replace(".ecf", ".old.ecf");
    std::fs::rename(live, &old).expect("renamed");
    let more = "LOG:[11:00:00 2.1.1970]  complete: /s/f/x\n";
    std::fs::write(&old, format!("{LOG}{more}")).expect("written");
    place.write("h.1.ecf.log", "LOG:[12:00:00 2.1.1970]  complete: /s/f/y\n");
    for order in [[&old[..], live], [live, &old]] {
        printed(&["history", order[0], order[1], "--to", file]);
        let all = changes(&to);
        assert_eq!(all.len(), first.len() + 2, "{all:?}");
        assert_eq!(all[..first.len()], first);
    }
}

#[test]
fn a_file_keeps_all_of_a_log_whatever_part_is_shown() {
    let place = Place::new();
    let log = place.write("x.log", LOG).display().to_string();
    let to = place.home().with_file_name("runs.sqlite").display().to_string();
    let paths = |json: &Json| -> Vec<String> {
        let tasks = json["tasks"].as_array().expect("tasks").iter();
        tasks.filter_map(|task| Some(task["path"].as_str()?.to_owned())).collect()
    };
    let part = summed(&[&log, "--under", "/s/f/u"]);
    assert_eq!((paths(&part), &part["tasks_run"]), (vec!["/s/f/u".to_owned()], &1.into()));
    assert_eq!(summed(&[&log, "--to", &to, "--under", "/s/f/u"]), part);
    assert_eq!(paths(&summed(&[&log, "--to", &to])).len(), 4);
    assert_eq!(summed(&[&log, "--to", &to, "--under", "/s/f/u/"]), part);
    let (_, error, code) = run(&["history", &log, "--to", &to, "--under", "/s/f/u'x"]);
    assert!(code == 2 && error.contains("has no such node"), "{error}");
    let none = summed(&[&log, "--slowest", "0"]);
    assert_eq!((paths(&none).len(), &none["tasks_run"]), (0, &4.into()));
    let words = ["history", "--follow", "localhost:1", "--to", &to, "--under", "/s"];
    let (_, error, code) = run(&words);
    assert!(code == 2 && error.contains("--under"), "{error}");
}

#[test]
fn a_file_of_another_version_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let log = place.write("x.log", LOG).display().to_string();
    let file = place.home().with_file_name("runs.sqlite");
    let to = file.to_str().expect("a path");
    printed(&["history", &log, "--to", to]);
    let count = changes(&file).len();
    let made = Connection::open(&file).expect("a database");
    made.execute_batch("PRAGMA user_version = 1").expect("another version");
    drop(made);
    let (_, error, code) = run(&["history", &log, "--to", to]);
    assert!(code == 2 && error.contains("version 1") && error.contains("another"), "{error}");
    assert_eq!(changes(&file).len(), count);
}

/// Passes requests on to a server, but for the log's second one, whose connection it closes.
fn with_a_break(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        let mut of_the_log = 0;
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut head = [0; HEAD_BYTES];
            if client.read_exact(&mut head).is_err() {
                continue;
            }
            let bytes = length(head, 1 << 20).expect("a length") as usize;
            let mut request = vec![0; bytes];
            client.read_exact(&mut request).expect("a request");
            of_the_log += i32::from(request.windows(6).any(|part| part == b"LogCmd"));
            if of_the_log == 2 {
                of_the_log += 1;
                continue;
            }
            let mut to = TcpStream::connect(("127.0.0.1", server)).expect("the server");
            to.write_all(&[&head[..], &request].concat()).expect("sent");
            let mut answer = Vec::new();
            to.read_to_end(&mut answer).expect("an answer");
            // Who has asked may be gone.
            let _ = client.write_all(&answer);
        }
    });
    port
}

#[test]
fn changes_are_taken_of_a_log_that_could_not_be_had_at_once() {
    at_both(|place, at| {
        let file = place.home().with_file_name("followed.sqlite");
        let (to, through) = (file.to_str().expect("a path"), with_a_break(place.port));
        let definition = place.write("s.def", "suite s\n task a\n");
        printed(&["load", at, definition.to_str().expect("a path")]);
        let through = format!("localhost:{through}");
        let words = ["history", "--follow", &through, "--to", to, "--interval", "20ms"];
        let follower = Running::start(&words);
        place.until("it follows", || {
            let Ok(made) = Connection::open(&file) else { return false };
            let known = "SELECT lines <> '' FROM last_lines";
            made.query_row(known, [], |row| row.get(0)).unwrap_or(false)
        });
        // Nothing changes behind this.
        place.told(&["--force=complete", "/s/a"]);
        place.told(&["--log=flush"]);
        place.until("the change is taken", || {
            let all = changes(&file);
            all.iter().any(|(_, path, state, _)| path == "/s/a" && state == "complete")
        });
        follower.terminate();
        follower.end();
    });
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
    // What is no log leaves no file.
    let definition = place.write("x.def", "suite s\n").display().to_string();
    let new = place.home().with_file_name("new.sqlite");
    let to = new.to_str().expect("a path");
    let folder = place.home().display().to_string();
    for (no_log, meant) in [
        (&*definition, "no server's log"),
        (&folder, "regular file"),
        ("/dev/zero", "regular file"),
    ] {
        let (_, error, code) = run(&["history", no_log, "--to", to]);
        assert!(code == 2 && error.contains(meant), "{error}");
        assert!(!new.exists(), "{no_log}");
    }
    let (_, error, code) = run(&["history", "--follow", "localhost:1"]);
    assert!(code == 2 && error.contains("--to"), "{error}");
}
