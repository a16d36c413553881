//! A run as Markdown, short enough for a pull request: the sentences, a table, what was broken.

use judge::Verdict;
use ledger::RequirementOutcome;

use crate::conclusion::conclusion;
use crate::number::{count, duration, nanoseconds, percent, rate, ratio};
use crate::summary::{Summary, TargetSummary};

/// The most points that the table shows; a comment isn't the place for more.
const POINTS_MOST: usize = 60;

/// A run as Markdown. Ends with a newline.
pub fn markdown(summary: &Summary) -> String {
    let mut out = format!("### {}\n\n", cell(&summary.suite.title));
    for line in conclusion(summary) {
        out.push_str(&format!("**{}**\n\n", cell(&line)));
    }
    out.push_str("| point | target | rate | p50 | p99 | wrong | server CPU per op | verdict |\n");
    out.push_str("|---|---|--:|--:|--:|--:|--:|---|\n");
    for (index, point) in summary.points.iter().enumerate().take(POINTS_MOST) {
        for target in &point.targets {
            out.push_str(&row(summary, index, target));
        }
    }
    if let Some(more) = summary.points.len().checked_sub(POINTS_MOST).filter(|more| *more > 0) {
        out.push_str(&format!("\nand {more} more points\n"));
    }
    let broken: Vec<String> = summary
        .requirements
        .iter()
        .filter(|one| one.row.outcome != RequirementOutcome::Held)
        .map(|one| {
            let place = cell(&summary.points[one.point].row.label);
            let word = one.row.outcome.word().replace('_', " ");
            format!("- `{}` at {place}: {word}\n", one.row.expression.replace('`', "'"))
        })
        .collect();
    if !broken.is_empty() {
        out.push_str(&format!("\n{}", broken.concat()));
    }
    let when = &summary.run.started_at;
    let command = summary.run.command.replace('`', "'");
    out.push_str(&format!("\n<sub>run {} · {when} · `{command}`</sub>\n", summary.id));
    out
}

fn row(summary: &Summary, index: usize, target: &TargetSummary) -> String {
    let figures = &target.figures;
    let ns = |value: Option<u64>| value.map_or("–".to_owned(), |ns| duration(ns as f64));
    let rate = match target.rate {
        _ if target.valid_trials == 0 => "no valid trial".to_owned(),
        Some(one) if one.relative_half_width.is_finite() => {
            format!("{} ±{}", rate(one.mean), percent(one.relative_half_width))
        }
        Some(one) => rate(one.mean),
        None => "unseen".to_owned(),
    };
    let cells = [
        cell(&summary.points[index].row.label),
        cell(&summary.targets[target.target].name),
        rate,
        ns(figures.latency.p50_ns),
        ns(figures.latency.p99_ns),
        format!("{} of {}", count(target.wrong_of_all), count(target.operations_of_all)),
        figures.server.cpu_ns_per_op.map_or("unseen".to_owned(), nanoseconds),
        verdict(summary, index, target.target),
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// What the primary metric says of the first target against this one.
fn verdict(summary: &Summary, index: usize, target: usize) -> String {
    let one = summary.comparisons_at(index).find(|one| one.primary && one.b == target);
    let Some(one) = one else { return String::new() };
    let word = match one.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "**worse**",
        Verdict::Same => "same",
        Verdict::CantTell { why, .. } => return format!("can't tell ({})", why.words()),
    };
    let subject = cell(&summary.targets[one.a].name);
    match one.interval {
        Some(interval) => format!(
            "{subject} {word}: {} {}× [{}, {}]",
            one.metric.suite,
            ratio(interval.ratio),
            ratio(interval.low),
            ratio(interval.high)
        ),
        None => format!("{subject} {word}"),
    }
}

/// Text that breaks neither a table nor a line.
fn cell(text: &str) -> String {
    let text = crate::text::one_line(text);
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
