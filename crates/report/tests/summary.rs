//! What the summary decides: merging, pairing, families, barring, and the outcome.

use crate::fixture::Bench;
use findings::{Bound, Compared, Outcome, Summary, outcome};
use judge::{Inconclusive, METRICS, OF_A_SCHEDULE, Verdict};
use ledger::{Cause, CauseKind, FailedAt, Ledger, RequirementOutcome, TrialRow, Validity};

fn compared<'a>(summary: &'a Summary, metric: &str) -> &'a Compared {
    summary.comparisons.iter().find(|one| one.metric.json == metric).unwrap()
}

fn cant_tell(why: Inconclusive) -> impl Fn(Verdict) -> bool {
    move |verdict| matches!(verdict, Verdict::CantTell { why: reason, .. } if reason == why)
}

#[test]
fn percentiles_come_from_merged_histograms_of_valid_trials() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point("p", 1);
    for (rate_per_s, latency_ns, validity) in [
        (99_000, 1_000, Validity::Valid),
        (1_000, 9_000_000, Validity::Valid),
        (500_000, 50_000_000, Validity::Invalid),
    ] {
        bench.round();
        bench.trial(0, rate_per_s, latency_ns, |row| row.validity = validity);
    }
    let summary = bench.finish();
    let target = &summary.points[0].targets[0];
    // The mean of the two valid p99s would be 4.5 ms; the p99 of all answers is 1 µs.
    assert_eq!(target.figures.latency.p99_ns, Some(1_000));
    assert!(target.figures.latency.max_ns.unwrap() >= 8_990_000);
    assert_eq!((target.trials, target.valid_trials, target.figures.operations), (3, 2, 500_000));
    assert_eq!(target.operations_of_all, 3_000_000);
}

#[test]
fn a_busy_generator_bars_rate_and_latency_but_not_the_servers_cpu() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    for round in 0..5 {
        bench.round();
        // One calm round of five doesn't make the generator idle.
        let busy = if round == 0 { 0.2 } else { 0.97 };
        bench.trial(0, 100_000, 66_000, |row| row.generator_busy = Some(busy));
        bench.trial(1, 200_000, 33_000, |row| row.server_cpu_ns = Some(row.operations * 300));
    }
    let summary = bench.finish();
    for metric in ["rate_per_s", "latency_ns.p50", "latency_ns.p99"] {
        assert!(
            cant_tell(Inconclusive::GeneratorBound)(compared(&summary, metric).verdict),
            "{metric}"
        );
    }
    let cpu = compared(&summary, "server.cpu_ns_per_op");
    assert_eq!(cpu.verdict, Verdict::Better);
    assert!((cpu.interval.unwrap().ratio - 0.5).abs() < 1e-9);
}

#[test]
fn what_a_busy_generator_held_back_and_is_better_all_the_same_is_better() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    for _ in 0..5 {
        bench.round();
        bench.trial(0, 200_000, 33_000, |row| row.generator_busy = Some(0.97));
        bench.trial(1, 100_000, 66_000, |row| row.generator_busy = Some(0.4));
    }
    let summary = bench.finish();
    for (metric, bound) in [("rate_per_s", Bound::Least), ("latency_ns.p50", Bound::Most)] {
        let compared = compared(&summary, metric);
        assert_eq!((compared.verdict, compared.bound), (Verdict::Better, Some(bound)), "{metric}");
    }
}

#[test]
fn only_rounds_with_both_trials_valid_are_paired() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    bench.rounds_of(&[200_000; 5]);
    bench.round();
    bench.trial(0, 5_000_000, 33_000, |row| row.validity = Validity::Disturbed);
    bench.trial(1, 100_000, 33_000, |_| ());
    let summary = bench.summary();
    let rate = compared(&summary, "rate_per_s");
    assert_eq!((rate.verdict, rate.interval.unwrap().rounds), (Verdict::Better, 5));
    assert_eq!((summary.points[0].rounds, summary.points[0].valid_rounds), (6, 5));
}

#[test]
fn what_disturbed_rounds_show_on_both_sides_alike_is_likely() {
    let run = |foreign: [f64; 2], cause: Option<Cause>| {
        let mut bench = Bench::new(&["loadline", "memcached"]);
        bench.point("p", 1);
        for rate_per_s in [190_000, 201_000, 197_000, 204_000, 199_000, 195_000] {
            bench.round();
            for (target, foreign) in foreign.into_iter().enumerate() {
                let (rate_per_s, latency_ns) =
                    if target == 0 { (rate_per_s, 16_500) } else { (100_000, 33_000) };
                let disturb = |row: &mut TrialRow| {
                    row.validity = Validity::Disturbed;
                    row.causes.extend(cause.clone());
                };
                let trial = bench.trial(target, rate_per_s, latency_ns, disturb);
                bench.usage(trial, "run_cores", 2.0);
                bench.usage(trial, "foreign", foreign);
            }
        }
        (bench.finish(), bench.ledger)
    };
    let steal = Cause::new(CauseKind::Steal, 0.02);
    let (summary, mut ledger) = run([0.1, 0.1], Some(steal));
    let rate = compared(&summary, "rate_per_s");
    assert!(cant_tell(Inconclusive::DisturbedRounds)(rate.verdict), "the strict verdict stays");
    let likely = rate.likely.unwrap();
    assert!(likely.is_better && likely.found.interval.low > 1.9);
    assert!((likely.found.most_disturbance - 0.1).abs() < 1e-9);
    let text = report::text(&summary, false);
    let words = "likely loadline better, 1.976× [1.915, 2.04]; 6 of 6 rounds disturbed, by 10 %";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("can't tell (disturbed rounds), likely better, 0.5"), "{text}");
    let found = outcome(&summary);
    assert_eq!((found.exit_code(true), found.accepting_likely().exit_code(true)), (4, 0));
    let line = ledger.runs().unwrap().remove(0);
    findings::store_verdicts(&mut ledger, line.id).unwrap();
    ledger.conclude(line.id, &report::concluded(&summary)).unwrap();
    let listed = report::run_sentence(&ledger.runs().unwrap()[0], true);
    let begin = "\u{1b}[33mloadline likely has a 98 % higher rate than memcached";
    assert!(listed.starts_with(begin), "{listed:?}");

    // The sensor of other programs has no row in one trial: how much they took is unknown.
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    for round in 0..6 {
        bench.round();
        for (target, rate_per_s) in [(0, 200_000), (1, 100_000)] {
            let disturb = |row: &mut TrialRow| row.validity = Validity::Disturbed;
            let trial = bench.trial(target, rate_per_s + round, 33_000, disturb);
            bench.usage(trial, "paused", 0.1);
            if (round, target) != (3, 1) {
                bench.usage(trial, "foreign", 0.1);
            }
        }
    }
    assert_eq!(compared(&bench.finish(), "rate_per_s").likely, None);

    // Only one side was disturbed: the difference may be the disturbance.
    let (summary, _) = run([0.1, 0.0], None);
    assert_eq!(compared(&summary, "rate_per_s").likely, None);
    assert_eq!(outcome(&summary).accepting_likely().exit_code(false), 4);

    // It isn't known how much these took from each side, whatever others took besides.
    for kind in [CauseKind::Swap, CauseKind::Quota] {
        let (summary, _) = run([0.1, 0.1], Some(Cause::new(kind.clone(), 20.0)));
        assert_eq!(compared(&summary, "rate_per_s").likely, None, "{kind:?}");
    }
}

#[test]
fn what_is_unseen_in_one_round_is_unseen_in_the_comparison() {
    let mut bench = Bench::new(&["loadline", "address"]);
    bench.point("p", 1);
    for _ in 0..5 {
        bench.round();
        bench.trial(0, 200_000, 33_000, |_| ());
        bench.trial(1, 100_000, 33_000, |row| row.server_cpu_ns = None);
    }
    let summary = bench.finish();
    let cpu = compared(&summary, "server.cpu_ns_per_op");
    assert!(cpu.interval.is_none() && cant_tell(Inconclusive::Unseen)(cpu.verdict));
    assert_eq!(outcome(&summary), Outcome::default(), "only the primary metric decides");
}

#[test]
fn the_primary_metric_may_be_any_and_is_compared_first() {
    let ledger = Ledger::in_memory().unwrap();
    let mut bench = Bench::with(ledger, &["loadline", "memcached"], "latency.p999");
    bench.point("p", 1);
    bench.rounds_of(&[50_000; 5]);
    let summary = bench.finish();
    let first = &summary.comparisons[0];
    assert_eq!((&*first.metric.json, first.primary), ("latency_ns.p999", true));
    assert_eq!(first.verdict, Verdict::Better);
    assert!(
        report::text(&summary, false).contains("verdict: loadline better, latency.p999 0.103×")
    );
    assert!(!outcome(&summary).worse, "the rate is worse, but it isn't primary");
}

#[test]
fn the_exit_code_follows_requirements_then_doubt() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    bench.rounds_of(&[50_000; 5]);
    let worse = outcome(&bench.summary());
    assert_eq!((worse.exit_code(false), worse.exit_code(true)), (0, 3));
    bench.requirement("wrong = 0", 0.0, RequirementOutcome::CantTell);
    assert_eq!(outcome(&bench.summary()).exit_code(false), 4);
    bench.requirement("wrong = 0", 1.0, RequirementOutcome::Broken);
    assert_eq!(outcome(&bench.summary()).exit_code(false), 3);

    let mut few = Bench::new(&["loadline", "memcached"]);
    few.point("p", 1);
    few.rounds_of(&[50_000; 2]);
    assert_eq!(outcome(&few.summary()).exit_code(true), 4);

    let mut invalid = Bench::new(&["loadline"]);
    invalid.point("p", 1);
    invalid.round();
    invalid.trial(0, 1, 1, |row| row.validity = Validity::Invalid);
    assert_eq!(outcome(&invalid.summary()).exit_code(false), 4);
}

/// A gate passes what can't be told: a program that dies under each load is no such thing.
#[test]
fn a_target_that_failed_in_each_trial_could_not_be_measured_even_if_it_answered_before() {
    let code = |failed: [bool; 2]| {
        let mut bench = Bench::new(&["loadline"]);
        bench.point("p", 1);
        for failed in failed {
            bench.round();
            bench.trial(0, 1_000, 1_000, |row| {
                if failed {
                    row.validity = Validity::Invalid;
                    row.failed_at = Some(FailedAt::Measure);
                }
            });
        }
        outcome(&bench.summary()).exit_code(false)
    };
    assert_eq!([code([true, true]), code([true, false])], [1, 0]);
}

/// One table names every metric: of a trial in which all was seen, of one in which calls reported
/// all, and of one in which nothing was seen.
#[test]
fn every_metric_stands_under_its_name_in_json_and_in_the_view_of_trials() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut bench = Bench::on_disk(&path, &["loadline"]);
    bench.point("p", 1);
    bench.round();
    let trial = bench.trial(0, 1_000, 33_000, |row| {
        (row.wrong, row.missing, row.misses, row.hits) = (1, 2, 3, Some(97));
        row.refused = 4;
        (row.elements, row.payload_bytes, row.fairness) = (Some(40), Some(320), Some(0.875));
        (row.offered, row.schedule_ns) = (Some(2_000), Some(1_000_000_000));
    });
    bench.lag(trial, "readers", "get", 12_000);
    bench.streams(trial, "watchers", &[40, 60], 8);
    let nothing = |row: &mut TrialRow| {
        let begun = TrialRow::unfinished(row.round_id, row.target_id, row.state, row.started_ns);
        *row = TrialRow { validity: Validity::Valid, ..begun };
    };
    bench.round();
    let told = bench.trial(0, 0, 1, nothing);
    for (ordinal, metric) in (0_u32..).zip(METRICS) {
        bench.value(told, 2 * ordinal, &metric.suite, f64::from(ordinal) + 7.0);
        bench.value(told, 2 * ordinal + 1, &metric.suite, f64::from(ordinal) + 9.0);
    }
    bench.round();
    bench.trial(0, 0, 1, nothing);
    let summary = bench.finish();
    let json = report::json(&summary);
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    for (index, trial) in summary.trials.iter().enumerate() {
        for metric in METRICS {
            let figure = trial.figures.value(metric);
            let counted = ["wrong", "refused", "missing", "misses"].contains(&&*metric.suite);
            assert_eq!(figure.is_some(), index < 2 || counted, "{} of {index}", metric.suite);
            let pointer = format!("/trials/{index}/{}", metric.json.replace('.', "/"));
            let in_json = json.pointer(&pointer).and_then(|value| value.as_f64());
            assert_eq!(in_json, figure, "{pointer}");
            let sql = format!("SELECT {} FROM trials WHERE trial_id = ?1", metric.sql.unwrap());
            let in_view = by_hand.query_row(&sql, [trial.id.get()], |row| row.get(0)).unwrap();
            assert_eq!(figure, in_view, "{sql}");
        }
        let schedule = trial.figures.stored(&summary.metrics).into_iter();
        let schedule = schedule.filter(|(name, _)| OF_A_SCHEDULE.contains(&&**name));
        let in_view =
            "SELECT offered_per_s, lag_p50_ns, lag_p99_ns FROM trials WHERE trial_id = ?1";
        let in_view: [Option<f64>; 3] = by_hand
            .query_row(in_view, [trial.id.get()], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))
            .unwrap();
        let figures: Vec<f64> = schedule.map(|(_, value)| value).collect();
        assert_eq!(in_view.into_iter().flatten().collect::<Vec<_>>(), figures);
        assert_eq!(figures.len(), if index == 0 { 3 } else { 0 });
    }
}
