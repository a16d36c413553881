//! The rules: a suite runs to its end by the commands that a server would apply.

use workflow::definition::{Style, parse, print};
use workflow::model::{
    Child, Credentials, Duration, Effect, Free, Instant, Moment, NodeId, QueueAction, Rules,
    ServerState, State, Submit, Tree, Verdict, Which,
};

/// A tree whose jobs are not started: submitted tasks are kept.
struct Fake {
    tree: Tree,
    now: i64,
    submitted: Vec<Submit>,
    log: Vec<String>,
}

impl Fake {
    fn new(text: &str) -> Self {
        let mut tree = parse(text, "fake.def").expect("a definition").tree;
        tree.index_all();
        // Sunday, 2026-11-22, 10:00.
        let now = 1_795_341_600;
        let mut fake = Self { tree: Tree::default(), now, submitted: vec![], log: vec![] };
        fake.apply(|rules| rules.take(tree, false).expect("loaded"));
        fake
    }

    fn begun(text: &str) -> Self {
        let mut fake = Self::new(text);
        fake.apply(|rules| rules.begin_all(false).expect("begun"));
        fake
    }

    fn apply<T>(&mut self, command: impl FnOnce(&mut Rules<'_>) -> T) -> T {
        let moment = Moment { now: Instant::seconds(self.now), entropy: 1 };
        let mut rules = Rules::new(&mut self.tree, moment);
        let result = command(&mut rules);
        for effect in rules.finish() {
            match effect {
                Effect::Submit(submit) => self.submitted.push(submit),
                Effect::Log(lines) | Effect::LogError(lines) | Effect::LogMessage(lines) => {
                    self.log.extend(lines.lines().map(ToOwned::to_owned));
                }
                Effect::Archive(_)
                | Effect::Restore(..)
                | Effect::DropArchives { .. }
                | Effect::Discard(_) => {}
            }
        }
        result
    }

    fn id(&self, path: &str) -> NodeId {
        self.tree.find(path).unwrap_or_else(|| panic!("no node {path}"))
    }

    fn state(&self, path: &str) -> State {
        self.tree.node(self.id(path)).state
    }

    /// The paths submitted since the last call.
    fn started(&mut self) -> Vec<String> {
        self.submitted.drain(..).map(|submit| submit.path).collect()
    }

    fn complete(&mut self, path: &str) {
        let id = self.id(path);
        self.apply(|rules| rules.init(id, "1", &[]));
        self.apply(|rules| rules.complete(id, &[]));
    }

    fn abort(&mut self, path: &str) {
        let id = self.id(path);
        self.apply(|rules| rules.init(id, "1", &[]));
        self.apply(|rules| rules.abort(id, "failed"));
    }

    /// The clock goes on by minutes.
    fn wait(&mut self, minutes: i64) {
        for _ in 0..minutes {
            self.now += 60;
            self.apply(|rules| rules.tick(None));
        }
    }
}

#[test]
fn a_repeat_without_end_of_what_is_complete_by_rule_steps_once_in_a_change() {
    for text in [
        "suite s\n edit GO 1\n repeat day 1\n family f\n  complete ../s:GO == 1\n  task t\n \
         endfamily\nendsuite\n",
        "suite s\n edit GO 1\n family f\n  repeat day 1\n  complete ../s:GO == 1\n  task t\n \
         endfamily\nendsuite\n",
    ] {
        let mut fake = Fake::begun(text);
        assert!(fake.log.len() < 50, "{} lines", fake.log.len());
        let lines = fake.log.len();
        fake.wait(3);
        assert!(fake.log.len() < lines + 100, "{} lines", fake.log.len());
        assert!(fake.started().is_empty());
    }
}

#[test]
fn a_dependent_task_is_submitted_when_what_it_waits_for_is_complete() {
    let mut fake = Fake::begun(
        "suite s\n task a\n  event go\n  meter m 0 10\n task b\n  trigger a == complete\n \
         task c\n  trigger a:go and a:m ge 5\n family f\n  trigger b == complete\n  task d\n \
         endfamily\nendsuite\n",
    );
    assert_eq!(fake.started(), ["/s/a"]);
    assert_eq!(fake.state("/s"), State::Submitted);
    let a = fake.id("/s/a");
    fake.apply(|rules| rules.init(a, "17", &[]));
    assert_eq!(fake.state("/s"), State::Active);
    fake.apply(|rules| rules.set_event(a, "go", true));
    assert!(fake.started().is_empty());
    fake.apply(|rules| rules.set_meter(a, "m", 5));
    assert_eq!(fake.started(), ["/s/c"]);
    fake.apply(|rules| rules.complete(a, &[]));
    assert_eq!(fake.started(), ["/s/b"]);
    fake.complete("/s/b");
    assert_eq!(fake.started(), ["/s/f/d"]);
    fake.complete("/s/c");
    fake.complete("/s/f/d");
    assert_eq!(fake.state("/s"), State::Complete);
    assert_eq!(fake.tree.node(NodeId::ROOT).state, State::Complete);
    assert!(fake.log.contains(&" complete: /s/f/d".to_owned()), "{:?}", fake.log);
}

#[test]
fn limits_fill_in_the_order_of_the_tree_and_free_with_each_end() {
    let mut fake = Fake::begun(
        "suite s\n limit l 2\n family f\n  inlimit /s:l\n  task a\n  task b\n  task c\n  task d\n \
         endfamily\nendsuite\n",
    );
    assert_eq!(fake.started(), ["/s/f/a", "/s/f/b"]);
    assert!(print(&fake.tree, Style::Net, false).contains("limit l 2 # 2 /s/f/a /s/f/b\n"));
    fake.complete("/s/f/b");
    assert_eq!(fake.started(), ["/s/f/c"]);
    fake.complete("/s/f/a");
    assert_eq!(fake.started(), ["/s/f/d"]);
    fake.complete("/s/f/c");
    fake.complete("/s/f/d");
    assert!(print(&fake.tree, Style::Net, false).contains("limit l 2\n"));
}

#[test]
fn repeats_step_from_within_and_the_suite_ends() {
    let mut fake = Fake::begun(
        "suite s\n repeat date D 20240228 20240229\n family f\n  repeat integer I 1 2\n  task a\n  \
         task b\n   trigger a == complete\n endfamily\nendsuite\n",
    );
    let mut runs = 0;
    while let Some(submit) = fake.submitted.pop() {
        runs += 1;
        assert!(runs < 100, "it never ends");
        fake.complete(&submit.path.clone());
    }
    assert_eq!(runs, 8);
    assert_eq!(fake.state("/s"), State::Complete);
    let suite = fake.id("/s");
    assert_eq!(fake.tree.repeat(suite).map(|repeat| repeat.over.number()), Some(20_240_229));
    fake.apply(|rules| rules.requeue(suite, Which::Idle).expect("begun"));
    assert_eq!(fake.started(), ["/s/f/a"]);
    let family = fake.id("/s/f");
    assert_eq!(fake.tree.variable(family, "D_DD"), Some("28".to_owned()));
}

#[test]
fn aborted_tasks_are_tried_again_and_operators_have_the_last_word() {
    let mut fake = Fake::new("edit ECF_TRIES '2'\nsuite s\n task a\n task b\nendsuite\n");
    fake.apply(|rules| rules.set_server_state(ServerState::Halted));
    fake.apply(|rules| rules.begin("s", false).expect("begun"));
    assert!(fake.started().is_empty());
    fake.apply(|rules| rules.set_server_state(ServerState::Running));
    assert_eq!(fake.started(), ["/s/a", "/s/b"]);
    fake.abort("/s/a");
    assert_eq!(fake.started(), ["/s/a"], "the second try");
    fake.abort("/s/a");
    assert!(fake.started().is_empty());
    assert_eq!(fake.state("/s"), State::Aborted);
    let (a, suite) = (fake.id("/s/a"), fake.id("/s"));
    fake.apply(|rules| rules.suspend(suite));
    fake.apply(|rules| rules.requeue(a, Which::All).expect("begun"));
    assert!(fake.started().is_empty());
    fake.apply(|rules| rules.resume(suite));
    assert_eq!(fake.started(), ["/s/a"]);
    fake.apply(|rules| rules.force(suite, State::Complete, true));
    assert_eq!(fake.state("/s/b"), State::Complete);
    fake.apply(|rules| rules.run(a, false).expect("begun"));
    assert_eq!(fake.started(), ["/s/a"]);
}

#[test]
fn a_child_command_of_another_job_is_a_zombie() {
    let mut fake = Fake::begun("suite s\n task a\n  zombie ecf_passwd:fob::\nendsuite\n");
    let submit = fake.submitted.pop().expect("submitted");
    let id = submit.node;
    let own = Credentials { path: "/s/a", password: &submit.password, rid: "7", try_no: 1 };
    let other = Credentials { password: "wrong", ..own };
    assert_eq!(fake.apply(|rules| rules.check_child(&own, Child::Init)), Verdict::Accept(id));
    let verdict = fake.apply(|rules| rules.check_child(&other, Child::Init));
    let Verdict::Zombie { kind, .. } = verdict else { panic!("{verdict:?}") };
    assert!(fake.apply(|rules| rules.tree.zombie_rule("/s/a", kind)).is_some());
    assert!(fake.apply(|rules| rules.tree.zombie_rule("/s/gone/a", kind)).is_none());
    fake.apply(|rules| rules.init(id, "7", &[]));
    let again = fake.apply(|rules| rules.check_child(&own, Child::Init));
    assert!(matches!(again, Verdict::Repeated(_)), "{again:?}");
    let nowhere = Credentials { path: "/s/x", ..own };
    let verdict = fake.apply(|rules| rules.check_child(&nowhere, Child::Init));
    assert!(matches!(verdict, Verdict::Zombie { node: None, .. }), "{verdict:?}");
}

#[test]
fn a_complete_expression_queue_and_free_dependencies_work() {
    let mut fake = Fake::begun(
        "suite s\n task a\n  event skip\n  queue q x y\n task b\n  complete a:skip\n  \
         trigger a == aborted\n task c\n  trigger a == aborted\nendsuite\n",
    );
    assert_eq!(fake.started(), ["/s/a"]);
    let (a, c) = (fake.id("/s/a"), fake.id("/s/c"));
    let mut take = || fake.apply(|rules| rules.queue(a, "q", QueueAction::Active, ""));
    assert_eq!([take(), take(), take()].map(Result::unwrap), ["x", "y", "<NULL>"]);
    fake.apply(|rules| rules.set_event(a, "skip", true));
    assert_eq!(fake.state("/s/b"), State::Complete);
    fake.apply(|rules| rules.free(c, Free { trigger: true, ..Free::default() }));
    assert_eq!(fake.started(), ["/s/c"]);
}

#[test]
fn times_days_and_crons_are_reached() {
    let mut fake = Fake::begun(
        "suite s\n task a\n  time 10:02\n task b\n  time 10:01 10:03 00:01\n task c\n  \
         cron 10:02\n task d\n  day monday\n task e\n  time +00:03\n task late\n  late -s +00:02\n\
         endsuite\n",
    );
    assert_eq!(fake.started(), ["/s/late"]);
    fake.wait(1);
    assert_eq!(fake.started(), ["/s/b"]);
    fake.complete("/s/b");
    fake.wait(1);
    assert_eq!(fake.started(), ["/s/a", "/s/b", "/s/c"]);
    fake.complete("/s/a");
    fake.complete("/s/c");
    assert_eq!(fake.state("/s/a"), State::Complete);
    assert_eq!(fake.state("/s/c"), State::Queued, "a cron waits for tomorrow");
    fake.wait(1);
    assert_eq!(fake.started(), ["/s/e"], "b was still submitted");
    assert!(print(&fake.tree, Style::Net, false).contains("late -s +00:02 # late"));
    let day = Duration::minutes(24 * 60).whole_minutes() - 10 * 60 - 3;
    fake.wait(day);
    assert_eq!(fake.started(), ["/s/d"]);
}

#[test]
fn in_a_tree_that_was_read_again_what_waits_is_woken() {
    let mut fake = Fake::begun("suite s\n task a\n task b\n  trigger a == complete\nendsuite\n");
    assert_eq!(fake.started(), ["/s/a"]);
    let text = print(&fake.tree, Style::Migrate, false);
    fake.tree = parse(&text, "kept").expect("a definition").tree;
    fake.tree.index_all();
    fake.complete("/s/a");
    assert_eq!(fake.started(), ["/s/b"]);
}

#[test]
fn what_is_deleted_is_forgotten_and_memory_is_given_back() {
    let mut fake = Fake::begun(
        "suite s\n task a\nendsuite\nsuite t\n task b\n  trigger /s/a == complete\nendsuite\n",
    );
    let before = fake.tree.snapshot();
    let suite = fake.id("/s");
    fake.apply(|rules| rules.delete(suite));
    assert!(fake.tree.find("/s/a").is_none() && before.find("/s/a").is_some());
    let again = parse("suite s\n task a\nendsuite\n", "again").expect("a definition");
    fake.apply(|rules| rules.load(&again.tree, false).expect("loaded"));
    fake.apply(|rules| rules.begin("s", false).expect("begun"));
    fake.started();
    fake.complete("/s/a");
    assert_eq!(fake.started(), ["/t/b"], "it waits for the new node of the path");
    let numbers = (fake.tree.state_change_no(), fake.tree.modify_change_no());
    fake.apply(|rules| rules.delete_all());
    assert_eq!(fake.tree.count(), 0);
    assert!(fake.tree.modify_change_no() > numbers.1);
    assert!(fake.tree.changed_since(numbers.0).is_some());
}
