//! Figures are shown whatever they are worth, with their grade beside.

use crate::fixture::{Bench, foreign};
use ledger::Validity;
use serde_json::json;

const LABEL: &str = "http/get  16 conns · closed";

/// Two servers over five rounds in all of which a compiler ran.
fn disturbed(validity: Validity) -> Bench {
    let mut bench = Bench::new(&["nginx", "lighttpd"]);
    bench.point(LABEL, 16);
    for share in [14, 2, 9, 3, 5] {
        bench.round();
        for (target, rate) in [(0, 56_600), (1, 100_000)] {
            bench.trial(target, rate, 33_000, |row| {
                row.validity = validity;
                let programs = [("rustc", 1.1), ("java", 0.4)];
                row.causes = vec![foreign(f64::from(share) / 100.0, &programs)];
            });
        }
    }
    bench
}

const CAUSE: &str = "rustc 1.1 cores, java 0.4 (2.0 to 14.0 % of the run's cores)";

#[test]
fn disturbed_figures_are_shown_and_marked_with_one_line_of_what_disturbed_them() {
    let summary = disturbed(Validity::Disturbed).finish();
    let text = report::text(&summary, false);
    let has = |text: &str, part: &str| assert!(text.contains(part), "{part}\n{text}");
    has(&text, "  nginx     disturbed  56.6k/s");
    has(&text, "  lighttpd  disturbed  100k/s");
    has(&text, "verdict: can't tell (disturbed rounds), 0.566× [0.566, 0.566]");
    has(&text, ", 5 of 5 rounds disturbed");
    assert_eq!(text.matches(CAUSE).count(), 2, "at its point and in the conclusion: {text}");
    has(&text, &format!("  disturbed: 5 of 5 rounds: {CAUSE}\n"));
    has(&text, &format!("Disturbed: 5 of 5 rounds: {CAUSE}.\n"));
    let markdown = report::markdown(&summary);
    has(&markdown, "| nginx | disturbed | 56.6k/s ±0.00 % |");
    has(&markdown, "- nginx at http/get  16 conns · closed: disturbed in 5 of 5 rounds: rustc 1.1");
    let junit = report::junit(&summary, false);
    has(&junit, "<skipped message=\"56.6k/s ±0.00 %, disturbed in 5 of 5 rounds: rustc 1.1 cores");
    let json = report::json(&summary);
    let target = &json["points"][0]["targets"][0];
    assert_eq!(target["grade"]["word"], "disturbed");
    let cause = &target["grade"]["causes"][0];
    assert_eq!((&cause["cause"], &cause["rounds"]), (&json!(CAUSE), &json!(5)));
    let programs = json!([{ "name": "rustc", "cores": 1.1 }, { "name": "java", "cores": 0.4 }]);
    let merged = |least, most| {
        json!({ "kind": "foreign", "least": least, "most": most,
                                       "programs": programs })
    };
    assert_eq!(cause["disturbance"], merged(0.02, 0.14));
    let trial = &json["trials"][0];
    let said = "rustc 1.1 cores, java 0.4 (14.0 % of the run's cores)";
    assert_eq!((&trial["reason"], &trial["causes"][0]), (&json!(said), &merged(0.14, 0.14)));
    assert!(target["rate_per_s"].as_f64().is_some_and(|rate| (rate - 56_600.0).abs() < 1.0));
    assert_eq!(json["comparisons"][0]["reason"], "disturbed_rounds");
    assert_eq!(json["comparisons"][0]["disturbed_rounds"], 5);
    assert!(json["comparisons"][0]["ratio"].as_f64().is_some());
    assert_eq!(findings::outcome(&summary).exit_code(false), 4);
}

#[test]
fn a_run_without_an_undisturbed_round_says_so_where_nothing_else_does() {
    let run = |validity| {
        let mut bench = Bench::new(&["nginx"]);
        bench.point(LABEL, 16);
        for _ in 0..5 {
            bench.round();
            bench.trial(0, 56_600, 33_000, |row| row.validity = validity);
        }
        bench.finish()
    };
    let words = "No round of nginx was undisturbed: on a quiet machine its figures may differ.";
    for (validity, is_said) in [(Validity::Disturbed, true), (Validity::Valid, false)] {
        let summary = run(validity);
        assert_eq!(findings::outcome(&summary).exit_code(false) == 4, is_said);
        assert_eq!(report::text(&summary, false).contains(words), is_said, "{validity:?}");
    }
    let both = report::text(&disturbed(Validity::Disturbed).finish(), false);
    assert!(!both.contains("was undisturbed"), "a verdict says that it can't be told: {both}");
}

#[test]
fn junit_fails_refusals_only_where_they_are_what_makes_trials_invalid() {
    let junit = |validity, reason: &str| {
        let mut bench = Bench::new(&["nginx"]);
        bench.point(LABEL, 16);
        bench.round();
        bench.trial(0, 100_000, 33_000, |row| {
            (row.validity, row.refused) = (validity, 1);
            row.reason = Some(reason.to_owned());
        });
        report::junit(&bench.finish(), false)
    };
    for allowed in [junit(Validity::Disturbed, ""), junit(Validity::Invalid, "an event failed")] {
        assert!(allowed.contains("<skipped ") && !allowed.contains("<failure "), "{allowed}");
    }
    let refused = junit(Validity::Invalid, "operations were refused: the status is 503");
    assert!(refused.contains("<failure message=\""), "{refused}");
}

#[test]
fn a_verdict_of_rounds_whose_disturbances_were_ignored_says_so_everywhere() {
    let summary = disturbed(Validity::Valid).finish();
    let said = format!("Disturbances were ignored (rounds.disturbed), in 5 of 5 rounds: {CAUSE}.");
    let text = report::text(&summary, false);
    let flat = text.replace("\n    ", " ");
    assert!(text.contains("verdict: nginx worse") && flat.contains(&said), "{text}");
    assert!(text.contains("  nginx     disturbed  56.6k/s"), "{text}");
    let shown = "Disturbances were ignored (rounds.disturbed)";
    assert!(report::markdown(&summary).contains("Disturbances were ignored (rounds.disturbed)"));
    assert!(report::junit(&summary, false).contains(shown));
    let json = report::json(&summary);
    assert_eq!(json["points"][0]["targets"][0]["grade"]["ignored"], true);
    let reason = json["trials"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("disturbances ignored: rustc"), "{reason}");
    assert_eq!(findings::outcome(&summary).exit_code(false), 0);
}

#[test]
fn a_target_that_answers_nothing_shows_a_rate_of_zero_and_why_it_is_invalid() {
    let mut bench = Bench::new(&["silent"]);
    bench.point(LABEL, 16);
    for _ in 0..2 {
        bench.round();
        bench.trial(0, 0, 33_000, |row| {
            row.validity = Validity::Invalid;
            row.reason = Some("no operation was answered".into());
            row.missing = 16;
        });
    }
    let summary = bench.finish();
    let text = report::text(&summary, false);
    assert!(text.contains("  silent  invalid  0/s  0 wrong of 0, 32 missing\n"), "{text}");
    assert!(
        text.contains("  invalid: silent, 2 of 2 rounds: no operation was answered\n"),
        "{text}"
    );
    let said = "Nothing was measured of silent: no operation was answered (2 of 2 rounds).";
    assert!(text.contains(said), "{text}");
    assert_eq!(report::json(&summary)["points"][0]["targets"][0]["rate_per_s"], 0.0);
    assert_eq!(findings::outcome(&summary).exit_code(false), 4);
}
