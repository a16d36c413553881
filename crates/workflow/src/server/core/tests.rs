//! What is applied again, behind a snapshot or from the start, is what was done first.

use std::path::Path;
use std::sync::Arc;

use super::super::environment::Environment;
use super::super::record::{Record, What};
use super::super::store::{self, Restore as _, Stored};
use super::{
    CommandKind, CommandWhat, Core, Effect, JOB_FAILED, Key, NUMBERS_LIMIT, STARTED, Told, WRITING,
};
use crate::definition::{Style, print};
use crate::model::{NodeId, State, State::Active, State::Complete, State::Submitted};
use crate::protocol::{
    Alteration, Body, Child, Command, Edit, News, NodeCommand, PathsCommand, Reply, Report,
    Request, Requeue, ServerCommand, SyncKind, User, ZombieAction, write,
};

const SUITE: &str = "suite s\n task a\n task b\n  trigger a == complete\nendsuite\n";

fn empty(port: u16, interval_s: u32) -> Core {
    let environment = Environment::new(Path::new("/h"), port, interval_s, |_| None);
    Core::new(Arc::new(environment.expect("numbers")))
}

/// A server that takes requests and forgets effects.
struct Server {
    core: Core,
    at_us: i64,
    /// What the journal would have.
    records: Vec<(i64, Vec<u8>)>,
}

impl Server {
    fn new() -> Self {
        let mut server =
            Self { core: empty(3141, 60), at_us: 1_700_000_000_000_000, records: Vec::new() };
        let definition = SUITE.to_owned();
        let load = Command::Load { force: false, definition, file: String::new() };
        let begin = Command::Begin { suite: "s".to_owned(), force: false };
        for command in [load, Command::Server(ServerCommand::Restart), begin] {
            server.user(command);
        }
        server
    }

    fn user(&mut self, command: Command) {
        self.ask(Body::User(User::default(), command));
    }

    fn job(&mut self, password: &str, report: Report) {
        let (path, process_id) = ("/s/a".to_owned(), "7".to_owned());
        let child = Child { path, password: password.to_owned(), process_id, try_no: 1 };
        self.ask(Body::Child(child, report));
    }

    fn ask(&mut self, body: Body) {
        let request = Request { host: "h".to_owned(), body };
        if self.core.changes(&request) {
            self.records.push((self.at_us, write(&request)));
        }
        self.core.request(self.at_us, self.at_us as u64, &request);
        self.at_us += 1_000_000;
    }

    fn password(&self) -> String {
        let id = self.core.tree.find("/s/a").expect("there");
        self.core.tree.node(id).job().password.to_string()
    }

    fn state(&self) -> [State; 2] {
        ["/s/a", "/s/b"]
            .map(|path| self.core.tree.node(self.core.tree.find(path).expect("there")).state)
    }

    fn outcome(&mut self, code: u8, password: &str) {
        let what = What::Outcome { code, try_no: 1, path: "/s/a", password, text: "" };
        self.core.record(&Record { at_us: self.at_us, random: 1, what });
    }

    /// What the next process has: a snapshot, and the records behind it.
    fn again(&self, stored: Option<Stored>, from: usize) -> Core {
        let mut core = empty(3142, 10);
        if let Some(stored) = stored {
            core.snapshot(stored).expect("a snapshot");
        }
        for (at_us, document) in &self.records[from..] {
            let what = What::Request(document);
            let record = Record { at_us: *at_us, random: *at_us as u64, what };
            super::Restore::record(&mut core, &record).expect("a request");
        }
        core
    }

    fn stored(&self) -> Stored {
        let (head, tree) = self.core.stored();
        let bytes = store::kept(&tree);
        let tree = store::read_kept(&bytes).expect("a tree");
        Stored { head: head.into_iter().collect(), tree }
    }
}

fn own(command: Command) -> Request {
    Request { host: "h".to_owned(), body: Body::User(User::default(), command) }
}

fn adopt() -> Command {
    let (process_id, password) = ("7".to_owned(), "other".to_owned());
    let action = ZombieAction::Adopt;
    Command::Zombie { action, process_id, password, paths: vec!["/s/a".to_owned()] }
}

#[test]
fn what_comes_behind_a_snapshot_has_the_passwords_that_it_had() {
    let mut server = Server::new();
    let load = |name: &str| {
        let family = |name, task| format!("  family {name}\n    task {task}\n  endfamily\n");
        let (f, g) = (family("f", "x"), family("g", "y"));
        let definition = format!("suite {name}\n{f}{g}endsuite\n");
        Command::Load { force: false, definition, file: String::new() }
    };
    // The second is numbered in another order than it is printed in, and the first leaves a gap.
    for command in [load("t"), load("u")] {
        server.user(command);
    }
    let paths = vec!["/t".to_owned()];
    server.user(Command::Delete { force: true, paths });
    let (stored, from) = (server.stored(), server.records.len());
    server.user(Command::Begin { suite: "u".to_owned(), force: false });
    let all = |core: &Core| -> Vec<(String, String)> {
        let job = |id| (core.tree.path(id), core.tree.node(id).job().password.to_string());
        core.tree.walk(NodeId::ROOT).map(job).collect()
    };
    let before = all(&server.core);
    assert!(before.iter().filter(|(_, password)| !password.is_empty()).count() > 2, "{before:?}");
    assert_eq!(all(&server.again(Some(stored), from)), before);
}

#[test]
fn a_decision_on_a_zombie_outlives_a_snapshot() {
    let mut server = Server::new();
    server.job(&server.password(), Report::Init(Vec::new()));
    server.job("other", Report::Complete(Vec::new()));
    server.user(adopt());
    let (stored, from) = (server.stored(), server.records.len());
    server.job("other", Report::Complete(Vec::new()));
    assert_eq!(server.state(), [Complete, Submitted]);
    for core in [server.again(Some(stored), from), server.again(None, 0)] {
        let again = Server { core, at_us: 0, records: Vec::new() };
        assert_eq!(again.state(), server.state());
    }
}

#[test]
fn a_job_that_waits_is_kept_where_it_changes_something() {
    let mut server = Server::new();
    let wait = || Report::Wait("b == complete".to_owned());
    server.job(&server.password(), Report::Init(Vec::new()));
    let before = server.records.len();
    for _ in 0..3 {
        server.job(&server.password(), wait());
    }
    // Only the first has set the flag.
    assert_eq!(server.records.len(), before + 1);
    server.job("other", wait());
    server.user(adopt());
    server.job("other", wait());
    let again = server.again(None, 0);
    let again = Server { core: again, at_us: 0, records: Vec::new() };
    assert_eq!(again.password(), "other");
    // Behind the server's own variables, which are the new process's.
    let suites = |server: &Server| {
        let text = print(&server.stored().tree, Style::Migrate, false);
        text.split_once("\nhistory").map(|(_, suites)| suites.to_owned())
    };
    assert!(suites(&server).is_some() && suites(&again) == suites(&server));
}

#[test]
fn the_late_end_of_a_job_is_not_that_of_the_next_one() {
    let mut server = Server::new();
    let first = server.password();
    server.outcome(STARTED, &first);
    let paths = vec!["/s/a".to_owned()];
    server.user(Command::Requeue { option: Requeue::Force, paths });
    assert_ne!(server.password(), first);
    assert_eq!(server.core.unstarted.count(), 1);
    server.outcome(STARTED, &first);
    assert_eq!(server.core.unstarted.count(), 1);
    server.outcome(JOB_FAILED, &first);
    assert_eq!(server.state()[0], Submitted);
    server.job(&server.password(), Report::Init(Vec::new()));
    assert_eq!(server.state()[0], Active);
}

#[test]
fn of_what_a_group_submits_and_deletes_nothing_is_started() {
    let all = |path: &str| vec![path.to_owned()];
    let run = || own(Command::Run { force: true, paths: all("/s/a") });
    let edit = || {
        own(Command::EditScript {
            edit: Edit::SubmitFile,
            path: "/s/b".to_owned(),
            lines: vec!["true".to_owned()],
            variables: Vec::new(),
            alias: true,
            run: false,
        })
    };
    let delete = || own(Command::Delete { force: true, paths: all("/s") });
    let definition = "suite t\n task x\n task y\nendsuite\n".to_owned();
    let load =
        || own(Command::Load { force: false, definition: definition.clone(), file: String::new() });
    for (before, commands) in [
        (None, vec![run(), edit(), delete()]),
        (Some(load()), vec![run(), edit(), delete()]),
        (None, vec![run(), edit(), delete(), load()]),
    ] {
        let mut server = Server::new();
        if let Some(load) = before {
            server.ask(load.body);
        }
        server.core.effects();
        let waiting = server.core.unstarted.count();
        server.user(Command::Group(commands));
        assert!(server.core.tree.find("/s").is_none());
        let is_start = |effect: &Effect| matches!(effect, Effect::Start(_));
        assert!(!server.core.effects().iter().any(is_start));
        assert_eq!(server.core.unstarted.count(), waiting);
    }
}

#[test]
fn what_a_group_submits_and_moves_is_started_where_it_is_then() {
    let mut server = Server::new();
    let waits = "trigger 1 == 0\n";
    let family = format!("family f\ntask x\n{waits}task y\n{waits}defstatus aborted\nendfamily\n");
    let definition =
        format!("suite u\n{family}family h\nfamily g\nendfamily\nendfamily\nfamily k\nendsuite\n");
    server.user(Command::Load { force: false, definition, file: String::new() });
    server.user(Command::Begin { suite: "u".to_owned(), force: false });
    server.core.effects();
    // A family with an aborted task is no submitted one, and may be moved.
    let (source, destination) = ("/u/f".to_owned(), "/u/h/g".to_owned());
    let edit = own(Command::EditScript {
        edit: Edit::SubmitFile,
        path: "/u/f/y".to_owned(),
        lines: vec!["true".to_owned()],
        variables: Vec::new(),
        alias: true,
        run: false,
    });
    let plug = own(Command::Plug { source, destination });
    let run = own(Command::Run { force: false, paths: vec!["/u/f/x".to_owned()] });
    server.user(Command::Group(vec![run, edit, plug]));
    let task = server.core.tree.find("/u/h/g/f/x").expect("it was moved");
    assert_eq!(server.core.tree.node(task).state, Submitted);
    let mut started = Vec::new();
    for effect in server.core.effects() {
        if let Effect::Start(start) = effect {
            started.push((start.path, start.edited.is_some()));
        }
    }
    let paths = ["/u/h/g/f/x", "/u/h/g/f/y/alias0"].map(str::to_owned);
    assert_eq!(started, paths.into_iter().zip([false, true]).collect::<Vec<_>>());
    let again = server.again(None, 0);
    let task = again.tree.find("/u/h/g/f/x").expect("it was moved");
    assert_eq!(again.tree.node(task).state, Submitted);
    assert_eq!(again.unstarted.count(), server.core.unstarted.count());
    // Later on it would be moved away from a job that is being made.
    let mut plug = |source: &str, destination: &str| {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        let told = server.core.request(1, 1, &own(Command::Plug { source, destination }));
        match told {
            Told::Reply(Reply::Error(why)) => why,
            _ => String::new(),
        }
    };
    let why = "Plug command failed. The job of /u/h/g/f/x is not started yet";
    assert!(["/u/h/g/f", "/u/h/g/f/"].iter().all(|path| plug(path, "/u/h").starts_with(why)));
    // In ecFlow's words; of a task it comes to be beside it.
    let why = plug("/u/k", "/u/h/g/f/y/alias0");
    assert_eq!(why, "Plug command failed. Cannot add children to a Alias");
    assert_eq!(plug("/u/k", "/u/h/g/f/y"), "");
    assert!(server.core.tree.find("/u/k").is_none());
    assert!(server.core.tree.find("/u/h/g/f/k").is_some());
}

#[test]
fn a_task_that_a_group_submits_twice_is_started_once() {
    let run = || own(Command::Run { force: true, paths: vec!["/s/a".to_owned()] });
    let mut server = Server::new();
    server.core.effects();
    server.user(Command::Group(vec![run(), run()]));
    let mut tries = Vec::new();
    for effect in server.core.effects() {
        if let Effect::Start(start) = effect {
            tries.push((start.try_no, start.password));
        }
    }
    assert_eq!(tries, [(3, server.password())]);
}

#[test]
fn a_kill_is_for_the_process_that_the_job_has_named_whatever_a_user_s_variable_says() {
    let mut server = Server::new();
    let paths = || vec!["/s/a".to_owned()];
    let (name, value) = ("ECF_RID".to_owned(), "x".to_owned());
    let alteration = Alteration::Add("variable");
    server.user(Command::Alter { paths: paths(), alteration, name, value });
    server.job(&server.password(), Report::Init(Vec::new()));
    server.core.effects();
    let (command, force) = (PathsCommand::Kill, false);
    server.user(Command::Paths { command, paths: paths(), force });
    let start = |effect| match effect {
        Effect::Start(start) => Some(start),
        _ => None,
    };
    let kill = server.core.effects().into_iter().find_map(start).expect("a kill");
    assert_eq!((&*kill.process, kill.is_for_zombie), ("7", false));
    let (of, job) = (("/s/a", &*kill.process), (kill.try_no, &*kill.password));
    assert!(server.core.signal(CommandKind::Kill, of, job).is_some(), "it is meant still");
    assert!(server.core.signal(CommandKind::Kill, ("/s/a", "8"), job).is_none());
    assert!(server.core.unwanted("/s/a", job).is_some(), "it is active");
}

#[test]
fn a_job_that_is_not_started_yet_is_wanted_until_its_task_is_killed_or_submitted_again() {
    let mut server = Server::new();
    let (paths, force) = (|| vec!["/s/a".to_owned()], true);
    let password = server.password();
    let job = (1, &*password);
    assert!(server.core.unwanted("/s/a", job).is_none());
    let command = PathsCommand::Kill;
    server.user(Command::Paths { command, paths: paths(), force: false });
    let what = server.core.unwanted("/s/a", job);
    assert!(matches!(what, Some(CommandWhat::Killed)), "{what:?}");
    server.user(Command::Run { paths: paths(), force });
    let what = server.core.unwanted("/s/a", job);
    assert!(matches!(what, Some(CommandWhat::Stale)), "{what:?}");
    let again = server.password();
    assert!(server.core.unwanted("/s/a", (2, &again)).is_none(), "another one is submitted");
    // The job before it reports, and is killed as a zombie.
    server.job(&password, Report::Init(Vec::new()));
    server.core.effects();
    let (action, process_id, password) = (ZombieAction::Kill, String::new(), String::new());
    server.user(Command::Zombie { action, process_id, password, paths: paths() });
    let kill = server.core.effects().into_iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start),
        _ => None,
    });
    let kill = kill.expect("a kill");
    assert_eq!((&*kill.process, kill.is_for_zombie), ("7", true));
    assert!(server.core.unwanted("/s/a", (2, &again)).is_none(), "its own job goes on");
    // A crash changes nothing of it.
    let core = server.again(None, 0);
    assert!(core.unwanted("/s/a", (2, &again)).is_none());
}

#[test]
fn a_path_with_more_slashes_than_it_needs_is_that_of_its_node() {
    let mut server = Server::new();
    let paths = |path: &str| vec![path.to_owned()];
    let (command, force) = (PathsCommand::Suspend, false);
    server.user(Command::Paths { command, paths: paths("//s/b/"), force });
    assert_eq!(server.core.tree.history("/s/b").count(), 1);
    let (command, force) = (PathsCommand::Archive, true);
    let request = own(Command::Paths { command, paths: paths("//s/"), force });
    let Told::Made(due) = server.core.request(server.at_us, 1, &request) else {
        panic!("it waits for a file");
    };
    assert_eq!(due.all, [Key::of_filing("/s".to_owned(), WRITING)]);
    assert_eq!(server.core.tree.history("/s").count(), 1);
}

#[test]
fn change_numbers_that_become_too_large_begin_again_and_clients_take_all() {
    let mut server = Server::new();
    let known = (NUMBERS_LIMIT - 1, 7);
    server.core.tree.set_change_numbers(known.0, known.1);
    let (command, force, paths) = (PathsCommand::Suspend, false, vec!["/s/b".to_owned()]);
    server.user(Command::Paths { command, paths, force });
    let tree = &server.core.tree;
    assert_eq!((tree.state_change_no(), tree.modify_change_no()), (0, known.1 + 1));
    let sync = own(Command::Sync {
        kind: SyncKind::News,
        handle: 0,
        state_change_no: known.0.into(),
        modify_change_no: known.1.into(),
    });
    let told = server.core.request(server.at_us, 1, &sync);
    assert!(matches!(told, Told::Reply(Reply::News(News::Full))));
}

#[test]
fn what_a_change_has_left_awake_outlives_a_snapshot() {
    let mut server = Server::new();
    let definition = "suite w\n family f\n  repeat integer I 1 20000\n  complete :I lt 15000\n  \
                      task t\n endfamily\nendsuite\n";
    let (definition, file) = (definition.to_owned(), String::new());
    server.user(Command::Load { force: false, definition, file });
    server.user(Command::Begin { suite: "w".to_owned(), force: false });
    let core = server.again(Some(server.stored()), server.records.len());
    let again = Server { core, at_us: server.at_us, records: Vec::new() };
    for mut server in [server, again] {
        assert!(!server.core.tree.left_awake().is_empty());
        let what = What::Tick { is_minute: true };
        server.core.record(&Record { at_us: server.at_us, random: 1, what });
        let task = server.core.tree.find("/w/f/t").expect("there");
        assert_eq!(server.core.tree.node(task).state, Submitted);
    }
}

#[test]
fn what_users_did_long_ago_is_forgotten_at_a_start() {
    let mut server = Server::new();
    let (command, force, paths) = (PathsCommand::Suspend, false, vec!["/s/b".to_owned()]);
    server.user(Command::Paths { command, paths, force });
    let start = |server: &mut Server, days: i64| {
        let at_us = server.at_us + days * 86_400_000_000;
        let what = What::Started("h:1");
        server.core.record(&Record { at_us, random: 1, what });
        server.core.tree.history("/s/b").count()
    };
    assert_eq!(start(&mut server, 29), 1);
    assert_eq!(start(&mut server, 32), 0);
}

#[test]
fn a_node_that_is_too_deep_for_its_new_place_stays_where_it_was() {
    let mut server = Server::new();
    let nested = |suite: &str| {
        let families: String = (0..150).map(|n| format!("family f{n}\n")).collect();
        format!("suite {suite}\n{families}task t\nendsuite\n")
    };
    let (definition, file) = (nested("d") + &nested("e"), String::new());
    server.user(Command::Load { force: false, definition, file });
    let below: String = (0..140).map(|n| format!("/f{n}")).collect();
    let (source, destination) = ("/d/f0".to_owned(), format!("/e{below}"));
    let plug = own(Command::Plug { source, destination });
    let told = server.core.request(server.at_us, 1, &plug);
    assert!(matches!(told, Told::Reply(Reply::Error(why)) if why.contains("256 levels")));
    assert!(server.core.tree.find(&format!("/d{below}/f140")).is_some());
}

#[test]
fn texts_that_a_group_asks_for_are_printed_as_they_are_sent() {
    let mut server = Server::new();
    let get = || own(Command::Node(NodeCommand::Get, "/s/a".to_owned()));
    let request = own(Command::Group((0..100).map(|_| get()).collect()));
    let Told::Group(all) = server.core.request(server.at_us, 1, &request) else {
        panic!("a group");
    };
    assert!(all.iter().all(|told| matches!(told, Told::Text(_))));
    assert!(all.into_iter().all(|told| matches!(told.of_member(), Reply::Node(_))));
}

#[test]
fn a_server_that_starts_names_what_it_starts_and_what_an_earlier_one_has() {
    let mut server = Server::new();
    server.outcome(STARTED, &server.password());
    // In another order than that of their paths.
    let tasks: String = (0..30).rev().map(|at| format!("task t{at:02}\n")).collect();
    let (definition, file) = (format!("suite w\n{tasks}endsuite\n"), String::new());
    server.user(Command::Load { force: false, definition, file });
    server.user(Command::Begin { suite: "w".to_owned(), force: false });
    server.core.effects().clear();
    server.core.resume();
    let earlier = server.core.of_earlier();
    assert_eq!(earlier.into_keys().collect::<Vec<_>>(), ["/s/a"]);
    let (mut started, mut lines) = (Vec::new(), Vec::new());
    for effect in server.core.effects() {
        match effect {
            Effect::Start(start) => started.push(start.path),
            Effect::Log(_, line) => lines.push(line),
            _ => {}
        }
    }
    let order: Vec<String> = (0..30).rev().map(|at| format!("/w/t{at:02}")).collect();
    assert_eq!(started, order);
    let [again, known] = &lines[..] else { panic!("{lines:?}") };
    assert!(again.starts_with("30 tasks (/w/t29, /w/t28, /w/t27 and 27 more): "), "{again}");
    assert!(known.starts_with("1 task (/s/a) submitted or active since "));
}
