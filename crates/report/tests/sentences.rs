//! The conclusion: the thing and its direction, what went the other way, and causes.

use crate::fixture::{Bench, foreign};
use ledger::{Better, FactRow, Ledger, ProgramFigureRow, RequirementOutcome, Validity};

/// Rounds in which the first target has this rate, latency and CPU time an operation; the other one
/// has 100,000/s, 33 µs and 100 ns.
fn rounds(bench: &mut Bench, rate_per_s: u64, latency_ns: u64, cpu_ns: u64) {
    for _ in 0..5 {
        bench.round();
        let figures = [(rate_per_s, latency_ns, cpu_ns), (100_000, 33_000, 100)];
        for (target, (rate_per_s, latency_ns, cpu_ns)) in figures.into_iter().enumerate() {
            bench.trial(target, rate_per_s, latency_ns, |row| {
                row.server_cpu_ns = Some(row.operations * cpu_ns);
            });
        }
    }
}

fn by_cpu() -> Bench {
    let ledger = Ledger::in_memory().unwrap();
    Bench::with(ledger, &["loadline", "memcached"], "server.cpu_ns_per_op")
}

#[test]
fn the_primary_metric_comes_first_and_what_went_the_other_way_behind_it() {
    let mut bench = by_cpu();
    bench.point("p", 1);
    rounds(&mut bench, 87_000, 41_000, 78);
    let said = "loadline takes 22 % less CPU per operation than memcached (78.0 ns against 100 \
                ns); rate 13 % lower, p50 24 % higher, p99 24 % higher.";
    assert_eq!(report::conclusion(&bench.finish()), [said]);
}

#[test]
fn several_points_are_said_by_their_span() {
    let mut bench = by_cpu();
    for (connections, rate, cpu_ns) in [(1, 200_000, 10), (4, 90_000, 88), (16, 100_000, 106)] {
        bench.point(&format!("{connections} conns"), connections);
        rounds(&mut bench, rate, 33_000, cpu_ns);
    }
    let said = "loadline takes 12 to 90 % less CPU per operation than memcached at 2 of 3 points, \
                6.0 % more at 1; rate 10 % lower at 1 and 2.00 times as high at 1.";
    assert_eq!(report::conclusion(&bench.finish()), [said]);
}

#[test]
fn rate_and_latency_of_runs_are_left_out_beside_a_figure_of_the_programs_own() {
    let said = |primary: &str| {
        let ledger = Ledger::in_memory().unwrap();
        let mut bench = Bench::with(ledger, &["loadline", "memcached"], primary);
        for (ordinal, name) in (0..).zip(["median_ns", "wall_ns"]) {
            let (run_id, name, unit) = (bench.run, name.into(), "ns".into());
            let row = ProgramFigureRow { run_id, ordinal, name, better: Better::Lower, unit };
            bench.ledger.add_program_figure(&row).unwrap();
        }
        bench.point("batch/run", 1);
        for _ in 0..5 {
            bench.round();
            for (target, median_ns, rate_per_s, latency_ns) in
                [(0, 50.0, 90_000, 41_000), (1, 100.0, 100_000, 33_000)]
            {
                let trial = bench.trial(target, rate_per_s, latency_ns, |_| ());
                let figures = ["median_ns", "wall_ns", "user_ns", "system_ns", "peak_bytes"];
                for (ordinal, name) in (0..).zip(figures) {
                    bench.value(trial, ordinal, name, median_ns);
                }
            }
        }
        report::conclusion(&bench.finish()).remove(0)
    };
    let own = said("median_ns");
    assert!(own.contains("50 % lower median_ns") && !own.contains("rate"), "{own}");
    let of_runs = said("wall_ns");
    assert!(of_runs.contains("rate 10 % lower, p50 24 % higher"), "{of_runs}");
}

#[test]
fn what_is_likely_comes_first_and_that_no_strict_verdict_is_behind_it() {
    let conclusion = |points: &[(u64, u64)]| {
        let mut bench = Bench::new(&["loadline", "memcached"]);
        for (ordinal, &(rate_per_s, step)) in points.iter().enumerate() {
            bench.point(&format!("{ordinal} conns"), 1);
            for round in 0..20_u64 {
                bench.round();
                for (target, rate) in [(0, rate_per_s + step * (round % 5)), (1, 100_000)] {
                    let trial = bench.trial(target, rate, 33_000, |row| {
                        row.validity = Validity::Disturbed;
                    });
                    bench.usage(trial, "foreign", 0.03);
                }
            }
        }
        report::conclusion(&bench.finish()).remove(0)
    };
    let one = conclusion(&[(199_000, 700)]);
    let begin = "loadline likely has 2.00 times the rate of memcached (measured \
                 200k/s against 100k/s; with equal disturbance between ";
    assert!(one.starts_with(begin), "{one}");
    let end = "20 of 20 rounds disturbed, by 3 %); no strict verdict (disturbed rounds).";
    assert!(one.ends_with(end), "{one}");
    let two = conclusion(&[(199_000, 700), (48_600, 700), (60_000, 20_000)]);
    let said = "loadline likely has 2.00 times the rate of memcached at 1 of 3 points, likely 50 % \
                lower at 1; no strict verdict at 2 (disturbed rounds); it can't be told at 1";
    assert!(two.starts_with(said), "{two}");
}

#[test]
fn what_cant_be_told_is_said_with_what_was_seen_why_and_what_to_do() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    bench.rounds_of(&[100_000, 120_000, 90_000, 105_000, 95_000]);
    let said = &report::conclusion(&bench.finish())[0];
    let begin = "It can't be told whether loadline has a higher or lower rate than memcached \
                 (interval too wide): between 11 % lower and 16 % higher, 5 rounds; about ";
    assert!(said.starts_with(begin), "{said}");
    assert!(said.contains(" more rounds would tell; p50 90 % lower"), "{said}");
}

#[test]
fn what_is_broken_does_not_hide_what_cant_be_told() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point("p", 1);
    bench.round();
    bench.trial(0, 100_000, 33_000, |_| ());
    bench.requirement("wrong = 0", 9.0, RequirementOutcome::Broken);
    for expression in ["latency.p50 < 1ms", "latency.p99 < 1ms", "rate_per_s > 1/s"] {
        bench.requirement(expression, 1.0, RequirementOutcome::CantTell);
    }
    let said = report::conclusion(&bench.finish()).join("\n");
    let broken = "1 of 4 requirements is broken, 3 can't be told: wrong = 0: it was 9.";
    assert!(said.contains(broken), "{said}");
}

#[test]
fn a_target_that_was_never_seen_is_named_with_its_cause_once() {
    let mut bench = Bench::new(&["loadline", "memcached"]);
    bench.point("p", 1);
    for port in 4_001..4_004 {
        bench.round();
        bench.trial(0, 100_000, 33_000, |_| ());
        bench.trial(1, 0, 33_000, |row| {
            row.validity = Validity::Invalid;
            let awaited = format!("something that listens at 127.0.0.1:{port}");
            row.reason = Some(format!("memcached: not ready within 5 s: {awaited} did not come"));
        });
    }
    let summary = bench.finish();
    let said = [
        "Nothing was measured of memcached: not ready within 5 s: something that listens at \
         127.0.0.1:4001 did not come (3 of 3 rounds).",
        "loadline reached 100k/s (p50 33.0 µs, p99 33.0 µs).",
    ];
    assert_eq!(report::conclusion(&summary), said);
    assert_eq!(report::text(&summary, false).matches("127.0.0.1:400").count(), 2);
}

#[test]
fn misses_of_data_that_do_not_fit_have_their_cause() {
    let mut bench = Bench::new(&["loadline"]);
    bench.point("p", 1);
    bench.round();
    bench.trial(0, 100_000, 33_000, |row| (row.hits, row.misses) = (Some(400_000), 100_000));
    let (target_id, name) = (bench.targets[0], "overfull".to_owned());
    let value = "512 MiB of keys and values in 64 MiB of memory".to_owned();
    bench.ledger.add_fact(&FactRow { target_id, name, value }).unwrap();
    let text = report::text(&bench.finish(), false);
    let said = "  100,000 misses: evictions, with 512 MiB of keys and values in 64 MiB of memory\n";
    assert!(text.contains(said) && text.contains(", 80.0 % hits"), "{text}");
}

#[test]
fn what_all_points_have_in_common_is_said_once() {
    let mut bench = Bench::new(&["loadline"]);
    for connections in [1, 4, 16] {
        bench.point(&format!("{connections} conns"), connections);
        bench.round();
        let shared = |row: &mut ledger::TrialRow| row.shared = Some("no core; caches".into());
        let trial = bench.trial(0, 100_000, 33_000, shared);
        bench.reached(trial, 1, "server_thread", "it runs 99 % of the time");
    }
    let text = report::text(&bench.finish(), false);
    assert_eq!(text.matches("shared by both sides").count(), 1, "{text}");
    assert!(text.contains("  shared by both sides: no core; caches (at all 3 points)\n"), "{text}");
    assert_eq!(text.matches("it runs 99 % of the time").count(), 1, "{text}");
}

#[test]
fn no_line_is_wider_than_100_columns() {
    let names = ["a-target-of-quite-a-long-name", "another-one-that-is-as-long", "third"];
    let mut bench = Bench::new(&names);
    bench.point(
        &format!("cache/get  16 conns · {} · closed", "workload.keys.count 9 · ".repeat(9)),
        1,
    );
    for round in 0..5_u64 {
        bench.round();
        for target in 0..3 {
            let trial = bench.trial(target, 100_000 + 3_000 * (round % 3), 33_000, |row| {
                row.shared = Some("no core (server 0, generator 1); caches and ".repeat(3));
                (row.missing, row.unchecked, row.payload_bytes) = (3, 100, Some(8_000_000_000));
                if round > 2 {
                    row.validity = Validity::Disturbed;
                    let programs = [("rustc", 1.1), ("java", 0.4), ("a-compiler-driver", 0.2)];
                    row.causes = vec![foreign(0.05, &programs)];
                }
            });
            bench.reached(trial, 1, "server_thread", &"it runs 99 % of the time ".repeat(6));
            bench.lag(trial, "readers", "get", 12_000);
            bench.lag(trial, "writers", "set", 80_000);
            bench.finding(trial, &"a note ".repeat(30), &[0; 200], &[1; 180]);
            bench.slow(trial, 9_000_000);
        }
    }
    bench.requirement("latency.p99 < 1ms", 33_023.0, ledger::RequirementOutcome::Held);
    let summary = bench.finish();
    for text in [report::text(&summary, false), report::slowest(&summary, 0, false)] {
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(wide.is_empty(), "{wide:#?}\n{text}");
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }
}
