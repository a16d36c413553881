//! Ladders: `[[rung]]` tables, each the first target with something laid over it.

use super::suite::{DecisionSpec, RungSpec, TargetSpec};

/// What makes a target a rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// What was changed, in words.
    pub note: String,
    /// The commit that is built for it.
    pub commit: Option<String>,
    /// What was decided about it, and why.
    pub decision: Option<(ledger::Decision, String)>,
    /// That it was not tried, with effort and reason: it stands in the ladder and isn't measured.
    pub not_tried: Option<String>,
}

/// The suite's targets: where there are rungs, the first target as each of them has it, and then
/// the others.
pub(super) fn targets(
    targets: &[TargetSpec],
    rungs: &[RungSpec],
) -> Result<Vec<(TargetSpec, Option<Rung>)>, String> {
    let plain = |target: &TargetSpec| (target.clone(), None);
    let Some((first, others)) = targets.split_first().filter(|_| !rungs.is_empty()) else {
        return Ok(targets.iter().map(plain).collect());
    };
    if rungs[0].decision == Some(DecisionSpec::NotTried) {
        let name = &rungs[0].name;
        return Err(format!(
            "{name}: the first rung is measured: put what was not tried behind it"
        ));
    }
    let mut all = Vec::new();
    for rung in rungs {
        all.push((overlaid(first, rung), Some(meaning(rung)?)));
    }
    all.extend(others.iter().map(plain));
    Ok(all)
}

fn overlaid(first: &TargetSpec, rung: &RungSpec) -> TargetSpec {
    let mut target = first.clone();
    target.name.clone_from(&rung.name);
    target.options.extend(rung.options.clone());
    target.env.extend(rung.env.clone());
    if let Some(command) = &rung.command {
        (target.command, target.serve) = (Some(command.clone()), None);
        target.options.clear();
    }
    target
}

fn meaning(rung: &RungSpec) -> Result<Rung, String> {
    let name = &rung.name;
    let (note, commit) = (rung.note.clone(), rung.commit.clone());
    let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let (reason, effort) = (said(&rung.reason), said(&rung.effort));
    let (decision, not_tried) = match (rung.decision, reason, effort) {
        (None, None, None) => (None, None),
        (Some(DecisionSpec::Kept), Some(why), None) => (Some((ledger::Decision::Kept, why)), None),
        (Some(DecisionSpec::BackedOut), Some(why), None) => {
            (Some((ledger::Decision::BackedOut, why)), None)
        }
        (Some(DecisionSpec::NotTried), Some(why), Some(effort)) => {
            (None, Some(format!("not tried, effort {effort}: {why}")))
        }
        (Some(DecisionSpec::NotTried), ..) => {
            return Err(format!("{name}: what was not tried needs an effort and a reason"));
        }
        (_, _, Some(_)) => {
            return Err(format!("{name}: an effort needs decision = \"not tried\""));
        }
        (Some(_), None, _) => return Err(format!("{name}: a decision needs a reason")),
        (None, Some(_), _) => {
            let message = "a reason needs decision = \"kept\", \"backed out\" or \"not tried\"";
            return Err(format!("{name}: {message}"));
        }
    };
    Ok(Rung { note, commit, decision, not_tried })
}

#[cfg(test)]
mod tests {
    use super::super::suite::SuiteSpec;
    use super::*;

    fn read(rungs: &str) -> Result<Vec<(TargetSpec, Option<Rung>)>, String> {
        let text = format!(
            "title = 't'\nclients = []\n[workload]\nservice = 'r'\n\
             [[target]]\nname = 'a'\nserve = 'r'\noptions = {{ x = 1, y = 2 }}\n\
             [[target]]\nname = 'peer'\naddress = '127.0.0.1:1'\n{rungs}"
        );
        let suite: SuiteSpec = toml::from_str(&text).unwrap();
        targets(&suite.target, &suite.rung)
    }

    #[test]
    fn a_rung_is_the_first_target_with_its_options_laid_over() {
        let all =
            read("[[rung]]\nname = 'one'\n[[rung]]\nname = 'two'\noptions = { y = 3 }").unwrap();
        let names: Vec<&str> = all.iter().map(|(target, _)| &target.name[..]).collect();
        assert_eq!(names, ["one", "two", "peer"]);
        assert_eq!(all[1].0.options["x"].as_integer(), Some(1));
        assert_eq!(all[1].0.options["y"].as_integer(), Some(3));
        assert_eq!((all[0].1.is_some(), all[2].1.is_some()), (true, false));
        assert_eq!(read("").unwrap().len(), 2);
    }

    #[test]
    fn a_decision_and_its_reason_go_together() {
        let rung = |rest: &str| read(&format!("[[rung]]\nname = 'one'\n{rest}"));
        let kept = rung("decision = 'kept'\nreason = 'twice as fast'").unwrap();
        let decision = kept[0].1.as_ref().unwrap().decision.as_ref().unwrap();
        assert_eq!(decision, &(ledger::Decision::Kept, "twice as fast".to_owned()));
        assert!(rung("decision = 'kept'").is_err());
        assert!(rung("decision = 'kept'\nreason = ' '").is_err());
        assert!(rung("reason = 'twice as fast'").is_err());
        assert!(rung("decision = 'kept'\nreason = 'r'\neffort = 'an hour'").is_err());
    }

    #[test]
    fn what_was_not_tried_says_effort_and_reason_and_is_never_first() {
        let two = |rest: &str| read(&format!("[[rung]]\nname = 'a'\n[[rung]]\nname = 'b'\n{rest}"));
        let all = two("decision = 'not tried'\neffort = 'days'\nreason = 'the kernel lacks it'");
        let rung = all.unwrap()[1].1.clone().unwrap();
        assert_eq!(rung.decision, None);
        let said = "not tried, effort days: the kernel lacks it";
        assert_eq!(rung.not_tried.as_deref(), Some(said));
        let why = two("decision = 'not tried'\nreason = 'r'").unwrap_err();
        assert_eq!(why, "b: what was not tried needs an effort and a reason");
        let first = "[[rung]]\nname = 'a'\ndecision = 'not tried'\neffort = 'e'\nreason = 'r'";
        assert!(read(first).unwrap_err().contains("a: the first rung is measured"));
    }
}
