//! A distribution of times, for programs.

use findings::Latency;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct LatencyJson {
    p50: Option<u64>,
    p90: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    max: Option<u64>,
    mean: Option<f64>,
}

impl LatencyJson {
    pub(super) fn of(latency: &Latency) -> LatencyJson {
        LatencyJson {
            p50: latency.p50_ns,
            p90: latency.p90_ns,
            p95: latency.p95_ns,
            p99: latency.p99_ns,
            p999: latency.p999_ns,
            max: latency.max_ns,
            mean: latency.mean_ns,
        }
    }

    /// Without a distribution: what calls reported under the names of metrics.
    pub(super) fn reported(of: &str, metric: impl Fn(&str) -> Option<f64>) -> LatencyJson {
        let whole = |name: &str| metric(&format!("{of}.{name}")).map(|value| value as u64);
        LatencyJson {
            p50: whole("p50"),
            p90: whole("p90"),
            p95: None,
            p99: whole("p99"),
            p999: whole("p999"),
            max: whole("max"),
            mean: metric(&format!("{of}.mean")),
        }
    }

    /// Null where there is nothing that it could be of.
    pub(super) fn if_any(latency: &Latency) -> Option<LatencyJson> {
        (latency.count > 0).then(|| LatencyJson::of(latency))
    }
}
