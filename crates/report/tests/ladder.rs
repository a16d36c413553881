//! A ladder: each rung against the one before and the first, decisions, and profiles.

use crate::fixture::Bench;
use ledger::Decision;

/// Three rungs: the second twice as fast as the first, the third like the second; and a peer.
fn bench() -> Bench {
    let mut bench = Bench::new(&["plain", "batched", "sharded", "peer"]);
    bench.rungs(&["as it was", "one write a batch", "a lock a shard"]);
    rounds(&mut bench, &[(0, PLAIN), (1, TWICE), (2, TWICE), (3, (500_000, 0))]);
    bench
}

/// Rates, and by how much they rise from one round to the next.
const PLAIN: (u64, u64) = (100_000, 100);
const TWICE: (u64, u64) = (200_000, 210);

/// A point with six rounds of these targets.
fn rounds(bench: &mut Bench, targets: &[(usize, (u64, u64))]) {
    bench.point("p", 1);
    for round in 0..6 {
        bench.round();
        for (target, (rate, rise)) in targets {
            bench.trial(*target, rate + round * rise, 33_000, |_| ());
        }
    }
}

#[test]
fn each_rung_is_judged_against_the_one_before_and_against_the_first() {
    let mut bench = bench();
    let summary = bench.finish();
    let text = report::text(&summary, false);
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has("ladder, by rate_per_s\n  1 plain — as it was\n  2 batched — one write a batch\n");
    has("      against the one before: better, 2.00× [2.00, 2.00]\n");
    has("      undecided; the figures say: keep\n");
    has("  3 sharded — a lock a shard\n      against the one before: same, 1.000×");
    has("      against the first: better, 2.00×");
    has("undecided; the figures say: no difference");
    has("Of 2 steps, 1 better, 1 no different. sharded has 2.00 times the rate of plain (");
    assert!(!text.contains("verdict:") && !text.contains("  4 peer"), "{text}");
    // The last rung is not worse than the one before, although the first is worse than all.
    assert_eq!(findings::outcome(&summary).exit_code(true), 0);
    let json = report::json(&summary);
    assert_eq!(json["rungs"][1]["against_before"][0]["b"], "plain");
    assert_eq!(json["rungs"][1]["against_first"], serde_json::json!([]));
    assert_eq!(json["rungs"][2]["against_first"][0]["verdict"], "better");
}

#[test]
fn the_memory_of_each_rung_s_server_stands_in_the_table_of_targets() {
    let text = report::text(&bench().finish(), false);
    let rows = text.lines().filter(|line| line.contains("memory 1.00 MiB")).count();
    assert_eq!(rows, 4, "{text}");
}

#[test]
fn the_program_that_rungs_are_measured_in_is_shown_with_its_flags_and_its_size() {
    let mut summary = bench().finish();
    for (name, value) in [("compiler_flags", "release opt-level=3"), ("program_bytes", "24117248")]
    {
        summary.fingerprint.json.insert(name.to_owned(), value.into());
    }
    let text = report::text(&summary, false);
    let line =
        "  this program's compiler flags: release opt-level=3; this program's size: 23.0 MiB\n";
    assert!(text.contains(&format!("ladder, by rate_per_s\n{line}  1 plain")), "{text}");
}

#[test]
fn a_rung_that_was_not_tried_stands_in_the_ladder_and_is_compared_with_nothing() {
    let mut bench = Bench::new(&["copy"]);
    bench.target("fork", Some("not tried, effort days: threads hold locks"));
    bench.target("shared", None);
    bench.rungs(&["", "another process", "copied by changes"]);
    rounds(&mut bench, &[(0, PLAIN), (2, TWICE)]);
    let summary = bench.finish();
    let text = report::text(&summary, false);
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has("  2 fork — another process\n      not tried, effort days: threads hold locks\n  3 shared");
    has("  3 shared — copied by changes\n      against the one before: better, 2.00×");
    has("Of 1 step, 1 better. shared has 2.00 times the rate of copy (");
    let json = report::json(&summary);
    assert_eq!(json["rungs"][1]["skipped"], "not tried, effort days: threads hold locks");
    assert_eq!(json["rungs"][1]["against_before"], serde_json::json!([]));
    assert_eq!(json["rungs"][2]["against_before"][0]["b"], "copy");
    assert_eq!(findings::outcome(&summary).exit_code(true), 0);
}

#[test]
fn a_rung_worse_than_the_one_before_it_is_a_failure_only_for_who_asked() {
    let mut bench = Bench::new(&["fast", "slow"]);
    bench.rungs(&["", "more features"]);
    bench.point("p", 1);
    bench.rounds_of(&[200_000; 6]);
    let outcome = findings::outcome(&bench.finish());
    assert_eq!((outcome.exit_code(false), outcome.exit_code(true)), (0, 3));
}

#[test]
fn a_decision_is_kept_with_its_reason_and_a_later_one_replaces_it() {
    let mut bench = bench();
    let run = bench.run;
    let decide = |bench: &mut Bench, rung: &str, decision, why: &str| {
        bench.ledger.decide(run, rung, decision, why).unwrap()
    };
    assert!(decide(&mut bench, "batched", Decision::BackedOut, "too soon"));
    assert!(decide(&mut bench, "batched", Decision::Kept, "half the calls"));
    assert!(!decide(&mut bench, "peer", Decision::Kept, "it is no rung"));
    let summary = bench.finish();
    let kept = |bench: &Bench| bench.ledger.runs().unwrap().remove(0).conclusion;
    bench.ledger.conclude(run, &report::concluded(&summary)).unwrap();
    let before = kept(&bench);
    decide(&mut bench, "sharded", Decision::Kept, "it costs nothing");
    assert!(before.is_some() && kept(&bench) == before, "verdicts decide what a run concludes");
    assert_eq!(before, Some(report::concluded(&bench.summary())));
    let text = report::text(&summary, false);
    assert!(text.contains("      kept: half the calls\n") && !text.contains("too soon"), "{text}");
    let json = report::json(&summary);
    assert_eq!(json["rungs"][1]["decision"], "kept");
    assert_eq!(json["rungs"][1]["decision_reason"], "half the calls");
}

#[test]
fn a_profile_whose_head_changes_from_time_to_time_is_not_to_be_acted_on() {
    let mut bench = bench();
    for ordinal in 1..=3 {
        bench.profile(0, ordinal, &[("query_hash", 0.30), ("assign_to_link", 0.10)]);
        let (a, b) = if ordinal == 2 { (0.05, 0.30) } else { (0.30, 0.05) };
        bench.profile(1, ordinal, &[("info_gotten", a), ("query_hash", b)]);
    }
    bench.profile(2, 1, &[("alone", 0.9)]);
    let summary = bench.finish();
    let steps = findings::ladder(&summary);
    let stable = |step: usize| steps[step].profile.as_ref().map(|profile| profile.is_stable);
    assert_eq!([stable(0), stable(1)], [Some(true), Some(false)]);
    assert_eq!(stable(2), Some(false), "one profile agrees with itself");
    let text = report::text(&summary, false);
    assert!(text.contains("profile of 3: 30 % query_hash · 10 % assign_to_link\n  2"), "{text}");
    assert!(text.contains("22 % info_gotten? · 13 % query_hash?"), "{text}");
    assert_eq!(text.matches("unstable: don't act on it").count(), 2, "{text}");
}
