//! `loadline compare --runs A B`: two runs of one suite that are in the ledger.
//!
//! They weren't measured alternately, so what differed between their hosts and builds may be all
//! that differs: unless it was declared as the factor, the comparison is refused.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use findings::{Difference, Samples, Series};
use judge::{Metric, Rule, Verdict};
use ledger::{FactRow, Ledger, RunView, Validity};
use report::{one_line, runs_markdown, samples_json, samples_text, wrapped};
use serde_json::{Value, json};

use super::args::CompareArgs;
use crate::exit::Failure;
use crate::out::{self, note};
use crate::report::{print_text, run_named};
use crate::storage::Storage;

/// A difference in these alone is a warning: kernels are updated all the time.
const ONLY_WARNS: &str = "kernel";

/// Judges the first run against the second, point by point.
pub(super) fn judge(args: &CompareArgs, names: &[String]) -> Result<ExitCode, Failure> {
    let [a, b] = names else { return Err(Failure::Usage("--runs takes two runs".to_owned())) };
    let storage = Storage::find(args.how.ledger.as_deref())?;
    let ledger = storage.read()?;
    let (a, b) = (run_named(&ledger, a)?, run_named(&ledger, b)?);
    if a == b {
        return Err(Failure::Usage(format!("run {} can't be compared with itself", a.get())));
    }
    let (a, b) = (ledger.run_view(a)?, ledger.run_view(b)?);
    if a.suite.title != b.suite.title {
        let (a, b) = (&a.suite.title, &b.suite.title);
        return Err(Failure::Usage(format!("the runs are of two suites: {a}, and {b}")));
    }
    let differences = findings::differences(&a.fingerprint.json, &b.fingerprint.json);
    check(&differences, args.factor.as_deref())?;
    warn(args, &a, &b);
    let metrics = findings::metrics(&a.program_figures);
    let metric =
        metrics.named(&a.run.primary_metric).context("the metric of the run is unknown")?;
    let judged = points(args, &ledger, metric, (&a, &b))?;
    let verdicts: Vec<Verdict> = judged.iter().map(|(_, samples)| samples.verdict).collect();
    let target = targets_in_words(args, (&a, &b));
    let what = format!("{} of {target}", metric.suite);
    let conclusion = match judged.is_empty() {
        true => why_none(args, metric, (&a, &b))?,
        false => format!("Run {} against run {} by {what}: {}", a.id, b.id, count(&verdicts)),
    };
    warn_of_others(args, &a);
    if args.how.json {
        let mut whole = as_json((&a, &b), metric, &differences, &judged, &conclusion);
        whole["target"] = target.into();
        out::print(format!("{whole:#}\n"))?;
    } else if judged.is_empty() {
        note(conclusion);
    } else if args.markdown {
        out::print(runs_markdown(&a.suite.title, metric, &target, &conclusion, &judged))?;
    } else {
        print_text(as_text(&what, &judged, &conclusion), args.how.explain)?;
    }
    let outcomes = || judged.iter().map(|(_, samples)| samples.outcome());
    let whole = findings::Outcome {
        requirement_broken: false,
        worse: outcomes().any(|one| one.worse),
        cant_tell: judged.is_empty() || outcomes().any(|one| one.cant_tell),
        ..findings::Outcome::default()
    };
    Ok(ExitCode::from(args.how.exit_code(whole)))
}

/// Both runs as JSON, as described in docs/json.md.
fn as_json(
    (a, b): (&RunView, &RunView),
    metric: &Metric,
    differences: &[Difference],
    judged: &[(String, Samples)],
    conclusion: &str,
) -> Value {
    let points: Vec<_> = judged
        .iter()
        .map(|(point, samples)| json!({ "point": point, "judged": samples_json(samples) }))
        .collect();
    let differ: Vec<_> = differences
        .iter()
        .map(|one| json!({ "name": one.name, "factor": one.factor, "a": one.a, "b": one.b }))
        .collect();
    json!({ "schema": 1, "runs": [a.id.get(), b.id.get()], "metric": metric.json,
        "differences": differ, "points": points, "conclusion": conclusion })
}

/// Both runs for a terminal.
fn as_text(what: &str, judged: &[(String, Samples)], conclusion: &str) -> String {
    let mut text = String::new();
    for (point, samples) in judged {
        let head = wrapped(&one_line(&format!("{point}  {what}"))) + "\n";
        text += &format!("{head}{}\n", samples_text(samples));
    }
    if judged.len() > 1 {
        text += &wrapped(&format!("{conclusion}\n"));
    }
    text
}

/// How often each verdict was given: `better at 2, can't tell at 1 of 3 points.`
fn count(verdicts: &[Verdict]) -> String {
    let words =
        [("better", "better"), ("worse", "worse"), ("same", "same"), ("cant_tell", "can't tell")];
    let said = words.iter().filter_map(|(code, words)| {
        let count = verdicts.iter().filter(|one| one.code() == *code).count();
        (count > 0).then(|| format!("{words} at {count}"))
    });
    let points = if verdicts.len() == 1 { "point" } else { "points" };
    format!("{} of {} {points}.", said.collect::<Vec<_>>().join(", "), verdicts.len())
}

/// Refuses what differs and isn't the question.
fn check(differences: &[Difference], factor: Option<&str>) -> Result<(), Failure> {
    let open = differences.iter().filter(|one| Some(one.factor) != factor);
    let (warned, refused): (Vec<_>, Vec<_>) = open.partition(|one| one.factor == ONLY_WARNS);
    let line =
        |one: &&Difference| format!("  {} ({}): {} and {}", one.name, one.factor, one.a, one.b);
    for one in &warned {
        note(format!("the runs differ, too:\n{}", line(one)));
    }
    if refused.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = refused.iter().map(line).collect();
    Err(Failure::Usage(format!(
        "the runs differ in what may be all that differs:\n{}\n\
         say --factor {} if that is the question",
        lines.join("\n"),
        refused[0].factor
    )))
}

/// Prints what else differs between two runs: their settings, and their targets' builds.
fn warn(args: &CompareArgs, a: &RunView, b: &RunView) {
    let settings = |view: &RunView| {
        let all = view.run.settings.iter().map(|(key, value)| format!("{key} = {value}"));
        let all = all.collect::<Vec<_>>().join(", ");
        if all.is_empty() { "none".to_owned() } else { all }
    };
    let (ours, theirs) = (settings(a), settings(b));
    if ours != theirs {
        note(format!("the runs differ, too:\n  settings: {ours}; and {theirs}"));
    }
    if a.suite.hash != b.suite.hash {
        note("the runs differ, too:\n  the suite's text was changed between them");
    }
    let compilers = |view: &RunView| {
        let name = target(args, view);
        let (id, _) = view.targets.iter().find(|(_, row)| row.name == name)?;
        let own = |fact: &&FactRow| fact.target_id == *id && fact.name == "compiler";
        Some(view.facts.iter().find(own)?.value.clone())
    };
    if let (Some(ours), Some(theirs)) = (compilers(a), compilers(b))
        && ours != theirs
        && args.factor.as_deref() != Some("compiler")
    {
        note(format!("the runs differ, too:\n  compilers of the target: {ours}; and {theirs}"));
    }
}

/// The target that is judged: the one that was asked for, or the run's first.
fn target(args: &CompareArgs, view: &RunView) -> String {
    let first = || view.targets.first().map(|(_, row)| row.name.clone()).unwrap_or_default();
    args.target.clone().unwrap_or_else(first)
}

/// The judged target of both runs; each one's where they differ, as those of two pairs of commits
/// do.
fn targets_in_words(args: &CompareArgs, (a, b): (&RunView, &RunView)) -> String {
    let (ours, theirs) = (target(args, a), target(args, b));
    if ours == theirs { ours } else { format!("{ours} and {theirs}") }
}

/// Prints that the run's other targets are not judged, unless one was asked for.
fn warn_of_others(args: &CompareArgs, view: &RunView) {
    let judged = target(args, view);
    let others = view.targets.iter().map(|(_, row)| &row.name[..]);
    let others: Vec<&str> = others.filter(|name| *name != judged).collect();
    if args.target.is_none() && !others.is_empty() {
        let others = others.join(", ");
        note(format!("this is about {judged} alone: --target judges another one ({others})"));
    }
}

/// Why no point could be judged: a run has no round that counts, or no figure in those that do.
///
/// # Errors
/// When the runs have no point or not the target in common.
fn why_none(
    args: &CompareArgs,
    metric: &Metric,
    (a, b): (&RunView, &RunView),
) -> Result<String, Failure> {
    let has = |view: &RunView, label: &str| view.points.iter().any(|(_, one)| one.label == label);
    let is_common = a.points.iter().any(|(_, point)| has(b, &point.label));
    let mut why = Vec::new();
    for view in [a, b] {
        let (run, name) = (view.id, target(args, view));
        let id = view.targets.iter().find(|(_, row)| row.name == name).map(|(id, _)| *id);
        let rounds = || view.trials.iter().filter(|(_, row)| Some(row.target_id) == id);
        let of = |validity| rounds().filter(|(_, row)| row.validity == validity).count();
        let (all, disturbed, valid) =
            (rounds().count(), of(Validity::Disturbed), of(Validity::Valid));
        if all == 0 || !is_common {
            let message = "the runs have no point and target in common";
            return Err(Failure::Usage(message.to_owned()));
        }
        if valid > 0 {
            continue;
        }
        why.push(format!("run {run} has no valid round of {name}: {disturbed} of {all} disturbed"));
    }
    Ok(match why.is_empty() {
        true => format!("no point has {} in valid rounds of both runs", metric.suite),
        false => format!(
            "can't tell: {}\nhelp: measure again on a quiet host, or with --set \
             rounds.disturbed=ignore",
            why.join("; ")
        ),
    })
}

/// The verdict of every point that both have.
fn points(
    args: &CompareArgs,
    ledger: &Ledger,
    metric: &Metric,
    (a, b): (&RunView, &RunView),
) -> Result<Vec<(String, Samples)>, Failure> {
    let figures = |view: &RunView| -> anyhow::Result<BTreeMap<String, Vec<f64>>> {
        let target = target(args, view);
        let mut points: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let rows = ledger.figures(view.id, &metric.suite)?;
        for row in rows.into_iter().filter(|row| row.target == target) {
            points.entry(row.point).or_default().push(row.value);
        }
        Ok(points)
    };
    let (ours, theirs) = (figures(a)?, figures(b)?);
    let common = ours.keys().filter(|point| theirs.contains_key(*point)).count().max(1);
    let same_within = args.same_within.map_or(a.run.same_within, |share| share.fraction);
    let rule = Rule { same_within, confidence: 1.0 - args.error.fraction / common as f64 };
    let mut judged = Vec::new();
    for (point, figures) in ours {
        let Some(other) = theirs.get(&point) else { continue };
        let series = |view: &RunView, figures: Vec<f64>| Series {
            name: format!("run {}", view.id),
            figures,
        };
        let (a, b) = (series(a, figures), series(b, other.clone()));
        let factor = args.factor.clone();
        judged.push((point, Samples::judge(a, b, metric.direction, rule, factor)));
    }
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_counted_by_their_verdicts() {
        let unclear =
            Verdict::CantTell { why: judge::Inconclusive::TooFewRounds, more_rounds: None };
        let all = [Verdict::Better, unclear, Verdict::Better];
        assert_eq!(count(&all), "better at 2, can't tell at 1 of 3 points.");
        assert_eq!(count(&[Verdict::Same]), "same at 1 of 1 point.");
    }
}
