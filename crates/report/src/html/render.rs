//! Lines and tables of a document as parts of a page.

use maud::{Markup, html};

use super::budget::{Budget, clipped, fit};
use super::chart::{LOOKS, event_key};
use crate::document::{
    Block, Cell, Column, ColumnKind, Depth, Drawing, Form, Line, Part, Role, Row, Table,
};
use crate::number::ratio;

/// The bytes that the words of one role in a line may take.
const WORDS_BYTES: usize = 2_000;

/// The parts of a document that a page shows.
pub(super) fn blocks<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Markup {
    let shown = blocks.into_iter().filter(|block| block.forms.contains(&Form::Page));
    html! { @for block in shown {
        @match &block.part { Part::Lines(all) => (lines(all)), Part::Table(one) => (table(one)) }
    } }
}

/// Lines as a list; nothing when there are none.
pub(super) fn lines(lines: &[Line]) -> Markup {
    html! { @if !lines.is_empty() {
        ul.lines { @for line in lines { (item(line)) } }
    } }
}

/// One line of a list.
pub(super) fn item(line: &Line) -> Markup {
    let depth = match line.depth {
        Depth::Part => None,
        Depth::One => Some("in1"),
        Depth::Two => Some("in2"),
    };
    html! { li class=[depth] {
        @if line.is_preformatted { code { (words(line)) } } @else { (words(line)) }
    } }
}

/// The drawing of a line, and its words with their roles.
pub(super) fn words(line: &Line) -> Markup {
    html! {
        @if let Some(drawing) = &line.drawing { (drawn(drawing)) }
        @for (role, words) in &line.words {
            @let words = fit(words, WORDS_BYTES);
            @match class_of(*role) {
                Some(class) => span class=(class) { (words) },
                None => (words),
            }
        }
    }
}

pub(super) fn class_of(role: Role) -> Option<&'static str> {
    match role {
        Role::Plain => None,
        Role::Good => Some("word good"),
        Role::Bad => Some("word bad"),
        Role::Unsure => Some("word unsure"),
        Role::Strong => Some("word"),
        Role::Dim => Some("dim"),
    }
}

/// A whole table; nothing when it has no row.
pub(super) fn table(table: &Table) -> Markup {
    within(table, &mut Budget::of(usize::MAX)).0
}

/// A table with as many of its rows as fit, and the number of those left out. It scrolls by itself
/// where the page is narrow.
pub(super) fn within(table: &Table, budget: &mut Budget) -> (Markup, usize) {
    let shown = table.shown_in(Form::Page);
    let columns = || shown.iter().map(|at| &table.columns[*at]);
    let caption = clipped(&table.caption);
    let frame = |rows: &Markup| {
        html! {
            div.wide tabindex="0" role="region" aria-label=(caption) {
                table {
                    caption { (caption) }
                    thead { tr { @for column in columns() {
                        th scope="col" class=[class(column)] { (clipped(&column.name)) }
                    } } }
                    tbody { (rows) }
                }
            }
        }
    };
    if table.rows.is_empty() || !budget.fits(&frame(&Markup::default())) {
        return (Markup::default(), table.rows.len());
    }
    let rows = table.rows.iter().map(|row| {
        let cells = shown.iter().map(|at| (&table.columns[*at], row.cells.get(*at)));
        self::row(row, cells)
    });
    let (rows, left_out) = budget.list(rows);
    (frame(&rows), left_out)
}

fn row<'a>(row: &Row, cells: impl Iterator<Item = (&'a Column, Option<&'a Cell>)>) -> Markup {
    html! { tr id=[row.id.as_ref()] class=[row.is_primary.then_some("primary")] {
        @for (at, (column, cell)) in cells.enumerate() {
            @if at == 0 { th scope="row" class=[class(column)] { (contents(column, cell)) } }
            @else { td class=[class(column)] { (contents(column, cell)) } }
        }
    } }
}

fn class(column: &Column) -> Option<&'static str> {
    match column.kind {
        ColumnKind::Words => None,
        ColumnKind::Wrapped => Some("wrap"),
        ColumnKind::Number => Some("n"),
        ColumnKind::Verdict => Some("verdict"),
    }
}

fn contents(column: &Column, cell: Option<&Cell>) -> Markup {
    let Some(cell) = cell.filter(|cell| !cell.is_empty(Form::Page)) else {
        return html! { @if column.kind == ColumnKind::Number { "–" } };
    };
    html! {
        @if let Some(index) = cell.palette_index {
            span class=(format!("dot s{}", index % LOOKS)) {}
        }
        @match &cell.link {
            Some(link) => a href=(link) { (words(&cell.line)) },
            None => (words(&cell.line)),
        }
        @if !cell.note.is_empty(Form::Page) { p.note.wrap { (words(&cell.note)) } }
    }
}

fn drawn(drawing: &Drawing) -> Markup {
    match drawing {
        Drawing::Interval { ratio, low, high, reach } => whiskers([*ratio, *low, *high], *reach),
        Drawing::Bars { palette_index, heights, words } => spark(*palette_index, heights, words),
        Drawing::Event(mark) => event_key(*mark),
    }
}

/// A ratio and its interval around 1, on a logarithmic scale that reaches so far on both sides.
fn whiskers([middle, low, high]: [f64; 3], reach: f64) -> Markup {
    let place = |ratio: f64| {
        let log = if ratio > 0.0 { ratio.ln() } else { -reach };
        let share = (log / reach).clamp(-1.0, 1.0);
        format!("{:.1}", 90.0 + 84.0 * share)
    };
    let words = format!("{} to {}", ratio(low), ratio(high));
    html! {
        svg.whisker viewBox="0 0 180 16" role="img" aria-label=(words) {
            title { (words) }
            path.one d="M90 0V16" {}
            path.line d=(format!("M{} 8H{}", place(low), place(high))) {}
            path.mark d=(format!("M{} 8m0-5l5 5l-5 5l-5-5z", place(middle))) {}
        }
    }
}

/// Bars from 0 to 1.
fn spark(palette_index: usize, heights: &[f64], words: &str) -> Markup {
    let bar = |(at, height): (usize, &f64)| {
        let height = 22.0 * if height.is_finite() { height.clamp(0.0, 1.0) } else { 0.0 };
        format!("M{} 23v-{height:.1}h2.4v{height:.1}z", at * 3)
    };
    let seen = heights.iter().enumerate().filter(|(_, height)| **height > 0.0);
    html! {
        svg class=(format!("spark s{}", palette_index % LOOKS)) viewBox="0 0 144 24" role="img"
            aria-label=(words) {
            title { (words) }
            path.bars d=(seen.map(bar).collect::<String>()) {}
        }
    }
}
