//! The cost of one operation at a point: on both sides, beside the first target's difference from
//! each other one.

use std::collections::BTreeSet;

use judge::limits::Figures;
use judge::t_critical;
use ledger::CallRow;

use crate::summary::Summary;
use crate::trial_summary::TrialSummary;

/// A total over a trial.
type Total = fn(&Figures) -> Option<f64>;

/// One figure of an operation's cost.
#[derive(Debug)]
pub struct CostRow {
    /// In words, for people.
    pub name: &'static str,
    /// In one word, for programs.
    pub code: &'static str,
    /// `ns`, `bytes` or `count`.
    pub unit: &'static str,
    total: Total,
    /// Whether the total is a part of CPU time that is known from ticks only, and of which.
    sampled: Option<Total>,
}

const SERVER: Total = |f| f.server_cpu_ns;
const GENERATOR: Total = |f| f.generator_cpu_ns;

/// Every figure, in the order in which they are shown.
#[rustfmt::skip] // One row per figure reads as the table it is.
static COSTS: &[CostRow] = &[
    part("server user", "server_user_ns", SERVER, |f| Some(f.server_cpu_ns? - f.server_system_ns?)),
    part("server system", "server_system_ns", SERVER, |f| f.server_system_ns),
    whole("server wake-ups", "server_wakeups", "count", |f| f.server_voluntary_switches),
    whole("server preempted", "server_preempted", "count", |f| f.server_involuntary_switches),
    whole("server ready, no core", "server_waited_ns", "ns", |f| f.server_waited_ns),
    part("generator user", "generator_user_ns", GENERATOR,
        |f| Some(f.generator_cpu_ns? - f.generator_system_ns?)),
    part("generator system", "generator_system_ns", GENERATOR, |f| f.generator_system_ns),
    whole("generator wake-ups", "generator_wakeups", "count", |f| f.generator_voluntary_switches),
    whole("generator preempted", "generator_preempted", "count",
        |f| f.generator_involuntary_switches),
    whole("generator ready, no core", "generator_waited_ns", "ns", |f| f.generator_waited_ns),
    whole("on no CPU", "off_cpu_ns", "ns", off_cpu_ns),
    whole("packets", "packets", "count", |f| Some(f.loopback_packets? + f.network_packets?)),
    whole("bytes with headers", "bytes", "bytes", |f| Some(f.loopback_bytes? + f.network_bytes?)),
    whole("bytes to disk", "disk_bytes", "bytes", |f| f.server_written_bytes),
];

/// The time in which neither side was on a CPU. It is known where one operation is under way at a
/// time, and the next one follows at once.
fn off_cpu_ns(figures: &Figures) -> Option<f64> {
    let is_single = figures.outstanding? == 1.0 && figures.wants_more? == 1.0;
    let on_cpu_ns = figures.server_cpu_ns? + figures.generator_cpu_ns?;
    is_single.then_some((figures.measured_ns? - on_cpu_ns).max(0.0))
}

/// A part of this CPU time.
const fn part(name: &'static str, code: &'static str, cpu_ns: Total, total: Total) -> CostRow {
    CostRow { name, code, unit: "ns", total, sampled: Some(cpu_ns) }
}

const fn whole(
    name: &'static str,
    code: &'static str,
    unit: &'static str,
    total: Total,
) -> CostRow {
    CostRow { name, code, unit, total, sampled: None }
}

/// A mean over rounds, with half of its interval's width where there are several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width of Student's interval; `None` with one round.
    pub half_width: Option<f64>,
}

/// One figure at one point. `None` is unseen.
#[derive(Debug)]
pub struct Cost {
    /// Which.
    pub row: &'static CostRow,
    /// Of each target, in the suite's order.
    pub targets: Vec<Option<Mean>>,
    /// The uncertainty of the division into user and system by ticks, at 95 %.
    pub sampling: Vec<Option<f64>>,
    /// The first target's less each other one's, over the rounds in which both are valid; the
    /// first place is the first target itself and empty.
    pub differences: Vec<Option<Mean>>,
}

/// A clock tick, by which the kernel divides user from system time.
const TICK_NS: f64 = 1e7;

/// The cost of one operation at a point, over valid trials.
pub fn costs(summary: &Summary, point: usize) -> Vec<Cost> {
    let targets = summary.targets.len();
    let trials = |target: usize| -> Vec<&TrialSummary> {
        let here = summary.trials_at(point).map(|(_, trial)| trial);
        here.filter(|trial| trial.target == target && trial.is_valid()).collect()
    };
    let all: Vec<Vec<&TrialSummary>> = (0..targets).map(trials).collect();
    let confidence = summary.run.confidence;
    let cost = |row: &'static CostRow| {
        let value = |trial: &TrialSummary| trial.usage.per_operation((row.total)(&trial.usage));
        let values = |trials: &[&TrialSummary]| {
            trials.iter().map(|trial| value(trial)).collect::<Option<Vec<f64>>>()
        };
        let difference = |target: usize| {
            let others = &all[target];
            let pairs = all[0].iter().filter_map(|a| {
                let b = others.iter().find(|b| b.round == a.round)?;
                Some(value(a)? - value(b)?)
            });
            mean(&pairs.collect::<Vec<f64>>(), confidence)
        };
        Cost {
            row,
            targets: all.iter().map(|one| mean(&values(one)?, confidence)).collect(),
            sampling: all.iter().map(|trials| sampling(row, trials)).collect(),
            differences: (0..targets).map(|at| difference(at).filter(|_| at > 0)).collect(),
        }
    };
    COSTS.iter().map(cost).collect()
}

fn mean(values: &[f64], confidence: f64) -> Option<Mean> {
    let count = values.len() as f64;
    let mean = (count > 0.0).then(|| values.iter().sum::<f64>() / count)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let degrees = count - 1.0;
    let half_width = (degrees > 0.0)
        .then(|| t_critical(confidence, degrees) * (squares / degrees / count).sqrt());
    Some(Mean { mean, half_width })
}

/// Each tick falls on user or system by its chance: a binomial share, by the normal rule.
fn sampling(row: &CostRow, trials: &[&TrialSummary]) -> Option<f64> {
    let sum = |of: Total| trials.iter().map(|trial| of(&trial.usage)).sum::<Option<f64>>();
    let (cpu_ns, part_ns) = (sum(row.sampled?)?, sum(row.total)?);
    let operations = sum(|figures| figures.operations)?;
    let (share, ticks) = (part_ns / cpu_ns, cpu_ns / TICK_NS);
    let half = 1.96 * (share * (1.0 - share) / ticks).sqrt() * cpu_ns / operations;
    half.is_finite().then_some(half)
}

/// One system call of one side, per operation of each target; `None` where it wasn't counted.
#[derive(Debug, PartialEq)]
pub struct CallCost {
    /// Its name.
    pub name: String,
    /// Of each target, in the suite's order.
    pub targets: Vec<Option<CallFigures>>,
}

impl CallCost {
    /// Calls per operation of the first target less those of another; `None` where either wasn't
    /// counted. Calls are counted once, so it has no interval.
    pub fn difference(&self, other: usize) -> Option<f64> {
        let calls = |target: usize| Some((*self.targets.get(target)?)?.calls);
        Some(calls(0)? - calls(other)?)
    }
}

/// Number of a call per operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallFigures {
    /// Calls per operation.
    pub calls: f64,
    /// Failures per operation.
    pub errors: f64,
    /// Its share of that side's time in calls.
    pub share: f64,
}

/// The system calls of one side at a point, the most frequent first; empty when none were counted.
pub fn calls(summary: &Summary, point: usize, of_generator: bool) -> Vec<CallCost> {
    let here: Vec<(usize, &CallRow)> = summary
        .calls
        .iter()
        .filter(|call| call.point == point && call.row.of_generator == of_generator)
        .map(|call| (call.target, &call.row))
        .collect();
    let names: BTreeSet<&str> = here.iter().map(|(_, row)| &*row.name).collect();
    let targets = summary.targets.len();
    let figures = |name: &str, target: usize| {
        let of_target = || here.iter().filter(move |(of, _)| *of == target);
        let operations = of_target().map(|(_, row)| row.operations).max()?.max(1) as f64;
        let time: u64 = of_target().map(|(_, row)| row.system_ns).sum();
        let row = of_target().find(|(_, row)| row.name == name).map(|(_, row)| row);
        let seen = |of: fn(&CallRow) -> u64| row.map_or(0.0, |row| of(row) as f64);
        Some(CallFigures {
            calls: seen(|row| row.calls) / operations,
            errors: seen(|row| row.errors) / operations,
            share: seen(|row| row.system_ns) / (time.max(1) as f64),
        })
    };
    let cost = |name: &&str| CallCost {
        name: (*name).to_owned(),
        targets: (0..targets).map(|target| figures(name, target)).collect(),
    };
    let most = |cost: &CallCost| {
        cost.targets.iter().flatten().map(|figures| figures.calls).fold(0.0, f64::max)
    };
    let mut costs: Vec<CallCost> = names.iter().map(cost).collect();
    costs.sort_by(|a, b| most(b).total_cmp(&most(a)));
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_on_no_cpu_is_known_of_operations_one_after_the_other() {
        let single = Figures {
            outstanding: Some(1.0),
            wants_more: Some(1.0),
            measured_ns: Some(1e6),
            server_cpu_ns: Some(3e5),
            generator_cpu_ns: Some(2e5),
            ..Figures::default()
        };
        assert_eq!(off_cpu_ns(&single), Some(5e5));
        // Both sides worked at once.
        assert_eq!(off_cpu_ns(&Figures { server_cpu_ns: Some(9e5), ..single.clone() }), Some(0.0));
        assert_eq!(off_cpu_ns(&Figures { outstanding: Some(2.0), ..single.clone() }), None);
        assert_eq!(off_cpu_ns(&Figures { wants_more: Some(0.0), ..single.clone() }), None);
        assert_eq!(off_cpu_ns(&Figures { server_cpu_ns: None, ..single }), None);
    }
}
