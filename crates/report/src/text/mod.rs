//! The terminal: a run as text, point by point, with a conclusion at its end.

mod bytes;
mod capacity;
mod cost;
mod ladder;
mod limits;
mod line;
mod notes;
mod paint;
mod point;
mod slow;

use std::collections::HashMap;

use findings::{Summary, outcome};
use ledger::RunState;

use crate::conclusion::conclusion;
use crate::escape::one_line;
use crate::scaling::scaling_words;
use crate::wrap::wrapped;
use line::Line;
pub(crate) use paint::{Paint, Role};

pub(crate) use capacity::rows as capacity_rows;
pub use cost::cost;
pub use point::point;
pub use slow::slowest;

/// A whole run: [`head`], every [`point`], and the [`conclusion`]. Ends with a newline.
///
/// `colour` adds ANSI colours; without it the text holds no escape sequences, whatever a
/// service answered.
pub fn text(summary: &Summary, colour: bool) -> String {
    let mut out = head(summary, colour);
    match &summary.capacity {
        Some(capacity) => {
            let label = summary.points.first().map(|point| one_line(&point.row.label));
            out.push_str(&format!("\n{}\n", label.unwrap_or_default()));
            capacity::table(capacity, summary)
                .iter()
                .for_each(|line| out.push_str(&format!("{line}\n")));
        }
        None => points(summary, colour).iter().for_each(|point| {
            out.push_str(&format!("\n{point}"));
        }),
    }
    for scaling in &summary.scalings {
        let name = one_line(&summary.targets[scaling.target].name);
        out.push_str(&format!("\n{name} {}\n", scaling_words(scaling)));
    }
    out.push_str(&ladder::text(summary, colour));
    let lines = conclusion(summary);
    if !lines.is_empty() {
        out.push('\n');
    }
    let role = match outcome(summary).exit_code(false) {
        3 => Role::Bad,
        4 => Role::Unsure,
        _ => Role::Good,
    };
    let paint = Paint::new(colour);
    for line in lines {
        out.push_str(&paint.text(role, &one_line(&line)));
        out.push('\n');
    }
    wrapped(&out)
}

/// Every point. What several have in common stands at the first of them, with their number.
fn points(summary: &Summary, colour: bool) -> Vec<String> {
    let all = 0..summary.points.len();
    let mut points: Vec<Vec<Line>> =
        all.map(|index| point::lines(summary, index, Paint::new(colour))).collect();
    let mut places: HashMap<String, usize> = HashMap::new();
    for line in points.iter().flat_map(|point| Line::common(point)) {
        *places.entry(line.to_owned()).or_default() += 1;
    }
    let count = points.len();
    for point in &mut points {
        point.retain_mut(|line| {
            let Some(found) = line.is_common.then(|| places.remove(&line.text)) else {
                return true;
            };
            match found {
                None => return false,
                Some(1) => {}
                Some(found) if found == count => line.text += &format!(" (at all {count} points)"),
                Some(found) => line.text += &format!(" (at {found} of {count} points)"),
            }
            true
        });
    }
    points.iter().map(|point| Line::text_of(point)).collect()
}

/// The head above the points: the run, its suite's claims and compromises, and the targets
/// that were skipped.
pub fn head(summary: &Summary, colour: bool) -> String {
    let paint = Paint::new(colour);
    let state = match summary.run.state {
        RunState::Finished => String::new(),
        state => format!(" · {}", state.word()),
    };
    let title = paint.text(Role::Strong, &one_line(&summary.suite.title));
    let mut out = format!("{title}  run {}{state}\n", summary.id);
    let mut line = |name: &str, words: &str| {
        let name = paint.text(Role::Dim, &format!("{name:<10}"));
        out.push_str(&format!("  {name}  {}\n", one_line(words)));
    };
    summary.suite.claims.iter().for_each(|claim| line("claim", claim));
    summary.suite.compromises.iter().for_each(|compromise| line("compromise", compromise));
    if let Some(note) = &summary.run.note {
        line("note", note);
    }
    for target in &summary.targets {
        if let Some(reason) = &target.skipped {
            line("skipped", &format!("{}: {reason}", target.name));
        }
    }
    wrapped(&out)
}
