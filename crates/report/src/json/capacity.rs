//! What a search for the highest load, scalability and Little's law add to the JSON.

use findings::{CapacitySummary, LawViolation, Scaling};
use judge::usl::{Estimate, Scalability, Unfit};
use serde::Serialize;
use serde_json::{Map, Value};

use super::contest::{ContestJson, ModesJson};
use super::names::Names;

/// The judgements on a run as a whole.
#[derive(Serialize)]
pub(super) struct VerdictsJson<'a> {
    capacity: Option<CapacityJson<'a>>,
    scalings: Vec<ScalingJson<'a>>,
    little: Vec<LittleJson<'a>>,
    contest: Option<ContestJson<'a>>,
    modes: Vec<ModesJson<'a>>,
}

#[derive(Serialize)]
struct CapacityJson<'a> {
    key: &'a str,
    precision: f64,
    held: Option<f64>,
    broken: Option<f64>,
    breaks: Option<&'a str>,
    knee: Option<f64>,
    limit: Option<&'a str>,
    evidence: Option<&'a str>,
    generator_bound: bool,
    probes: Vec<ProbeJson<'a>>,
}

#[derive(Serialize)]
struct ProbeJson<'a> {
    point: &'a Map<String, Value>,
    load: f64,
    outcome: &'static str,
    reason: Option<&'a str>,
    rounds: usize,
}

#[derive(Serialize)]
struct ScalingJson<'a> {
    target: &'a str,
    key: &'a str,
    beside: &'a str,
    used: &'a [f64],
    left_out: &'a [f64],
    refused: Option<&'static str>,
    gamma: Option<EstimateJson>,
    alpha: Option<EstimateJson>,
    beta: Option<EstimateJson>,
    peak: Option<EstimateJson>,
    peak_rate: Option<f64>,
    residual: Option<f64>,
}

#[derive(Serialize)]
struct EstimateJson {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
struct LittleJson<'a> {
    trial: i64,
    target: &'a str,
    point: &'a Map<String, Value>,
    round: u32,
    clients: &'a str,
    seen: f64,
    slots: f64,
}

impl EstimateJson {
    fn of(one: &Estimate) -> EstimateJson {
        let finite = |value: f64| value.is_finite().then_some(value);
        EstimateJson { value: finite(one.value), low: finite(one.low), high: finite(one.high) }
    }
}

impl<'a> Names<'a> {
    pub(super) fn verdicts(&self) -> VerdictsJson<'a> {
        let summary = self.summary;
        VerdictsJson {
            capacity: summary.capacity.as_ref().map(|capacity| self.capacity(capacity)),
            scalings: self.scalings(),
            little: self.little(),
            contest: summary.contest.as_ref().map(|contest| self.contest(contest)),
            modes: self.modes(),
        }
    }

    fn capacity(&self, capacity: &'a CapacitySummary) -> CapacityJson<'a> {
        let at = capacity.found.broken;
        let broken = capacity.probes.iter().find(|(_, probe)| Some(probe.load) == at);
        let probe = |(point, probe): &'a (usize, ledger::ProbeRow)| ProbeJson {
            point: self.point(*point),
            load: probe.load,
            outcome: probe.outcome.word(),
            reason: probe.reason.as_deref(),
            rounds: self.summary.points[*point].rounds,
        };
        CapacityJson {
            key: &capacity.search.key,
            precision: capacity.search.precision,
            held: capacity.found.held,
            broken: at,
            breaks: broken.and_then(|(_, probe)| probe.reason.as_deref()),
            knee: capacity.knee,
            limit: capacity.limit.as_ref().map(|(limit, _)| &limit[..]),
            evidence: capacity.limit.as_ref().map(|(_, evidence)| &evidence[..]),
            generator_bound: capacity.generator_busy.is_some(),
            probes: capacity.probes.iter().map(probe).collect(),
        }
    }

    fn scalings(&self) -> Vec<ScalingJson<'a>> {
        let scaling = |one: &'a Scaling| {
            let law: Option<&Scalability> = one.fit.as_ref().ok();
            let refused = one.fit.as_ref().err().map(|unfit| match unfit {
                Unfit::TooFew(_) => "too_few",
                Unfit::Pattern(_) => "pattern",
                Unfit::NoSolution => "no_solution",
            });
            ScalingJson {
                target: self.target(one.target),
                key: &one.key,
                beside: &one.beside,
                used: &one.used,
                left_out: &one.left_out,
                refused,
                gamma: law.map(|law| EstimateJson::of(&law.gamma)),
                alpha: law.map(|law| EstimateJson::of(&law.alpha)),
                beta: law.map(|law| EstimateJson::of(&law.beta)),
                peak: law.map(|law| EstimateJson::of(&law.peak)),
                peak_rate: law.map(|law| law.peak_rate).filter(|rate| rate.is_finite()),
                residual: law.map(|law| law.residual),
            }
        };
        self.summary.scalings.iter().map(scaling).collect()
    }

    fn little(&self) -> Vec<LittleJson<'a>> {
        let broken = |one: &'a LawViolation| {
            let trial = &self.summary.trials[one.trial];
            LittleJson {
                trial: trial.id.get(),
                target: self.target(trial.target),
                point: self.point(trial.point),
                round: trial.round,
                clients: &one.clients,
                seen: one.seen,
                slots: one.slots,
            }
        };
        self.summary.littles_law.iter().map(broken).collect()
    }
}
