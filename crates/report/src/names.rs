//! Names of metrics and sensors as people say them, and the formats of their values; pages show no
//! name of a field as a title.

use std::borrow::Cow;

use judge::Metric;

use crate::number::{nanoseconds, value_of};

/// The names of metrics that aren't just their words.
const METRICS: &[(&str, &str)] = &[
    ("rate_per_s", "Rate"),
    ("updates_per_s", "Updates"),
    ("elements_per_s", "Elements"),
    ("staleness.p50", "Median staleness"),
    ("staleness.p99", "99th percentile of staleness"),
    ("staleness.max", "Greatest staleness"),
    ("fairness", "Fairness over streams"),
    ("bytes_per_s", "Bytes of values"),
    ("latency.p50", "Median latency"),
    ("latency.p90", "90th percentile of latency"),
    ("latency.p95", "95th percentile of latency"),
    ("latency.p99", "99th percentile of latency"),
    ("latency.p999", "99.9th percentile of latency"),
    ("latency.max", "Longest latency"),
    ("latency.mean", "Mean latency"),
    ("concurrency.mean", "Operations under way"),
    ("server.cpu_ns_per_op", "Server CPU per operation"),
    ("server.rss_bytes", "Server memory"),
    ("generator.cpu_ns_per_op", "Generator CPU per operation"),
    ("generator.rss_bytes", "Generator memory"),
];

/// Titles of sensors, and of the groups of series that one chart of them holds: sensor, a series
/// of the chart, the title.
const SENSORS: &[(&str, &str, &str)] = &[
    ("backlog", "", "Packets waiting in the kernel"),
    ("cores", "", "CPU time of"),
    ("descriptors", "", "Open files"),
    ("disks", "read", "Disk traffic"),
    ("disks", "reads", "Disk requests"),
    ("disks", "busy", "Busy time of disks"),
    ("hiccups", "longest", "Longest pause of the host"),
    ("hiccups", "over_1_ms", "Pauses of the host over 1 ms"),
    ("hiccups", "lost", "Time lost in pauses of the host"),
    ("load", "", "Load average and runnable threads"),
    ("load_threads", "", "Waiting of the load's threads for a core"),
    ("network", "received", "Network traffic"),
    ("network", "packets_received", "Network packets"),
    ("pressure", "", "Time that tasks waited for a resource"),
    ("processes", "cpu", "CPU in cores"),
    ("processes", "minor_faults", "Page faults"),
    ("processes", "resident", "Memory"),
    ("processes", "threads", "Threads"),
    ("quota", "periods", "Periods of the CPU quota"),
    ("quota", "throttled", "CPU held back by the quota"),
    ("sockets", "", "Trouble of sockets"),
    ("swap", "", "Swapping"),
    ("switches", "", "Context switches"),
];

/// A metric's name: `99th percentile of latency`.
pub(crate) fn metric(metric: &Metric) -> Cow<'static, str> {
    match METRICS.iter().find(|(key, _)| *key == metric.suite) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(capitalised(&words(&metric.suite))),
    }
}

/// The title of a chart of these series of a sensor, which share the thing before their dot (a
/// core, a disk) and their unit.
pub(crate) fn sensor(sensor: &str, thing: &str, series: &[String]) -> String {
    let of = |wanted: &str| wanted.is_empty() || series.iter().any(|one| *one == words(wanted));
    let found = SENSORS.iter().find(|(name, one, _)| *name == sensor && of(one));
    let title = match found {
        Some((_, _, title)) => (*title).to_owned(),
        None if series.len() == 1 => capitalised(&words(&format!("{sensor}: {}", series[0]))),
        None => capitalised(&words(sensor)),
    };
    match thing {
        "" => title,
        thing if title.ends_with(" of") => format!("{title} {thing}"),
        thing => format!("{title}: {thing}"),
    }
}

/// `over_1_ms` as words.
pub(crate) fn words(key: &str) -> String {
    key.replace(['_', '.'], " ")
}

fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The format of a value of this metric.
pub(crate) fn shown(metric: &Metric) -> fn(f64) -> String {
    use judge::Unit::{Bytes, BytesPerSecond, Count, Fraction, Nanoseconds, Number, PerSecond};
    match metric.unit {
        Nanoseconds if metric.json.ends_with("_ns_per_op") => nanoseconds,
        Nanoseconds => |value| value_of(value, Nanoseconds),
        PerSecond => |value| value_of(value, PerSecond),
        Bytes => |value| value_of(value, Bytes),
        BytesPerSecond => |value| value_of(value, BytesPerSecond),
        Count => |value| value_of(value, Count),
        Fraction => |value| value_of(value, Fraction),
        Number => |value| value_of(value, Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_title_is_a_key() {
        let named = |name: &str| metric(judge::metric_named(name).unwrap());
        assert_eq!(named("latency.p99"), "99th percentile of latency");
        assert_eq!(named("hit_ratio"), "Hit ratio");
        let title = |name: &str, thing, series: &[&str]| {
            sensor(name, thing, &series.iter().map(|one| words(one)).collect::<Vec<_>>())
        };
        assert_eq!(title("hiccups", "", &["over_1_ms"]), "Pauses of the host over 1 ms");
        assert_eq!(title("cores", "cpu0", &["user", "system"]), "CPU time of cpu0");
        assert_eq!(title("disks", "", &["reads", "writes"]), "Disk requests");
        assert_eq!(title("descriptors", "generator", &["open"]), "Open files: generator");
        assert_eq!(title("service", "", &["curr_items"]), "Service: curr items");
    }
}
