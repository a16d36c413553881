//! A server's tree by levels, with bodies on demand, in this program's own protocol; at ecFlow's
//! server the same commands ask in ecFlow's.

use std::time::Duration;

use workflow::client::{Client, Levels};
use workflow::definition::{Style, print_cut};
use workflow::model::{ALL_LEVELS, NodeId, Snapshot};
use workflow::protocol::{
    Alteration, Body, Command, Encoding, Order, PathsCommand, Request, Requeue, ServerCommand,
    SyncKind, User, write,
};

use crate::commands::{Running, at_both, printed, run};
use crate::hostile::answer;
use crate::place::Place;
use crate::random_definition::Random;
use crate::served::start;

pub(crate) const DEFINITION: &str = "\
suite s
  edit A 'a  b'
  label top 'x'
  limit l 3
  family f
    meter m 0 100
    family g
      task a
        event e
        label l 'none'
      task b
        trigger a == complete
    endfamily
    task c
      inlimit /s:l
  endfamily
  task d
    repeat integer R 1 5
endsuite
suite t
  clock real 300
  family f
    task a
    task b
    task c
  endfamily
endsuite
";

pub(crate) fn client(port: u16) -> Client {
    let user = User { name: "me".to_owned(), ..User::default() };
    let address = format!("127.0.0.1:{port}");
    Client::new(&address, user, Duration::from_secs(20), None).expect("an address")
}

pub(crate) fn shown(levels: &Levels) -> String {
    let mut text = String::new();
    let style = (Style::Net, true);
    print_cut(levels.tree(), levels.marks(), style, &mut |piece| text.push_str(piece));
    text
}

/// Something that changes the tree, or is refused.
pub(crate) fn change(random: &mut Random) -> Command {
    let paths =
        ["/s", "/s/f", "/s/f/g", "/s/f/g/a", "/s/f/g/b", "/s/f/c", "/s/d", "/t/f", "/t/f/b"];
    let path = random.pick(&paths).to_owned();
    let paths = vec![path.clone()];
    let altered = |alteration, name: &str, value: String| Command::Alter {
        paths: paths.clone(),
        alteration,
        name: name.to_owned(),
        value,
    };
    match random.below(14) {
        0 => Command::Paths { command: PathsCommand::Suspend, paths, force: false },
        1 => Command::Paths { command: PathsCommand::Resume, paths, force: false },
        2..=4 => {
            let word = random.pick(&["complete", "queued", "aborted", "active"]).to_owned();
            let recursive = random.chance(50);
            Command::Force { paths, word, recursive, repeats_to_last: false }
        }
        5 => Command::Requeue { paths, option: Requeue::Force },
        6 => {
            let order = random.pick(&[Order::Top, Order::Bottom, Order::Reverse, Order::Down]);
            Command::Order { path, order }
        }
        7 | 8 => altered(Alteration::Add("variable"), "V", random.below(9).to_string()),
        9 => altered(Alteration::Delete("variable"), "V", String::new()),
        10 => altered(Alteration::Change("label"), "top", random.below(99).to_string()),
        11 => Command::Delete { paths, force: true },
        12 => Command::Load {
            force: true,
            definition: DEFINITION.to_owned(),
            file: "x.def".to_owned(),
        },
        _ => Command::Replace {
            creates: true,
            force: true,
            path,
            file: "x.def".to_owned(),
            definition: DEFINITION.to_owned(),
        },
    }
}

#[test]
fn what_is_synced_by_levels_is_what_a_new_client_gets() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    let load = |client: &Client| {
        let (definition, file) = (DEFINITION.to_owned(), "x.def".to_owned());
        client.command(Command::Load { force: true, definition, file }).expect("loaded");
        client.command(Command::Begin { suite: String::new(), force: true }).expect("begun");
    };
    let mut compared = 0;
    for seed in 0..8 {
        load(&client);
        let mut random = Random::new(seed);
        let encoding = random.pick(&[Encoding::Text, Encoding::Binary]);
        let (path, levels) = random.pick(&[("/", 1), ("/", 2), ("/", 3), ("/s", 1), ("/", 0)]);
        let has_bodies = seed % 2 == 0;
        let all = || -> Option<Levels> {
            let mut new = Levels::new(client.clone(), encoding, path, levels).ok()?;
            if has_bodies {
                new.open("/s/f/g", ALL_LEVELS).ok()?;
                new.open("/t/f", 1).ok()?;
            }
            Some(new)
        };
        let mut followed = all().expect("levels");
        for _ in 0..40 {
            let command = change(&mut random);
            // Some are refused: of nodes that are gone, or have no such attribute.
            let done = client.command(command.clone());
            if followed.sync().is_err() || all().is_none() {
                // A node that is followed is gone.
                load(&client);
                followed = all().expect("levels");
                continue;
            }
            let mut compare = || {
                let new = shown(&all().expect("levels"));
                followed.sync().expect("synced");
                (shown(&followed), new)
            };
            let mut pair = compare();
            for _ in 0..20 {
                // A minute may have passed between both requests: then they are asked again.
                if pair.0 != pair.1 {
                    pair = compare();
                }
            }
            assert_eq!(pair.0, pair.1, "seed {seed}, {command:?} {done:?}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} compared");
    server.stop(Duration::from_secs(1));
}

/// The paths of a tree that are there.
fn paths(tree: &Snapshot) -> Vec<String> {
    let all = tree.walk(NodeId::ROOT).filter(|id| *id != NodeId::ROOT);
    all.map(|id| tree.path(id)).collect()
}

#[test]
fn bodies_come_on_demand_and_all_of_an_answer_is_of_one_moment() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    let (definition, file) = (DEFINITION.to_owned(), "x.def".to_owned());
    client.command(Command::Load { force: false, definition, file }).expect("loaded");
    for encoding in [Encoding::Text, Encoding::Binary] {
        let mut levels = Levels::new(client.clone(), encoding, "/", 1).expect("levels");
        assert_eq!(paths(levels.tree()), ["/s", "/t"]);
        let suite = levels.tree().find("/s").expect("the suite");
        assert!(levels.marks().get(&suite).is_some_and(|mark| mark.is_cut));
        levels.open("/s/f", 0).expect("a body");
        assert_eq!(paths(levels.tree()), ["/s", "/s/f", "/t"]);
        let paths_of = vec!["/s".to_owned()];
        let (command, force) = (PathsCommand::Suspend, false);
        client.command(Command::Paths { command, paths: paths_of, force }).expect("suspended");
        levels.open("/s/f/g/a", 0).expect("a body");
        let tree = levels.tree();
        assert!(tree.find("/s").is_some_and(|id| tree.node(id).is_suspended), "it came with it");
        assert_eq!(tree.state_change_no(), client.tree().expect("a tree").state_change_no());
        let refused = levels.open("/s/nope", 0).expect_err("there is no such node");
        assert!(refused.to_string().contains("/s/nope"), "{refused}");
        assert_eq!(paths(levels.tree()), ["/s", "/s/f", "/s/f/g", "/s/f/g/a", "/t"]);
        let paths_of = vec!["/s".to_owned()];
        let (command, force) = (PathsCommand::Resume, false);
        client.command(Command::Paths { command, paths: paths_of, force }).expect("resumed");
    }
    server.stop(Duration::from_secs(1));
}

#[test]
fn a_sync_that_is_refused_for_want_of_room_leaves_the_bodies_open() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    let (definition, file) = (DEFINITION.to_owned(), "x.def".to_owned());
    client.command(Command::Load { force: false, definition, file }).expect("loaded");
    let mut levels = Levels::new(client.clone(), Encoding::Binary, "/", 1).expect("levels");
    levels.open("/s/f", 1).expect("a body");
    let before = paths(levels.tree());
    let variable = |alteration, no: u32, bytes: usize| Command::Alter {
        paths: vec!["/s".to_owned()],
        alteration,
        name: format!("V{no}"),
        value: "v".repeat(bytes),
    };
    for no in 0..20 {
        client.command(variable(Alteration::Add("variable"), no, 500_000)).expect("added");
    }
    let refused = levels.sync().expect_err("there is no room");
    assert!(refused.to_string().contains("--send-memory"), "{refused}");
    assert_eq!(paths(levels.tree()), before);
    for no in 0..20 {
        client.command(variable(Alteration::Delete("variable"), no, 0)).expect("deleted");
    }
    levels.sync().expect("synced");
    assert_eq!(paths(levels.tree()), before);
    server.stop(Duration::from_secs(1));
}

#[test]
fn get_prints_so_many_levels_of_either_server() {
    at_both(|place, at| {
        let file = place.write("x.def", DEFINITION);
        printed(&["load", at, file.to_str().expect("a path")]);
        for encoding in ["text", "binary"] {
            let suites = printed(&["get", at, "--level", "1", "--encoding", encoding]);
            let names: Vec<_> = suites.lines().filter(|line| line.contains("suite")).collect();
            let cut = ["suite s # part:cut", "endsuite", "suite t # part:cut", "endsuite"];
            assert_eq!(names, cut, "{suites}");
            let body = printed(&["get", at, "/s/f", "--level", "1", "--encoding", encoding]);
            assert!(body.contains("family g # part:cut") && body.contains("task c"), "{body}");
            assert!(body.contains("suite s # part:bare,others") && !body.contains("task d"));
            let suite = printed(&["get", at, "/s", "--level", "0", "--encoding", encoding]);
            assert!(suite.contains("suite s # part:cut\n"), "{suite}");
            let all = printed(&["get", at, "--encoding", encoding]);
            assert_eq!(all, printed(&["get", at]), "{encoding}");
        }
        let server = printed(&["get", at, "--level", "0", "--json"]);
        assert_eq!(server, "");
        let (_, error, code) = run(&["get", at, "/nope", "--level", "1"]);
        assert!(code == 1 && error.contains("/nope"), "{error}");
    });
}

#[test]
fn watch_follows_so_many_levels_of_either_server() {
    at_both(|place, at| {
        let file = place.write("x.def", DEFINITION);
        printed(&["load", at, file.to_str().expect("a path"), "--begin"]);
        let words = ["watch", at, "--level", "1", "--interval", "20ms", "--what", "label,state"];
        let mut watch = Running::start(&[&words[..], &["--until", "/t=suspended"]].concat());
        place.until("it follows", || {
            place.told(&["--log=get", "100"]).matches("--sync").count() > 1
        });
        place.told(&["--alter=change", "label", "l", "deep", "/s/f/g/a"]);
        place.told(&["--alter=change", "label", "top", "high", "/s"]);
        let line = watch.line();
        assert!(line.ends_with("/s  label top high"), "{line}");
        place.told(&["--suspend=/t"]);
        let (rest, error, code) = watch.end();
        assert!(code == 0 && rest.ends_with("/t  state suspended\n"), "{rest}{error}");
    });
    let (_, error, code) = run(&["watch", "localhost:1", "--level", "1", "--until", "/s/f=active"]);
    assert!(code == 2 && error.contains("--until /s/f"), "{error}");
}

#[test]
fn a_header_is_told_apart_from_a_length_and_changes_nothing() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let request = |command| {
        let user = User { name: "me".to_owned(), ..User::default() };
        let document = write(&Request { host: "h".to_owned(), body: Body::User(user, command) });
        [format!("{:8x}", document.len()).into_bytes(), document].concat()
    };
    let sync = || {
        request(Command::Sync {
            kind: SyncKind::Changes,
            handle: 0,
            state_change_no: 0,
            modify_change_no: 0,
        })
    };
    let ask =
        |line: &str, request: Vec<u8>| answer(place.port, &[line.as_bytes(), &request].concat());
    let said = ask("loadline/1 encoding=text part=/,1\n", sync());
    assert!(said.starts_with("loadline/1 encoding=text bytes=0"), "{said}");
    assert!(said.contains("\ndefs_state NET"), "{said}");
    for (line, why) in [
        ("loadline/9 encoding=text part=/,1\n", "doesn't begin with"),
        ("loadline/1 encoding=text\n", "there is no part"),
        ("loadline/1 part=/nope,1\n", "Cannot find node at path '/nope'"),
        ("lots of other words\n", "such as"),
    ] {
        let said = ask(line, sync());
        assert!(said.contains("ErrorCmd") && said.contains(why), "{said}");
    }
    let (definition, file) = (DEFINITION.to_owned(), "x.def".to_owned());
    let load = request(Command::Load { force: false, definition, file });
    let said = ask("loadline/1 part=/,1\n", load);
    assert!(said.contains("goes with a sync"), "{said}");
    let restart = request(Command::Server(ServerCommand::Restart));
    assert!(ask("loadline/1 part=/,1\n", restart).contains("goes with a sync"));
    assert_eq!(client(place.port).tree().expect("a tree").count(), 0);
    server.stop(Duration::from_secs(1));
}
