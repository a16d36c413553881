//! A run as Markdown, short enough for a pull request: the sentences, a table, what was broken.

use findings::{PointSummary, RequirementSummary, Summary, TargetSummary};
use judge::{Metric, Verdict};
use ledger::RequirementOutcome;

use crate::columns::Columns;
use crate::conclusion::conclusion;
use crate::number::Scale;
use crate::phrases;
use crate::requirements;

/// The most points that the table shows; a comment isn't the place for more.
const MAX_POINTS: usize = 60;

/// The metrics that have a column in any case.
const SHOWN: &[&str] = &["rate_per_s", "latency.p50", "latency.p99", "server.cpu_ns_per_op"];

/// A run as Markdown. Ends with a newline.
pub fn markdown(summary: &Summary) -> String {
    let mut out = format!("### {}\n\n", cell(&summary.suite.title));
    for line in conclusion(summary) {
        out.push_str(&format!("**{}**\n\n", cell(&line)));
    }
    let primary = phrases::primary_unless(summary, SHOWN);
    let (name, line) =
        primary.map_or((String::new(), ""), |one| (cell(&one.suite) + " | ", "--:|"));
    out.push_str(&format!(
        "| point | target | {name}rate | p50 | p99 | answers | server CPU per op | verdict |\n"
    ));
    out.push_str(&format!("|---|---|{line}--:|--:|--:|--:|--:|---|\n"));
    for (index, point) in summary.points.iter().enumerate().take(MAX_POINTS) {
        let columns = Columns::of(summary, point);
        for target in &point.targets {
            out.push_str(&row(summary, index, target, primary, columns));
        }
    }
    if let Some(more) = summary.points.len().checked_sub(MAX_POINTS).filter(|more| *more > 0) {
        out.push_str(&format!("\nand {}\n", phrases::many(more, "more point")));
    }
    out.push_str(&grades(summary));
    let line = |one: &RequirementSummary| {
        let place = cell(&summary.points[one.point].row.label);
        let word = requirements::outcome(one.row.outcome);
        let figure = cell(&requirements::figure(&one.row));
        format!("- `{}` at {place}: {word}, {figure}\n", one.row.expression.replace('`', "'"))
    };
    // Of those that held, only some have room to show: counts of nothing have none.
    let is_shown = |one: &&RequirementSummary| {
        one.row.outcome != RequirementOutcome::Held || one.row.room.is_some()
    };
    let shown: String =
        summary.requirements.iter().filter(is_shown).take(MAX_POINTS).map(line).collect();
    if !shown.is_empty() {
        out.push_str(&format!("\n{shown}"));
    }
    let when = &summary.run.started_at;
    let command = summary.run.command.replace('`', "'");
    out.push_str(&format!("\n<sub>run {} · {when} · `{command}`</sub>\n", summary.id));
    out
}

fn row(
    summary: &Summary,
    index: usize,
    target: &TargetSummary,
    primary: Option<&Metric>,
    columns: Columns,
) -> String {
    let figures = &target.figures;
    let latency = |ns: Option<u64>, scale: Scale| {
        ns.map_or_else(|| "–".to_owned(), |ns| scale.show(ns as f64))
    };
    let mut cells =
        vec![cell(&summary.points[index].row.label), cell(&summary.targets[target.target].name)];
    cells.extend(primary.map(|primary| phrases::primary_in(target, primary, columns.primary)));
    cells.extend([
        phrases::cell(Some(target), |target| phrases::rate_in(target, columns.rate)),
        latency(figures.latency.p50_ns, columns.p50),
        latency(figures.latency.p99_ns, columns.p99),
        phrases::answers(target),
        phrases::unseen(figures.server.cpu_ns_per_op.map(|ns| columns.server.show(ns))),
        verdict(summary, index, target.target),
    ]);
    format!("| {} |\n", cells.join(" | "))
}

/// A line for each target at each point whose figures aren't clean.
fn grades(summary: &Summary) -> String {
    let points = summary.points.iter().take(MAX_POINTS);
    let targets = points.flat_map(|point| point.targets.iter().map(move |one| (point, one)));
    let graded = targets.filter(|(_, target)| !target.grade.is_clean());
    let line = |(point, target): (&PointSummary, &TargetSummary)| {
        let name = cell(&summary.targets[target.target].name);
        let words = cell(&crate::grade::words(target));
        format!("- {name} at {}: {words}\n", cell(&point.row.label))
    };
    let lines: String = graded.map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The verdict of the primary metric on the first target against this one.
fn verdict(summary: &Summary, index: usize, target: usize) -> String {
    let one = summary.comparisons_at(index).find(|one| one.primary && one.b == target);
    let Some(one) = one else { return String::new() };
    let word = phrases::verdict(one.verdict, None);
    let (said, name) = (phrases::interval(one), &one.metric.suite);
    let subject = cell(&summary.targets[one.a].name);
    match one.verdict {
        Verdict::CantTell { .. } => {
            let likely = phrases::likely(summary, one);
            let likely = likely.map_or(String::new(), |words| format!("; {}", cell(&words)));
            format!("{word}: {name} {said}{likely}")
        }
        Verdict::Worse => format!("{subject} **{word}**: {name} {said}"),
        Verdict::Better | Verdict::Same => format!("{subject} {word}: {name} {said}"),
    }
}

/// Text that breaks neither a table nor a line.
fn cell(text: &str) -> String {
    let text = crate::escape::one_line(text);
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', letter]),
            '<' => out.push_str("&lt;"),
            _ => out.push(letter),
        }
    }
    out
}
