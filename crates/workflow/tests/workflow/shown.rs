//! What commands print for people: reasons of several lines, that there is nothing, and why an
//! expression is too long.

use std::time::Duration;

use serde_json::Value as Json;
use workflow::protocol::{Body, Child, Command, Report, Request, ServerCommand, write};

use crate::commands::{DEFINITION, printed, run};
use crate::definition::has_ecflow;
use crate::edited::{is_as_with_ecflow, said};
use crate::levels::client;
use crate::place::Place;
use crate::served::{Served, start};

#[test]
fn a_reason_of_several_lines_is_shown_as_lines() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    let (definition, file) = (DEFINITION.to_owned(), "s.def".to_owned());
    client.command(Command::Load { force: false, definition, file }).expect("loaded");
    client.command(Command::Server(ServerCommand::Shutdown)).expect("shut down");
    client.command(Command::Begin { suite: String::new(), force: false }).expect("begun");
    let (path, password) = ("/s/f/a".to_owned(), "_DJP_".to_owned());
    let child = Child { path, password, process_id: "1".to_owned(), try_no: 1 };
    // ecFlow drops the end of the first line.
    let report = Report::Abort("it \nfailed:\nno such file \u{1b}[2J\n/s/f/b waits".to_owned());
    let body = Body::Child(child, report);
    client.send(&write(&Request { host: "h".to_owned(), body })).expect("aborted");
    let at = format!("localhost:{}", place.port);
    let why = printed(&["why", &at, "/s/f/a"]);
    let lines = "it failed:\n      no such file \\u{1b}[2J\n      /s/f/b waits\n";
    assert!(why.contains(lines), "{why}");
    let json: Json = serde_json::from_str(&printed(&["why", &at, "/s/f/a", "--json"])).expect("");
    let why = json["why"].as_array().expect("lines").iter().filter_map(Json::as_str);
    assert!(why.into_iter().any(|line| line.contains("failed:\nno such")), "{json}");
    server.stop(Duration::from_secs(1));
}

#[test]
fn of_a_task_whose_command_waits_for_a_place_the_one_that_hangs_is_named() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    // The server runs eight at once, and these until the test is over.
    let hangs = "touch %ECF_HOME%/%TASK%; while test -e %ECF_HOME%/wait; do sleep 0.05; done";
    place.write("home/wait", "");
    let tasks: String = (0..8).map(|at| format!("task t{at}\n")).collect();
    let definition = format!(
        "suite s\nedit ECF_NO_SCRIPT 1\nedit ECF_JOB_CMD '{hangs}'\n{tasks}family f\ntask last\n\
         trigger 1 == 0\nendsuite\n"
    );
    let file = "s.def".to_owned();
    client.command(Command::Load { force: false, definition, file }).expect("loaded");
    client.command(Command::Server(ServerCommand::Restart)).expect("started");
    client.command(Command::Begin { suite: String::new(), force: false }).expect("begun");
    let at = format!("localhost:{}", place.port);
    let why = |path: &str| printed(&["why", &at, path]);
    place.until("eight run", || (0..8).all(|at| place.home().join(format!("t{at}")).exists()));
    client.command(Command::Run { paths: vec!["/s/f/last".to_owned()], force: true }).expect("run");
    let waits = "its ECF_JOB_CMD waits, as all places of jobs' commands (--max-jobs 8) are taken: \
                 the oldest, ECF_JOB_CMD of /s/t";
    place.until("it waits", || why("/s/f/last").contains(waits));
    let below = why("/s/f");
    assert!(below.contains("/s/f/last waits\n") && below.contains(waits), "{below}");
    let runs = why("/s/t0");
    assert!(runs.contains("its ECF_JOB_CMD has run for "), "{runs}");
    std::fs::remove_file(place.home().join("wait")).expect("removed");
    server.stop(Duration::from_secs(1));
}

#[test]
fn a_definition_in_binary_and_one_that_is_no_text_are_named_in_words_and_as_json() {
    let place = Place::new();
    let file = place.write("s.def", "");
    for (bytes, why) in [
        (&b"LWT1\x03\xff"[..], "this is the binary encoding of a definition"),
        (b"LWT1\x03", "this is the binary encoding of a definition"),
        (b"suite s\n\xff\n", "s.def:2: this line is no UTF-8 text"),
    ] {
        std::fs::write(&file, bytes).expect("written");
        let file = file.display().to_string();
        for command in ["check", "lint"] {
            let (out, error, code) = run(&[command, &file, "--json"]);
            assert!(code == 2 && error.contains(why), "{out}{error}");
            let json: Json = serde_json::from_str(&out).expect("a document");
            let found = &json["findings"][0];
            assert_eq!((&json["errors"], &found["rule"]), (&1.into(), &"unreadable".into()));
            assert!(found["text"].as_str().is_some_and(|text| text.contains(why)), "{json}");
        }
        let (out, error, code) = run(&["print", &file]);
        assert!(code == 2 && out.is_empty() && error.contains(why), "{out}{error}");
    }
}

const REFUSING: &str = "\
suite x
  limit lim 2
  family f
    trigger 1 == 0
    task a
      event e
      meter m 0 100
      label l \"\"
    task b
    task c
      edit ECF_OUT '/nowhere'
    task d
      edit ECF_OUT '/nowhere'
      edit ECF_JOBOUT '/nowhere/d'
  endfamily
endsuite
";

#[test]
fn what_is_refused_is_refused_in_ecflow_s_words_and_what_is_cut_says_so() {
    is_as_with_ecflow(|place| {
        let file = place.write("home/x.def", REFUSING).display().to_string();
        place.write("home/x/f/a.0", "1\n2\n3\n4\n5\n");
        place.write("home/x/f/c.0", "below ECF_HOME\n");
        place.write("home/x/f.man", "%manual\nWhat f is.\n%end\n");
        place.told(&[&format!("--load={file}")]);
        place.told(&["--begin=x"]);
        let commands = [
            "--file /x/f/a jobout 3|--file /x/f/a jobout 5|--file /x/f/a jobout 6",
            "--file /x/f/b jobout|--file /x/f/b job|--file /x/f/b kill|--file /x/f/b stat",
            "--file /x/f script|--file /x/f jobout|--file /x/f/c jobout|--file /x/f/d jobout",
            "--file /x/f manual|--file /x manual|--file /x/no script",
            "--query event /x/f/a:no|--query meter /x/f/a:no|--query label /x/f/a:no",
            "--query limit /x:no|--query limit_max /x/f:lim|--query repeat /x|--query repeat /",
            "--query variable /x/f/a:no|--query event /x/f/a:e|--query variable /:no",
            "--query state /|--query dstate /|--query variable /:ECF_HOME",
            "--begin=no|--run /no /none|--requeue /no|--free-dep all /no|--suspend /no",
            "--force clear /x/f/a:no|--force aborted /x/f/a:e|--force complete /no",
            "--force=active /x/f/a /x/f/b|--replace /x/f FILE|--replace /x FILE",
        ];
        let commands = commands.iter().flat_map(|some| some.split('|'));
        let said = commands.map(|command| {
            let command = command.replace("FILE", &file);
            said(place, &command.split(' ').collect::<Vec<_>>())
        });
        said.collect()
    });
}

#[test]
fn a_command_that_finds_nothing_notes_so() {
    let place = Place::new();
    let at = format!("localhost:{}", place.port);
    let _server = Served::ours(&place);
    let none = place.write("none.def", "").display().to_string();
    for (words, noted) in [
        (vec!["get", &at], "the server has no suite"),
        (vec!["get", &at, "--level", "1"], "the server has no suite"),
        (vec!["top", &at, "--once"], "the server has no suite"),
        (vec!["print", &none], "there is no suite in it"),
        (vec!["watch", &at, "--for", "50ms"], "nothing of what is watched has changed"),
    ] {
        let (out, error, code) = run(&words);
        assert!(code == 0 && error.contains(noted), "{words:?}: {out}{error}");
    }
    let file = place.write("s.def", DEFINITION).display().to_string();
    printed(&["load", &at, &file]);
    let (_, error, code) = run(&["top", &at, "--once", "--filter", "nope"]);
    assert!(code == 0 && error.contains("no node is such a one"), "{error}");
    let (out, error, code) = run(&["get", &at, "--level", "0"]);
    assert!(code == 0 && error.is_empty(), "{out}{error}");
}

#[test]
fn an_expression_has_no_more_terms_than_ecflow_s_client_reads() {
    let place = Place::new();
    let at = format!("localhost:{}", place.port);
    let _server = Served::ours(&place);
    let of = |terms: usize| {
        let trigger = vec!["a == complete"; terms].join(" or ");
        let text = format!("suite s\n task a\n task t\n  trigger {trigger}\nendsuite\n");
        place.write("s.def", &text).display().to_string()
    };
    let file = of(2_001);
    let why = "at most 2000 terms";
    let (out, error, code) = run(&["check", &file]);
    assert!(code == 3 && out.contains(why) && out.contains("s.def:4"), "{out}{error}");
    assert!(error.contains("not looked at because of these errors: references"), "{error}");
    let (_, error, code) = run(&["load", &at, &file]);
    assert!(code == 2 && error.contains(why), "{error}");
    // As a client sends what it has read itself.
    let definition = std::fs::read_to_string(&file).expect("a file");
    let definition = definition.replacen("suite", "defs_state NET\nsuite", 1);
    let load = Command::Load { force: false, definition, file: "s.def".to_owned() };
    let refused = client(place.port).command(load).expect_err("too many").to_string();
    assert!(refused.contains(why) && refused.contains(":5:"), "{refused}");
    let file = of(2_000);
    assert!(printed(&["check", &file]).starts_with("0 errors"));
    printed(&["load", &at, &file]);
    if has_ecflow() {
        let read = place.told(&["--get", "/s/t"]);
        assert!(read.contains("trigger a == complete or a == complete"), "{read}");
    }
}
