//! A run as JUnit XML, for programs that show test results: each requirement at each point is a
//! test, and so is the validity of each target there and the verdict of the primary metric.
//!
//! There is no one definition of the format; this is the part that Jenkins, GitLab and their kin
//! agree on: `testsuites`, `testsuite`, `testcase`, `failure`, `skipped`.

use judge::Verdict;
use ledger::RequirementOutcome;

use crate::conclusion::conclusion;
use crate::number::plain;
use crate::phrases::{answers, interval, verdict};
use crate::summary::Summary;

/// The outcome of one test.
enum Result {
    Passed,
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
            Result::Passed => out.push_str("/>\n"),
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
    let here = summary.requirements.iter().filter(move |one| one.point == index);
    here.map(|one| {
        let seen = one
            .row
            .value
            .map_or("it was unseen".to_owned(), |value| format!("it was {}", plain(value)));
        let result = match one.row.outcome {
            RequirementOutcome::Held => Result::Passed,
            RequirementOutcome::Broken => Result::Failed(seen),
            RequirementOutcome::CantTell => Result::Skipped(format!("can't tell: {seen}")),
        };
        (format!("require {}", one.row.expression), result)
    })
}

fn validity(summary: &Summary, index: usize) -> impl Iterator<Item = (String, Result)> {
    summary.points[index].targets.iter().map(move |target| {
        let name = &summary.targets[target.target].name;
        let wrong = target.wrong_of_all;
        let result = match (target.valid_trials, wrong) {
            (_, wrong) if wrong > 0 => Result::Failed(answers(target)),
            (0, _) => Result::Skipped(format!("no valid trial of {}", target.trials)),
            _ => Result::Passed,
        };
        (format!("{name} was measured"), result)
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
                Result::Skipped(format!("{}, {}", verdict(one.verdict, None), interval(one)))
            }
            _ => Result::Passed,
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
