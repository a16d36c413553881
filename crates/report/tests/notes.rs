//! The notes below the targets of a point: overload, lags, groups, drift, failed starts,
//! unchecked answers, figures of batches.

use crate::fixture::{Bench, foreign};
use judge::{Inconclusive, Verdict};
use ledger::{FailedAt, Validity};

const LABEL: &str = "cache/get  16 conns · open 100k/s";

#[test]
fn overload_is_a_result_that_bars_latencies_and_not_the_rate() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point(LABEL, 16);
    for _ in 0..5 {
        bench.round();
        bench.trial(0, 100_000, 33_000, |row| {
            (row.offered, row.schedule_ns) = (Some(500_000), Some(5_000_000_000));
        });
        bench.trial(1, 81_200, 900_000_000, |row| {
            (row.overloaded, row.backlog_most) = (true, Some(12_000));
            // Of the 5 s that were measured the last ones were the backlog's.
            (row.offered, row.schedule_ns) = (Some(500_000), Some(4_000_000_000));
        });
    }
    let summary = bench.finish();
    let verdict = |metric: &str| {
        let found = summary.comparisons.iter().find(|one| one.metric.json == metric);
        found.unwrap().verdict
    };
    assert_eq!(verdict("rate_per_s"), Verdict::Better);
    let overloaded = Verdict::CantTell { why: Inconclusive::Overloaded, more_rounds: None };
    assert_eq!(verdict("latency_ns.p99"), overloaded);
    assert_eq!(verdict("server.cpu_ns_per_op"), Verdict::Same);
    let text = report::text(&summary, false);
    let told = "memcached overloaded: 125k/s offered, 81.2k/s answered, backlog 12,000";
    assert!(text.contains(told) && !text.contains("loadline overloaded"), "{text}");
    let json = report::json(&summary);
    let target = &json["points"][0]["targets"][1];
    assert_eq!(target["overloaded_trials"], 5);
    assert_eq!(
        (&target["offered_per_s"], &target["backlog_most"]),
        (&125e3.into(), &12_000.into())
    );
}

#[test]
fn overload_in_some_rounds_is_reported_with_their_number() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    for overloaded in [true, false, false] {
        bench.round();
        bench.trial(0, 100_000, 33_000, |row| row.overloaded = overloaded);
    }
    let text = report::text(&bench.finish(), false);
    assert!(text.contains("  overloaded in 1 of 3 rounds: 100k/s answered\n"), "{text}");
}

/// A run of one target that was overloaded in this schedule, each stretch of a second.
fn overloaded_in(stretches: &[(&str, u64, u64, u64)]) -> findings::Summary {
    let mut bench = Bench::new(&["loadline"]);
    bench.point("cache/get  16 conns · open", 16);
    for _ in 0..5 {
        bench.round();
        let trial = bench.trial(0, 327, 33_000, |row| {
            (row.offered, row.schedule_ns) = (Some(1_640), Some(5_000_000_000));
            row.overloaded = stretches.iter().any(|(.., waited)| *waited > 0);
        });
        bench.stretches(trial, stretches);
    }
    bench.finish()
}

#[test]
fn of_several_rates_the_one_in_which_a_target_fell_behind_is_named() {
    let steps = [("500/s", 500, 500, 0), ("1.5k/s", 1_500, 1_000, 240), ("100/s", 100, 600, 0)];
    let summary = overloaded_in(&steps);
    let sentence = "loadline fell behind in 1 of 3 rates, in rate 2 of 3 (1.5k/s): 1.50k/s were \
                    due and 1.00k/s answered meanwhile, and 240 or more waited in its second half; \
                    it caught up later. Its latencies count the waiting.";
    assert!(report::conclusion(&summary).contains(&sentence.to_owned()), "{sentence}");
    let text = report::text(&summary, false);
    assert!(text.contains("overloaded in rate 2 of 3 (1.5k/s): 1.50k/s offered"), "{text}");
    assert!(text.contains("rate 1 of 3 (500/s)"), "{text}");
    assert!(text.contains("p50 241 ms"), "{text}");
    assert!(text.contains("fell behind"), "{text}");
    let stretch = &report::json(&summary)["points"][0]["targets"][0]["stretches"][1];
    assert_eq!((&stretch["name"], &stretch["overloaded_trials"]), (&"1.5k/s".into(), &5.into()));
    assert_eq!(stretch["answered_per_s"], 1000.0);
    assert_eq!(stretch["latency_ns"]["p50"], 241_041_407);
    let never = overloaded_in(&[("tenth 1", 500, 450, 20), ("tenth 2", 500, 300, 90)]);
    let sentence = report::conclusion(&never).join("\n");
    let said = "fell behind in 2 tenths of the trace, most in tenth 2 of the trace: 500/s were due";
    assert!(sentence.contains(said) && sentence.contains("had not caught up"), "{sentence}");
    // Of the last rate nothing comes later, in however few of its rounds it fell behind.
    let mut bench = Bench::new(&["loadline"]);
    bench.point("cache/get  16 conns · open", 16);
    for round in 0..5 {
        bench.round();
        let trial = bench.trial(0, 327, 33_000, |row| {
            (row.offered, row.schedule_ns) = (Some(1_640), Some(5_000_000_000));
            row.overloaded = round == 0;
        });
        let last = if round == 0 { 240 } else { 0 };
        bench.stretches(trial, &[("500/s", 500, 500, 0), ("1.5k/s", 1_500, 1_000, last)]);
    }
    let sentence = report::conclusion(&bench.finish()).join("\n");
    assert!(sentence.contains("in rate 2 of 2"), "{sentence}");
    assert!(!sentence.contains("caught up later"), "{sentence}");
}

#[test]
fn one_rate_is_what_was_due_and_answered_meanwhile_and_bursts_say_what_waited() {
    let sentence = |stretch| report::conclusion(&overloaded_in(&[stretch])).join("\n");
    let said = sentence(("1.5k/s", 1_500, 1_000, 240));
    let kept =
        "did not keep up with the schedule: 1.50k/s were due and 1.00k/s answered; latencies";
    assert!(said.contains(kept), "{said}");
    let said = sentence(("328/s in bursts", 328, 327, 40));
    assert!(said.contains("328/s were due and 327/s answered, and 40 or more waited"), "{said}");
    let text = report::text(&overloaded_in(&[("1.5k/s", 1_500, 1_000, 240)]), false);
    assert!(!text.contains("rate 1 of 1"), "one rate has no parts: {text}");
}

#[test]
fn what_was_never_answered_is_part_of_the_conclusion() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    for missing in [0, 3] {
        bench.round();
        bench.trial(0, 1_000, 33_000, |row| row.missing = missing);
    }
    let said = report::conclusion(&bench.finish()).join("\n");
    assert!(said.contains("loadline left 3 of 10,003 operations unanswered."), "{said}");
}

#[test]
fn groups_of_clients_are_reported_apart_with_their_send_lags() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    bench.round();
    let trial = bench.trial(0, 100_000, 33_000, |_| ());
    bench.lag(trial, "readers", "get", 12_000);
    let text = report::text(&bench.summary(), false);
    assert!(text.contains("lag p99 12.0 µs"), "{text}");
    assert!(!text.contains("/readers"), "one group is all there is: {text}");
    bench.lag(trial, "writers", "set", 80_000);
    bench.lag(trial, "writers", "delete", 80_000);
    let text = report::text(&bench.summary(), false);
    assert!(text.contains("lag p99 80.1 µs"), "{text}");
    assert!(text.contains("  loadline/readers  200/s requests  p50 1.01 ms"), "{text}");
    assert!(text.contains("  loadline/writers  400/s requests  p50 1.08 ms"), "{text}");
}

#[test]
fn disturbed_rounds_and_slices_measured_again_are_counted() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    bench.round();
    let trial = bench.trial(0, 100_000, 33_000, |_| ());
    let (calm, disturbed) = ((100_000, true), (90_000, false));
    bench.slices(trial, &[calm, disturbed, calm, disturbed, calm, calm, calm]);
    bench.round();
    // Five seconds were measured: two of the three disturbed slices were set aside.
    let trial = bench.trial(0, 98_000, 33_000, |row| {
        row.validity = Validity::Disturbed;
        row.causes = vec![foreign(0.05, &[])];
    });
    bench.slices(trial, &[disturbed, disturbed, disturbed, calm, calm, calm, calm]);
    let summary = bench.finish();
    let again: Vec<usize> = summary.trials.iter().map(|one| one.slices_measured_again).collect();
    assert_eq!(again, [2, 2]);
    let text = report::text(&summary, false);
    assert!(text.contains("valid 1/2, disturbed 1; 4 slices measured again"), "{text}");
    assert!(text.contains("disturbed: 1 of 2 rounds: other programs used 5.0 %"), "{text}");
}

#[test]
fn failed_starts_are_a_rate() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    for round in 0..10 {
        bench.round();
        bench.trial(0, 100_000, 33_000, |row| {
            if round < 3 {
                row.validity = Validity::Invalid;
                row.failed_at = Some(if round < 2 { FailedAt::Start } else { FailedAt::Prepare });
            }
        });
    }
    let summary = bench.finish();
    let text = report::text(&summary, false);
    assert!(text.contains("  2 of 10 starts failed\n"), "{text}");
    let json = report::json(&summary);
    assert_eq!(json["points"][0]["targets"][0]["failed_starts"], 2);
    assert_eq!(json["trials"][2]["failed_at"], "prepare");
}

#[test]
fn answers_that_were_not_checked_are_not_called_right() {
    for (unchecked, told) in
        [(500, "500 unchecked"), (100, "0 wrong of 400 checked, 100 unchecked")]
    {
        let mut bench = Bench::new(&["loadline"]);
        bench.point(LABEL, 16);
        bench.round();
        bench.trial(0, 100, 33_000, |row| row.unchecked = unchecked);
        let text = report::text(&bench.finish(), false);
        assert!(text.contains(told), "{text}");
        assert_eq!(text.contains("0 wrong"), unchecked < 500, "{text}");
    }
}

#[test]
fn figures_of_calls_are_shown_by_name_over_valid_trials() {
    let mut bench = Bench::new(&["builder"]);
    bench.point("batch", 1);
    for (value, validity) in [
        (2.0, Validity::Valid),
        (4.0, Validity::Valid),
        (3.0, Validity::Valid),
        (99.0, Validity::Invalid),
    ] {
        bench.round();
        let trial = bench.trial(0, 1, 1_000_000_000, |row| row.validity = validity);
        bench.value(trial, 0, "wall_s", value);
        bench.value(trial, 1, "events", 12_345.0);
    }
    let text = report::text(&bench.finish(), false);
    assert!(
        text.contains(
            "  builder: wall_s  min 2       median 3       mean 3       max 4       of 3  \
             in order 2 · 4 · 3\n"
        ),
        "{text}"
    );
    assert!(text.contains("  builder: events  min 12,345  median 12,345  mean 12,345"), "{text}");
}

#[test]
fn the_primary_metric_of_a_batch_stands_where_its_verdict_does() {
    let ledger = ledger::Ledger::in_memory().unwrap();
    let mut bench = Bench::with(ledger, &["ours", "theirs"], "elements_per_s");
    bench.point("batch", 1);
    for _ in 0..5 {
        bench.round();
        for (target, value) in [(0, 2e6), (1, 1e6)] {
            let trial = bench.trial(target, 1, 1_000_000_000, |_| ());
            bench.value(trial, 0, "elements_per_s", value);
        }
    }
    let summary = bench.finish();
    let text = report::text(&summary, false);
    assert!(text.contains("  ours    elements_per_s 2.00M/s ±0.00 %  1.00/s"), "{text}");
    assert!(text.contains("verdict: ours better, elements_per_s 2.00×"), "{text}");
    let markdown = report::markdown(&summary);
    assert!(markdown.contains("| elements | rate |"), "{markdown}");
    assert!(markdown.contains("| ours | 2.00M/s ±0.00 % | 1.00/s"), "{markdown}");
}

#[test]
fn memory_has_a_column_everywhere_where_the_verdict_is_about_it() {
    for (primary, is_shown) in [("server.rss_bytes", true), ("rate_per_s", false)] {
        let ledger = ledger::Ledger::in_memory().unwrap();
        let mut bench = Bench::with(ledger, &["ours"], primary);
        bench.point("idle", 1);
        bench.round();
        bench.trial(0, 1_000, 33_000, |row| row.server_rss_bytes = Some(64 << 20));
        let summary = bench.finish();
        let text = report::text(&summary, false);
        assert_eq!(text.contains("  memory 64.0 MiB"), is_shown, "{text}");
        let markdown = report::markdown(&summary);
        assert_eq!(markdown.contains("| memory |"), is_shown, "{markdown}");
        assert_eq!(markdown.contains("| 64.0 MiB |"), is_shown, "{markdown}");
    }
}

#[test]
fn markdown_has_the_bytes_and_allocations_of_an_operation_in_process() {
    let mut bench = Bench::new(&["protobuf"]);
    bench.point("encode", 1);
    bench.round();
    let trial = bench.trial(0, 100_000, 33_000, |_| ());
    bench.value(trial, 0, "bytes_per_op", 100.5);
    bench.value(trial, 1, "allocations_per_op", 5.0);
    let markdown = report::markdown(&bench.finish());
    assert!(markdown.contains("| bytes/op | allocations/op |"), "{markdown}");
    assert!(markdown.contains("| 100.5 | 5 |"), "{markdown}");
}

/// Six slices a round; the last third has this many operations a second.
fn drifting(last: impl Fn(u64) -> u64, rounds: u64) -> findings::Summary {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    for round in 0..rounds {
        bench.round();
        let trial = bench.trial(0, 100_000, 33_000, |row| row.rate_ns = 6_000_000_000);
        let (first, last) = ((100_000 + round, true), (last(round), true));
        bench.slices(trial, &[first, first, first, last, last, last]);
    }
    bench.finish()
}

#[test]
fn a_drift_that_rounds_agree_on_is_reported() {
    let slower = drifting(|round| 95_900 + 10 * round, 6);
    let text = report::text(&slower, false);
    assert!(text.contains("drift: the last third of slices is 4.1 % slower"), "{text}");
    let json = report::json(&slower);
    let drift = &json["points"][0]["targets"][0]["drift"];
    assert_eq!((&drift["verdict"], &drift["rounds"]), (&"worse".into(), &6.into()));

    let noisy = drifting(|round| if round % 2 == 0 { 95_000 } else { 105_000 }, 6);
    assert!(!report::text(&noisy, false).contains("drift"));
    let few = drifting(|_| 50_000, 4);
    assert!(!report::text(&few, false).contains("drift"), "four rounds tell nothing");
}

#[test]
fn streams_report_how_old_updates_were_and_how_many_were_missed() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point("records/monitor  2 conns · subscribe", 2);
    bench.round();
    let trial = bench.trial(0, 20, 33_000, |row| {
        (row.payload_bytes, row.fairness) = (Some(8_000_000_000), Some(0.5));
    });
    bench.streams(trial, "fast", &[40, 50], 8);
    let text = report::text(&bench.summary(), false);
    for told in
        ["stale p50 1.00 ms  stale p99 ~1.00 ms\n", "8 missed (4 said), fair 88 % over 2 streams"]
    {
        assert!(text.contains(told), "{text}");
    }
    assert!(text.contains("1.60 GB/s") && !text.contains("/fast"), "{text}");
    bench.streams(trial, "slow", &[10], 90);
    let text = report::text(&bench.summary(), false);
    assert!(text.contains("98 missed (49 said), fair 50 %"), "over all streams: {text}");
    assert!(text.contains("/slow  2.00/s updates  90 missed  least 10 of 1 stream "), "{text}");
}

#[test]
fn a_ceiling_is_shown_with_its_spread_and_doubted_where_more_was_moved() {
    let line = |ceilings: &[(f64, f64)]| {
        let mut bench = Bench::new(&["loadline"]);
        bench.point("p", 1);
        for (loopback, copied) in ceilings {
            bench.round();
            let trial = bench.trial(0, 20, 33_000, |row| row.payload_bytes = Some(8_000_000_000));
            bench.usage(trial, "loopback_bytes_per_s", *loopback);
            bench.usage(trial, "copy_bytes_per_s", *copied);
        }
        report::text(&bench.summary(), false).replace("\n    ", " ")
    };
    let spread = line(&[(2e9, 4e9), (3.2e9, 4e9)]);
    let words = "moves 50 % of the 2.00 GB/s to 3.20 GB/s that the loopback carries, 40 % of the \
                 4.00 GB/s that one ";
    assert!(spread.contains(words), "{spread}");
    let beyond = line(&[(1e9, 4e9)]);
    assert!(beyond.contains("160 % of the 1.00 GB/s that the loopback carries"), "{beyond}");
    assert!(beyond.contains("was measured at a worse moment"), "{beyond}");
}

#[test]
fn the_limit_of_most_rounds_is_reported_with_its_evidence() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    for round in 0..5 {
        bench.round();
        let shared = |row: &mut ledger::TrialRow| row.shared = Some("no core; caches".into());
        let trial = bench.trial(0, 100_000, 33_000, shared);
        bench.usage(trial, "server_cpu_ns", 4e9);
        bench.usage(trial, "measured_ns", 5e9);
        if round < 4 {
            bench.reached(trial, 1, "server_thread", "it runs 99 % of the time");
        }
        bench.reached(trial, 2, "growth", "memory 2 MB/s");
        let trial = bench.trial(1, 100_000, 33_000, shared);
        bench.usage(trial, "server_cpu_ns", 1e9);
        bench.usage(trial, "measured_ns", 5e9);
    }
    let summary = bench.finish();
    let text = report::text(&summary, false);
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has(
        "  limit: loadline: one server thread: it runs 99 % of the time (first in 4 of 5 rounds); \
         also memory\n         or descriptors that grow in 5 of 5\n    try: spread the work over",
    );
    has("  limit: memcached: none reached (server 0.20 cores, generator 50 % busy)\n");
    has("  shared by both sides: no core; caches\n");
    let json = report::json(&summary);
    let targets = &json["points"][0]["targets"];
    assert_eq!(targets[0]["limit"], "server_thread");
    assert_eq!(targets[0]["limits"][1]["code"], "growth");
    assert_eq!(
        (&targets[1]["limit"], &targets[1]["shared"]),
        (&"none".into(), &"no core; caches".into())
    );
}

#[test]
fn a_target_whose_processes_are_unknown_is_not_said_to_reach_no_limit() {
    let mut bench = Bench::new(&["nginx"]);
    bench.point("p", 1);
    for _ in 0..5 {
        bench.round();
        let shared = |row: &mut ledger::TrialRow| row.shared = Some("perhaps cores".into());
        let trial = bench.trial(0, 100_000, 33_000, shared);
        bench.usage(trial, "measured_ns", 5e9);
    }
    let summary = bench.finish();
    let text = report::text(&summary, false);
    let said = "  limit: unseen: the target's processes are not known (generator 50 % busy)\n";
    assert!(text.contains(said), "{text}");
    assert_eq!(report::json(&summary)["points"][0]["targets"][0]["limit"], "unseen");
}

#[test]
fn a_run_that_was_not_judged_reports_no_limits() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point("p", 1);
    bench.round();
    bench.trial(0, 100_000, 33_000, |_| ());
    let summary = bench.finish();
    assert!(!report::text(&summary, false).contains("limit"));
    assert!(report::json(&summary)["points"][0]["targets"][0]["limit"].is_null());
}

#[test]
fn the_cost_of_an_operation_stands_beside_its_difference_and_its_calls() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    for (ours, theirs) in [(2e9, 4e9), (2.1e9, 4.1e9), (1.9e9, 3.9e9)] {
        bench.round();
        for (target, cpu_ns) in [(0, ours), (1, theirs)] {
            let trial = bench.trial(target, 100_000, 33_000, |_| ());
            for (name, value) in [
                ("operations", 1e6),
                ("server_cpu_ns", cpu_ns),
                ("server_system_ns", cpu_ns / 2.0),
                ("server_voluntary_switches", 5e5),
            ] {
                bench.usage(trial, name, value);
            }
        }
    }
    let point_id = bench.point.unwrap();
    for (target, name, calls, errors) in
        [(0, "recvfrom", 1_010, 10), (0, "epoll_wait", 250, 0), (1, "recvfrom", 505, 5)]
    {
        let target_id = bench.targets[target];
        let (name, operations, system_ns) = (name.to_owned(), 1_000, 1_000_000);
        let of_generator = false;
        let row = ledger::CallRow {
            point_id,
            target_id,
            of_generator,
            name,
            operations,
            calls,
            errors,
            system_ns,
        };
        bench.ledger.add_call(&row).unwrap();
    }
    let floor = ledger::FloorRow { run_id: bench.run, name: "system_call".into(), value_ns: 43.0 };
    bench.ledger.add_floor(&floor).unwrap();
    let summary = bench.finish();
    let cost = report::cost(&summary, 0, false);
    let has = |part: &str| assert!(cost.contains(part), "{part}\n{cost}");
    // Half of 2,000 ns and of 4,000 ns; rounds vary by 50 ns, which Student's t widens.
    has("server user            1.00 µs ±0.124 µs          2.00 µs ±0.124 µs            −1.00 µs ");
    has("server wake-ups        0.500 ±0.000");
    has("recvfrom             1.01 (0.010 failed), 50 %  0.505 (0.005 failed), 100 %  +0.505\n");
    has("0.250, 50 %                0.000, 0.00 %                +0.250\n");
    has("this host's floors: system call 43.0 ns");
    assert!(!cost.contains("packets"), "what was unseen has no row: {cost}");
    let json = report::json(&summary);
    let ours = &json["points"][0]["cost"][0];
    assert_eq!(ours["server_calls"][1]["calls_per_op"], 0.25);
    assert!(ours["server_calls"][0]["difference"].is_null());
    let theirs = &json["points"][0]["cost"][1];
    assert_eq!(theirs["server_calls"][0]["difference"], 0.505);
    // A share of a half, seen by 600 ticks in all: 1.96 · √(¼ / 600) of 2,000 ns.
    let sampling = ours["figures"][0]["sampling"].as_f64().unwrap();
    assert!((sampling - 80.0).abs() < 0.5, "{sampling}");
    assert_eq!(json["floors_ns"]["system_call"], 43.0);
}

#[test]
fn the_slowest_requests_are_shown_when_verbose() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point(LABEL, 16);
    bench.round();
    let trial = bench.trial(0, 100_000, 33_000, |_| ());
    for latency_ns in 1..=9 {
        bench.slow(trial, latency_ns * 1_000_000);
    }
    let summary = bench.finish();
    let slowest = report::slowest(&summary, 0, false);
    let lines: Vec<&str> = slowest.lines().collect();
    assert_eq!(lines.len(), 1 + 8, "{slowest}");
    assert_eq!(lines[0], "  slowest of  latency  operation  clients  round  at");
    assert_eq!(lines[1], "  loadline    9.00 ms  get        readers  1      2.000 s");
    assert!(lines[8].starts_with("  loadline    2.00 ms"), "{slowest}");
    assert!(!report::text(&summary, false).contains("slowest"));
}

#[test]
fn a_generator_that_held_back_one_target_leaves_a_bound_and_both_nothing() {
    let told = |busy: [f64; 2]| {
        let mut bench = Bench::with(
            ledger::Ledger::in_memory().unwrap(),
            &["loadline", "memcached"],
            "server.cpu_ns_per_op",
        );
        bench.point(LABEL, 16);
        for _ in 0..5 {
            bench.round();
            bench.trial(0, 1_000_000, 20_000, |row| row.generator_busy = Some(busy[0]));
            bench.trial(1, 100_000, 200_000, |row| row.generator_busy = Some(busy[1]));
        }
        let summary = bench.finish();
        let text = report::text(&summary, false);
        let lines = text.lines().skip_while(|line| !line.contains("beside:"));
        let lines =
            lines.take_while(|line| line.starts_with("          ") || line.contains("beside"));
        let line = lines.map(str::trim_start).collect::<Vec<_>>().join(" ");
        let bound = report::json(&summary)["comparisons"][1]["bound"].clone();
        (line, bound)
    };
    let (line, bound) = told([0.98, 0.85]);
    // What was held back is better all the same.
    assert!(line.contains("rate_per_s at least 10.0× [10.0, 10.0] better · "), "{line}");
    assert!(line.contains("latency.p99 at most 0.100× [0.100, 0.100] better ("), "{line}");
    let note = "(ratios are bounds: with loadline the generator was at its limit)";
    assert!(line.ends_with(note), "{line}");
    assert_eq!(bound, "at_least");
    let (line, bound) = told([0.80, 0.95]);
    assert!(line.contains("rate_per_s at most 10.0× [10.0, 10.0] · "), "{line}");
    assert!(line.contains("with memcached"), "{line}");
    assert_eq!(bound, "at_most");
    let (line, bound) = told([0.98, 0.95]);
    assert!(line.contains("rate_per_s 10.0× [10.0, 10.0] not judged (generator-bound)"), "{line}");
    assert!(!line.contains("bounds") && bound.is_null(), "{line}");
    let (line, _) = told([0.5, 0.5]);
    assert!(line.contains("rate_per_s 10.0× [10.0, 10.0] better"), "{line}");
}
