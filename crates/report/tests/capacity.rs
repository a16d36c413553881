//! The report of a search for the highest load, and the scaling laws of points.

use crate::fixture::Bench;
use ledger::{ArrivalsKind, ClientsRow, ProbeRow, RequirementOutcome, SearchRow};
use serde_json::json;

fn search(bench: &mut Bench, key: &str) {
    let (run_id, key) = (bench.run, key.to_owned());
    let row = SearchRow { run_id, key, precision: 0.02, error: 0.02, rounds_most: 12 };
    bench.ledger.add_search(&row).unwrap();
}

/// A point of this load whose rounds answer at that rate.
fn probe(bench: &mut Bench, load: u32, latency_ns: u64, outcome: RequirementOutcome) {
    bench.point(&format!("cache/get  open {load}/s"), load);
    for _ in 0..3 {
        bench.round();
        bench.trial(0, u64::from(load), latency_ns, |_| ());
    }
    bench.requirement("latency.p99 < 1ms", latency_ns as f64, outcome);
    let reason = (outcome != RequirementOutcome::Held).then(|| "latency.p99 < 1ms".to_owned());
    let point_id = bench.last_point();
    let load = f64::from(load);
    bench.ledger.add_probe(&ProbeRow { point_id, load, outcome, reason }).unwrap();
}

#[test]
fn a_search_ends_in_a_sentence_with_its_interval_what_breaks_and_the_knee() {
    let mut bench = Bench::new(&["ours"]);
    search(&mut bench, "clients.arrivals.rate");
    for (load, latency_ns) in
        [(10_000, 30_000), (20_000, 31_000), (40_000, 33_000), (60_000, 60_000), (78_000, 300_000)]
    {
        probe(&mut bench, load, latency_ns, RequirementOutcome::Held);
    }
    probe(&mut bench, 79_000, 900_000, RequirementOutcome::CantTell);
    probe(&mut bench, 80_000, 5_000_000, RequirementOutcome::Broken);
    let summary = bench.finish();
    let text = report::text(&summary, false);
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    let wrapped = text.replace("\n    ", " ");
    let words = "ours carries at least 78.0k/s, and breaks by 80.0k/s: latency.p99 < 1ms; 79.0k/s \
                 was unclear.";
    assert!(wrapped.contains(words), "{text}");
    has("The knee is at 60.0k/s");
    has("79.0k/s  can't tell");
    assert_eq!(findings::outcome(&summary).exit_code(true), 0);
    let json = report::json(&summary);
    let capacity = &json["capacity"];
    assert_eq!((&capacity["held"], &capacity["broken"]), (&json!(78_000.0), &json!(80_000.0)));
    assert_eq!(
        (&capacity["breaks"], &capacity["probes"][6]["outcome"]),
        (&json!("latency.p99 < 1ms"), &json!("broken"))
    );
}

#[test]
fn what_is_not_held_at_the_answer_is_no_answer() {
    let code = |outcome: RequirementOutcome| {
        let mut bench = Bench::new(&["ours"]);
        search(&mut bench, "clients.arrivals.rate");
        probe(&mut bench, 10_000, 30_000, RequirementOutcome::Held);
        bench.requirement("wrong = 0", 0.0, outcome);
        probe(&mut bench, 20_000, 5_000_000, RequirementOutcome::Broken);
        findings::outcome(&bench.finish()).exit_code(true)
    };
    assert_eq!(code(RequirementOutcome::Held), 0);
    assert_eq!(code(RequirementOutcome::CantTell), 4);
    assert_eq!(code(RequirementOutcome::Broken), 3);
}

#[test]
fn an_answer_below_loads_that_all_stayed_unclear_is_open() {
    let mut bench = Bench::new(&["ours"]);
    search(&mut bench, "clients.arrivals.rate");
    probe(&mut bench, 10_000, 30_000, RequirementOutcome::Held);
    assert_eq!(findings::outcome(&bench.summary()).exit_code(true), 0, "it was asked for no more");
    let said = |bench: &Bench| report::conclusion(&bench.summary())[1].clone();
    assert_eq!(said(&bench), "ours carries at least 10.0k/s, the highest load that was tried.");
    probe(&mut bench, 20_000, 900_000, RequirementOutcome::CantTell);
    assert_eq!(said(&bench), "ours carries at least 10.0k/s; 20.0k/s was unclear.");
    probe(&mut bench, 40_000, 950_000, RequirementOutcome::CantTell);
    assert_eq!(said(&bench), "ours carries at least 10.0k/s; 20.0k/s to 40.0k/s was unclear.");
    assert_eq!(findings::outcome(&bench.finish()).exit_code(true), 4);
}

#[test]
fn a_target_that_carries_nothing_is_broken() {
    let mut bench = Bench::new(&["ours"]);
    search(&mut bench, "clients.arrivals.rate");
    probe(&mut bench, 1, 5_000_000, RequirementOutcome::Broken);
    let summary = bench.finish();
    assert!(report::text(&summary, false).contains("ours does not even carry 1.00/s"));
    assert_eq!(findings::outcome(&summary).exit_code(false), 3);
}

#[test]
fn a_sweep_of_connections_carries_the_scalability_law_unless_it_is_stressed() {
    let sweep = |busy: f64| {
        let mut bench = Bench::new(&["ours"]);
        for connections in [1, 2, 4, 8, 16, 32] {
            bench.point("cache/get", connections);
            let n = f64::from(connections);
            let rate = 10_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0));
            for round in 0..5 {
                bench.round();
                bench.trial(0, rate as u64 + round, 30_000, |row| row.generator_busy = Some(busy));
            }
        }
        let summary = bench.finish();
        (report::text(&summary, false), report::json(&summary))
    };
    let (text, json) = sweep(0.5);
    assert!(
        text.contains("ours over connections: one brings 10.0k/s, contention α 0.05"),
        "{text}"
    );
    let peak = json["scalings"][0]["peak"]["value"].as_f64().unwrap();
    assert!((peak - (0.95_f64 / 0.001).sqrt()).abs() < 0.5, "{peak}");
    let (text, json) = sweep(0.95);
    let flat = text.replace("\n    ", " ");
    assert!(flat.contains("6 stressed or partial points left out"), "{text}");
    assert_eq!(json["scalings"][0]["refused"], "too_few");
}

#[test]
fn idle_slots_break_littles_law_and_are_named() {
    let mut bench = Bench::new(&["ours"]);
    bench.point("cache/get", 16);
    let row = ClientsRow {
        point_id: bench.last_point(),
        name: "readers".into(),
        connections: 16,
        pipeline: 1,
        threads: 1,
        arrivals: ArrivalsKind::Closed,
        think_ns: None,
    };
    bench.ledger.add_clients(&row).unwrap();
    bench.round();
    let trial = bench.trial(0, 200, 1_000_000, |_| ());
    // A thousand requests of a millisecond in five seconds: a fifth of one slot.
    bench.lag(trial, "readers", "get", 0);
    let summary = bench.finish();
    let text = report::text(&summary, false);
    let words = "Little's law is broken in 1 round: by rate × latency 0.2 of 16 requests";
    assert!(text.contains(words), "{text}");
    assert_eq!(report::json(&summary)["little"][0]["slots"], 16.0);
}
