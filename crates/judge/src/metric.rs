//! The one table of metrics: how each is called in suites, JSON and SQL, its unit, and which
//! direction is good. A suite adds the figures that its programs report.

use std::borrow::Cow;

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
    /// A number without a unit, or with one that only its name tells.
    Number,
}

/// Every unit with its word in suites, in the ledger and in JSON.
const UNITS: &[(Unit, &str)] = &[
    (Unit::PerSecond, "1/s"),
    (Unit::Nanoseconds, "ns"),
    (Unit::Bytes, "bytes"),
    (Unit::BytesPerSecond, "bytes/s"),
    (Unit::Count, "count"),
    (Unit::Fraction, "fraction"),
    (Unit::Number, "number"),
];

impl Unit {
    /// Its word in suites, in the ledger and in JSON.
    pub fn word(self) -> &'static str {
        UNITS.iter().find(|(unit, _)| *unit == self).map_or("number", |(_, word)| word)
    }

    /// The unit of this word.
    pub fn of_word(word: &str) -> Option<Self> {
        UNITS.iter().find(|(_, known)| *known == word).map(|(unit, _)| *unit)
    }

    /// Every word.
    pub fn words() -> impl Iterator<Item = &'static str> {
        UNITS.iter().map(|(_, word)| *word)
    }

    /// The unit that the end of a figure's name says.
    pub fn of_name(name: &str) -> Self {
        let of = |end: &str| name.strip_suffix(end).is_some_and(|start| start.ends_with('_'));
        if of("bytes_per_s") {
            Unit::BytesPerSecond
        } else if of("per_s") && !name.ends_with("bytes_per_s") {
            Unit::PerSecond
        } else if of("ns") {
            Unit::Nanoseconds
        } else if of("bytes") {
            Unit::Bytes
        } else {
            // `megabytes_per_s` as well: it is neither in bytes nor a count.
            Unit::Number
        }
    }
}

/// One metric of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Its name in a suite: `latency.p99`.
    pub suite: Cow<'static, str>,
    /// Its path in a trial's JSON: `latency_ns.p99`.
    pub json: Cow<'static, str>,
    /// Its column in the ledger's view `trials`: `latency_p99_ns`. `None` for a figure that
    /// programs report: its values are rows of the table `value`.
    pub sql: Option<&'static str>,
    /// Which direction is good.
    pub direction: Direction,
    /// The unit of its value.
    pub unit: Unit,
    /// Whether a saturated generator invalidates it. A busy generator caps the rate and delays
    /// the receipt of answers; the server's cost per operation remains valid.
    pub spoiled_by_busy_generator: bool,
}

/// Names of reported figures have at most this many bytes.
const MAX_NAME_BYTES: usize = 64;

impl Metric {
    /// A figure that programs report under `name`. It is what the program says it is: a generator
    /// at its limit doesn't invalidate it.
    ///
    /// # Errors
    /// Why nothing can be called so.
    pub fn reported(name: &str, direction: Direction, unit: Unit) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || !name.chars().all(is_plain) || name.len() > MAX_NAME_BYTES {
            return Err(format!(
                "a figure's name begins with a letter and has up to {MAX_NAME_BYTES} letters, \
                 digits, dots, - and _"
            ));
        }
        if name.starts_with("service.") {
            return Err("names that begin with service. are a service's own counters".to_owned());
        }
        if metric_named(name).is_some() || OF_A_SCHEDULE.contains(&name) {
            return Err("is a metric already, with its own unit and direction".to_owned());
        }
        let (suite, json) = (Cow::Owned(name.to_owned()), Cow::Owned(name.to_owned()));
        let spoiled_by_busy_generator = false;
        Ok(Self { suite, json, sql: None, direction, unit, spoiled_by_busy_generator })
    }
}

/// What is known of a schedule and carries no verdict, by the names under which a ledger has it.
pub const OF_A_SCHEDULE: [&str; 3] = ["offered_per_s", "lag.p50", "lag.p99"];

/// Returns the metric of this name in a suite or path in JSON, of those in the table.
pub fn metric_named(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.suite == name || metric.json == name)
}

/// The metrics of one suite: the table's, and the figures that its programs report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metrics {
    reported: Vec<Metric>,
}

impl Metrics {
    /// The table's metrics and these.
    pub fn with_reported(reported: Vec<Metric>) -> Self {
        Self { reported }
    }

    /// The metric of this name in a suite or path in JSON.
    pub fn named(&self, name: &str) -> Option<&Metric> {
        metric_named(name).or_else(|| self.reported.iter().find(|metric| metric.suite == name))
    }

    /// The figures that programs report.
    pub fn reported(&self) -> &[Metric] {
        &self.reported
    }

    /// All, the table's first.
    pub fn iter(&self) -> impl Iterator<Item = &Metric> {
        METRICS.iter().chain(&self.reported)
    }
}

use Direction::{HigherIsBetter, LowerIsBetter};
use Unit::{Bytes, BytesPerSecond, Count, Fraction, Nanoseconds, Number, PerSecond};

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
    client("concurrency.mean", "concurrency.mean", "concurrency_mean", LowerIsBetter, Number),
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
    client("refused", "refused", "refused", LowerIsBetter, Count),
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
    let mut metric = independent(suite, json, sql, direction, unit);
    metric.spoiled_by_busy_generator = true;
    metric
}

/// A metric that doesn't depend on the generator's load.
const fn independent(
    suite: &'static str,
    json: &'static str,
    sql: &'static str,
    direction: Direction,
    unit: Unit,
) -> Metric {
    let (suite, json, sql) = (Cow::Borrowed(suite), Cow::Borrowed(json), Some(sql));
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
            assert_eq!(metric_named(&metric.suite), Some(metric));
            assert_eq!(metric_named(&metric.json), Some(metric));
            assert_eq!(METRICS.iter().filter(|other| other.sql == metric.sql).count(), 1);
        }
        assert_eq!(metric_named("latency_p99_ns"), None);
    }

    #[test]
    fn a_reported_figure_has_a_name_of_its_own_and_the_unit_that_it_ends_with() {
        let of = |name: &str| Metric::reported(name, HigherIsBetter, Unit::of_name(name));
        let unit = |name: &str| of(name).unwrap().unit;
        assert_eq!((unit("widgets_per_s"), unit("read_bytes_per_s")), (PerSecond, BytesPerSecond));
        assert_eq!((unit("megabytes_per_s"), unit("score")), (Unit::Number, Unit::Number));
        assert_eq!((unit("took_ns"), unit("peak_bytes")), (Nanoseconds, Bytes));
        for name in ["", "1st", "a b", "a\u{1b}[31m", "é", &"a".repeat(65)] {
            assert!(of(name).unwrap_err().contains("begins with a letter"), "{name}");
        }
        for name in ["rate_per_s", "latency_ns.p99"] {
            assert!(of(name).unwrap_err().contains("is a metric already"), "{name}");
        }
        assert!(of("service.hits").unwrap_err().contains("service's own counters"));
        let metrics = Metrics::with_reported(vec![of("widgets_per_s").unwrap()]);
        assert_eq!(metrics.named("widgets_per_s").unwrap().sql, None);
        assert_eq!(metrics.named("latency.p99"), metric_named("latency.p99"));
        assert_eq!(metrics.iter().count(), METRICS.len() + 1);
        assert!(Unit::words().all(|word| Unit::of_word(word).unwrap().word() == word));
    }
}
