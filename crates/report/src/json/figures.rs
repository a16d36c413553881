//! The figures of a trial, or of a target at a point, for programs.

use findings::Figures;
use judge::metric_named;
use serde::Serialize;

use super::latency::LatencyJson;
use super::streams::StreamsJson;

#[derive(Serialize)]
pub(super) struct FiguresJson {
    pub(super) rate_per_s: Option<f64>,
    latency_ns: LatencyJson,
    lag_ns: Option<LatencyJson>,
    offered_per_s: Option<f64>,
    backlog_most: Option<u64>,
    operations: u64,
    wrong: u64,
    unchecked: u64,
    missing: u64,
    misses: u64,
    hit_ratio: Option<f64>,
    elements_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    #[serde(flatten)]
    streams: StreamsJson,
    server: UsageJson,
    generator: GeneratorJson,
}

#[derive(Serialize)]
struct UsageJson {
    cpu_ns_per_op: Option<f64>,
    user_ns_per_op: Option<f64>,
    system_ns_per_op: Option<f64>,
    rss_bytes: Option<u64>,
}

#[derive(Serialize)]
struct GeneratorJson {
    #[serde(flatten)]
    usage: UsageJson,
    busy: Option<f64>,
}

impl FiguresJson {
    pub(super) fn of(figures: &Figures) -> FiguresJson {
        let metric = |name: &str| figures.value(metric_named(name)?);
        FiguresJson {
            rate_per_s: metric("rate_per_s"),
            latency_ns: match figures.latency.count {
                0 => LatencyJson::reported("latency", metric),
                _ => LatencyJson::of(&figures.latency),
            },
            lag_ns: LatencyJson::if_any(&figures.lag),
            offered_per_s: figures.offered_per_s,
            backlog_most: figures.backlog_most,
            operations: figures.operations,
            wrong: figures.wrong,
            unchecked: figures.unchecked,
            missing: figures.missing,
            misses: figures.misses,
            hit_ratio: metric("hit_ratio"),
            elements_per_s: metric("elements_per_s"),
            bytes_per_s: metric("bytes_per_s"),
            streams: match &figures.streams {
                Some(streams) => StreamsJson::of(streams),
                None => StreamsJson::reported(metric),
            },
            server: UsageJson::of("server", metric),
            generator: GeneratorJson {
                usage: UsageJson::of("generator", metric),
                busy: metric("generator.busy"),
            },
        }
    }
}

impl UsageJson {
    fn of(side: &str, metric: impl Fn(&str) -> Option<f64>) -> UsageJson {
        let of = |name: &str| metric(&format!("{side}.{name}"));
        UsageJson {
            cpu_ns_per_op: of("cpu_ns_per_op"),
            user_ns_per_op: of("user_ns_per_op"),
            system_ns_per_op: of("system_ns_per_op"),
            rss_bytes: of("rss_bytes").map(|bytes| bytes as u64),
        }
    }
}
