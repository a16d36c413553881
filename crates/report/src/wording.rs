//! Differences of a metric in words: `takes 22 % less CPU per operation than memcached`.

use judge::Metric;

use crate::number::{percent, ratio};

/// The ratios of a metric at some points, from the least to the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Span {
    /// The one ratio.
    pub(crate) fn one(ratio: f64) -> Span {
        Span { low: ratio, high: ratio }
    }

    /// The span of these; `None` of none.
    pub(crate) fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Span> {
        let wider = |a: Span, b: Span| Span { low: a.low.min(b.low), high: a.high.max(b.high) };
        ratios.into_iter().map(Span::one).reduce(wider)
    }
}

/// The ratio from which sentences give a multiple ("3.1 times") in place of a percentage.
const MIN_TIMES: f64 = 2.0;

/// A metric as sentences call it.
pub(crate) fn noun(metric: &Metric) -> &str {
    match &*metric.suite {
        "rate_per_s" => "rate",
        "latency.p999" => "p99.9",
        "latency.max" => "greatest latency",
        "latency.mean" => "mean latency",
        "concurrency.mean" => "operations under way",
        "updates_per_s" => "rate of updates",
        "elements_per_s" => "rate of elements",
        "bytes_per_s" => "rate of bytes",
        "staleness.p50" => "median staleness",
        "staleness.p99" => "p99 of staleness",
        "staleness.max" => "greatest staleness",
        "hit_ratio" => "hit ratio",
        "server.cpu_ns_per_op" => "CPU per operation",
        "server.user_ns_per_op" => "user CPU per operation",
        "server.system_ns_per_op" => "kernel CPU per operation",
        "server.rss_bytes" => "memory",
        "wall_ns" => "wall time",
        "generator.cpu_ns_per_op" => "generator CPU per operation",
        "generator.user_ns_per_op" => "generator user CPU per operation",
        "generator.system_ns_per_op" => "generator kernel CPU per operation",
        "generator.rss_bytes" => "generator memory",
        name => name.strip_prefix("latency.").unwrap_or(name),
    }
}

/// Whether a target takes an amount of it; else it has a level of it.
pub(crate) fn is_taken(metric: &Metric) -> bool {
    metric.suite.starts_with("server.")
}

/// How less, more and a multiple are said.
type Ways = [&'static str; 3];

const AMOUNTS: Ways = ["less", "more", "times as much"];
const LEVELS: Ways = ["lower", "higher", "times as high"];

fn ways(metric: &Metric) -> Ways {
    if is_taken(metric) { AMOUNTS } else { LEVELS }
}

/// `22 % less`, `12 to 90 % less`, `2.50 times as much`; of levels `22 % lower` and `2.50 times as
/// high`. The ratios lie on one side of 1.
pub(crate) fn difference(metric: &Metric, span: Span) -> String {
    joined(ways(metric), span, "to")
}

/// An interval in words: `between 5.0 % less and 20 % more`, `between 10 and 31 % less`.
pub(crate) fn between(metric: &Metric, low: f64, high: f64) -> String {
    between_ends(ways(metric), low, high)
}

/// The difference of figures that have no name, and its interval: `4.6 % more, between 4.8 % less
/// and 15 % more`.
pub(crate) fn unnamed(ratio: f64, low: f64, high: f64) -> String {
    let between = between_ends(AMOUNTS, low, high);
    format!("{}, {between}", joined(AMOUNTS, Span::one(ratio), "to"))
}

fn between_ends(ways: Ways, low: f64, high: f64) -> String {
    if low >= 1.0 || high <= 1.0 {
        return format!("between {}", joined(ways, Span { low, high }, "and"));
    }
    let [low, high] = [low, high].map(|end| joined(ways, Span::one(end), "to"));
    format!("between {low} and {high}")
}

fn joined([less, more, times]: Ways, Span { low, high }: Span, word: &str) -> String {
    let (near, far, way) = match low < 1.0 {
        _ if high >= MIN_TIMES => (factor(low), factor(high), times),
        true => (part(1.0 - high), part(1.0 - low), less),
        false => (part(low - 1.0), part(high - 1.0), more),
    };
    match near == far {
        true => format!("{far} {way}"),
        false => format!("{} {word} {far} {way}", near.trim_end_matches(" %")),
    }
}

/// A difference as a percentage, which is shown as 0 or 100 only where it is.
fn part(difference: f64) -> String {
    let more = (1..=6).map(|digits| format!("{:.digits$} %", difference * 100.0));
    let is_clear = |text: &String| {
        let shown = text.trim_end_matches(" %").parse::<f64>().unwrap_or(f64::NAN);
        (shown > 0.0 || difference <= 0.0) && (shown < 100.0 || difference >= 1.0)
    };
    let mut all = [percent(difference)].into_iter().chain(more);
    all.find(is_clear).unwrap_or_else(|| percent(difference))
}

/// How many times as much. Of so wide an interval its end isn't worth its digits.
fn factor(times: f64) -> String {
    match times {
        t if t >= 10_000.0 => "over 10,000".to_owned(),
        t if t >= 10.0 => ratio(t),
        t => format!("{t:.2}"),
    }
}

/// What a target does beside another one: `takes 22 % less CPU per operation than memcached`, `has
/// a 13 % higher rate than memcached`, `has 2.50 times the rate of memcached`.
pub(crate) fn compared(metric: &Metric, span: Span, other: &str) -> String {
    let (noun, said) = (noun(metric), difference(metric, span));
    match (is_taken(metric), said.strip_suffix(" as high")) {
        (true, _) if said.ends_with("as much") => format!("takes {said} {noun} as {other}"),
        (true, _) => format!("takes {said} {noun} than {other}"),
        (false, Some(times)) => format!("has {times} the {noun} of {other}"),
        (false, None) => format!("has {} {said} {noun} than {other}", article(&said)),
    }
}

/// The article before a percentage.
fn article(number: &str) -> &'static str {
    let is_teen = ["11 ", "18 "].iter().any(|teen| number.starts_with(teen));
    if is_teen || number.starts_with('8') { "an" } else { "a" }
}

/// What a target does beside another one that is the same: `takes the same CPU per operation as
/// memcached`.
pub(crate) fn same(metric: &Metric, other: &str) -> String {
    let verb = if is_taken(metric) { "takes" } else { "has" };
    format!("{verb} the same {} as {other}", noun(metric))
}

/// What can't be told of a target: `takes more or less CPU per operation than memcached`.
pub(crate) fn either(metric: &Metric, other: &str) -> String {
    let noun = noun(metric);
    match is_taken(metric) {
        true => format!("takes more or less {noun} than {other}"),
        false => format!("has a higher or lower {noun} than {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::metric_named;

    fn of(name: &str) -> &'static Metric {
        metric_named(name).unwrap()
    }

    #[test]
    fn a_difference_says_its_direction_and_how_much() {
        let said = |name, low, high| compared(of(name), Span { low, high }, "memcached");
        let cpu = "server.cpu_ns_per_op";
        assert_eq!(said(cpu, 0.78, 0.78), "takes 22 % less CPU per operation than memcached");
        assert_eq!(said(cpu, 0.1, 0.88), "takes 12 to 90 % less CPU per operation than memcached");
        assert_eq!(said(cpu, 2.5, 2.5), "takes 2.50 times as much CPU per operation as memcached");
        assert_eq!(said("rate_per_s", 1.08, 1.08), "has an 8.0 % higher rate than memcached");
        assert_eq!(said("rate_per_s", 0.87, 0.87), "has a 13 % lower rate than memcached");
        assert_eq!(said("latency.p99", 1.5, 10.4), "has 1.50 to 10.4 times the p99 of memcached");
        assert_eq!(said("rate_per_s", 0.9996, 0.9996), "has a 0.04 % lower rate than memcached");
    }

    #[test]
    fn an_interval_is_said_by_its_ends() {
        let said = |low, high| between(of("server.cpu_ns_per_op"), low, high);
        assert_eq!(said(0.95, 1.2), "between 5.0 % less and 20 % more");
        assert_eq!(said(0.69, 0.9), "between 10 and 31 % less");
        assert_eq!(said(1.05, 3.1), "between 1.05 and 3.10 times as much");
        assert_eq!(said(0.0001, 7e12), "between 99.99 % less and over 10,000 times as much");
        assert_eq!(said(1.0, 1.00001), "between 0.00 and 0.001 % more");
    }
}
