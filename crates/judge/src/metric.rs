//! The one table of metrics: how each is called in suites, JSON and SQL, its unit, and which
//! direction is good.

/// Which direction of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better: rates, hit ratios.
    HigherIsBetter,
    /// Less is better: latencies, costs, wrong answers.
    LowerIsBetter,
}

/// The unit that a metric's value is kept in, everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Operations per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A number of things.
    Count,
    /// A fraction between 0 and 1.
    Fraction,
}

/// One metric of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name in a suite: `latency.p99`.
    pub suite: &'static str,
    /// Its path in a trial's JSON: `latency_ns.p99`.
    pub json: &'static str,
    /// Its column in the ledger's view `trials`: `latency_p99_ns`.
    pub sql: &'static str,
    /// Which direction is good.
    pub direction: Direction,
    /// The unit of its value.
    pub unit: Unit,
    /// Whether a saturated generator invalidates it. A busy generator caps the rate and delays
    /// the receipt of answers; the server's cost per operation remains valid.
    pub spoiled_by_busy_generator: bool,
}

/// Returns the metric of this name in a suite or path in JSON.
pub fn metric_named(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.suite == name || metric.json == name)
}

use Direction::{HigherIsBetter, LowerIsBetter};
use Unit::{Bytes, BytesPerSecond, Count, Fraction, Nanoseconds, PerSecond};

/// Every metric of a trial, in the order in which reports show them.
#[rustfmt::skip] // One row per metric reads as the table it is.
pub static METRICS: &[Metric] = &[
    client("rate_per_s", "rate_per_s", "rate_per_s", HigherIsBetter, PerSecond),
    client("latency.p50", "latency_ns.p50", "latency_p50_ns", LowerIsBetter, Nanoseconds),
    client("latency.p90", "latency_ns.p90", "latency_p90_ns", LowerIsBetter, Nanoseconds),
    client("latency.p99", "latency_ns.p99", "latency_p99_ns", LowerIsBetter, Nanoseconds),
    client("latency.p999", "latency_ns.p999", "latency_p999_ns", LowerIsBetter, Nanoseconds),
    client("latency.max", "latency_ns.max", "latency_max_ns", LowerIsBetter, Nanoseconds),
    client("latency.mean", "latency_ns.mean", "latency_mean_ns", LowerIsBetter, Nanoseconds),
    client("updates_per_s", "updates_per_s", "updates_per_s", HigherIsBetter, PerSecond),
    client("elements_per_s", "elements_per_s", "elements_per_s", HigherIsBetter, PerSecond),
    client("bytes_per_s", "bytes_per_s", "bytes_per_s", HigherIsBetter, BytesPerSecond),
    client("staleness.p50", "staleness_ns.p50", "staleness_p50_ns", LowerIsBetter, Nanoseconds),
    client("staleness.p99", "staleness_ns.p99", "staleness_p99_ns", LowerIsBetter, Nanoseconds),
    client("staleness.max", "staleness_ns.max", "staleness_max_ns", LowerIsBetter, Nanoseconds),
    client("missed", "missed", "missed", LowerIsBetter, Count),
    client("merged", "merged", "merged", LowerIsBetter, Count),
    client("fairness", "fairness", "fairness", HigherIsBetter, Fraction),
    client("least_updates", "least_updates", "least_updates", HigherIsBetter, Count),
    client("missing", "missing", "missing", LowerIsBetter, Count),
    independent("wrong", "wrong", "wrong", LowerIsBetter, Count),
    independent("misses", "misses", "misses", LowerIsBetter, Count),
    independent("hit_ratio", "hit_ratio", "hit_ratio", HigherIsBetter, Fraction),
    cost("server.cpu_ns_per_op", "server_cpu_ns_per_op", Nanoseconds),
    cost("server.user_ns_per_op", "server_user_ns_per_op", Nanoseconds),
    cost("server.system_ns_per_op", "server_system_ns_per_op", Nanoseconds),
    cost("server.rss_bytes", "server_rss_bytes", Bytes),
    cost("generator.cpu_ns_per_op", "generator_cpu_ns_per_op", Nanoseconds),
    cost("generator.user_ns_per_op", "generator_user_ns_per_op", Nanoseconds),
    cost("generator.system_ns_per_op", "generator_system_ns_per_op", Nanoseconds),
    cost("generator.rss_bytes", "generator_rss_bytes", Bytes),
    cost("generator.busy", "generator_busy", Fraction),
];

/// A metric that a saturated generator invalidates.
const fn client(
    suite: &'static str,
    json: &'static str,
    sql: &'static str,
    direction: Direction,
    unit: Unit,
) -> Metric {
    Metric { suite, json, sql, direction, unit, spoiled_by_busy_generator: true }
}

/// A metric that doesn't depend on the generator's load.
const fn independent(
    suite: &'static str,
    json: &'static str,
    sql: &'static str,
    direction: Direction,
    unit: Unit,
) -> Metric {
    Metric { suite, json, sql, direction, unit, spoiled_by_busy_generator: false }
}

/// A cost: independent of the generator, less is better, one name in suites and JSON.
const fn cost(name: &'static str, sql: &'static str, unit: Unit) -> Metric {
    independent(name, name, sql, LowerIsBetter, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_either_way() {
        for metric in METRICS {
            assert_eq!(metric_named(metric.suite), Some(metric));
            assert_eq!(metric_named(metric.json), Some(metric));
            assert_eq!(METRICS.iter().filter(|other| other.sql == metric.sql).count(), 1);
        }
        assert_eq!(metric_named("latency_p99_ns"), None);
    }
}
