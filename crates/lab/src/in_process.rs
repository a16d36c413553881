//! Operations in a process of their own, timed in samples of many evaluations.
//!
//! The samples are those of `drive::busy`. The process is started by the lab for each piece of load
//! and prints what came of it in the lines of `drive::program`. Control plane around a loop that
//! does nothing but evaluate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use base::allocations::measure;
use load::{Busy, Reach, Stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wire::clock;

use crate::drive::{CASES, SampleTimer};
use crate::observe::thread_cpu;
use crate::plan::{Plan, Registry, parse_setting};

/// A line is printed this often.
const SAY_EVERY: Duration = Duration::from_secs(1);

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
pub fn in_process_main(registry: Registry<'_>, arguments: &[String]) -> ExitCode {
    match evaluate(registry, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn evaluate(registry: Registry<'_>, arguments: &[String]) -> Result<(), String> {
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
    let Some(target) = target.filter(|one| one.speaks.dialect.reach == Reach::InProcess) else {
        return Err(format!("{} is not in process", assignment.target));
    };
    let workload = point.workload.begin();
    let mut stream = Stream::new(&point.workload, &*workload, assignment.round, 0);
    let mut own = workload.busy(&target.speaks, None).map_err(|fault| fault.to_string())?;
    (0..CASES).for_each(|_| own.ready(stream.next_op()));
    let mut wrong = BTreeMap::new();
    check(own.as_mut(), &mut wrong);
    let allocated = measure(|| (0..CASES).for_each(|at| _ = own.call(at)));
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
    // Another time: the first may have used up what it worked on.
    check(own.as_mut(), &mut wrong);
    let samples = &sampler.samples;
    let figures = json!({
        "time_ns": sampler.median(),
        "time_least_ns": sampler.least_ns,
        "samples": samples.count,
        "evaluations_per_sample": samples.calls,
        "bytes_per_op": samples.bytes as f64 / (samples.count * samples.calls).max(1) as f64,
        "allocations_per_op": per_op(allocated.count),
        "allocated_bytes_per_op": per_op(allocated.bytes),
        "peak_allocated_bytes": allocated.most_bytes,
    });
    let note = wrong.values().next();
    // A wrong result is wrong in every evaluation of its case; once is enough to say so.
    let wrong = wrong.len() as u64;
    println!(
        "{}",
        json!({
            "t_ns": samples.ended,
            "operations": wrong,
            "checked": true,
            "wrong": wrong,
            "note": note,
            "figures": figures,
        })
    );
    Ok(())
}

/// Adds what is wrong about each case, unless it is known already.
fn check(own: &mut dyn Busy, wrong: &mut BTreeMap<usize, String>) {
    for index in 0..CASES {
        if let Err(finding) = own.check(index) {
            wrong.entry(index).or_insert(finding.note);
        }
    }
}

/// Samples, and what their evaluations took.
struct Sampler {
    samples: SampleTimer,
    least_ns: f64,
    /// How many samples came to each time per evaluation, in tenths of a nanosecond.
    tenths: BTreeMap<u64, u64>,
}

impl Sampler {
    fn calibrated(own: &mut dyn Busy) -> Self {
        let samples = SampleTimer::calibrated(own);
        Self { samples, least_ns: f64::INFINITY, tenths: BTreeMap::new() }
    }

    /// Samples until that time, as a line.
    fn take(&mut self, own: &mut dyn Busy, until: u64) -> serde_json::Value {
        let (cpu, bytes, before) = (thread_cpu(), self.samples.bytes, self.samples.count);
        let mut counts = BTreeMap::<u64, u64>::new();
        while self.samples.count == before || self.samples.ended < until {
            let each_ns = self.samples.take(own) as f64 / self.samples.calls as f64;
            self.least_ns = self.least_ns.min(each_ns);
            *self.tenths.entry((each_ns * 10.0).round() as u64).or_default() += 1;
            *counts.entry(each_ns.round().max(1.0) as u64).or_default() += 1;
        }
        let used = thread_cpu().since(cpu);
        let (user_ns, system_ns) = used.split_ns().unwrap_or((used.total_ns, 0));
        json!({
            "t_ns": self.samples.ended,
            "operations": (self.samples.count - before) * self.samples.calls,
            "checked": true,
            "bytes": self.samples.bytes - bytes,
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
            below * 2 >= self.samples.count
        });
        middle.map_or(0.0, |(tenths, _)| *tenths as f64 / 10.0)
    }
}
