//! Simulations beside ecFlow's own: the same tasks in the same minutes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use workflow::definition::parse;
use workflow::model::Instant;
use workflow::simulate::{Pass, Plan, Simulation, What, horizon};

use crate::definition::{PYTHON, has_ecflow};
use crate::random_definition::Random;

/// The paths of the jobs that start, by minute.
type Runs = BTreeMap<i64, Vec<String>>;

fn plan(minutes: i64, pass: Pass, skips: bool) -> Plan {
    // Sunday, 2026-11-22, 10:00; suites with a date in their clock begin there.
    let start = Instant::seconds(1_795_341_600);
    Plan { start, minutes, job_minutes: 3, pass, assumptions: Vec::new(), skips }
}

fn simulate(text: &str, pass: Pass, skips: bool) -> Runs {
    let parsed = parse(text, "simulated.def").expect("a definition");
    let mut plan = plan(1, pass, skips);
    plan.minutes = horizon(&parsed.tree, plan.start);
    let mut runs = Runs::new();
    Simulation::run(&parsed.tree, Vec::new(), &plan, |tree, happened| {
        let path = tree.path(happened.node);
        if matches!(happened.what, What::Started(_)) && path != "/tick/t" {
            runs.entry(happened.minute).or_default().push(path);
        }
    })
    .expect("simulated");
    runs.values_mut().for_each(|paths| paths.sort());
    runs
}

struct Writer<'a> {
    random: &'a mut Random,
    out: String,
    day: u64,
}

/// A definition of suites that begin on a date of their own, with times, repeats, triggers, limits.
fn definition(random: &mut Random) -> String {
    let (day, month) = (1 + random.below(27), 1 + random.below(12));
    let end = 1 + random.below(5);
    let clock = format!(
        " clock {} {day}.{month}.2024\n endclock {}.{month}.2024 +{:02}:00\n",
        random.pick(&["real", "real", "real", "hybrid"]),
        (day + end).min(28),
        1 + random.below(20)
    );
    let mut writer = Writer { random, out: String::new(), day };
    let _ = write!(
        writer.out,
        "suite tick\n{clock} task t\n  cron 00:00 23:59 00:01\nendsuite\nsuite s\n{clock}"
    );
    writer.out.push_str(" limit l 1\n limit m 3\n");
    if writer.random.chance(15) {
        writer.out.push_str(" repeat day 1\n");
    } else if writer.random.chance(10) {
        writer.out.push_str(" repeat integer N 1 3\n");
    }
    for family in 0..1 + writer.random.below(3) {
        writer.family(family, 1);
    }
    writer.out.push_str("endsuite\n");
    writer.out
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", depth);
    }

    fn clock_time(&mut self) -> String {
        let minute = self.random.pick(&[0, 0, 15, 30, 59]);
        format!("{:02}:{minute:02}", self.random.below(24))
    }

    fn series(&mut self) -> String {
        match self.random.below(4) {
            0 => format!("+{:02}:{:02}", self.random.below(3), self.random.below(60)),
            1 => {
                let from = self.random.below(10);
                let step = self.random.pick(&["00:30", "01:00", "02:15", "00:07"]);
                let plus = self.random.pick(&["", "", "+"]);
                format!("{plus}{from:02}:00 {:02}:30 {step}", from + 3 + self.random.below(10))
            }
            _ => self.clock_time(),
        }
    }

    /// Times of a node; whether a cron is among them, which excludes a repeat.
    fn times(&mut self, depth: usize, may_cron: bool) -> bool {
        let weekday = self.random.pick(&["monday", "wednesday", "friday", "sunday"]);
        match self.random.below(9) {
            0 | 1 => {
                let series = self.series();
                self.line(depth, &format!("time {series}"));
                if self.random.chance(25) {
                    let series = self.series();
                    self.line(depth, &format!("time {series}"));
                }
            }
            2 => {
                let series = self.series();
                self.line(depth, &format!("today {series}"));
            }
            3 if may_cron => {
                let days = self.random.pick(&["", "", "-w 1,3 ", "-w 0 ", "-d 1,15,L ", "-w 5L "]);
                let series = self.series();
                self.line(depth, &format!("cron {days}{series}"));
                return true;
            }
            4 => self.line(depth, &format!("day {weekday}")),
            5 => {
                let day = self.day + self.random.below(4);
                self.line(depth, &format!("date {}.*.*", day.min(28)));
            }
            6 => {
                self.line(depth, &format!("day {weekday}"));
                let series = self.series();
                self.line(depth, &format!("time {series}"));
            }
            _ => {}
        }
        false
    }

    fn family(&mut self, number: u64, depth: usize) {
        self.line(depth, &format!("family f{number}"));
        let repeats = self.random.chance(30);
        if repeats {
            let repeat = self.random.pick(&[
                "date D 20240101 20240105 1",
                "integer N 1 4",
                "enumerated E a b c",
                "integer N 6 0 -2",
            ]);
            self.line(depth + 1, &format!("repeat {repeat}"));
        }
        if self.random.chance(35) {
            self.times(depth + 1, !repeats);
        }
        if self.random.chance(20) {
            self.line(depth + 1, "inlimit m");
        }
        if number > 0 && self.random.chance(30) {
            self.line(depth + 1, &format!("trigger f{} == complete", number - 1));
        }
        for task in 0..1 + self.random.below(4) {
            self.task(task, depth + 1);
        }
        if depth < 3 && self.random.chance(30) {
            self.family(0, depth + 1);
        }
        self.line(depth, "endfamily");
    }

    fn task(&mut self, number: u64, depth: usize) {
        self.line(depth, &format!("task t{number}"));
        self.line(depth + 1, "event e");
        self.line(depth + 1, "meter m 0 4");
        let has_cron = self.random.chance(50) && self.times(depth + 1, true);
        if self.random.chance(20) {
            self.line(depth + 1, "inlimit l");
        }
        if !has_cron && self.random.chance(8) {
            self.line(depth + 1, "repeat integer K 1 3");
        }
        if number > 0 && self.random.chance(50) {
            let before = format!("t{}", number - 1);
            let trigger = match self.random.below(4) {
                0 => format!("{before}:e"),
                1 => format!("{before}:m ge 3"),
                _ => format!("{before} == complete"),
            };
            let word = if self.random.chance(12) { "complete" } else { "trigger" };
            self.line(depth + 1, &format!("{word} {trigger}"));
        }
    }
}

fn ask(folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflow/simulated.py");
    let output = Command::new(PYTHON).arg(script).arg(folder).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The first minute in which both differ.
fn difference(ours: &Runs, theirs: &Runs) -> Option<String> {
    let minutes: std::collections::BTreeSet<&i64> = ours.keys().chain(theirs.keys()).collect();
    let minute = minutes.into_iter().find(|minute| ours.get(minute) != theirs.get(minute))?;
    let (days, rest) = (minute / 1440, minute % 1440);
    Some(format!(
        "minute {minute} (day {days}, {:02}:{:02}):\n ours   {:?}\n ecFlow {:?}",
        rest / 60,
        rest % 60,
        ours.get(minute),
        theirs.get(minute)
    ))
}

fn read_runs(text: &str) -> Runs {
    let lines = text.lines().map(|line| {
        let (minute, paths) = line.split_once(' ').expect("a minute");
        (minute.parse().expect("a number"), paths.split(' ').map(str::to_owned).collect())
    });
    lines.collect()
}

#[test]
fn random_suites_run_in_the_minutes_in_which_ecflow_runs_them() {
    if !has_ecflow() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let seeds = 0..40;
    for seed in seeds.clone() {
        let text = definition(&mut Random::new(seed));
        fs::write(folder.path().join(format!("{seed}.def")), text).expect("written");
    }
    ask(folder.path());
    let (mut wrong, mut jobs) = (Vec::new(), 0);
    for seed in seeds {
        let path = folder.path().join(format!("{seed}.def"));
        let with = |suffix: &str| fs::read_to_string(format!("{}.{suffix}", path.display())).ok();
        assert_eq!(with("error"), None, "seed {seed}");
        let Some(theirs) = with("runs") else { continue };
        let text = fs::read_to_string(&path).expect("a definition");
        let (ours, theirs) = (simulate(&text, Pass::EachMinute, false), read_runs(&theirs));
        jobs += theirs.values().map(Vec::len).sum::<usize>();
        if let Some(difference) = difference(&ours, &theirs) {
            wrong.push(format!("seed {seed}, {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(jobs > 2_000, "only {jobs} jobs");
}

#[test]
fn minutes_in_which_nothing_can_happen_are_passed_over_without_a_difference() {
    for seed in 1000..1010 {
        let text = definition(&mut Random::new(seed));
        let text = text.replace("suite tick\n", "suite tick\n defstatus complete\n");
        // A suite that is completed by rules begins again at once, without an end.
        let text = text.replace("  cron 00:00 23:59 00:01\n", "").replace(" repeat day 1\n", "");
        let (all, some) =
            (simulate(&text, Pass::AtOnce, false), simulate(&text, Pass::AtOnce, true));
        assert_eq!(difference(&some, &all), None, "seed {seed}:\n{text}");
    }
}
