//! Figures of the slice or round that has just ended, for live views. They are collected between
//! slices, when nothing is measured, at the cost of a copy of the slice's histograms.

use findings::Why;
use ledger::{Cause, Validity};

use super::slice::Slice;
use super::trial::Trial;
use crate::drive::{Counted, Counts, Figure, LoadResult, Pressure};
use crate::plan::Point;

/// The figures of one slice.
#[derive(Clone, Debug)]
pub struct SliceStats {
    /// The target, as an index into the plan's.
    pub target: usize,
    /// How long it lasted.
    pub duration_ns: u64,
    /// What its operations are divided by for their rate.
    pub rate_ns: u64,
    /// Operations by outcome.
    pub counts: Counts,
    /// CPU time of the target; `None` is unseen.
    pub server_ns: Option<u64>,
    /// CPU time of the load's threads.
    pub generator_ns: u64,
    /// The part of the time that the busiest of these was not waiting.
    pub busy: f64,
    /// Offered load and backlog of a schedule; zero without one.
    pub pressure: Pressure,
    /// Latencies, send lags and ages of updates, over all groups and operations.
    pub times: Vec<(Figure, Counted)>,
    /// What disturbed the slice; empty where the suite ignores that.
    pub causes: Vec<Cause>,
}

impl SliceStats {
    pub(super) fn of(target: usize, slice: &Slice, result: &LoadResult) -> Self {
        let times = result.intervals.iter().map(|one| (one.figure, one.histogram.clone()));
        Self {
            target,
            duration_ns: result.duration_ns,
            rate_ns: result.rate_ns(),
            counts: result.counts,
            server_ns: slice.server.map(|cpu| cpu.total_ns),
            generator_ns: result.generator.total_ns,
            busy: result.busy,
            pressure: result.pressure,
            times: times.collect(),
            causes: if slice.is_disturbed { slice.causes.clone() } else { Vec::new() },
        }
    }
}

/// A target's result after a round.
#[derive(Clone, Debug)]
pub struct TargetStatus {
    /// The target, as an index into the plan's.
    pub target: usize,
    /// Whether its trial may be compared.
    pub validity: Validity,
    /// Why it may not, or what disturbed it and is ignored.
    pub why: Vec<Why>,
    /// Operations by outcome.
    pub counts: Counts,
    /// What the operations are divided by for their rate; 0 where nothing was measured.
    pub rate_ns: u64,
    /// The primary metric of the suite; `None` is unseen.
    pub primary: Option<f64>,
    /// Median and 99th percentile of its latencies in ns, where it has any.
    pub p50_p99_ns: Option<(u64, u64)>,
    /// The part of the time that the busiest thread of load was not waiting.
    pub busy: Option<f64>,
    /// The first limit reached, with the evidence, or why none was seen; `None` where none was
    /// reached.
    pub limit: Option<String>,
}

impl TargetStatus {
    /// The reasons without their figures, which differ from round to round.
    pub fn kind_of_reason(&self) -> String {
        let kind = |why: &Why| match why {
            Why::Disturbed(cause) => format!("{:?}; ", cause.kind),
            Why::Invalid(reason) => reason.replace(|c: char| c.is_ascii_digit(), ""),
        };
        self.why.iter().map(kind).collect()
    }

    pub(super) fn of(trial: &Trial, point: &Point, primary: &str, copy_bytes_per_s: f64) -> Self {
        let latency = trial.latency();
        let quantile = |q| latency.value_at_quantile(q);
        let figures =
            (trial.measured_ns > 0).then(|| trial.usage.figures(trial, point, copy_bytes_per_s));
        let limit = figures.and_then(|figures| {
            match judge::limits::limits_reached(&figures).into_iter().next() {
                Some(one) => Some(format!("{} ({})", one.limit.name, one.evidence)),
                None => judge::limits::unseen(&figures).map(|why| format!("unseen ({why})")),
            }
        });
        Self {
            target: trial.target,
            validity: trial.validity,
            why: trial.why(),
            counts: trial.counts,
            rate_ns: trial.rate_ns,
            primary: trial.metric(primary),
            p50_p99_ns: (!latency.is_empty()).then(|| (quantile(0.5), quantile(0.99))),
            busy: trial.busy(),
            limit,
        }
    }
}
