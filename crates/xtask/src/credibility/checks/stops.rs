//! A stopped target against the closed form: with constant arrivals a tenth of the requests meet
//! a stop of length L and wait from 0 to L, evenly, so that the quantile q ≥ 0.9 is
//! L · (q − 0.9) / 0.1.

use std::fmt::Write as _;

use super::{Judged, Seen, trials};

/// The reported and the real length, in milliseconds.
const EXPECTED: &[(&str, f64)] = &[("p95", 100.0), ("p99", 180.0)];

/// The relative error that is allowed.
const WITHIN: f64 = 0.02;

pub(super) fn judge(seen: &Seen) -> Judged {
    let mut evidence =
        String::from("| run | p95 | p99 | wrong | missing |\n|---|---|---|---|---|\n");
    let mut holds: Option<bool> = None;
    for (number, trial) in (1..).zip(seen.of("stopped").flat_map(trials)) {
        let mut cells = String::new();
        let mut well = trial["wrong"] == 0 && trial["missing"] == 0;
        for (name, expected_ms) in EXPECTED {
            let ms = trial["latency_ns"][name].as_f64().unwrap_or(0.0) / 1e6;
            let error = ms / expected_ms - 1.0;
            well &= error.abs() <= WITHIN;
            let _ = write!(cells, " {ms:.1} ms ({:+.1} %) |", error * 100.0);
        }
        let (wrong, missing) = (&trial["wrong"], &trial["missing"]);
        let _ = writeln!(evidence, "| {number} |{cells} {wrong} | {missing} |");
        holds = Some(holds.unwrap_or(true) && well);
    }
    Judged { holds, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn two_percent_are_allowed_and_no_more() {
        let run = |p95: u64| {
            let latency = json!({ "p95": p95, "p99": 180_000_000 });
            ("stopped", json!({ "trials": [{ "latency_ns": latency, "wrong": 0, "missing": 0 }] }))
        };
        let holds = |runs| judge(&Seen { runs }).holds;
        assert_eq!(holds(vec![run(101_900_000)]), Some(true));
        assert_eq!(holds(vec![run(101_900_000), run(97_900_000)]), Some(false));
    }
}
