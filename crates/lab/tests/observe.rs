//! Watching from outside: what the run and the reports rely on. Nothing here depends on how fast
//! or quiet the host is.

use std::time::{Duration, Instant};

use lab::observe::{
    Disturbance, OwnCpu, Roots, SENSORS, Sample, SeriesWriter, Watch, check_sensors,
};
use ledger::{
    FingerprintRow, Ledger, RunId, RunRow, RunState, SamplePoint, SuiteRow, TargetId, TargetRow,
};

/// Takes samples until there are some of a series that `wanted` accepts.
fn take_until(watch: &Watch, wanted: impl Fn(&lab::observe::Series) -> bool) -> Vec<Sample> {
    let mut samples = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        samples.extend(watch.take());
        let series = watch.series();
        if samples.iter().any(|sample: &Sample| wanted(&series[sample.series as usize])) {
            return samples;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing was sampled");
}

#[test]
fn the_host_and_a_followed_group_are_sampled_on_the_runs_clock() {
    let zero = wire::clock::now();
    let watch = Watch::start(zero, &[]).unwrap();
    watch.follow("own", rustix::process::getpgrp());
    let cpu = |group: Option<&str>, sensor: &str| {
        let group = group.map(str::to_owned);
        let sensor = sensor.to_owned();
        move |series: &lab::observe::Series| series.group == group && series.sensor == sensor
    };
    let mut samples = take_until(&watch, cpu(None, "cores"));
    samples.extend(take_until(&watch, |series| {
        series.group.as_deref() == Some("own") && series.name == "cpu"
    }));
    let now = wire::clock::now() - zero;
    assert!(samples.iter().all(|sample| sample.at <= now && sample.value.is_finite()));
    let series = watch.series();
    let units = series.iter().all(|series| {
        let sensor = SENSORS.iter().find(|sensor| sensor.name == series.sensor).unwrap();
        sensor.series.iter().any(|line| series.name.ends_with(line.name))
    });
    assert!(units, "every series is a line of its sensor");
    watch.leave("own");
    watch.leave("own");
    assert_eq!(watch.lost(), 0);
}

#[test]
fn marks_follow_each_other_and_hold_every_core() {
    let mut watch = Watch::start(wire::clock::now(), &[]).unwrap();
    let (before, after) = (watch.mark(), watch.mark());
    assert!(after.at >= before.at && after.lab_ns >= before.lab_ns);
    assert_eq!(before.cores.len(), after.cores.len());
    let seen = Disturbance::measure(&before, &after, &OwnCpu::default(), &[]);
    assert_eq!(seen.foreign_ns, None, "a target's unseen CPU time leaves others' unseen");
    assert_eq!(seen.core_time_ns, seen.length_ns * after.cores.len() as u64);
}

/// A busy loop under a name of its own, which ends with this.
struct Burner(std::process::Child);

impl Burner {
    fn start(folder: &std::path::Path, name: &str) -> Self {
        let program = folder.join(name);
        std::fs::copy("/bin/sh", &program).unwrap();
        let mut burn = std::process::Command::new(program);
        Self(burn.args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_that_takes_cores_from_a_slice_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = Watch::start(wire::clock::now(), &[]).unwrap();
    watch.before_slice();
    let burner = Burner::start(folder.path(), "burner");
    // Processes are read again only after a pause that depends on what the last reading took.
    let begun = Instant::now();
    let read = |watch: &mut Watch, target: Option<&Roots>, load| {
        while begun.elapsed() < Duration::from_secs(60) {
            if let Some(others) = watch.other_programs(target, load, &[]) {
                return others;
            }
            std::thread::yield_now();
        }
        panic!("processes can't be read");
    };
    let mut cores = None;
    while cores.is_none() && begun.elapsed() < Duration::from_secs(30) {
        let others = read(&mut watch, None, false);
        cores = others.cores.iter().find(|(name, _)| name == "burner").map(|(_, cores)| *cores);
    }
    assert!(cores.is_some_and(|cores| cores > 0.0), "{cores:?}");
    // As load of the lab's, or as its target, it is none of the others.
    let burns = |watch: &mut Watch, target: Option<&Roots>, load| {
        let others = read(watch, target, load);
        others.cores.iter().any(|(name, _)| name == "burner")
    };
    assert!(!burns(&mut watch, None, true));
    let group = rustix::process::getpgid(rustix::process::Pid::from_raw(burner.0.id() as i32));
    let group = Roots::Group(group.unwrap());
    assert!(!burns(&mut watch, Some(&group), false));
    let found = Roots::Processes(vec![burner.0.id()]);
    assert!(!burns(&mut watch, Some(&found), false));
}

#[test]
fn every_sensor_says_what_it_sees_here() {
    let seen = check_sensors(&lab::cpus::cpus_here());
    assert_eq!(seen.len(), SENSORS.len());
    for one in &seen {
        let known = |name: &&str| one.sensor.series.iter().any(|line| line.name == *name);
        assert!(one.unseen.iter().all(known), "{}", one.sensor.name);
    }
}

fn run_of(ledger: &mut Ledger) -> (RunId, TargetId) {
    let suite = SuiteRow {
        hash: "s".into(),
        path: "a.toml".into(),
        title: "A".into(),
        claims: vec![],
        compromises: vec![],
        text: String::new(),
    };
    let fingerprint = FingerprintRow { hash: "f".into(), json: Default::default() };
    let run = RunRow {
        suite_id: ledger.add_suite(&suite).unwrap(),
        fingerprint_id: ledger.add_fingerprint(&fingerprint).unwrap(),
        command: "loadline run a.toml".into(),
        version: "0".into(),
        seed: 1,
        started_at: "2026-01-02T03:04:05Z".into(),
        ended_at: None,
        state: RunState::Running,
        note: None,
        settings: Vec::new(),
        primary_metric: "rate_per_s".into(),
        same_within: 0.02,
        confidence: 0.95,
    };
    let run = ledger.add_run(&run).unwrap();
    let (name, description) = ("own".to_owned(), String::new());
    let target = TargetRow { run_id: run, ordinal: 0, name, description, skipped: None };
    (run, ledger.add_target(&target).unwrap())
}

#[test]
fn what_was_sampled_is_read_back_from_the_ledger() {
    let mut ledger = Ledger::in_memory().unwrap();
    let (run, target) = run_of(&mut ledger);
    let watch = Watch::start(wire::clock::now(), &[]).unwrap();
    watch.follow("own", rustix::process::getpgrp());
    watch.follow("a target without a row", rustix::process::getpgrp());
    let mut recorder = SeriesWriter::new(run, [("own".to_owned(), target)]);
    let begun = Instant::now();
    let resident = |ledger: &Ledger| -> Vec<SamplePoint> {
        let all = ledger.series(run).unwrap();
        let of_target = all
            .iter()
            .find(|(_, series)| series.target_id == Some(target) && series.name == "resident");
        of_target.map(|(id, _)| ledger.samples(*id).unwrap()).unwrap_or_default()
    };
    let has_strayed = |ledger: &Ledger| {
        let all = ledger.series(run).unwrap();
        all.iter().any(|(_, row)| row.name == "a target without a row.resident")
    };
    let is_there = |ledger: &Ledger| !resident(ledger).is_empty() && has_strayed(ledger);
    while !is_there(&ledger) && begun.elapsed() < Duration::from_secs(30) {
        recorder.write(&mut ledger, &watch).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let samples = resident(&ledger);
    assert!(samples.iter().all(|sample| sample.value > 0.0) && !samples.is_empty());
    assert!(has_strayed(&ledger), "it stands with the host, under its name");
}
