//! Whether the lab names the limit that was planted, and none where nothing gives way.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Judged, Kind, Seen};
use crate::credibility::burner::Beside;

/// A planted limit is named in this many of the runs of all plants, …
const ENOUGH_NAMED: f64 = 85.0 / 90.0;

/// … and in this many of each.
const ENOUGH_OF_EACH: f64 = 0.8;

/// A light load reaches none in as many of its runs.
const ENOUGH_CLEAN: f64 = 19.0 / 20.0;

/// The kind without a plant; its limit is called the same.
pub(super) const CLEAN: &str = "none";

pub(super) const fn plant(name: &'static str, number: u64) -> Kind {
    Kind { name, number, runs: 10, beside: Beside::Nothing }
}

/// Each is called what the lab should call it.
pub(super) static KINDS: &[Kind] = &[
    plant("generator", 20),
    plant("server_thread", 21),
    plant("server_cores", 22),
    plant("contention", 23),
    plant("wakeups", 24),
    plant("listen", 25),
    plant("disk", 26),
    plant("delayed_ack", 27),
    plant("growth", 28),
    Kind { name: CLEAN, number: 29, runs: 20, beside: Beside::Nothing },
];

/// What makes the suite's service one with that limit.
pub(super) fn settings(kind: &Kind) -> Vec<(&'static str, String)> {
    const SERVICE: &str = "target.null.options.service_time";
    const THREADS: &str = "target.null.options.threads";
    const PLANT: &str = "target.null.options.plant";
    const CONNECTIONS: &str = "clients.connections";
    let settings: &[(&str, &str)] = match kind.name {
        "generator" => &[(SERVICE, "0s"), ("clients.pipeline", "64"), (CONNECTIONS, "16")],
        "server_cores" => &[(THREADS, "4"), (CONNECTIONS, "16")],
        "contention" => &[(PLANT, "neighbour")],
        "wakeups" => &[(PLANT, "lock"), (THREADS, "4"), (SERVICE, "0s")],
        "listen" => {
            &[(PLANT, "backlog"), (SERVICE, "0s"), ("clients.connect", "each"), (CONNECTIONS, "32")]
        }
        "disk" => &[(PLANT, "disk"), (SERVICE, "0s")],
        "delayed_ack" => &[(PLANT, "nagle"), (SERVICE, "0s")],
        "growth" => &[(PLANT, "leak"), ("clients.arrivals", "{ rate = \"2k/s\" }")],
        // A fifth of what one core carries at 20 µs each.
        CLEAN => &[("clients.arrivals", "{ rate = \"8k/s\" }")],
        _ => &[],
    };
    settings.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

pub(super) fn judge(seen: &Seen) -> Judged {
    judge_plants(seen, KINDS, ENOUGH_NAMED, first)
}

/// Whether `first` of a run is what was planted: in this share of the runs of all plants, in
/// [`ENOUGH_OF_EACH`] of each, and in [`ENOUGH_CLEAN`] of those of the kind [`CLEAN`] it is that.
pub(super) fn judge_plants(
    seen: &Seen,
    kinds: &[Kind],
    enough_named: f64,
    first: fn(&Value) -> Option<&str>,
) -> Judged {
    let named = |kind: &Kind| {
        let right = seen.of(kind.name).filter(|run| first(run) == Some(kind.name)).count();
        (right, seen.of(kind.name).count())
    };
    let mut evidence = "| planted | named first | instead |\n|---|---|---|\n".to_owned();
    let (mut right_of_all, mut all, mut short, mut each_holds) = (0, 0, false, true);
    for kind in kinds {
        let (right, runs) = named(kind);
        short |= runs < kind.runs;
        let share = right as f64 / runs.max(1) as f64;
        if kind.name == CLEAN {
            each_holds &= runs == 0 || share >= ENOUGH_CLEAN;
        } else {
            (right_of_all, all) = (right_of_all + right, all + runs);
            each_holds &= runs == 0 || share >= ENOUGH_OF_EACH;
        }
        let mut instead: Vec<&str> =
            seen.of(kind.name).filter_map(first).filter(|code| *code != kind.name).collect();
        instead.sort_unstable();
        instead.dedup();
        let _ =
            writeln!(evidence, "| {} | {right} of {runs} | {} |", kind.name, instead.join(", "));
    }
    let share = right_of_all as f64 / f64::from(u32::try_from(all.max(1)).unwrap_or(u32::MAX));
    let _ = writeln!(evidence, "\n{right_of_all} of {all} plants were named first.");
    let holds = each_holds && share >= enough_named;
    Judged { holds: (!short).then_some(holds), evidence }
}

/// The limit that the run names as first.
fn first(run: &Value) -> Option<&str> {
    run["points"][0]["targets"][0]["limit"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn runs(wrong: usize, of: &str) -> Vec<(&'static str, Value)> {
        let run = |kind: &'static Kind, index| {
            let wrong = kind.name == of && index < wrong;
            let limit = if wrong { "host_stalls" } else { kind.name };
            (kind.name, json!({ "points": [{ "targets": [{ "limit": limit }] }] }))
        };
        KINDS.iter().flat_map(|kind| (0..kind.runs).map(move |index| run(kind, index))).collect()
    }

    #[test]
    fn two_of_ten_of_one_plant_may_be_called_something_else() {
        let holds = |wrong, of| judge(&Seen { runs: runs(wrong, of) }).holds;
        assert_eq!(holds(2, "disk"), Some(true));
        assert_eq!(holds(3, "disk"), Some(false));
        assert_eq!(holds(1, CLEAN), Some(true));
        assert_eq!(holds(2, CLEAN), Some(false));
        let few = runs(0, CLEAN).into_iter().take(40).collect();
        assert_eq!(judge(&Seen { runs: few }).holds, None);
    }

    #[test]
    fn every_plant_is_a_limit_that_the_judge_knows() {
        for kind in KINDS.iter().filter(|kind| kind.name != CLEAN) {
            assert!(judge::limits::limit_coded(kind.name).is_some(), "{}", kind.name);
        }
    }
}
