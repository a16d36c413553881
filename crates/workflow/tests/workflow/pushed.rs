//! Changes that a server sends without being asked again, in this program's own protocol.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use workflow::client::{Client, Levels};
use workflow::model::ALL_LEVELS;
use workflow::protocol::{
    Alteration, Body, Command, Encoding, LogCommand, PathsCommand, Request, ServerCommand,
    SyncKind, User, read_own, write,
};

use crate::commands::{Running, printed};
use crate::levels::{DEFINITION, change, client, shown};
use crate::place::Place;
use crate::random_definition::Random;
use crate::served::{Served, start, start_with};

/// The bytes by which an answer of this program's own protocol begins.
const HEAD: usize = 8;

fn load(client: &Client) {
    let (definition, file) = (DEFINITION.to_owned(), "x.def".to_owned());
    client.command(Command::Load { force: true, definition, file }).expect("loaded");
    client.command(Command::Begin { suite: String::new(), force: true }).expect("begun");
}

fn suspend(client: &Client, path: &str) {
    let (command, paths) = (PathsCommand::Suspend, vec![path.to_owned()]);
    client.command(Command::Paths { command, paths, force: false }).expect("suspended");
}

fn set(client: &Client, path: &str, value: &str) {
    let alteration = Alteration::Add("variable");
    let (paths, name, value) = (vec![path.to_owned()], "BIG".to_owned(), value.to_owned());
    client.command(Command::Alter { paths, alteration, name, value }).expect("set");
}

/// Has a node come to states one after another.
fn force(client: &Client, path: &str, words: &[&str]) {
    for word in words {
        let (paths, word) = (vec![path.to_owned()], (*word).to_owned());
        let (recursive, repeats_to_last) = (true, false);
        let force = Command::Force { paths, word, recursive, repeats_to_last };
        client.command(force).expect("forced");
    }
}

/// Waits until this number of clients have asked for changes.
fn until_followed(place: &Place, client: &Client, count: usize) {
    let log = || client.text(Command::Log(LogCommand::Get(1000))).expect("the log");
    place.until("it follows", || log().matches("--sync=").count() >= count);
}

/// What goes on without being news: numbers and calendars.
fn lasting(text: &str) -> String {
    let is_lasting = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("defs_state") && !line.starts_with("calendar")
    };
    text.lines().filter(is_lasting).collect::<Vec<_>>().join("\n")
}

/// A connection over which changes come.
struct Stream(TcpStream);

impl Stream {
    fn begin(port: u16, words: &str) -> Self {
        let (kind, handle) = (SyncKind::Changes, 0);
        let sync = Command::Sync { kind, handle, state_change_no: 0, modify_change_no: 0 };
        let user = User { name: "me".to_owned(), ..User::default() };
        let document = write(&Request { host: "h".to_owned(), body: Body::User(user, sync) });
        let line = format!("loadline/1 encoding=text {words}\n{:8x}", document.len());
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        stream.write_all(&[line.as_bytes(), &document].concat()).expect("sent");
        Self(stream)
    }

    /// The next answer, or refusal.
    fn next(&mut self) -> String {
        let mut head = vec![0; HEAD];
        self.0.read_exact(&mut head).expect("an answer");
        let bytes = if head[0] == b'l' {
            while !head.ends_with(b"\n") {
                let mut byte = [0];
                self.0.read_exact(&mut byte).expect("a line");
                head.extend(byte);
            }
            let ((_, bytes), _) = read_own(&head).expect("a line").expect("a whole one");
            bytes
        } else {
            let digits = String::from_utf8_lossy(&head);
            u64::from_str_radix(digits.trim(), 16).expect("a length")
        };
        let mut answer = Vec::new();
        (&self.0).take(bytes).read_to_end(&mut answer).expect("an answer");
        String::from_utf8(answer).expect("text")
    }

    /// The next one that is no sign of life.
    fn news(&mut self) -> String {
        loop {
            let next = self.next();
            if !next.is_empty() {
                return next;
            }
        }
    }

    /// The server ends it, and sends no more.
    fn ends(mut self) {
        assert_eq!(self.0.read_to_end(&mut Vec::new()).expect("its end"), 0);
    }
}

#[test]
fn what_is_pushed_is_what_a_new_client_gets() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    for seed in 0..4 {
        load(&client);
        let mut random = Random::new(seed);
        let encoding = random.pick(&[Encoding::Text, Encoding::Binary]);
        let (path, levels) =
            [("/", ALL_LEVELS), ("/", 1), ("/s", 1), ("/", 2)][usize::try_from(seed).unwrap_or(0)];
        let all = || Levels::new(client.clone(), encoding, path, levels).ok();
        let mut followed = all().expect("levels");
        for _ in 0..30 {
            let command = change(&mut random);
            // Some are refused: of nodes that are gone, or have no such attribute.
            let done = client.command(command.clone());
            if all().is_none() {
                // The node that is followed is gone.
                let refused = loop {
                    let waited = followed.wait(Duration::from_secs(60), Duration::from_millis(10));
                    if let Err(why) = waited {
                        break why;
                    }
                };
                assert!(refused.to_string().contains(path), "{refused}");
                load(&client);
                followed = all().expect("levels");
                continue;
            }
            let begun = Instant::now();
            loop {
                let pair = [&followed, &all().expect("levels")].map(|one| lasting(&shown(one)));
                if pair[0] == pair[1] {
                    break;
                }
                let what = format!("seed {seed}, {command:?} {done:?}");
                assert!(begun.elapsed() < Duration::from_secs(60), "{what}\n{}", pair.join("\n"));
                let waited = followed.wait(Duration::from_millis(50), Duration::from_millis(10));
                waited.expect(&what);
            }
        }
    }
    server.stop(Duration::from_secs(1));
}

#[test]
fn only_what_has_changed_of_the_parts_is_sent_and_signs_of_life() {
    let place = Place::new();
    let server = start_with(&place.home(), place.port, Duration::from_millis(300));
    let client = client(place.port);
    load(&client);
    let mut stream = Stream::begin(place.port, "follow=10 part=/s,all");
    let whole = stream.news();
    assert!(whole.contains("suite s") && whole.contains("task d") && !whole.contains("suite t"));
    suspend(&client, "/t");
    suspend(&client, "/s/f/c");
    let news = stream.news();
    assert!(news.contains("task c # state:queued") && !news.contains("task a"), "{news}");
    assert!(!news.contains("suite t"), "{news}");
    // Longer than a client may take nothing.
    for _ in 0..5 {
        assert_eq!(stream.next(), "");
    }
    suspend(&client, "/s/d");
    assert!(stream.news().contains("task d"));
    server.stop(Duration::from_secs(1));
    stream.ends();
}

#[test]
fn who_is_slow_is_sent_at_once_all_that_has_changed_since() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    load(&client);
    let mut stream = Stream::begin(place.port, "follow=10 part=/,all");
    stream.news();
    let changes = 100;
    for number in 0..changes {
        set(&client, "/s", &format!("{number}-{}", "v".repeat(300_000)));
    }
    let mut sent = 1;
    while !stream.news().contains(&format!("edit BIG '{}-v", changes - 1)) {
        sent += 1;
    }
    assert!(sent < changes, "{sent} answers");
    server.stop(Duration::from_secs(1));
}

#[test]
fn who_takes_nothing_is_given_up() {
    let place = Place::new();
    let server = start_with(&place.home(), place.port, Duration::from_millis(300));
    let client = client(place.port);
    load(&client);
    let _slow = Stream::begin(place.port, "follow=10 part=/,all");
    let counters = server.counters();
    place.until("it is given up", || {
        set(&client, "/s", &"v".repeat(500_000));
        counters().current_connections == 0
    });
    server.stop(Duration::from_secs(1));
}

#[test]
fn who_may_not_follow_any_more_is_sent_the_reason() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    load(&client);
    let begin = |part: &str| {
        let mut stream = Stream::begin(place.port, &format!("follow=10 part={part}"));
        stream.news();
        stream
    };
    let mut of_task = begin("/s/d,0");
    let paths = vec!["/s/d".to_owned()];
    client.command(Command::Delete { paths, force: true }).expect("deleted");
    assert!(of_task.news().contains("Cannot find node at path '/s/d'"));
    of_task.ends();

    let mut speaks = begin("/,1");
    speaks.0.write_all(b"more").expect("sent");
    assert!(speaks.news().contains("sends no more"));

    // A quarter of a hundred connections.
    let many: Vec<_> = (0..25).map(|_| begin("/,1")).collect();
    let mut refused = Stream::begin(place.port, "follow=10 part=/,1");
    assert!(refused.news().contains("25 clients follow"));
    drop(many);
    place.until("there is room again", || {
        Stream::begin(place.port, "follow=10 part=/,1").news().contains("suite s")
    });
    let mut listed = begin("/,1");
    let name = format!("home/{}.{}.ecf.lists", workflow::server::host_name(), place.port);
    place.write(&name, "4.4.14\nother\n");
    client.command(Command::Server(ServerCommand::ReloadWhiteList)).expect("reloaded");
    let user = User { name: "other".to_owned(), ..User::default() };
    let address = format!("127.0.0.1:{}", place.port);
    let other = Client::new(&address, user, Duration::from_secs(20), None).expect("an address");
    suspend(&other, "/t");
    assert!(listed.news().contains("is not allowed any access"));
    listed.ends();
    server.stop(Duration::from_secs(1));
}

#[test]
fn watch_asks_once_and_again_where_the_server_has_been_away() {
    let place = Place::new();
    let served = Served::ours(&place);
    let file = place.write("x.def", DEFINITION).display().to_string();
    let at = format!("localhost:{}", place.port);
    printed(&["load", &at, &file, "--begin"]);
    let mut watch = Running::start(&["watch", &at, "--interval", "10ms", "--what", "state,label"]);
    let asked = || place.told(&["--log=get", "1000"]).matches("--sync=").count();
    // The tree, and what changes in it.
    place.until("it follows", || asked() == 2);
    for number in 0..5 {
        place.told(&["--alter=change", "label", "top", &number.to_string(), "/s"]);
        let line = watch.line();
        assert!(line.ends_with(&format!("/s  label top {number}")), "{line}");
    }
    assert_eq!(asked(), 2);
    served.kill();
    let _served = Served::ours(&place);
    place.told(&["--suspend=/t"]);
    let line = watch.line();
    assert!(line.ends_with("/t  state suspended"), "{line}");
    watch.terminate();
    watch.end();
}

/// What a task does that runs and is run again.
const STATES: [&str; 7] =
    ["submitted", "active", "complete", "queued", "submitted", "active", "complete"];

#[test]
fn watch_names_every_state_in_order_however_short_it_was() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    load(&client);
    let at = format!("localhost:{}", place.port);
    let words = ["watch", &at, "--interval", "1s", "--under", "/s/f/c", "--what", "state"];
    let mut watch = Running::start(&words);
    until_followed(&place, &client, 2);
    force(&client, "/s/f/c", &STATES);
    for state in STATES {
        let line = watch.line();
        assert!(line.ends_with(&format!("/s/f/c  state {state}")), "{line}: {state}");
    }
    // Also of a suite that takes the place of another.
    load(&client);
    force(&client, "/s/f/c", &["active", "aborted"]);
    let mut lines = vec![watch.line()];
    while lines.last().is_some_and(|line| !line.ends_with("aborted")) {
        lines.push(watch.line());
    }
    assert!(lines.len() > 1 && lines[lines.len() - 2].ends_with("state active"), "{lines:?}");
    watch.terminate();
    watch.end();
    // A state that has passed meanwhile ends it, too.
    let until = [&words[..], &["--until", "/s/f/c=submitted"]].concat();
    let watch = Running::start(&until);
    until_followed(&place, &client, 4);
    force(&client, "/s/f/c", &STATES);
    let (out, error, code) = watch.end();
    assert!(code == 0 && out.contains("state submitted"), "{out}{error}");
    server.stop(Duration::from_secs(1));
}

#[test]
fn watch_says_how_many_changes_it_has_missed() {
    let place = Place::new();
    let served = Served::ours(&place);
    let client = client(place.port);
    load(&client);
    let at = format!("localhost:{}", place.port);
    let words = ["watch", &at, "--interval", "5s", "--what", "state", "--under", "/s/f/c"];
    let mut watch = Running::start(&words);
    until_followed(&place, &client, 2);
    force(&client, "/s/f/c", &STATES[..1]);
    assert!(watch.line().ends_with("/s/f/c  state submitted"));
    // What isn't sent yet when the server ends isn't remembered by the next one.
    force(&client, "/s/f/c", &STATES[1..]);
    served.kill();
    let _served = Served::ours(&place);
    let line = watch.line();
    let missed = line.rsplit_once("/  missed ").and_then(|(_, count)| count.parse().ok());
    assert!(missed.is_some_and(|count: usize| count >= STATES.len() - 1), "{line}");
    assert!(watch.line().ends_with("/s/f/c  state complete"));
    watch.terminate();
    watch.end();
}

#[test]
fn states_come_before_the_tree_with_how_many_are_not_remembered() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let client = client(place.port);
    let tasks: String = (0..2_000).map(|number| format!(" task t{number}\n")).collect();
    let definition = format!("suite m\n{tasks}endsuite\n{DEFINITION}");
    let file = "x.def".to_owned();
    client.command(Command::Load { force: true, definition, file }).expect("loaded");
    client.command(Command::Begin { suite: String::new(), force: true }).expect("begun");
    let numbers = || {
        let tree = client.tree().expect("the tree");
        (tree.state_change_no(), tree.modify_change_no())
    };
    let ask = |(state, modify): (u32, u32)| {
        let words = format!("states=each part=/s/f/c,0,{state},{modify}");
        let answer = Stream::begin(place.port, &words).next();
        let (states, _) = answer.split_once("\n\n").expect("an empty line");
        states.to_owned()
    };
    let before = numbers();
    force(&client, "/s/f/c", &STATES[..3]);
    // The server, the suite, the family and the task.
    assert_eq!(ask(before), "submitted 3\nactive 3\ncomplete 3");
    for _ in 0..20 {
        force(&client, "/m", &["active", "queued"]);
    }
    force(&client, "/s/f/c", &STATES[3..5]);
    let states = ask(before);
    let (missed, rest) = states.split_once('\n').expect("a line");
    let missed = missed.strip_prefix("missed ").and_then(|count| count.parse::<u32>().ok());
    assert!(missed.is_some_and(|count| count > 10_000), "{states}");
    assert_eq!(rest, "queued 3\nsubmitted 3");
    server.stop(Duration::from_secs(1));
}
