//! Waiting times against theory. One slot makes the lab's backlog the queue of a single server,
//! whose service time the lab sees as the time from sending to the answer: what was set, and a
//! little that the way there and back takes. Waiting is what latency has beyond it.
//!
//! The mean waiting time of a queue with Poisson arrivals is λ E(S²) / 2 (1 − λ E(S)), by Pollaczek
//! and Khinchine; with exponential service that is M/M/1, with constant service M/D/1 (Kleinrock,
//! "Queueing Systems", vol. 1, 1975, section 5.6).
//!
//! Theory's server never pauses, but a host does: some milliseconds now and then, which add about
//! ν E(T²) / 2 (1 − λ E(S)) for ν pauses of length T. The service time is long beside that.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Judged, Seen, trials};

/// The service time that the suite sets, in microseconds.
const SERVICE_US: f64 = 2_000.0;

/// Of all intervals together: each has to be wider, so that one of twenty does not miss by chance.
const CONFIDENCE: f64 = 0.95;

/// Fewer runs give no interval worth the name.
const MIN_RUNS: usize = 3;

/// What was measured at one point in one run, in microseconds.
#[derive(Clone, Copy)]
struct Measured {
    service_us: f64,
    waiting_us: f64,
}

/// A point: the kind of service, and the requests per second.
type Load = (String, u64);

pub(super) fn judge(seen: &Seen) -> Judged {
    let mut points: BTreeMap<Load, Vec<Measured>> = BTreeMap::new();
    for trial in seen.of("queue").flat_map(trials) {
        if let Some((load, measured)) = measured(trial) {
            points.entry(load).or_default().push(measured);
        }
    }
    let mut evidence = String::from(
        "| service | per second | load | waiting by theory | waiting measured | interval | |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let each = 1.0 - (1.0 - CONFIDENCE) / points.len().max(1) as f64;
    let mut holds = None;
    let mut ratios = Vec::new();
    for ((spread, rate), measured) in &points {
        let Some((mean, half)) = interval(measured, each) else { continue };
        let count = measured.len() as f64;
        let service_us = measured.iter().map(|one| one.service_us).sum::<f64>() / count;
        let theory = waiting_us(spread, *rate as f64 / 1e6, service_us);
        let well = (theory - mean).abs() <= half;
        let (low, high) = (mean - half, mean + half);
        let load = *rate as f64 / 1e6 * service_us;
        let mark = if well { "" } else { "outside" };
        let _ = writeln!(
            evidence,
            "| {spread} | {rate} | {load:.2} | {theory:.1} µs | {mean:.1} µs \
             | {low:.1} to {high:.1} | {mark} |"
        );
        holds = Some(holds.unwrap_or(true) && well);
        ratios.push(mean / theory);
    }
    if let Some(middle) = judge::median(&ratios) {
        let beside = (middle - 1.0) * 100.0;
        let _ = writeln!(evidence, "\nThe median of all loads is {beside:+.1} % beside theory.");
    }
    Judged { holds, evidence }
}

/// What a valid trial measured, and where.
fn measured(trial: &Value) -> Option<(Load, Measured)> {
    let point = &trial["point"];
    let spread = point["target.null.options.spread"].as_str()?.to_owned();
    let rate = point["clients.arrivals.rate"].as_str()?.strip_suffix("/s")?.parse().ok()?;
    let mean_us = |kind: &str| Some(trial["groups"][0][kind]["mean"].as_f64()? / 1e3);
    let (latency_us, service_us) = (mean_us("latency_ns")?, mean_us("service_ns")?);
    let measured = Measured { service_us, waiting_us: latency_us - service_us };
    (trial["validity"] == "valid").then_some(((spread, rate), measured))
}

/// The mean waiting time at `rate` requests a microsecond. What the way there and back takes is
/// the same for all requests: only what was set varies.
fn waiting_us(spread: &str, rate: f64, service_us: f64) -> f64 {
    let variance = if spread == "exponential" { SERVICE_US * SERVICE_US } else { 0.0 };
    rate * (service_us * service_us + variance) / (2.0 * (1.0 - rate * service_us))
}

/// The mean over runs and half the width of Student's interval about it.
fn interval(measured: &[Measured], confidence: f64) -> Option<(f64, f64)> {
    if measured.len() < MIN_RUNS {
        return None;
    }
    let count = measured.len() as f64;
    let mean = measured.iter().map(|one| one.waiting_us).sum::<f64>() / count;
    let squares = measured.iter().map(|one| (one.waiting_us - mean).powi(2)).sum::<f64>();
    let error = (squares / (count - 1.0) / count).sqrt();
    Some((mean, judge::t_critical(confidence, count - 1.0) * error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_textbook_queues_come_out() {
        // M/M/1 at half load waits as long as one service, M/D/1 half as long.
        let rate = 0.5 / SERVICE_US;
        assert!((waiting_us("exponential", rate, SERVICE_US) - SERVICE_US).abs() < 1e-9);
        assert!((waiting_us("constant", rate, SERVICE_US) - SERVICE_US / 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_that_waits_too_long_is_outside() {
        let run = |waiting: f64| {
            let trial = json!({
                "validity": "valid",
                "point": {
                    "target.null.options.spread": "constant",
                    "clients.arrivals.rate": "250/s",
                },
                "groups": [{
                    "latency_ns": { "mean": 2e6 + waiting },
                    "service_ns": { "mean": 2e6 },
                }],
            });
            ("queue", json!({ "trials": [trial] }))
        };
        let holds = |runs| judge(&Seen { runs }).holds;
        assert_eq!(holds(vec![run(1000e3), run(1005e3)]), None);
        assert_eq!(holds(vec![run(995e3), run(1000e3), run(1005e3)]), Some(true));
        assert_eq!(holds(vec![run(1195e3), run(1200e3), run(1205e3)]), Some(false));
    }
}
