//! What a target says of its statements, and which named loads each target carries.

use crate::fixture::Bench;

const LABEL: &str = "conditions/slice  4 conns · depth 1 · closed";

#[test]
fn advice_stands_with_its_statement_and_plan_and_with_how_often_it_came_first() {
    let mut bench = Bench::new(&["loadline", "postgres"]);
    bench.point(LABEL, 4);
    for round in 0..5 {
        bench.round();
        bench.trial(0, 1_000, 33_000, |_| ());
        let trial = bench.trial(1, 1_000, 33_000, |_| ());
        bench.advised(trial, 1, if round == 0 { "work_memory" } else { "index" });
        bench.advised(trial, 2, "statistics");
    }
    let text = report::text(&bench.finish(), false);
    let expected = "
  connections: postgres: 8.00 in a statement: running 75 %, IO 25 %
  advice: postgres: index: running took 75 % of the connections' time; it reads all rows (first in 4
          of 5 rounds)
    try: what helps index
    in: SELECT * FROM conditions
      Seq Scan on conditions: 100 rows
    also work memory in 1 of 5: what helps work_memory; statistics in 5 of 5: what helps statistics
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_statement_without_advice_stands_with_its_plan() {
    let mut bench = Bench::new(&["postgres"]);
    bench.point(LABEL, 4);
    bench.round();
    let trial = bench.trial(0, 1_000, 33_000, |_| ());
    let (text, plan) = ("SELECT 1".to_owned(), Some("Result: 1 rows".to_owned()));
    let waits = [("running".to_owned(), 0.25)].into();
    let row = ledger::StatementRow { trial_id: trial, rank: 1, text, active: 0.25, waits, plan };
    bench.ledger.add_statement(&row).unwrap();
    let name = "version".to_owned();
    let version = ledger::FactRow { target_id: bench.targets[0], name, value: "SQL 1.2".into() };
    bench.ledger.add_fact(&version).unwrap();
    let text = report::text(&bench.finish(), false);
    let expected = "
  connections: postgres: 0.25 in a statement: running 100 %
    in: SELECT 1
      Result: 1 rows
";
    assert!(text.contains(expected) && text.contains("SQL 1.2"), "{text}");
}

#[test]
fn a_table_says_which_loads_each_target_carries_and_how_many_times() {
    let mut bench = Bench::new(&["loadline", "postgres"]);
    bench.point(LABEL, 4);
    bench.rounds_of(&[1_000; 5]);
    bench.carried(0, "latency.mean <= 5s", 1e6, 5e9);
    bench.carried(1, "latency.mean <= 5s", 6e9, 5e9);
    let summary = bench.finish();
    for text in [report::text(&summary, false), report::markdown(&summary)] {
        for words in ["ATLAS", "= 5s", "carried, 5000×", "not carried", ", 0.833×"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn what_a_loads_name_says_behind_a_colon_is_a_column_of_its_own() {
    let mut bench = Bench::new(&["loadline", "postgres"]);
    bench.point(LABEL, 4);
    bench.rounds_of(&[1_000; 5]);
    let ratio = "about 336 × LHCb (data 2.5 to 5, jobs 12, sites 7)";
    for target in [0, 1] {
        bench.carried_load("LHCb", target, "latency.mean <= 432s", 6e9, 432e9);
        let name = format!("ATLAS: {ratio}");
        bench.carried_load(&name, target, "latency.mean <= 5s", 6e9, 5e9);
    }
    let text = report::text(&bench.finish(), false);
    for words in ["ratio", ratio, "not carried, 0.833×", "carried, 72.0×"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("ATLAS:"), "{text}");
}
