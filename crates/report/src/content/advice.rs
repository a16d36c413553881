//! What a target's connections did, where it says so, and what would help it.

use findings::{ActivitySummary, AdviceSummary, Summary};
use ledger::StatementRow;

use crate::document::{Depth, Line, Role};
use crate::number::percent;

/// Letters of a statement that a line shows.
const SHOWN_LETTERS: usize = 160;

/// The classes of waits that a line shows.
const SHOWN_CLASSES: usize = 4;

/// The lines of one point; none where no target says what its connections do.
pub(super) fn lines(summary: &Summary, index: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for target in &summary.points[index].targets {
        let (activity, name) = (&target.activity, &summary.targets[target.target].name);
        if activity.trials == 0 {
            continue;
        }
        let line = Line::from(format!("connections: {name}: ")).and(Role::Dim, did(activity));
        lines.push(line.printed_once());
        match activity.advice.first() {
            Some(first) => lines.extend(advised(name, activity, first)),
            None => lines.extend(activity.top.iter().flat_map(shown)),
        }
    }
    lines
}

/// `3.80 in a statement: running 80 %, IO 20 %`.
fn did(activity: &ActivitySummary) -> String {
    let shown = activity.waits.iter().take(SHOWN_CLASSES);
    let shown: Vec<String> =
        shown.map(|(class, share)| format!("{class} {}", percent(*share))).collect();
    format!("{:.2} in a statement: {}", activity.active, shown.join(", "))
}

fn advised(name: &str, activity: &ActivitySummary, first: &AdviceSummary) -> Vec<Line> {
    let row = &first.row;
    let rounds = match (first.first_in, activity.trials) {
        (_, 1) => String::new(),
        (found, all) => format!(" (first in {found} of {all} rounds)"),
    };
    let code = row.code.replace('_', " ");
    let words = format!(": {}{rounds}", row.evidence);
    let mut lines = vec![
        Line::from(format!("advice: {name}: ")).and(Role::Strong, code).then(words).printed_once(),
        Line::with_role(Role::Dim, format!("try: {}", row.help)).deeper(Depth::One).printed_once(),
    ];
    lines.extend(first.statement.iter().flat_map(shown));
    let others = activity.advice[1..].iter();
    let others: Vec<String> = others
        .map(|one| {
            let code = one.row.code.replace('_', " ");
            format!("{code} in {} of {}: {}", one.trials, activity.trials, one.row.help)
        })
        .collect();
    let also = Line::with_role(Role::Dim, format!("also {}", others.join("; ")));
    lines.extend((!others.is_empty()).then(|| also.deeper(Depth::One).printed_once()));
    lines
}

/// A statement with its plan.
fn shown(row: &StatementRow) -> Vec<Line> {
    let words: Vec<&str> = row.text.split_whitespace().collect();
    let words = words.join(" ");
    let cut: String = words.chars().take(SHOWN_LETTERS).collect();
    let more = if cut.len() < words.len() { " …" } else { "" };
    let of = |words: String, depth| Line::with_role(Role::Dim, words).deeper(depth).printed_once();
    let plan = row.plan.iter().flat_map(|plan| plan.lines());
    let plan = plan.map(|step| of(step.to_owned(), Depth::Two).preformatted());
    [of(format!("in: {cut}{more}"), Depth::One)].into_iter().chain(plan).collect()
}
