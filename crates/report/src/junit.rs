//! A run as JUnit XML, for programs that show test results: each requirement at each point is a
//! test, and so is the validity of each target there and the verdict of the primary metric.
//!
//! There is no one definition of the format; this is the part that Jenkins, GitLab and their kin
//! agree on: `testsuites`, `testsuite`, `testcase`, `failure`, `skipped`.

use findings::{Summary, has_failed, is_of_refusals};
use judge::Verdict;
use ledger::{RequirementOutcome, Validity};

use crate::conclusion::conclusion;
use crate::phrases::{answers, interval, rate_of, verdict};
use crate::requirements;

/// The outcome of one test.
enum Result {
    /// With what was seen.
    Passed(String),
    Failed(String),
    Skipped(String),
}

/// A run as JUnit XML. A worse first target fails when `fail_on_worse`, as the exit code does; what
/// is inconclusive is skipped, because it is no pass.
pub fn junit(summary: &Summary, fail_on_worse: bool) -> String {
    let mut cases = Vec::new();
    for index in 0..summary.points.len() {
        let place = &summary.points[index].row.label;
        cases.extend(requirements(summary, index).map(|case| (place, case)));
        cases.extend(validity(summary, index).map(|case| (place, case)));
        cases.extend(verdicts(summary, index, fail_on_worse).map(|case| (place, case)));
    }
    let number = |of: fn(&Result) -> bool| cases.iter().filter(|(_, (_, one))| of(one)).count();
    let failures = number(|one| matches!(one, Result::Failed(_)));
    let skipped = number(|one| matches!(one, Result::Skipped(_)));
    let (name, all) = (attribute(&summary.suite.title), cases.len());
    let counts = format!("tests=\"{all}\" failures=\"{failures}\" skipped=\"{skipped}\"");
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n\
         <testsuite name=\"{name}\" {counts} timestamp=\"{}\">\n",
        attribute(&summary.run.started_at)
    );
    for (place, (test, result)) in &cases {
        let (place, test) = (attribute(place), attribute(test));
        out.push_str(&format!("<testcase classname=\"{place}\" name=\"{test}\""));
        match result {
            Result::Passed(seen) if seen.is_empty() => out.push_str("/>\n"),
            Result::Passed(seen) => {
                let seen = attribute(seen);
                out.push_str(&format!("><system-out>{seen}</system-out></testcase>\n"));
            }
            Result::Failed(why) => {
                out.push_str(&format!("><failure message=\"{}\"/></testcase>\n", attribute(why)));
            }
            Result::Skipped(why) => {
                out.push_str(&format!("><skipped message=\"{}\"/></testcase>\n", attribute(why)));
            }
        }
    }
    let said = attribute(&conclusion(summary).join(" "));
    out.push_str(&format!("<system-out>{said}</system-out>\n</testsuite>\n</testsuites>\n"));
    out
}

fn requirements(summary: &Summary, index: usize) -> impl Iterator<Item = (String, Result)> {
    requirements::at_point(summary, index).map(|one| {
        let figure = requirements::figure(&one.row);
        let result = match one.row.outcome {
            RequirementOutcome::Held => Result::Passed(figure),
            RequirementOutcome::Broken => Result::Failed(format!("it was {figure}")),
            RequirementOutcome::CantTell => Result::Skipped(format!("can't tell: {figure}")),
        };
        (format!("require {}", one.row.expression), result)
    })
}

fn validity(summary: &Summary, index: usize) -> impl Iterator<Item = (String, Result)> {
    summary.points[index].targets.iter().map(move |target| {
        let name = &summary.targets[target.target].name;
        let wrong = target.wrong_of_all + target.wrong_outside;
        let result = match (target.valid_trials, wrong) {
            (_, wrong) if wrong > 0 => Result::Failed(answers(target)),
            (0, _) if is_refused(summary, index, target.target) => Result::Failed(answers(target)),
            (0, _) if has_failed(summary, target.target) => {
                Result::Failed(crate::grade::words(target))
            }
            (0, _) => {
                let rate = rate_of(target).map_or(String::new(), |rate| format!("{rate}, "));
                Result::Skipped(format!("{rate}{}", crate::grade::words(target)))
            }
            _ => Result::Passed(String::new()),
        };
        (format!("{name} was measured"), result)
    })
}

/// Whether a trial of a target is invalid because it refused more than a requirement allows.
fn is_refused(summary: &Summary, index: usize, target: usize) -> bool {
    let here = summary.trials_at(index).map(|(_, trial)| trial);
    let mut rows = here.filter(|trial| trial.target == target).map(|trial| &trial.row);
    rows.any(|row| {
        let reason = row.reason.as_deref().unwrap_or_default();
        row.validity == Validity::Invalid && is_of_refusals(reason)
    })
}

fn verdicts(
    summary: &Summary,
    index: usize,
    fail_on_worse: bool,
) -> impl Iterator<Item = (String, Result)> {
    summary.comparisons_at(index).filter(|one| one.primary).map(move |one| {
        let other = &summary.targets[one.b].name;
        let result = match one.verdict {
            Verdict::Worse if fail_on_worse => Result::Failed(interval(one)),
            Verdict::CantTell { .. } => {
                let likely = crate::phrases::likely(summary, one);
                let likely = likely.map_or(String::new(), |words| format!("; {words}"));
                Result::Skipped(format!(
                    "{}, {}{likely}",
                    verdict(one.verdict, None),
                    interval(one)
                ))
            }
            _ => Result::Passed(String::new()),
        };
        let subject = &summary.targets[one.a].name;
        (format!("{subject} against {other} by {}", one.metric.suite), result)
    })
}

/// Text for an attribute or an element. Control characters have no place in XML 1.0.
fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}
