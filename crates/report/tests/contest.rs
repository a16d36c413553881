//! The report of a run that is one comparison.

use crate::fixture::Bench;
use serde_json::json;

const RATES: [u64; 7] = [102_000, 101_800, 102_100, 101_900, 102_050, 101_950, 102_000];

fn contest(rates: &[u64], looks: &[u32]) -> findings::Summary {
    let mut bench = Bench::new(&["now", "before"]);
    bench.point("cache/get", 16);
    bench.rounds_of(rates);
    bench.contest(24, looks);
    bench.finish()
}

#[test]
fn a_comparison_ends_in_a_sentence_with_its_evidence_and_names_the_factor() {
    let text = report::text(&contest(&RATES, &[5, 7]), false).replace("\n    ", " ");
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has("now has a 2.0 % higher rate than before by compiler (102k/s against 100k/s; ");
    has("between 1.8 and 2.2 % higher, 7 rounds).");
    has("Looked at twice; at most 2.5 % of such verdicts call a difference wrongly.");
    has("Said beforehand, from run 7: 1.2 % can be shown.");
    has("  program's size: 1,020 KiB against 512 KiB, 2.00×\n");
    assert!(!text.contains("beside:"), "{text}");
}

#[test]
fn compilers_that_differ_are_doubted_unless_they_are_the_question() {
    let said = |factor: Option<&str>, compilers: [&str; 2]| {
        let mut bench = Bench::new(&["now", "before"]);
        bench.point("cache/get", 16);
        bench.rounds_of(&RATES);
        bench.contest_by(factor, 24, &[7]);
        for (target_id, value) in bench.targets.clone().into_iter().zip(compilers) {
            let (name, value) = ("compiler".into(), value.into());
            bench.ledger.add_fact(&ledger::FactRow { target_id, name, value }).unwrap();
        }
        report::conclusion(&bench.finish()).join(" ").contains("Different compilers")
    };
    let versions = ["rustc 1.94", "GCC 12; rustc 1.95"];
    assert!(said(None, versions));
    assert!(!said(Some("compiler"), versions));
    assert!(!said(None, ["rustc 1.95", "rustc 1.95"]));
    assert!(!said(None, ["rustc 1.95", "GCC 12"]), "two languages differ in more than that");
}

#[test]
fn an_early_look_asks_for_more_than_the_only_one() {
    let alone = contest(&RATES, &[]);
    let early = contest(&RATES, &[5, 7]);
    let confidence = |summary: &findings::Summary| summary.comparisons[0].confidence;
    // The first seven of 24 rounds may spend 0.025 × (7/24)².
    assert!((confidence(&alone) - (1.0 - 0.025 * (7.0_f64 / 24.0).powi(2))).abs() < 1e-9);
    assert!(confidence(&early) > confidence(&alone));
    let noisy = [104_000, 99_000, 103_500, 101_000, 100_500, 103_000];
    let text = report::text(&contest(&noisy, &[5]), false);
    assert!(
        text.contains("It can't be told whether now has a higher or lower rate than before"),
        "{text}"
    );
    assert!(
        text.replace("\n    ", " ").contains("more rounds would tell; these rounds could show"),
        "{text}"
    );
}

#[test]
fn what_is_likely_spends_the_error_once_at_the_end() {
    // Of 20 rounds two are clean: at the confidence of a look after two of 24 rounds nothing of it
    // would be likely.
    let mut bench = Bench::new(&["now", "before"]);
    bench.point("cache/get", 16);
    for round in 0..20_u64 {
        bench.round();
        for (target, rate_per_s) in [(0, 102_000 + 700 * (round % 5)), (1, 100_000)] {
            let trial = bench.trial(target, rate_per_s, 33_000, |row| {
                if round > 1 {
                    row.validity = ledger::Validity::Disturbed;
                }
            });
            bench.usage(trial, "foreign", if round > 1 { 0.03 } else { 0.0 });
        }
    }
    bench.contest(24, &[2]);
    let summary = bench.finish();
    let one = &summary.comparisons[0];
    assert!(one.confidence > 0.9998, "the strict one's: {}", one.confidence);
    let likely = one.likely.expect("it is likely");
    let (low, high) = (likely.found.interval.low, likely.found.interval.high);
    // Student's t at 97.5 % and 18 degrees of freedom is 2.445, at 99.98 % it is 4.7.
    let deviation = (0.0069_f64 * 1.414).ln_1p();
    assert!((high / low).ln() < 2.0 * 3.0 * deviation / 20_f64.sqrt(), "{low} to {high}");
}

#[test]
fn two_speeds_of_one_program_are_named() {
    let rates: Vec<u64> =
        (0..14).map(|round| if round % 3 == 0 { 145_000 } else { 1_010_000 } + round).collect();
    let summary = contest(&rates, &[]);
    let text = report::text(&summary, false);
    let words =
        "now two modes of rate_per_s: 1,010k/s in 9 rounds, 145k/s in 5; its mean is neither";
    assert!(text.contains(words), "{text}");
    let json = report::json(&summary);
    assert_eq!(
        (&json["modes"][0]["target"], &json["modes"][0]["low_rounds"]),
        (&json!("now"), &json!(5))
    );
}

#[test]
fn the_json_says_what_was_fixed_and_the_medians() {
    let json = report::json(&contest(&RATES, &[5, 7]));
    let fixed = &json["contest"];
    assert_eq!((&fixed["rounds_most"], &fixed["factor"]), (&json!(24), &json!("compiler")));
    assert_eq!(fixed["looks"][0]["rounds"], json!([5, 7]));
    let rate = &json["comparisons"][0];
    assert_eq!((&rate["median_a"], &rate["median_b"]), (&json!(102_000.0), &json!(100_000.0)));
    assert_eq!(json["targets"][0]["facts"]["program_bytes"], "1048576");
    let compared = json["comparisons"].as_array().unwrap();
    assert!(compared.iter().any(|one| one["metric"] == "server.rss_bytes"));
}
