//! The guarantees of a ledger to its writer and to readers meanwhile.

use crate::fixture::whole::{finding, requirement, slice, whole_run};
use crate::fixture::{Begun, begin_run};
use hdrhistogram::Histogram;
use ledger::{
    Cause, CauseKind, Conclusion, FailedAt, HistogramKind, HistogramRow, Ledger, LedgerError,
    Program, RequirementOutcome, RunId, RunState, SLOW_LIMIT, SamplePoint, SampleWriter, SeriesRow,
    SliceRow, SlowRow, TargetId, TargetRow, TrialId, TrialRow, TrialValues, UNFINISHED, Validity,
    ValueRow, VerdictRow,
};

#[test]
fn everything_of_a_run_comes_back_as_it_was_written() {
    let mut ledger = Ledger::in_memory().unwrap();
    let begun = begin_run(&mut ledger);
    let Begun { run, trial, .. } = begun;
    let mut view = ledger.run_view(run).unwrap();
    assert_eq!(view.run.seed, u64::MAX);
    assert_eq!(view.run.settings, [("rounds.measure".into(), "\"2s\"".into())]);
    assert_eq!(view.suite.claims, ["what a web tier does"]);
    assert_eq!(view.points[0].1.keys["workload.operation"], "get");
    assert_eq!(view.trials[0].1.reason.as_deref(), Some(UNFINISHED));

    let named = Program { name: Some("rustc".to_owned()), cores: Some(1.1) };
    let programs = vec![named, Program { name: None, cores: None }];
    let waited = Cause::new(CauseKind::Wait { target: Some("a".to_owned()) }, 0.09);
    let causes = vec![Cause { programs, ..Cause::new(CauseKind::ForeignTicks, 0.14) }, waited];
    let measured = TrialRow {
        validity: Validity::Valid,
        reason: None,
        causes: causes.clone(),
        measured_ns: 2_000_000_000,
        rate_ns: 2_000_000_000,
        operations: 1000,
        hits: Some(900),
        misses: 100,
        server_cpu_ns: Some(1_000_000),
        generator_busy: Some(0.5),
        overloaded: true,
        offered: Some(1_200),
        schedule_ns: Some(1_500_000_000),
        backlog_most: Some(200),
        failed_at: Some(FailedAt::WarmUp),
        wrong_outside: 2,
        unchecked: 7,
        ..view.trials[0].1.clone()
    };
    ledger.set_trial(trial, &measured).unwrap();
    let slice = SliceRow { causes, validity: Validity::Disturbed, ..slice(trial, 0) };
    ledger.add_slice(&slice).unwrap();
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    histogram.record_n(1000, 1000).unwrap();
    let row = |second| {
        HistogramRow::of(trial, "", "", HistogramKind::Latency, second, &histogram).unwrap()
    };
    ledger.add_histogram(&row(None)).unwrap();
    ledger.add_histogram(&row(Some(0))).unwrap();
    assert!(ledger.add_histogram(&row(None)).is_err(), "a whole trial has one of a kind");
    let finding = finding(trial);
    ledger.add_finding(&finding).unwrap();
    let mut requirement = requirement(&begun);
    ledger.add_requirement(&requirement).unwrap();
    (requirement.value, requirement.outcome) = (Some(1.0), RequirementOutcome::Broken);
    ledger.add_requirement(&requirement).unwrap();
    let skipped = TargetRow {
        run_id: run,
        ordinal: 1,
        name: "redis".into(),
        description: String::new(),
        skipped: Some("not installed".into()),
    };
    ledger.add_target(&skipped).unwrap();

    view = ledger.run_view(run).unwrap();
    assert_eq!(view.trials, [(trial, measured)]);
    assert_eq!(ledger.slices(trial).unwrap(), [slice]);
    assert_eq!(view.slices, ledger.slices(trial).unwrap());
    assert_eq!(view.histograms, [row(None)]);
    assert_eq!(ledger.seconds(trial).unwrap(), [row(Some(0))]);
    assert_eq!(view.findings, [finding]);
    assert_eq!(view.requirements, [requirement]);
    assert_eq!(view.targets[1].1, skipped);
    assert_eq!((ledger.runs().unwrap()[0].trials, ledger.last_run().unwrap()), (1, Some(run)));
}

#[test]
fn a_reader_opens_and_reads_while_a_batch_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.sqlite");
    let mut writer = Ledger::open(&path).unwrap();
    let Begun { run, .. } = begin_run(&mut writer);
    writer.begin_batch().unwrap();
    assert!(matches!(writer.begin_batch(), Err(LedgerError::BatchOpen)));
    let (_, mut trial) = writer.run_view(run).unwrap().trials.remove(0);
    trial.operations = 5;
    let (id, _) = writer.run_view(run).unwrap().trials[0];
    writer.set_trial(id, &trial).unwrap();

    let reader = Ledger::open_read_only(&path).unwrap();
    let operations = || reader.run_view(run).unwrap().trials[0].1.operations;
    assert_eq!(operations(), 0, "a batch isn't seen before it is committed");
    writer.commit_batch().unwrap();
    assert_eq!(operations(), 5);
    assert_eq!(reader.run_view(run).unwrap().run.state, RunState::Running);

    writer.begin_batch().unwrap();
    writer.finish_run(run, RunState::Finished, "2026-01-02T03:05:05Z", None).unwrap();
    assert!(!writer.in_batch(), "a finished run is committed");
    assert_eq!(reader.run_view(run).unwrap().run.state, RunState::Finished);
}

#[test]
fn a_batch_that_was_never_committed_was_never_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.sqlite");
    let mut writer = Ledger::open(&path).unwrap();
    writer.begin_batch().unwrap();
    begin_run(&mut writer);
    drop(writer);
    assert_eq!(Ledger::open_read_only(&path).unwrap().last_run().unwrap(), None);
}

#[test]
fn a_run_left_running_by_a_process_that_is_gone_reads_as_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.sqlite");
    let mut ledger = Ledger::open(&path).unwrap();
    let Begun { run, .. } = begin_run(&mut ledger);
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    // What a reboot does: same pid perhaps, another boot.
    by_hand.execute("UPDATE run SET boot_id = 'before'", []).unwrap();
    assert_eq!(ledger.run_view(run).unwrap().run.state, RunState::Interrupted);
    assert_eq!(ledger.runs().unwrap()[0].state, RunState::Interrupted);
    let finished = RunState::Finished;
    ledger.finish_run(run, finished, "2026-01-02T03:05:05Z", Some("done")).unwrap();
    assert_eq!(ledger.runs().unwrap()[0].state, finished);
    let nothing = ledger.finish_run(RunId::from(99), finished, "", None);
    assert!(matches!(nothing, Err(LedgerError::NoSuchRun(_))));
}

#[test]
fn equal_suites_and_fingerprints_are_one_row() {
    let mut ledger = Ledger::in_memory().unwrap();
    let first = begin_run(&mut ledger);
    let second = begin_run(&mut ledger);
    assert!(second.run > first.run);
    let suite = |run| ledger.run_view(run).unwrap().run.suite_id;
    assert_eq!(suite(first.run), suite(second.run));
}

#[test]
fn every_run_has_an_identity_of_its_own() {
    let mut ledger = Ledger::in_memory().unwrap();
    let runs = [begin_run(&mut ledger), begin_run(&mut ledger)];
    let uids = runs.map(|begun| ledger.run_view(begun.run).unwrap().uid);
    assert!(uids.iter().all(|uid| uid.len() == 32) && uids[0] != uids[1], "{uids:?}");
    assert_eq!(ledger.runs().unwrap()[1].uid, uids[1]);
}

/// JSON has no NaN and no infinity: as `null` they would make the row unreadable for good.
#[test]
fn a_cause_whose_amount_is_no_number_is_refused() {
    let mut ledger = Ledger::in_memory().unwrap();
    let Begun { trial, .. } = begin_run(&mut ledger);
    for amount in [f64::NAN, f64::INFINITY] {
        let causes = vec![Cause::new(CauseKind::Steal, amount)];
        assert!(ledger.add_slice(&SliceRow { causes, ..slice(trial, 0) }).is_err(), "{amount}");
    }
    assert_eq!(ledger.slices(trial).unwrap(), []);
}

#[test]
fn slow_requests_are_limited_and_figures_of_calls_are_all_kept() {
    let mut ledger = Ledger::in_memory().unwrap();
    let Begun { run, trial, .. } = begin_run(&mut ledger);
    let slow = |latency_ns| SlowRow {
        trial_id: trial,
        at_ns: 9,
        latency_ns,
        clients: "readers".into(),
        operation: "get".into(),
    };
    for latency_ns in 1..=SLOW_LIMIT as u64 {
        ledger.add_slow(&slow(latency_ns)).unwrap();
    }
    let refused = ledger.add_slow(&slow(1_000)).unwrap_err();
    assert!(matches!(refused, LedgerError::SlowFull { .. }));
    let value = |ordinal, name: &str, value| ValueRow {
        trial_id: trial,
        ordinal,
        name: name.into(),
        value,
    };
    let rows = [value(0, "wall_s", 2.0), value(1, "events", 5.0), value(2, "wall_s", 4.0)];
    for row in &rows {
        ledger.add_value(row).unwrap();
    }
    ledger.add_value(&value(3, "wall_s", f64::NAN)).unwrap();
    assert_eq!(ledger.values(trial).unwrap(), rows);

    let view = ledger.run_view(run).unwrap();
    assert_eq!((view.slow.len(), &view.slow[0]), (SLOW_LIMIT, &slow(SLOW_LIMIT as u64)));
    let wall = TrialValues { trial_id: trial, name: "wall_s".into(), values: vec![2.0, 4.0] };
    assert_eq!((view.values.len(), &view.values[0]), (2, &wall));
}

/// What the report of a run said is kept with it.
#[test]
fn a_conclusion_is_kept_with_its_run() {
    let mut ledger = Ledger::in_memory().unwrap();
    let Begun { run, .. } = begin_run(&mut ledger);
    let kept = |ledger: &Ledger| ledger.runs().unwrap().remove(0).conclusion;
    assert_eq!(kept(&ledger), None);
    let one = Conclusion { outcome: "fine".into(), sentences: "a is as fast as b.".into() };
    ledger.conclude(run, &one).unwrap();
    assert_eq!(kept(&ledger), Some(one));
}

/// A ledger holds thousands of trials, and most questions are about a few.
#[test]
fn the_view_of_trials_reads_of_a_run_no_more_than_what_is_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.sqlite");
    drop(Ledger::open(&path).unwrap());
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    for key in ["run_id", "trial_id"] {
        let sql = format!("EXPLAIN QUERY PLAN SELECT * FROM trials WHERE {key} = 1");
        let mut statement = by_hand.prepare(&sql).unwrap();
        let steps = statement.query_map([], |row| row.get::<_, String>("detail")).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.len() > 5, "{steps:?}");
        let whole = |step: &&String| step.starts_with("SCAN") || step.starts_with("MATERIALIZE");
        assert_eq!(steps.iter().find(whole), None);
    }
}

fn series_of(run_id: RunId, target_id: Option<TargetId>, name: &str) -> SeriesRow {
    let (sensor, unit) = ("processes".to_owned(), "cores".to_owned());
    SeriesRow { run_id, target_id, sensor, name: name.into(), unit }
}

#[test]
fn samples_come_back_series_by_series_and_an_unfinished_chunk_is_seen_too() {
    let mut ledger = Ledger::in_memory().unwrap();
    let Begun { run, target, .. } = begin_run(&mut ledger);
    let host = series_of(run, None, "cpu");
    let of_target = series_of(run, Some(target), "cpu");
    let ids = [&host, &of_target].map(|row| ledger.add_series(row).unwrap());
    assert_eq!(ledger.add_series(&host).unwrap(), ids[0], "the same series is one row");
    let series = ledger.series(run).unwrap();
    assert_eq!(series, [(ids[0], host), (ids[1], of_target)]);

    let mut writer = SampleWriter::new();
    let sample = |tenth: u64| SamplePoint { at_ns: tenth * 100_000_000, value: tenth as f64 };
    for tenth in 95..=112 {
        writer.push(ids[0], sample(tenth));
    }
    writer.push(ids[0], SamplePoint { value: f64::NAN, ..sample(113) });
    writer.push(ids[0], sample(112));
    writer.flush(&mut ledger).unwrap();
    let expected: Vec<_> = (95..=112).map(sample).collect();
    assert_eq!(ledger.samples(ids[0]).unwrap(), expected, "nothing twice, and no NaN");
    assert_eq!(ledger.samples(ids[1]).unwrap(), []);

    ledger.begin_batch().unwrap();
    writer.push(ids[0], sample(114));
    writer.flush(&mut ledger).unwrap();
    assert!(ledger.in_batch(), "a batch that is open stays so");
    ledger.commit_batch().unwrap();
    assert_eq!(ledger.samples(ids[0]).unwrap().last(), Some(&sample(114)));
}

/// Numbers from 0 to 1 that look random and are the same every time.
fn numbers() -> impl FnMut() -> f64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    }
}

/// Values as sensors give them: sixty series, of which a third never moves, a third wanders and a
/// third is noise.
fn write_samples(ledger: &mut Ledger, run: RunId, minutes: u64) {
    let (mut writer, mut random) = (SampleWriter::new(), numbers());
    for index in 0..60 {
        let series = ledger.add_series(&series_of(run, None, &format!("s{index}"))).unwrap();
        let mut level = 1e8;
        for tenth in 1..minutes * 600 {
            level *= 0.99 + random() * 0.02;
            let value = match index % 3 {
                0 => 0.0,
                1 => level,
                _ => 4e5 * (0.9 + random() * 0.2),
            };
            // Timers are late by up to a millisecond.
            let at_ns = tenth * 100_000_000 + (random() * 3e5) as u64;
            writer.push(series, SamplePoint { at_ns, value });
        }
        writer.flush(ledger).unwrap();
    }
}

/// Times as a loaded service gives them in an open loop, three histograms a second: most around
/// 100 µs, one in a hundred up to a hundred times longer.
fn write_latencies(ledger: &mut Ledger, trial: TrialId, seconds: u32) {
    let mut random = numbers();
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    ledger.begin_batch().unwrap();
    for second in 0..seconds {
        histogram.clear();
        for _ in 0..20_000 {
            let spread = (0..4).map(|_| random()).sum::<f64>() / 4.0;
            let tail = if random() < 0.01 { 100.0 * random() } else { 0.0 };
            histogram.record_n((1e5 * (0.5 + spread + tail)) as u64, 5).unwrap();
        }
        for kind in [HistogramKind::Latency, HistogramKind::Service, HistogramKind::Lag] {
            let row = HistogramRow::of(trial, "clients", "get", kind, Some(second), &histogram);
            ledger.add_histogram(&row.unwrap()).unwrap();
        }
    }
    ledger.commit_batch().unwrap();
}

#[test]
fn an_hour_of_sixty_series_and_three_histograms_a_second_stays_under_twenty_megabytes() {
    const MINUTES: u64 = 3;
    let directory = tempfile::tempdir().unwrap();
    let bytes = |write: &dyn Fn(&mut Ledger, &Begun)| {
        let path = directory.path().join("ledger.sqlite");
        let _ = std::fs::remove_file(&path);
        let mut ledger = Ledger::open(&path).unwrap();
        let begun = begin_run(&mut ledger);
        write(&mut ledger, &begun);
        drop(ledger);
        std::fs::metadata(&path).unwrap().len()
    };
    let empty = bytes(&|_, _| {});
    let an_hour = |bytes: u64| (bytes - empty) * 60 / MINUTES;
    let sensors = an_hour(bytes(&|ledger, begun| write_samples(ledger, begun.run, MINUTES)));
    let seconds = MINUTES as u32 * 60;
    let write = |ledger: &mut Ledger, begun: &Begun| {
        write_latencies(ledger, begun.trial, seconds);
    };
    let latencies = an_hour(bytes(&write));
    println!("sensors {sensors} B, latencies {latencies} B an hour; empty {empty} B");
    assert!(sensors < 8_000_000, "{sensors}");
    assert!(empty + sensors + latencies < 20_000_000, "{empty}, {sensors}, {latencies}");
}

#[test]
fn verdicts_are_written_all_or_none() {
    let mut ledger = Ledger::in_memory().unwrap();
    let run = whole_run(&mut ledger).run;
    let verdicts = |ledger: &Ledger| ledger.run_view(run).unwrap().verdicts;
    let first = verdicts(&ledger).remove(0);
    let next = VerdictRow { ordinal: 1, ..first.clone() };
    let odd = VerdictRow { ordinal: 2, verdict: "odd".into(), ..first.clone() };
    ledger.begin_batch().unwrap();
    assert!(ledger.add_verdicts(&[next.clone(), odd]).is_err());
    assert_eq!(verdicts(&ledger), std::slice::from_ref(&first));
    ledger.add_verdicts(std::slice::from_ref(&next)).unwrap();
    ledger.commit_batch().unwrap();
    assert_eq!(verdicts(&ledger), [first, next]);
}
