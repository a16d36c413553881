//! The units of a point's figures: those of its targets are read under each other and share one.

use findings::{PointSummary, Summary, TargetSummary};
use judge::Unit;

use crate::number::Scale;

/// The unit of each column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    /// Of the run's primary metric.
    pub(crate) primary: Scale,
    pub(crate) rate: Scale,
    pub(crate) p50: Scale,
    pub(crate) p99: Scale,
    pub(crate) lag: Scale,
    pub(crate) bytes: Scale,
    pub(crate) server: Scale,
    pub(crate) generator: Scale,
}

impl Columns {
    pub(crate) fn of(summary: &Summary, point: &PointSummary) -> Columns {
        let scale = |unit: Unit, of: fn(&TargetSummary) -> Option<f64>| {
            Scale::of(unit, point.targets.iter().filter_map(of))
        };
        let time = |of| scale(Unit::Nanoseconds, of);
        let primary = summary.primary().map_or(Unit::Number, |metric| metric.unit);
        Columns {
            primary: scale(primary, |one| Some(one.primary?.mean)),
            rate: scale(Unit::PerSecond, |one| {
                one.rate.map(|rate| rate.mean).or(one.figures.rate_per_s)
            }),
            p50: time(|one| one.figures.latency.p50_ns.map(|ns| ns as f64)),
            p99: time(|one| one.figures.latency.p99_ns.map(|ns| ns as f64)),
            lag: time(|one| one.figures.lag.p99_ns.map(|ns| ns as f64)),
            bytes: scale(Unit::BytesPerSecond, |one| one.figures.bytes_per_s),
            server: time(|one| one.figures.server.cpu_ns_per_op),
            generator: time(|one| one.figures.generator.cpu_ns_per_op),
        }
    }
}
