//! Whether the lab notices somebody else at work: a run is flagged when at least one of its slices
//! was found disturbed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{Judged, Seen, trials};

/// As many runs of each kind make a judgement.
const ENOUGH: usize = 100;

/// Maximum of flagged runs among a hundred clean ones.
const MAX_FALSE: usize = 2;

pub(super) fn judge(seen: &Seen) -> Judged {
    let count = |kind| {
        let flagged = seen.of(kind).filter(|run| is_flagged(run)).count();
        (flagged, seen.of(kind).count())
    };
    let ((burnt, burners), (false_alarms, clean)) = (count("burner"), count("clean"));
    let mut evidence = format!(
        "With the burner {burnt} of {burners} runs were flagged, without it {false_alarms} of \
         {clean}.\n"
    );
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for trial in seen.of("clean").flat_map(trials) {
        if let Some(reason) = trial["reason"].as_str() {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    for (reason, count) in reasons {
        let _ = writeln!(evidence, "- without the burner, {count} times: {reason}");
    }
    // One that was missed, or three false alarms, decide at once.
    let broken = burnt < burners || false_alarms * ENOUGH > MAX_FALSE * clean.max(ENOUGH);
    let holds = (burners.min(clean) >= ENOUGH || broken).then_some(!broken);
    Judged { holds, evidence }
}

fn is_flagged(run: &Value) -> bool {
    let again = |trial: &Value| trial["slices_measured_again"].as_u64().unwrap_or(0) > 0;
    trials(run).any(|trial| trial["validity"] == "disturbed" || again(trial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn runs(kind: &'static str, flagged: usize, of: usize) -> Vec<(&'static str, Value)> {
        let run = |index| {
            let again = u64::from(index < flagged);
            let trial = json!({ "validity": "valid", "slices_measured_again": again });
            (kind, json!({ "trials": [trial] }))
        };
        (0..of).map(run).collect()
    }

    #[test]
    fn every_burner_has_to_be_noticed_and_two_false_alarms_are_allowed() {
        let holds = |burnt, alarms, of| {
            let mut runs_of = runs("burner", burnt, of);
            runs_of.extend(runs("clean", alarms, of));
            judge(&Seen { runs: runs_of }).holds
        };
        assert_eq!(holds(100, 2, 100), Some(true));
        assert_eq!(holds(100, 3, 100), Some(false));
        assert_eq!(holds(99, 0, 100), Some(false));
        assert_eq!(holds(10, 0, 10), None);
        assert_eq!(holds(9, 0, 10), Some(false));
    }
}
