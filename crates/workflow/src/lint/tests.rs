//! Findings of small definitions.

use super::{Finding, Level, check, lint};
use crate::definition::examine;
use crate::model::Date;

fn found(text: &str) -> Vec<Finding> {
    lint(&examine(text, "x.def"), Date::of_number(20_261_124).expect("a date"))
}

/// The rules and lines of what is found.
fn rules(text: &str) -> Vec<(&'static str, usize)> {
    found(text).iter().map(|one| (one.rule, one.line)).collect()
}

#[test]
fn a_definition_that_runs_has_no_findings() {
    let text = "suite s\n limit l 2\n family f\n  inlimit l\n  task a\n   event e\n   meter \
                m 0 10\n  \
                task b\n   trigger a:e or a:m ge 10\n  task c\n   trigger a == aborted\n  \
                task d\n   \
                trigger a == complete and a:m gt 5 and ../g == complete\n  endfamily\n  \
                family g\n  \
                task x\n   time 10:00\n endfamily\n task w\n  complete f/c == complete\n  \
                trigger \
                f/c == complete and f/a == complete\n task y\n  trigger w == \
                complete\nendsuite\n";
    assert_eq!(found(text), []);
}

#[test]
fn triggers_that_contradict_themselves_or_their_values_never_hold() {
    let never = |trigger: &str| {
        let text = format!(
            "suite s\n family f\n task a\n  meter m 0 10\n  event e\n  repeat date D 20260101 \
             20260110 1\n task b\n  trigger {trigger}\n endfamily\nendsuite\n"
        );
        let rules = rules(&text);
        assert!(rules.iter().all(|(rule, line)| *rule == "never-true" && *line == 8), "{rules:?}");
        !rules.is_empty()
    };
    for trigger in [
        "a == complete and a == aborted",
        "a:m gt 10",
        "a:m gt 5 and a:m lt 5",
        "a:e == set and a:e == clear",
        "1 == 0",
        "a:e == 2",
        "not (a == complete or a != complete)",
        "b == complete",
        "../f == complete",
        "a:D gt 20260110",
    ] {
        assert!(never(trigger), "{trigger}");
    }
    for trigger in [
        "a == complete or a == aborted",
        "a:m ge 10",
        "a:m gt 5 and a:m lt 7",
        "a:e == set and a == complete",
        "a:m + 5 gt 12",
        "a:D eq 20260110",
    ] {
        assert!(!never(trigger), "{trigger}");
    }
}

#[test]
fn nodes_that_wait_for_each_other_are_a_circle_and_those_behind_it_are_not_told() {
    let text = "suite s\n task a\n  trigger c == complete\n task b\n  trigger a == \
                complete\n task c\n  \
                trigger b == complete\n task d\n  trigger c == complete\n family f\n  \
                trigger f/x == \
                complete\n  task x\n endfamily\nendsuite\n";
    let found = found(text);
    let circles: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        circles,
        [
            "/s/a waits for /s/c, which waits for /s/b, which waits for /s/a",
            "/s/f waits for itself, or for what is in it"
        ]
    );
    assert!(found.iter().all(|one| one.level == Level::Error));
    // Either of two is enough, so that there is no circle.
    let text = "suite s\n task a\n  trigger b == complete or c == complete\n task b\n  \
                trigger a == \
                complete\n task c\nendsuite\n";
    assert_eq!(rules(text), []);
}

#[test]
fn what_nothing_brings_about_is_told_once() {
    let text = "suite s\n task gate\n  defstatus complete\n  event go\n task a\n  trigger \
                gate:go\n \
                task b\n  trigger gate:go == set\n task c\n  trigger b == complete\n task \
                d\n  cron \
                10:00\n task e\n  trigger d == complete\n family g\n endfamily\n task h\n  \
                trigger g == \
                complete\nendsuite\n";
    let found = found(text);
    let told: Vec<_> = found.iter().map(|one| (one.rule, one.line, one.level)).collect();
    assert_eq!(
        told,
        [
            ("by-hand", 6, Level::Warning),
            ("cron-never-complete", 14, Level::Error),
            ("empty-family", 18, Level::Error)
        ],
        "{found:?}"
    );
    assert!(found[0].text.ends_with("(1 more node waits for it)"), "{}", found[0].text);
}

#[test]
fn limits_without_room_or_use_are_found() {
    let text = "suite s\n limit none 0\n limit three 3\n limit unused 1\n task a\n  inlimit \
                none\n task \
                b\n  inlimit three 4\n task c\n  inlimit missing\n task d\n  trigger a == \
                complete\n\
                endsuite\n";
    assert_eq!(
        rules(text),
        [
            ("unused-limit", 4),
            ("limit-without-room", 6),
            ("limit-without-room", 8),
            ("no-limit", 10)
        ]
    );
    let text = "suite s\n task a\n  inlimit missing\n task b\n  trigger c == complete\nendsuite\n";
    assert_eq!(rules(text), [("no-limit", 3), ("syntax", 5)], "beside a node that isn't there");
}

#[test]
fn tokens_of_nodes_that_do_not_run_are_found_in_checkpoints() {
    let text = "#5.9.2\ndefs_state MIGRATE\nsuite s # begun:1 state:active\n  limit l 1 # 3 \
                /s/a /s/b \
                /s/gone\n  task a # state:active\n    inlimit l\n  task b # state:queued\n  \
                  inlimit \
                l\nendsuite\n";
    let found = found(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|one| one.rule == "limit-held" && one.line == 4));
    assert!(found[0].text.contains("/s/b holds tokens of it and is queued"), "{found:?}");
}

#[test]
fn dates_that_have_passed_are_found_by_the_suites_own_clock() {
    let text = "suite s\n task a\n  date 1.1.2020\nendsuite\nsuite t\n clock real \
                1.1.2019\n task a\n  \
                date 1.1.2020\n task b\n  date 1.*.*\nendsuite\n";
    assert_eq!(rules(text), [("date-passed", 3)]);
}

#[test]
fn days_that_a_hybrid_clock_never_has_are_found() {
    // 24.12.2025 is a Wednesday.
    let text = "suite s\n clock hybrid 24.12.2025\n task a\n  day monday\n task b\n  \
                date 1.1.2020\n task c\n  day wednesday\n task d\n  date 24.12.2025\nendsuite\n";
    assert_eq!(rules(text), [("date-passed", 3), ("date-passed", 6)]);
}

#[test]
fn a_definition_that_ecflow_refuses_is_not_looked_at_further() {
    let examined = examine("suite s\n limit l x\n task a\n  trigger 1 == 0\nendsuite\n", "x.def");
    let found = check(&examined);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].rule, found[0].line, found[0].level), ("syntax", 2, Level::Error));
    assert!(!found[0].fix.is_empty());
    assert_eq!(lint(&examined, Date::of_number(20_261_124).expect("a date")), found);
}
