//! A run as Markdown, short enough for a pull request: the sentences, a table, what was broken.

use findings::{PointSummary, RequirementSummary, Summary, TargetSummary};
use ledger::RequirementOutcome;

use crate::conclusion::conclusion;
use crate::content::{carried, targets};
use crate::document::{ColumnKind, Form, Line, Role, Row, Table};
use crate::phrases;
use crate::requirements;

/// The most points that the table shows; a comment isn't the place for more.
const MAX_POINTS: usize = 60;

/// A run as Markdown. Ends with a newline.
pub fn markdown(summary: &Summary) -> String {
    let mut out = format!("### {}\n", cell(&summary.suite.title));
    for line in conclusion(summary) {
        out.push_str(&format!("\n**{}**\n", cell(&line)));
    }
    out.push_str(&tables(summary, |index| Some(targets(summary, index))));
    if let Some(more) = summary.points.len().checked_sub(MAX_POINTS).filter(|more| *more > 0) {
        out.push_str(&format!("\nand {}\n", phrases::many(more, "more point")));
    }
    out.push_str(&grades(summary));
    out.push_str(&tables(summary, |index| carried(summary, index)));
    let line = |one: &RequirementSummary| {
        let place = cell(&summary.points[one.point].row.label);
        let word = requirements::outcome(one.row.outcome);
        let figure = cell(&requirements::figure(&one.row));
        format!("- `{}` at {place}: {word}, {figure}\n", code(&one.row.expression))
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
    let when = cell(&summary.run.started_at);
    let command = code(&summary.run.command);
    out.push_str(&format!("\n<sub>run {} · {when} · `{command}`</sub>\n", summary.id));
    out
}

/// A table over points, of which each has its rows.
fn tables(summary: &Summary, of_point: impl Fn(usize) -> Option<Table>) -> String {
    let (mut out, mut head) = (String::new(), String::new());
    for (index, point) in summary.points.iter().enumerate().take(MAX_POINTS) {
        let Some(table) = of_point(index) else { continue };
        // Points that show other figures have a table of their own.
        let own = self::head(&table);
        if own != head {
            out.push_str(&format!("\n{own}"));
            head = own;
        }
        out.push_str(&rows(&cell(&point.row.label), &table));
    }
    out
}

/// The head of a table whose first column is the point.
fn head(table: &Table) -> String {
    let (mut names, mut lines) = ("| point |".to_owned(), "|---|".to_owned());
    for column in table.shown_in(Form::Markdown).into_iter().map(|at| &table.columns[at]) {
        names.push_str(&format!(" {} |", cell(&column.name)));
        lines.push_str(if column.kind == ColumnKind::Number { "--:|" } else { "---|" });
    }
    format!("{names}\n{lines}\n")
}

fn rows(point: &str, table: &Table) -> String {
    let shown = table.shown_in(Form::Markdown);
    let row = |row: &Row| {
        let cells = shown.iter().filter_map(|at| row.cells.get(*at));
        let cells: Vec<String> = cells.map(|cell| words(&cell.line)).collect();
        format!("| {point} | {} |\n", cells.join(" | "))
    };
    table.rows.iter().map(row).collect()
}

/// Words, of which the bad ones stand out.
fn words(line: &Line) -> String {
    let said = |(role, words): &(Role, String)| match role {
        Role::Bad => format!("**{}**", cell(words)),
        _ => cell(words),
    };
    line.words.iter().map(said).collect()
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

/// Text between backticks.
fn code(text: &str) -> String {
    crate::escape::one_line(text).replace('`', "'")
}

/// Text that breaks neither a table nor a line, and is no HTML.
pub(crate) fn cell(text: &str) -> String {
    let text = crate::escape::one_line(text);
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', letter]),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(letter),
        }
    }
    out
}
