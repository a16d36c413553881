//! What a run looks like on a terminal.

use crate::fixture::{Bench, foreign};
use ledger::{RequirementOutcome, SliceRow, TargetRow, Validity};

const LABEL: &str = "cache/get  16 conns · depth 16 · closed";

#[test]
fn a_run_reads_as_the_design_says() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    let skipped = TargetRow {
        run_id: bench.run,
        ordinal: 2,
        name: "redis".into(),
        description: "redis 1.0".into(),
        skipped: Some("redis-server is not installed".into()),
    };
    bench.ledger.add_target(&skipped).unwrap();
    bench.point(LABEL, 16);
    bench.rounds_of(&[690_000, 700_000, 695_000, 705_000, 698_000]);
    bench.requirement("latency.p99 < 1ms", 33_023.0, RequirementOutcome::Held);
    let summary = bench.finish();
    let expected = include_str!("golden/two-targets.txt");
    assert_eq!(report::text(&summary, false), expected);
    assert!(report::text(&summary, true).contains("\u{1b}[32mloadline better"));
}

/// Programs of users look for these lines: docs/reports.md promises them.
#[test]
fn each_comparison_has_a_line_that_begins_as_promised() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    for rates in [[200_000; 5], [100_000; 5]] {
        bench.point(LABEL, 16);
        bench.rounds_of(&rates);
    }
    let text = report::text(&bench.finish(), false);
    let promised = |line: &&str| line.starts_with("  verdict: ");
    assert_eq!(text.lines().filter(promised).count(), 2, "{text}");
}

#[test]
fn slices_spoiled_trials_and_unseen_figures_are_told() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point(LABEL, 16);
    bench.rounds_of(&[100_000; 4]);
    bench.round();
    let trial = bench.trial(0, 100_000, 33_000, |row| (row.refused, row.missing) = (5, 3));
    for ordinal in 0..2 {
        let slice = SliceRow {
            trial_id: trial,
            ordinal,
            start_ns: 0,
            duration_ns: 500_012_345,
            operations: 1,
            server_cpu_ns: None,
            generator_cpu_ns: None,
            validity: Validity::Valid,
            causes: Vec::new(),
        };
        bench.ledger.add_slice(&slice).unwrap();
    }
    bench.trial(1, 100, 33_000, |row| {
        row.validity = Validity::Disturbed;
        row.causes = vec![foreign(0.05, &[])];
    });
    let text = report::text(&bench.finish(), false);
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has("5 rounds × 5 s in 500 ms slices · valid 4/5");
    has("disturbed: 1 of 5 rounds: other programs used 5.0 % of the run's cores");
    has(", 5 refused, 3 missing");
    has("loadline refused 5 of 2.50 M operations.");
    has("verdict: can't tell (disturbed rounds), ");
    has("It can't be told whether loadline has a higher or lower rate than memcached (disturbed");

    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    bench.round();
    bench.trial(0, 1_000, 33_000, |row| {
        (row.server_cpu_ns, row.generator_cpu_ns, row.generator_busy) = (None, None, None);
    });
    let text = report::text(&bench.summary(), false);
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has("run 1 · running");
    has("1 round × 5 s · valid 1/1");
    has("1.00k/s  p50 33.0 µs  p99 ~33.0 µs");
    has("  server CPU unseen\n");
    has("  generator unseen\n");
    has("The run hasn't ended yet.\nloadline reached 1.00k/s (p50 33.0 µs, p99 33.0 µs).");
}

#[test]
fn points_that_were_not_measured_are_a_number_beside_those_that_were() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("first", 1);
    bench.rounds_of(&[100_000; 5]);
    (0..2_000).for_each(|n| bench.point(&format!("later {n}"), 1));
    let text = report::text(&bench.finish(), false);
    assert!(text.contains("\n2,000 of 2,001 points were not measured\n"), "{text}");
    assert!(!text.contains("later") && text.contains("\nfirst · 5 rounds"), "{text}");
}

#[test]
fn wrong_answers_are_shown_with_what_was_expected() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    bench.round();
    let trial = bench.trial(0, 100_000, 33_000, |row| row.wrong = 9);
    for note in ["another key's value", "\u{1b}[2J a hostile note", "stale", "a fourth"] {
        bench.finding(trial, note, b"value-1\r\n", b"value-2\r\n");
    }
    bench.requirement("wrong = 0", 9.0, RequirementOutcome::Broken);
    let text = report::text(&bench.finish(), false);
    let shown = r"
  require wrong = 0: broken, 9
  wrong answers of loadline, round 1:
    get key:7 at 1.23 s: another key's value
      expected      9 B  value-1\r\n
      received      9 B  value-2\r\n
                               ^ byte 6: 0x31 expected, 0x32 received
";
    assert!(text.contains(shown), "{text}");
    assert!(text.contains("    and 6 more\n") && !text.contains("a fourth"), "{text}");
    assert!(text.contains(r"\u{1b}[2J a hostile note") && !text.contains('\u{1b}'), "{text}");
    assert!(text.ends_with(
        "The requirement is broken: wrong = 0: it was 9.\n\
         loadline gave 9 wrong answers of 500,000.\n"
    ));
}

#[test]
fn refusals_before_the_measured_time_are_shown_beside_a_wrong_answer() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    bench.round();
    let trial = bench.trial(0, 100_000, 33_000, |row| row.wrong = 1);
    for note in ["another key's value", "503 too many changes wait"] {
        bench.finding(trial, note, b"", b"");
    }
    let text = report::text(&bench.finish(), false);
    assert!(text.contains("wrong answers and refusals of loadline, round 1:"), "{text}");
}

#[test]
fn the_conclusion_counts_points_and_names_each_other_target() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    for connections in [1, 16] {
        bench.point(&format!("cache/get  {connections} conns"), connections);
        bench.rounds_of(&[200_000 * u64::from(connections); 5]);
    }
    bench.point("cache/get  64 conns", 64);
    bench.rounds_of(&[200_000; 3]);
    assert_eq!(
        report::conclusion(&bench.finish()),
        ["loadline has 2.00 to 32.0 times the rate of memcached at 2 of 3 points; it can't be \
          told at 1 (too few rounds); about 2 more rounds would tell."]
    );
}

#[test]
fn samples_of_operations_in_a_process_have_their_histogram_and_standard_deviation() {
    let mut bench = Bench::new(&["prost", "upb"]);
    bench.point("rpc-codec/encode", 1);
    for latency_ns in [30_000, 60_000] {
        bench.round();
        let trial = bench.trial(0, 100_000, latency_ns, |_| ());
        bench.value(trial, 0, "evaluations_per_sample", 64.0);
        bench.trial(1, 100_000, latency_ns, |_| ());
    }
    let text = report::text(&bench.finish(), false);
    let gap = " ".repeat(30);
    let row = format!("  prost  █{gap}█  30.0 µs to p99 60.0 µs  mean 45.0 µs ± 15.0 µs\n");
    assert!(text.contains(&row), "{row}{text}");
    assert!(!text.contains("upb  █"), "{text}");
}
