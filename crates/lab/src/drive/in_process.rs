//! Operations in a process of their own, timed in samples of many evaluations.
//!
//! An evaluation of some nanoseconds can't be timed by itself: reading the clock takes longer. So
//! as many are timed together as take [`SAMPLE_NS`], found by doubling (as benchmark harnesses do
//! since Chen & Revels, "Robust benchmarking in noisy environments", 2016). The process is started
//! by the lab for each piece of load and says what came of it in the lines of `program`. Control
//! plane around a loop that does nothing but evaluate.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use load::{Client, InProcess, Stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wire::clock;

use crate::observe::thread_cpu;
use crate::plan::{Plan, Registry, parse_setting};

/// A sample lasts at least this long: a thousand readings of the clock.
const SAMPLE_NS: u64 = 25_000;

/// At most so many evaluations in one sample.
const MOST_EVALUATIONS: u64 = 1 << 30;

/// So many operations are drawn and made ready, and evaluated in turn.
const CASES: usize = 1024;

/// A line is printed this often.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Runs a closure and says how many allocations it made, and of how many bytes in all.
pub type CountAllocations = fn(&mut dyn FnMut()) -> (u64, u64);

/// What is to be evaluated: a target of a plan, at one of its points.
#[derive(Debug, Deserialize, Serialize)]
pub struct Assignment {
    /// Where the suite was read from, and its text then.
    pub path: PathBuf,
    /// The suite.
    pub text: String,
    /// The overrides, as `KEY=VALUE`.
    pub settings: Vec<String>,
    /// The point, as an index.
    pub point: usize,
    /// The target's name.
    pub target: String,
    /// Chooses the operations.
    pub round: u64,
}

/// `loadline in-process FILE SECONDS`: does the assignment in FILE for so long and prints lines.
pub fn in_process_main(
    registry: Registry<'_>,
    arguments: &[String],
    allocations: CountAllocations,
) -> ExitCode {
    match evaluate(registry, arguments, allocations) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn evaluate(
    registry: Registry<'_>,
    arguments: &[String],
    allocations: CountAllocations,
) -> Result<(), String> {
    let [file, seconds] = arguments else { return Err("say FILE and SECONDS".into()) };
    let seconds: f64 = seconds.parse().map_err(|_| format!("{seconds} is no time in seconds"))?;
    let text = std::fs::read(Path::new(file)).map_err(|error| format!("{file}: {error}"))?;
    let assignment: Assignment =
        serde_json::from_slice(&text).map_err(|error| format!("{file}: {error}"))?;
    let settings = assignment.settings.iter().map(|setting| parse_setting(setting));
    let settings = settings.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let plan = Plan::parse(&assignment.path, assignment.text, &settings, registry);
    let plan = plan.map_err(|error| error.to_string())?;
    let point = plan.points.get(assignment.point).ok_or("there is no such point")?;
    let target = point.targets.iter().find(|target| target.name == assignment.target);
    let Some(Client::InProcess(make)) = target.map(|target| target.dialect.client) else {
        return Err(format!("{} is not in process", assignment.target));
    };
    let mut own = make(&point.workload.oracle());
    let mut stream = Stream::new(&point.workload, assignment.round, 0);
    (0..CASES).for_each(|_| own.prepare(&stream.draw()));
    let wrong: Vec<_> = (0..CASES).filter_map(|index| own.check(index).err()).collect();
    let (count, bytes) = allocations(&mut || (0..CASES).for_each(|at| _ = own.evaluate(at)));
    let per_op = |total: u64| total as f64 / CASES as f64;
    let mut sampler = Sampler::calibrated(own.as_mut());
    println!("{}", json!({ "t_ns": clock::now() }));
    let until = clock::now() + (seconds.max(0.0) * 1e9) as u64;
    loop {
        let say_at = clock::now() + SAY_EVERY.as_nanos() as u64;
        println!("{}", sampler.take(own.as_mut(), until.min(say_at)));
        if clock::now() >= until {
            break;
        }
    }
    let figures = json!({
        "time_ns": sampler.median(),
        "time_least_ns": sampler.least_ns,
        "samples": sampler.count,
        "evaluations_per_sample": sampler.evaluations,
        "bytes_per_op": sampler.bytes as f64 / (sampler.count * sampler.evaluations).max(1) as f64,
        "allocations_per_op": per_op(count),
        "allocated_bytes_per_op": per_op(bytes),
    });
    let note = wrong.first().map(|finding| finding.note.clone());
    // A wrong result is wrong in every evaluation of its case; once is enough to say so.
    let wrong = wrong.len() as u64;
    println!(
        "{}",
        json!({
            "t_ns": sampler.ended,
            "operations": wrong,
            "checked": true,
            "wrong": wrong,
            "note": note,
            "figures": figures,
        })
    );
    Ok(())
}

/// Times samples of as many evaluations each.
struct Sampler {
    evaluations: u64,
    next: usize,
    count: u64,
    bytes: u64,
    least_ns: f64,
    /// How many samples came to each time per evaluation, in tenths of a nanosecond.
    tenths: std::collections::BTreeMap<u64, u64>,
    ended: u64,
}

impl Sampler {
    /// Doubles the evaluations until a sample is long enough; that warms everything up as well.
    fn calibrated(own: &mut dyn InProcess) -> Self {
        let mut sampler = Self {
            evaluations: 1,
            next: 0,
            count: 0,
            bytes: 0,
            least_ns: f64::INFINITY,
            tenths: std::collections::BTreeMap::new(),
            ended: clock::now(),
        };
        while sampler.sample(own) < SAMPLE_NS && sampler.evaluations < MOST_EVALUATIONS {
            sampler.evaluations *= 2;
        }
        sampler.bytes = 0;
        sampler
    }

    /// One sample: how long it took.
    #[inline]
    fn sample(&mut self, own: &mut dyn InProcess) -> u64 {
        let (mut next, mut bytes) = (self.next, 0);
        let start = clock::now();
        for _ in 0..self.evaluations {
            bytes += own.evaluate(next);
            next = (next + 1) % CASES;
        }
        self.ended = clock::now();
        self.next = next;
        self.bytes += bytes as u64;
        self.ended - start
    }

    /// Samples until that time, as a line.
    fn take(&mut self, own: &mut dyn InProcess, until: u64) -> serde_json::Value {
        let (cpu, bytes) = (thread_cpu(), self.bytes);
        let mut counts = std::collections::BTreeMap::<u64, u64>::new();
        let mut samples = 0;
        while samples == 0 || self.ended < until {
            let each_ns = self.sample(own) as f64 / self.evaluations as f64;
            self.least_ns = self.least_ns.min(each_ns);
            *self.tenths.entry((each_ns * 10.0).round() as u64).or_default() += 1;
            *counts.entry(each_ns.round().max(1.0) as u64).or_default() += 1;
            samples += 1;
        }
        self.count += samples;
        let used = thread_cpu().since(cpu);
        let (user_ns, system_ns) = used.split_ns().unwrap_or((used.total_ns, 0));
        json!({
            "t_ns": self.ended,
            "operations": samples * self.evaluations,
            "checked": true,
            "bytes": self.bytes - bytes,
            "latency_counts": counts.into_iter().collect::<Vec<_>>(),
            "user_ns": user_ns,
            "system_ns": system_ns,
        })
    }

    /// The median time of an evaluation over samples, in nanoseconds.
    fn median(&self) -> f64 {
        let mut below = 0;
        let middle = self.tenths.iter().find(|(_, count)| {
            below += **count;
            below * 2 >= self.count
        });
        middle.map_or(0.0, |(tenths, _)| *tenths as f64 / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::{Finding, Op};

    /// Counts what it is asked for.
    #[derive(Default)]
    struct Counting {
        prepared: usize,
        evaluated: u64,
    }

    impl InProcess for Counting {
        fn prepare(&mut self, _: &Op<'_>) {
            self.prepared += 1;
        }

        fn evaluate(&mut self, index: usize) -> usize {
            assert!(index < CASES);
            self.evaluated += 1;
            std::hint::black_box(3)
        }

        fn check(&mut self, _: usize) -> Result<(), Box<Finding>> {
            Ok(())
        }
    }

    #[test]
    fn a_sample_is_long_enough_and_every_evaluation_is_counted() {
        let mut own = Counting::default();
        let mut sampler = Sampler::calibrated(&mut own);
        assert!(sampler.evaluations > 1 && sampler.evaluations.is_power_of_two());
        let before = own.evaluated;
        let line = sampler.take(&mut own, clock::now() + 5_000_000);
        let operations = line["operations"].as_u64().unwrap();
        assert_eq!(operations, own.evaluated - before);
        assert_eq!(line["bytes"].as_u64().unwrap(), operations * 3);
        assert_eq!(operations, sampler.count * sampler.evaluations);
        assert!(sampler.median() > 0.0 && sampler.least_ns <= sampler.median() + 0.1);
    }
}
