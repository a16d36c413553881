//! How long the pages of a large run take:
//! `cargo run --release -p loadline-report --example many_trials`.
//!
//! It writes one run of 10,000 trials (1,000 points × 5 rounds × 2 targets; another number is its
//! argument) with what a real trial leaves behind, and times what a reader asks for.

use std::time::Instant;

use findings::{ChartData, Progress, Summary};
use ledger::{
    CounterRow, DataState, FingerprintRow, Histogram, HistogramKind, HistogramRow, Ledger,
    LedgerError, PointRow, RoundRow, RunId, RunRow, RunState, SliceRow, SlowRow, SuiteRow,
    TargetId, TargetRow, TrialId, TrialRow, UsageRow, Validity,
};
use report::MAX_POINTS_IN_FULL;
use serde_json::json;

/// Rounds of a point.
const ROUNDS: u32 = 5;

/// What a trial of `suites/tour.toml` leaves behind.
const SLICES: u32 = 4;
const COUNTERS: u32 = 90;
const USAGES: u32 = 40;
const SLOW: u32 = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trials: u32 = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ledger.sqlite");
    let run = write(&path, trials / (2 * ROUNDS))?;
    let ledger = Ledger::open_read_only(&path)?;
    let timed = |what: &str, made: &dyn Fn() -> Result<usize, Box<dyn std::error::Error>>| {
        let (begin, cpu_begin) = (Instant::now(), cpu_ms());
        let bytes = made()?;
        let (wall, cpu) = (begin.elapsed().as_millis(), cpu_ms() - cpu_begin);
        println!("{what:<24} {wall:>6} ms, {cpu:>6} ms of CPU time {bytes:>12} bytes");
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    timed("list of runs", &|| {
        Ok(report::runs("", &ledger.runs()?, &ledger.results()?, Default::default()).len())
    })?;
    timed("its page", &|| {
        let view = ledger.run_view_of(run, 0..=MAX_POINTS_IN_FULL as u32)?;
        let data = ChartData::read(&ledger, &view, ..MAX_POINTS_IN_FULL)?;
        Ok(report::run_served(&Summary::of(view)?, &data).len())
    })?;
    timed("while it is measured", &|| {
        Ok(report::live(&Progress::of(ledger.so_far(run)?), None).len())
    })?;
    timed("the trials of a point", &|| {
        let view = ledger.run_view_of(run, 7..=7)?;
        let data = ChartData::read(&ledger, &view, 7..=7)?;
        Ok(report::trials(&Summary::of(view)?, &data, 7).len())
    })?;
    timed("text", &|| {
        Ok({
            let view = ledger.run_view_without_slow(run)?;
            report::text(&Summary::of(view)?, false).len()
        })
    })?;
    timed("JSON", &|| {
        let json = report::json(&Summary::of(ledger.run_view(run)?)?);
        Ok(serde_json::to_string_pretty(&json)?.len())
    })?;
    Ok(())
}

/// This thread's CPU time so far: other programs don't count in it. 0 where it can't be read.
fn cpu_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0) / 1_000_000
}

fn write(path: &std::path::Path, points: u32) -> Result<RunId, LedgerError> {
    let mut ledger = Ledger::open(path)?;
    ledger.begin_batch()?;
    let (run, targets) = begin(&mut ledger)?;
    for ordinal in 0..points {
        let keys = json!({"clients.connections": ordinal + 1, "workload.operation": "get"});
        let keys = keys.as_object().cloned().unwrap_or_default();
        let label = format!("cache/get  {} conns", ordinal + 1);
        let point_id = ledger.add_point(&PointRow { run_id: run, ordinal, label, keys })?;
        for round in 1..=ROUNDS {
            let started_ns = u64::from(ordinal * ROUNDS + round) * 1_000_000_000;
            let row = RoundRow { run_id: run, point_id, ordinal: round, seed: 1, started_ns };
            let round = ledger.add_round(&row)?;
            for (at, target) in (0..).zip(&targets) {
                let operations = 100_000 + 1_000 * at + u64::from(row.ordinal) * 17;
                let trial = ledger.add_trial(&TrialRow {
                    validity: Validity::Valid,
                    reason: None,
                    measured_ns: 1_000_000_000,
                    operations,
                    server_cpu_ns: Some(operations * 150),
                    generator_busy: Some(0.5),
                    ..TrialRow::unfinished(round, *target, DataState::Warm, started_ns)
                })?;
                hang_on(&mut ledger, trial, operations, started_ns)?;
            }
        }
    }
    ledger.finish_run(run, RunState::Finished, "2026-01-02T04:04:05Z", None)?;
    ledger.commit_batch()?;
    Ok(run)
}

fn begin(ledger: &mut Ledger) -> Result<(RunId, Vec<TargetId>), LedgerError> {
    let suite_id = ledger.add_suite(&SuiteRow {
        hash: "5u17e".into(),
        path: "suites/large.toml".into(),
        title: "A large sweep".into(),
        ..SuiteRow::default()
    })?;
    let facts = FingerprintRow { hash: "f".into(), json: serde_json::Map::new() };
    let fingerprint_id = ledger.add_fingerprint(&facts)?;
    let run = ledger.add_run(&RunRow {
        suite_id,
        fingerprint_id,
        command: "loadline run suites/large.toml".into(),
        version: "0.1.0".into(),
        seed: 1,
        started_at: "2026-01-02T03:04:05Z".into(),
        primary_metric: "rate_per_s".into(),
        same_within: 0.02,
        confidence: 0.95,
        ..RunRow::default()
    })?;
    let mut targets = Vec::new();
    for (ordinal, name) in (0..).zip(["loadline", "memcached"]) {
        let (name, description) = (name.to_owned(), String::new());
        let row = TargetRow { run_id: run, ordinal, name, description, skipped: None };
        targets.push(ledger.add_target(&row)?);
    }
    Ok((run, targets))
}

/// What hangs on a trial: distributions, slices, counters, usage, slow requests.
fn hang_on(
    ledger: &mut Ledger,
    trial_id: TrialId,
    operations: u64,
    started_ns: u64,
) -> Result<(), LedgerError> {
    let mut histogram = Histogram::<u64>::new(3).expect("three digits are allowed");
    for step in 0..400_u64 {
        // A few hundred different values around 50 µs and a tail, as a real one has.
        let value = 30_000 + step * 250 + (step / 380) * step * 20_000;
        histogram.saturating_record_n(value, operations / 400);
    }
    let kind = HistogramKind::Latency;
    for (clients, operation) in [("", ""), ("clients", "get")] {
        let row = HistogramRow::of(trial_id, clients, operation, kind, None, &histogram)?;
        ledger.add_histogram(&row)?;
        let second = Some((started_ns / 1_000_000_000) as u32);
        ledger.add_histogram(&HistogramRow { second, ..row })?;
    }
    for ordinal in 0..SLICES {
        ledger.add_slice(&SliceRow {
            trial_id,
            ordinal,
            start_ns: started_ns + u64::from(ordinal) * 250_000_000,
            duration_ns: 250_000_000,
            operations: operations / u64::from(SLICES),
            validity: Validity::Valid,
            ..SliceRow::default()
        })?;
    }
    for at in 0..COUNTERS {
        let (name, value) = (format!("counter_{at}"), operations as f64);
        ledger.add_counter(&CounterRow { trial_id, name, grows: true, value })?;
    }
    for at in 0..USAGES {
        let (name, value) = (format!("usage_{at}"), operations as f64);
        ledger.add_usage(&UsageRow { trial_id, name, value })?;
    }
    for at in 0..SLOW {
        let latency_ns = u64::from(at) * 10_000;
        let (clients, operation) = ("clients".into(), "get".into());
        let at_ns = started_ns;
        ledger.add_slow(&SlowRow { trial_id, at_ns, latency_ns, clients, operation })?;
    }
    Ok(())
}
