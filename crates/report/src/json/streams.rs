//! The updates of streams, as JSON.

use findings::StreamFigures;
use serde::Serialize;

use super::latency::LatencyJson;

#[derive(Serialize)]
pub(super) struct StreamGroupJson<'a> {
    clients: &'a str,
    #[serde(flatten)]
    streams: StreamsJson,
}

/// Null, all of it, where nothing streams.
#[derive(Serialize, Default)]
pub(super) struct StreamsJson {
    streams: Option<u64>,
    updates: Option<u64>,
    updates_per_s: Option<f64>,
    missed: Option<u64>,
    merged: Option<u64>,
    fairness: Option<f64>,
    least_updates: Option<u64>,
    staleness_ns: Option<LatencyJson>,
}

pub(super) fn stream_groups(groups: &[(String, StreamFigures)]) -> Vec<StreamGroupJson<'_>> {
    let named = groups
        .iter()
        .map(|(clients, figures)| StreamGroupJson { clients, streams: StreamsJson::of(figures) });
    named.collect()
}

impl StreamsJson {
    /// Without streams: what calls reported under a metric's name.
    pub(super) fn reported(metric: impl Fn(&str) -> Option<f64>) -> StreamsJson {
        let count = |name: &str| metric(name).map(|value| value as u64);
        StreamsJson {
            updates_per_s: metric("updates_per_s"),
            missed: count("missed"),
            merged: count("merged"),
            fairness: metric("fairness"),
            least_updates: count("least_updates"),
            staleness_ns: metric("staleness.p50")
                .or_else(|| metric("staleness.p99"))
                .or_else(|| metric("staleness.max"))
                .map(|_| LatencyJson::reported("staleness", &metric)),
            ..StreamsJson::default()
        }
    }

    pub(super) fn of(figures: &StreamFigures) -> StreamsJson {
        StreamsJson {
            streams: Some(figures.streams),
            updates: Some(figures.updates),
            updates_per_s: figures.updates_per_s,
            missed: Some(figures.missed),
            merged: Some(figures.merged),
            fairness: figures.fairness,
            least_updates: Some(figures.least_updates),
            staleness_ns: LatencyJson::if_any(&figures.staleness),
        }
    }
}
