//! The terminal: a run as text, point by point, with a conclusion at its end.

mod paint;

use std::collections::HashMap;

use findings::{Summary, outcome};
use ledger::RunState;

use crate::conclusion::conclusion;
use crate::content;
use crate::document::{Block, Cell, Column, Depth, Form, Line, Part, Role, Row, Table};
use crate::escape::one_line;
use crate::number::count;
use crate::scaling::scaling_words;
use crate::wrap::{self, wrapped};
pub(crate) use paint::Paint;

/// Slow requests of each target; `--json` has all that were kept.
const MAX_SLOW: usize = 8;

/// A whole run: its head, every point, and the [`conclusion`]. Ends with a newline.
///
/// `colour` adds ANSI colours; without it the text holds no escape sequences, whatever a
/// service answered.
pub fn text(summary: &Summary, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = head(summary, colour);
    match &summary.capacity {
        Some(capacity) => {
            let label = summary.points.first().map(|point| one_line(&point.row.label));
            let loads = table(&content::capacity(capacity, summary), paint);
            out.push_str(&format!("\n{}\n{loads}", label.unwrap_or_default()));
        }
        None => {
            let points = points(summary, paint);
            points.iter().for_each(|point| out.push_str(&format!("\n{point}")));
            let all = summary.points.len();
            if points.len() < all {
                let (rest, all) = (count((all - points.len()) as u64), count(all as u64));
                out.push_str(&format!("\n{rest} of {all} points were not measured\n"));
            }
        }
    }
    for scaling in &summary.scalings {
        let name = one_line(&summary.targets[scaling.target].name);
        out.push_str(&format!("\n{name} {}\n", scaling_words(scaling)));
    }
    let rungs = content::ladder(summary);
    if !summary.rungs.is_empty() {
        let title = format!("ladder, by {}", one_line(&summary.run.primary_metric));
        out.push_str(&format!("\n{}\n", paint.text(Role::Strong, &title)));
        rungs.iter().for_each(|rung| out.push_str(&line(rung, paint)));
    }
    let lines = conclusion(summary);
    if !lines.is_empty() {
        out.push('\n');
    }
    let role = match outcome(summary).exit_code(false) {
        1 | 3 => Role::Bad,
        4 => Role::Unsure,
        _ => Role::Good,
    };
    for line in lines {
        out.push_str(&paint.text(role, &one_line(&line)));
        out.push('\n');
    }
    wrapped(&out)
}

/// Every point, but for those that were not measured where others were. What several have in common
/// stands at the first of them, with their number.
fn points(summary: &Summary, paint: Paint) -> Vec<String> {
    let is_measured = |index: &usize| summary.points[*index].rounds > 0;
    let mut shown: Vec<usize> = (0..summary.points.len()).filter(is_measured).collect();
    if shown.is_empty() {
        shown.extend((0..summary.points.len()).take(1));
    }
    let count = shown.len();
    let all = shown.into_iter().map(|index| printed(summary, index, paint));
    let mut points: Vec<Vec<Printed>> = all.collect();
    let mut places: HashMap<String, usize> = HashMap::new();
    for point in &points {
        for (at, line) in point.iter().enumerate().filter(|(_, line)| line.print_once) {
            let is_first = !point[..at].contains(line);
            *places.entry(line.text.clone()).or_default() += usize::from(is_first);
        }
    }
    for point in &mut points {
        point.retain_mut(|line| {
            let Some(found) = line.print_once.then(|| places.remove(&line.text)) else {
                return true;
            };
            let place = match found {
                None => return false,
                Some(1) => return true,
                Some(found) if found == count => format!(" (at all {count} points)\n"),
                Some(found) => format!(" (at {found} of {count} points)\n"),
            };
            line.text = line.text.trim_end().to_owned() + &place;
            true
        });
    }
    let text = |point: &Vec<Printed>| point.iter().map(|line| line.text.as_str()).collect();
    points.iter().map(text).collect()
}

/// A line, or several, of a point.
#[derive(PartialEq)]
struct Printed {
    text: String,
    /// Whether it stands once where several points have the same.
    print_once: bool,
}

/// One point, as wide as it is.
fn printed(summary: &Summary, index: usize, paint: Paint) -> Vec<Printed> {
    let label = one_line(&summary.points[index].row.label);
    let measured = words(&content::measured(summary, index), paint);
    let own = |text: String| Printed { text, print_once: false };
    let mut all = vec![own(format!("{label} · {measured}\n"))];
    for block in content::point(summary, index).iter().filter(|one| one.forms.contains(&Form::Text))
    {
        match &block.part {
            Part::Table(one) => all.push(own(table(one, paint))),
            Part::Lines(lines) => all.extend(
                lines
                    .iter()
                    .map(|one| Printed { text: line(one, paint), print_once: one.print_once }),
            ),
        }
    }
    all
}

/// The slowest requests of each target at a point, over all its trials, the slowest first. Empty
/// when none were kept.
pub fn slowest(summary: &Summary, point: usize, colour: bool) -> String {
    wrapped(&table(&content::slowest(summary, point, MAX_SLOW), Paint::new(colour)))
}

/// The cost of one operation at one point. Ends with a newline; empty where nothing was seen.
pub fn cost(summary: &Summary, point: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let text = |block: &Block| match &block.part {
        Part::Table(one) => table(one, paint),
        Part::Lines(lines) => lines.iter().map(|one| line(one, paint)).collect(),
    };
    wrapped(&content::cost(summary, point).iter().map(text).collect::<String>())
}

/// The head above the points: the run, its suite's claims and compromises, and the targets
/// that were skipped.
fn head(summary: &Summary, colour: bool) -> String {
    let paint = Paint::new(colour);
    let state = match summary.run.state {
        RunState::Finished => String::new(),
        state => format!(" · {}", state.word()),
    };
    let title = paint.text(Role::Strong, &one_line(&summary.suite.title));
    let mut out = format!("{title}  run {}{state}\n", summary.id);
    for (name, words) in content::remarks(summary) {
        let name = paint.text(Role::Dim, &format!("{name:<10}"));
        out.push_str(&format!("  {name}  {}\n", one_line(&words)));
    }
    wrapped(&out)
}

/// A line with its end.
fn line(line: &Line, paint: Paint) -> String {
    let indent = match line.depth {
        Depth::Part => "  ",
        Depth::One => "    ",
        Depth::Two => "      ",
    };
    format!("{indent}{}", words(line, paint)).trim_end().to_owned() + "\n"
}

fn words(line: &Line, paint: Paint) -> String {
    line.words.iter().map(|(role, words)| paint.text(*role, &one_line(words))).collect()
}

/// A table, each line with its end.
pub(crate) fn table(table: &Table, paint: Paint) -> String {
    let shown = table.shown_in(Form::Text);
    let cell = |(column, cell): (&Column, &Cell)| match &cell.terminal_text {
        Some(text) => one_line(text),
        None if column.names_cells && !table.has_head && !cell.is_empty(Form::Text) => {
            format!("{} {}", column.name, words(&cell.line, paint))
        }
        None => words(&cell.line, paint),
    };
    let head = table.has_head.then(|| {
        let names = shown.iter().map(|at| one_line(&table.columns[*at].name));
        names.map(|name| paint.text(Role::Dim, &name)).collect()
    });
    let row = |row: &Row| {
        let cells = shown.iter().filter_map(|at| Some((&table.columns[*at], row.cells.get(*at)?)));
        cells.map(cell).collect()
    };
    let rows: Vec<Vec<String>> = head.into_iter().chain(table.rows.iter().map(row)).collect();
    wrap::table(&rows, 2).iter().map(|line| format!("{line}\n")).collect()
}
