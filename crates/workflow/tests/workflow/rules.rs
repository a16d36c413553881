//! The rules: a suite runs to its end by the commands that a server would apply.

use workflow::definition::{Style, parse, parse_attribute, print};
use workflow::model::{
    Child, Credentials, Duration, Effect, Flag, Free, Instant, Moment, NodeId, Order, QueueAction,
    Rules, ServerState, State, Submit, Tree, Verdict, Which,
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

#[test]
fn a_limit_that_comes_or_goes_later_counts_for_those_that_name_it() {
    let limit = |name: &str| parse_attribute("limit", name).expect("a limit");
    let mut fake = Fake::begun(
        "suite s\n family f\n  task a\n   inlimit l\n  task b\n   inlimit l\n endfamily\nendsuite\n\
         suite t\n limit m 1\n task c\nendsuite\nsuite u\n task d\n  inlimit /t:m\n task e\n  \
         inlimit /t:m\nendsuite\n",
    );
    assert_eq!(fake.started(), ["/s/f/a", "/s/f/b", "/t/c", "/u/d"]);
    let (s, f) = (fake.id("/s"), fake.id("/s/f"));
    fake.apply(|rules| rules.add_attribute(s, limit("l 1")));
    fake.apply(|rules| rules.requeue(s, Which::All).expect("begun"));
    assert_eq!(fake.started(), ["/s/f/a"]);
    fake.complete("/s/f/a");
    assert_eq!(fake.started(), ["/s/f/b"], "whose room is known of");
    // A nearer one, which goes again.
    fake.apply(|rules| rules.add_attribute(f, limit("l 0")));
    fake.apply(|rules| rules.requeue(s, Which::All).expect("begun"));
    assert!(fake.started().is_empty());
    fake.apply(|rules| rules.delete_attributes(f, |one| one.word() == "limit"));
    assert_eq!(fake.started(), ["/s/f/a"]);
    fake.complete("/s/f/a");
    assert_eq!(fake.started(), ["/s/f/b"], "whose room is that of the farther one");
    // A nearer one comes while tokens of the farther one are taken.
    fake.apply(|rules| rules.add_attribute(f, limit("l 1")));
    fake.complete("/s/f/b");
    assert!(!print(&fake.tree, Style::Net, false).contains("limit l 1 # "), "given back");
    // Where there is no limit any more, none counts.
    let t = fake.id("/t");
    fake.apply(|rules| rules.delete_attributes(t, |one| one.word() == "limit"));
    assert_eq!(fake.started(), ["/u/e"]);
}

#[test]
fn a_limit_that_is_deleted_with_its_node_holds_up_no_one() {
    let mut fake = Fake::begun(
        "suite t\n limit m 1\nendsuite\nsuite u\n task d\n  inlimit /t:m\n task e\n  \
         inlimit /t:m\nendsuite\n",
    );
    assert_eq!(fake.started(), ["/u/d"]);
    let t = fake.id("/t");
    fake.apply(|rules| rules.delete(t));
    assert_eq!(fake.started(), ["/u/e"]);
}

#[test]
fn a_task_that_comes_below_a_late_family_is_late() {
    let mut fake =
        Fake::begun("suite s\n family f\n  late -c +00:01\n  task a\n endfamily\nendsuite\n");
    let other = parse("suite x\n task b\n  defstatus complete\nendsuite\n", "x").expect("one");
    let (f, task) = (fake.id("/s/f"), other.tree.find("/x/b").expect("a task"));
    fake.apply(|rules| rules.plug(&other.tree, task, f, None).expect("plugged"));
    let (a, b) = (fake.id("/s/f/a"), fake.id("/s/f/b"));
    let alias = fake.apply(|rules| rules.add_alias(b, &[]).expect("an alias"));
    for id in [b, alias] {
        fake.apply(|rules| rules.submit_now(id));
    }
    for id in [a, b, alias] {
        fake.apply(|rules| rules.init(id, "1", &[]));
    }
    fake.wait(2);
    for id in [a, b, alias] {
        assert!(fake.tree.node(id).flags.has(Flag::Late), "{}", fake.tree.path(id));
    }
}

#[test]
fn what_is_loaded_begun_goes_on_and_so_does_what_has_waited_for_it() {
    for before in ["", "suite t\n task w\n  trigger /s:GO == 1 or /s/a == complete\nendsuite\n"] {
        let mut fake = Fake::begun(&format!("extern /s:GO\nextern /s/a\n{before}"));
        assert!(fake.started().is_empty());
        let text = "suite s\n edit GO 1\n task a\nendsuite\n";
        let mut begun = Fake::begun(text);
        begun.apply(|rules| rules.set_server_state(ServerState::Halted));
        let a = begun.id("/s/a");
        begun.apply(|rules| rules.requeue(a, Which::All).expect("begun"));
        let text = print(&begun.tree, Style::Net, false);
        let mut tree = parse(&text, "begun").expect("a definition").tree;
        tree.index_all();
        fake.apply(|rules| rules.take(tree, false).expect("loaded"));
        let mut expected = vec!["/s/a"];
        expected.extend((!before.is_empty()).then_some("/t/w"));
        let mut started = fake.started();
        started.sort();
        assert_eq!(started, expected);
    }
}

#[test]
fn names_that_are_numbers_and_others_have_one_order() {
    let names: Vec<String> =
        (1..40).flat_map(|n| [n.to_string(), format!("{n}a"), format!("a{n}")]).collect();
    let mut all: Vec<&String> = names.iter().collect();
    // Reproducible, and in no order.
    all.sort_by_key(|name| {
        name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte))
    });
    let tasks: String = all.iter().map(|name| format!(" task {name}\n")).collect();
    let mut fake = Fake::new(&format!("suite s\n{tasks}endsuite\n"));
    let one = fake.id("/s/1");
    fake.apply(|rules| rules.order(one, Order::Alphabetic)).expect("no run times are asked for");
    let suite = fake.id("/s");
    let names: Vec<String> =
        fake.tree.children(suite).map(|id| fake.tree.node(id).name.to_string()).collect();
    let (numbers, others) = names.split_at(39);
    let expected: Vec<String> = (1..40).map(|n| n.to_string()).collect();
    assert_eq!(numbers, expected);
    assert!(others.is_sorted_by_key(|name| name.to_ascii_uppercase()), "{others:?}");
}

#[test]
fn a_row_of_times_ends_that_has_waited_longer_than_can_be_counted() {
    let mut fake = Fake::begun("suite s\n task a\n  cron +00:00 20:00 01:00\nendsuite\n");
    let text = print(&fake.tree, Style::Migrate, false);
    let stated = "cron +00:00 20:00 01:00";
    let (before, behind) = text.split_once(stated).expect("the row");
    let behind = behind.split_once('\n').expect("lines").1;
    let text = format!("{before}{stated} # relativeDuration/99999999:00:00\n{behind}");
    fake.tree = parse(&text, "kept").expect("a definition").tree;
    fake.tree.index_all();
    let a = fake.id("/s/a");
    fake.apply(|rules| rules.force(a, State::Complete, false));
    assert_eq!(fake.state("/s/a"), State::Queued);
}

#[test]
fn an_aborted_task_that_may_be_tried_again_by_now_is() {
    let mut fake = Fake::new("edit ECF_TRIES '1'\nsuite s\n task a\nendsuite\n");
    fake.apply(|rules| rules.begin("s", false).expect("begun"));
    let a = fake.id("/s/a");
    assert_eq!(fake.started(), ["/s/a"]);
    fake.abort("/s/a");
    assert!(fake.started().is_empty());
    fake.apply(|rules| rules.set_server_variable("ECF_TRIES", Some("2")));
    assert_eq!(fake.started(), ["/s/a"]);
    fake.abort("/s/a");
    fake.apply(|rules| rules.set_variable(a, "ECF_TRIES", "9"));
    assert_eq!(fake.started(), ["/s/a"]);
    fake.apply(|rules| rules.job_failed(a, Flag::NoScript, "no script"));
    assert!(fake.started().is_empty());
    fake.apply(|rules| rules.alter_flag(a, Flag::NoScript, false));
    assert_eq!(fake.started(), ["/s/a"]);
}

/// Families within each other, and a task in the last.
fn nested(suite: &str, levels: usize) -> String {
    let families: String = (0..levels).map(|n| format!("family f{n}\n")).collect();
    format!("suite {suite}\n{families}task t\nendsuite\n")
}

#[test]
fn what_is_too_deep_for_its_new_place_leaves_no_part_of_it_there() {
    let mut fake = Fake::new(&format!("{}{}", nested("s", 150), nested("t", 150)));
    let (node, parent) = (fake.id("/s/f0"), fake.id("/t"));
    let to = fake.tree.walk(parent).nth(140).expect("a family");
    let (from, before) = (fake.tree.snapshot(), print(&fake.tree, Style::Defs, false));
    let refused = fake.apply(|rules| rules.put(&from, node, to, None));
    assert!(refused.is_err_and(|why| why.to_string().contains("256 levels")));
    assert_eq!(print(&fake.tree, Style::Defs, false), before);
    let to = fake.tree.walk(parent).nth(100).expect("a family");
    assert!(fake.apply(|rules| rules.put(&from, node, to, None)).is_ok());
}

#[test]
fn a_long_repeat_that_is_complete_by_rule_goes_on_with_the_next_minutes() {
    let mut fake = Fake::begun(
        "suite s\n family f\n  repeat integer I 1 20000\n  complete :I lt 15000\n  task t\n \
         endfamily\nendsuite\n",
    );
    assert!(fake.started().is_empty());
    fake.wait(2);
    assert_eq!(fake.started(), ["/s/f/t"]);
    let family = fake.id("/s/f");
    assert_eq!(fake.tree.repeat(family).map(|repeat| repeat.over.number()), Some(15_000));
}

#[test]
fn a_family_gives_its_own_token_back_however_its_tasks_end() {
    let text = "suite t\n limit l 1\nendsuite\nsuite s\n family f\n  inlimit -n /t:l\n  task a\n \
                endfamily\nendsuite\n";
    let is_free = |fake: &Fake| print(&fake.tree, Style::Net, false).contains("limit l 1\n");
    let run = || {
        let mut fake = Fake::begun(text);
        assert_eq!(fake.started(), ["/s/f/a"]);
        assert!(!is_free(&fake));
        fake
    };
    let mut fake = run();
    let family = fake.id("/s/f");
    fake.apply(|rules| rules.requeue(family, Which::All).expect("begun"));
    assert_eq!(fake.started(), ["/s/f/a"], "again, with its token");
    fake.complete("/s/f/a");
    assert!(is_free(&fake));
    let mut fake = run();
    fake.apply(|rules| rules.begin("s", true).expect("begun"));
    assert_eq!(fake.started(), ["/s/f/a"], "again, with its token");
    fake.complete("/s/f/a");
    assert!(is_free(&fake));
    for path in ["/s/f/a", "/s/f", "/s"] {
        let mut fake = run();
        let id = fake.id(path);
        fake.apply(|rules| rules.delete(id));
        assert!(is_free(&fake), "{path}");
    }
    let mut fake = run();
    let family = fake.id("/s/f");
    fake.apply(|rules| rules.archive(family));
    assert!(is_free(&fake));
}

#[test]
fn a_job_gives_its_token_back_when_its_suite_begins_again() {
    let mut fake =
        Fake::begun("suite t\n limit l 1\nendsuite\nsuite s\n task a\n  inlimit /t:l\nendsuite\n");
    assert_eq!(fake.started(), ["/s/a"]);
    fake.apply(|rules| rules.begin("s", true).expect("begun"));
    assert_eq!(fake.started(), ["/s/a"]);
}

#[test]
fn nested_limits_of_one_name_each_get_back_what_was_taken_of_them() {
    for inlimit in ["l 1", "-s l 1"] {
        let mut fake = Fake::begun(&format!(
            "suite s\n limit l 6\n inlimit l 5\n family f\n  limit l 2\n  task t\n   \
             inlimit {inlimit}\n endfamily\nendsuite\n"
        ));
        assert_eq!(fake.started(), ["/s/f/t"]);
        let has = |fake: &Fake, line: &str| print(&fake.tree, Style::Net, false).contains(line);
        assert!(has(&fake, "limit l 6 # 5 /s/f/t\n") && has(&fake, "limit l 2 # 1 /s/f/t\n"));
        let id = fake.id("/s/f/t");
        fake.apply(|rules| rules.init(id, "1", &[]));
        assert!(has(&fake, "limit l 6 # 5 /s/f/t\n"), "held as long as the job runs");
        fake.complete("/s/f/t");
        assert!(has(&fake, "limit l 6\n") && has(&fake, "limit l 2\n"), "{inlimit}");
    }
}

#[test]
fn a_limit_that_is_archived_with_its_node_holds_up_no_task() {
    let mut fake = Fake::begun(
        "suite t\n family f\n  limit m 1\n endfamily\nendsuite\nsuite u\n task d\n  \
         inlimit /t/f:m\n task e\n  inlimit /t/f:m\nendsuite\n",
    );
    assert_eq!(fake.started(), ["/u/d"]);
    let t = fake.id("/t");
    fake.apply(|rules| rules.archive(t));
    assert_eq!(fake.started(), ["/u/e"]);
}

#[test]
fn a_job_that_runs_where_it_is_moved_holds_its_tokens_there() {
    for ran in [false, true] {
        let mut fake = Fake::begun(
            "suite s\n limit l 1\n limit n 1\n family f\n  limit own 1\n  inlimit -n /s:n\n  \
             task a\n   inlimit /s:l\n   inlimit own\n endfamily\n family g\n endfamily\n \
             task w\n  inlimit /s:l\n task x\n  inlimit /s/f:own\nendsuite\n",
        );
        let (family, to, job) = (fake.id("/s/f"), fake.id("/s/g"), fake.id("/s/f/a"));
        assert_eq!(fake.started(), ["/s/f/a"]);
        if ran {
            fake.apply(|rules| rules.init(job, "1", &[]));
        }
        fake.apply(|rules| rules.move_below(family, to)).expect("room");
        // The limit that it waited for is at another place now, and holds up no one.
        assert_eq!(fake.started(), ["/s/x"]);
        let has = |fake: &Fake, line: &str| print(&fake.tree, Style::Net, false).contains(line);
        for line in ["l 1 # 1 /s/g/f/a", "own 1 # 1 /s/g/f/a", "n 1 # 1 /s/g/f"] {
            assert!(has(&fake, &format!("limit {line}\n")), "{line}");
        }
        fake.complete("/s/g/f/a");
        assert_eq!(fake.started(), ["/s/w"]);
        assert!(has(&fake, "limit own 1\n") && has(&fake, "limit n 1\n"));
    }
}

#[test]
fn the_folder_of_outputs_may_name_variables_of_the_nodes_around() {
    for (out, meant) in [
        ("%DIR%/%SUITE%%NONE:_%", "/out/s_/s/t.0"),
        ("%DIR%/%ECF_TRYNO%", "/out/0/s/t.0"),
        // As ecFlow's server has it that is made of itself.
        ("%ECF_JOBOUT%", "/s/t.0"),
        ("%ECF_OUT%", "%ECF_OUT%/s/t.0"),
    ] {
        let fake = Fake::begun(&format!(
            "suite s\n edit ECF_OUT '{out}'\n edit DIR /out\n task t\n  trigger 1 == 0\n\
             endsuite\n"
        ));
        let task = fake.id("/s/t");
        assert_eq!(fake.tree.variable(task, "ECF_JOBOUT").as_deref(), Some(meant), "{out}");
    }
}
