//! Whether the lab says what would help a PostgreSQL that lacks it, and nothing to one that lacks
//! nothing.

use serde_json::Value;

use super::limits::{CLEAN, judge_plants, plant};
use super::{Judged, Kind, Seen};

/// What is planted is advised first in this share of all runs.
const ENOUGH_ADVISED: f64 = 0.8;

/// Each is called what should be advised.
pub(super) static KINDS: &[Kind] = &[
    plant("statistics", 60),
    plant("index", 61),
    plant("work_memory", 62),
    plant("shared_memory", 63),
    plant("lock", 64),
    plant(CLEAN, 65),
];

/// What makes the suite's PostgreSQL one that lacks it.
pub(super) fn settings(kind: &Kind) -> Vec<(&'static str, String)> {
    const SPEAKS: [&str; 3] = [
        "target.postgres.speaks.postgres-gist.analyze",
        "target.postgres.speaks.postgres-gist.index",
        "target.postgres.speaks.postgres-gist.order",
    ];
    let settings: &[(&str, &str)] = match kind.name {
        "statistics" => &[(SPEAKS[0], "false")],
        "index" => &[(SPEAKS[1], "false")],
        "work_memory" => &[(SPEAKS[2], "true"), ("parameters.work_mem", "64kB")],
        "shared_memory" => &[("parameters.shared_buffers", "2MB")],
        "lock" => &[("parameters.hold", "0.3")],
        _ => &[],
    };
    settings.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

pub(super) fn judge(seen: &Seen) -> Judged {
    judge_plants(seen, KINDS, ENOUGH_ADVISED, first)
}

/// What the run advises first.
fn first(run: &Value) -> Option<&str> {
    let target = &run["points"][0]["targets"][0];
    let is_seen = target["waits"].as_array().is_some_and(|waits| !waits.is_empty());
    target["advice"][0]["code"].as_str().or(is_seen.then_some(CLEAN))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_advice_is_one_only_where_waits_were_seen() {
        let run = |target: Value| json!({ "points": [{ "targets": [target] }] });
        let wait = json!([{ "class": "running", "share": 1.0 }]);
        assert_eq!(first(&run(json!({ "waits": wait, "advice": [] }))), Some(CLEAN));
        assert_eq!(first(&run(json!({ "waits": [], "advice": [] }))), None);
        let advice = json!([{ "code": "lock" }, { "code": "index" }]);
        assert_eq!(first(&run(json!({ "waits": wait, "advice": advice }))), Some("lock"));
    }
}
