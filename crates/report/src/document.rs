//! The one model of a report: lines and tables of words that each have a role. The terminal paints
//! them (`text`), pages mark them up (`html`), and Markdown writes them down (`markdown`).

use judge::Unit;

use crate::number::{Scale, value_in};

/// The role of words, from which their colour follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    #[default]
    Plain,
    /// Better, held.
    Good,
    /// Worse, broken, wrong.
    Bad,
    /// Can't tell, disturbed.
    Unsure,
    /// Titles and names.
    Strong,
    /// Secondary text.
    Dim,
}

/// How far in a line begins, in steps from where the lines of its part do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Depth {
    #[default]
    Part,
    One,
    Two,
}

/// A line of words.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Line {
    pub(crate) words: Vec<(Role, String)>,
    /// How far in it begins.
    pub(crate) depth: Depth,
    /// Whether the terminal prints it once where several points have the same.
    pub(crate) print_once: bool,
    /// Whether a page keeps its spaces and gives all letters one width, as a terminal does.
    pub(crate) is_preformatted: bool,
    /// What a page draws before it.
    pub(crate) drawing: Option<Drawing>,
}

/// What a page draws and other forms leave to the words beside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Drawing {
    /// A ratio with its interval around 1, on a logarithmic axis that reaches this far.
    Interval { ratio: f64, low: f64, high: f64, reach: f64 },
    /// Bars from 0 to 1 in the colour of a target, with the words that they stand for.
    Bars { palette_index: usize, heights: Vec<f64>, words: String },
    /// The mark of an event in charts.
    Event(usize),
}

/// The forms that a part of a document appears in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Page,
    Markdown,
}

pub(crate) const EVERYWHERE: &[Form] = &[Form::Text, Form::Page, Form::Markdown];
pub(crate) const TEXT: &[Form] = &[Form::Text];
pub(crate) const PAGE: &[Form] = &[Form::Page];
pub(crate) const MARKDOWN: &[Form] = &[Form::Markdown];
pub(crate) const TEXT_AND_PAGE: &[Form] = &[Form::Text, Form::Page];

/// A part of a document, and the forms that show it.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) forms: &'static [Form],
    pub(crate) part: Part,
}

#[derive(Debug)]
pub(crate) enum Part {
    /// Lines, each a statement of its own.
    Lines(Vec<Line>),
    Table(Table),
}

impl Block {
    pub(crate) fn on(self, forms: &'static [Form]) -> Block {
        Block { forms, ..self }
    }
}

impl From<Vec<Line>> for Block {
    fn from(lines: Vec<Line>) -> Block {
        Block { forms: EVERYWHERE, part: Part::Lines(lines) }
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block { forms: EVERYWHERE, part: Part::Table(table) }
    }
}

/// A table. A form shows the columns of which some cell has anything in it.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Whether the terminal shows the names of columns; else each cell names itself.
    pub(crate) has_head: bool,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
    pub(crate) forms: &'static [Form],
    /// Whether its name stands before each cell where a table has no head.
    pub(crate) names_cells: bool,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Words,
    /// Words that may be long.
    Wrapped,
    Number,
    /// What stays in sight where the page is narrow.
    Verdict,
}

/// A row of a table.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Where links may lead to.
    pub(crate) id: Option<String>,
    /// Whether it is the one that the table is about.
    pub(crate) is_primary: bool,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Cell {
    pub(crate) line: Line,
    /// What a terminal has in its place, where no head names its column or a key does.
    pub(crate) terminal_text: Option<String>,
    /// The place in the palette of pages of the target that it is about.
    pub(crate) palette_index: Option<usize>,
    /// The address that it leads to on a page.
    pub(crate) link: Option<String>,
    /// A line below the words, on a page.
    pub(crate) note: Line,
}

impl Line {
    pub(crate) fn with_role(role: Role, words: impl Into<String>) -> Line {
        Line::default().and(role, words)
    }

    /// The same with more words, right behind.
    pub(crate) fn and(mut self, role: Role, words: impl Into<String>) -> Line {
        self.words.push((role, words.into()));
        self
    }

    /// The same with more plain words.
    pub(crate) fn then(self, words: impl Into<String>) -> Line {
        self.and(Role::Plain, words)
    }

    pub(crate) fn deeper(self, depth: Depth) -> Line {
        Line { depth, ..self }
    }

    pub(crate) fn preformatted(self) -> Line {
        Line { is_preformatted: true, ..self }
    }

    pub(crate) fn printed_once(self) -> Line {
        Line { print_once: true, ..self }
    }

    pub(crate) fn drawn(self, drawing: Option<Drawing>) -> Line {
        Line { drawing, ..self }
    }

    /// Whether this form shows nothing of it.
    pub(crate) fn is_empty(&self, form: Form) -> bool {
        let is_drawn = form == Form::Page && self.drawing.is_some();
        !is_drawn && self.words.iter().all(|(_, words)| words.is_empty())
    }
}

impl<T: Into<String>> From<T> for Line {
    fn from(words: T) -> Line {
        Line::default().then(words)
    }
}

impl Cell {
    pub(crate) fn terminal_text(self, text: impl Into<String>) -> Cell {
        Cell { terminal_text: Some(text.into()), ..self }
    }

    pub(crate) fn of_target(self, target: usize) -> Cell {
        Cell { palette_index: Some(target), ..self }
    }

    pub(crate) fn link(self, link: Option<String>) -> Cell {
        Cell { link, ..self }
    }

    pub(crate) fn note(self, note: impl Into<Line>) -> Cell {
        Cell { note: note.into(), ..self }
    }

    /// Whether this form shows nothing of it.
    pub(crate) fn is_empty(&self, form: Form) -> bool {
        match (form, &self.terminal_text) {
            (Form::Text, Some(text)) => text.is_empty(),
            (Form::Text, None) | (Form::Markdown, _) => self.line.is_empty(form),
            (Form::Page, _) => self.line.is_empty(form) && self.note.is_empty(form),
        }
    }
}

impl From<Line> for Cell {
    fn from(line: Line) -> Cell {
        Cell { line, ..Cell::default() }
    }
}

impl From<String> for Cell {
    fn from(words: String) -> Cell {
        Line::from(words).into()
    }
}

impl From<&str> for Cell {
    fn from(words: &str) -> Cell {
        Line::from(words).into()
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(words: Option<T>) -> Cell {
        words.map_or_else(Cell::default, Into::into)
    }
}

impl Column {
    fn of(name: impl Into<String>, kind: ColumnKind) -> Column {
        Column { name: name.into(), kind, forms: EVERYWHERE, names_cells: false }
    }

    /// The same in these forms only.
    pub(crate) fn on(self, forms: &'static [Form]) -> Column {
        Column { forms, ..self }
    }
}

pub(crate) fn words(name: impl Into<String>) -> Column {
    Column::of(name, ColumnKind::Words)
}

pub(crate) fn wrapped(name: impl Into<String>) -> Column {
    Column::of(name, ColumnKind::Wrapped)
}

pub(crate) fn number(name: impl Into<String>) -> Column {
    Column::of(name, ColumnKind::Number)
}

/// A column of figures that need their name before them.
pub(crate) fn named(name: impl Into<String>) -> Column {
    Column { names_cells: true, ..number(name) }
}

pub(crate) fn verdict(name: impl Into<String>) -> Column {
    Column::of(name, ColumnKind::Verdict)
}

impl Table {
    /// The places of the columns that this form shows.
    pub(crate) fn shown_in(&self, form: Form) -> Vec<usize> {
        let has_any = |at: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.cells.get(at));
            cells.any(|cell| !cell.is_empty(form))
        };
        let all = self.columns.iter().enumerate();
        all.filter(|(at, column)| column.forms.contains(&form) && has_any(*at))
            .map(|(at, _)| at)
            .collect()
    }
}

/// The name of a column, and its figure of a thing.
pub(crate) type NamedFigure<T, Figure> = (&'static str, fn(&T) -> Figure);

/// A table in the making: a row for each thing, column by column.
pub(crate) struct Sheet<T> {
    things: Vec<T>,
    table: Table,
}

impl<T> Sheet<T> {
    pub(crate) fn of(caption: impl Into<String>, things: impl IntoIterator<Item = T>) -> Self {
        let things: Vec<T> = things.into_iter().collect();
        let rows = things.iter().map(|_| Row::default()).collect();
        let table = Table { caption: caption.into(), rows, has_head: true, ..Table::default() };
        Self { things, table }
    }

    /// The same with one more column.
    pub(crate) fn with<C: Into<Cell>>(mut self, column: Column, of: impl Fn(&T) -> C) -> Self {
        self.table.columns.push(column);
        let rows = self.table.rows.iter_mut().zip(&self.things);
        rows.for_each(|(row, thing)| row.cells.push(of(thing).into()));
        self
    }

    /// The same with a column of figures in one unit, which `shown` makes cells of.
    pub(crate) fn figures<C: Into<Cell>>(
        self,
        column: Column,
        unit: Unit,
        of: impl Fn(&T) -> Option<f64>,
        shown: impl Fn(&T, Option<String>) -> C,
    ) -> Self {
        let scale = Scale::of(unit, self.things.iter().filter_map(&of));
        self.with(column, |thing| shown(thing, of(thing).map(|one| value_in(one, unit, scale))))
    }

    /// The same with the rows' ids.
    pub(crate) fn ids(mut self, of: impl Fn(&T) -> String) -> Self {
        let rows = self.table.rows.iter_mut().zip(&self.things);
        rows.for_each(|(row, thing)| row.id = Some(of(thing)));
        self
    }

    /// The same with the rows that it is about.
    pub(crate) fn primary(mut self, is: impl Fn(&T) -> bool) -> Self {
        let rows = self.table.rows.iter_mut().zip(&self.things);
        rows.for_each(|(row, thing)| row.is_primary = is(thing));
        self
    }

    pub(crate) fn table(self) -> Table {
        self.table
    }

    /// The same whose cells name themselves on a terminal.
    pub(crate) fn without_head(self) -> Table {
        Table { has_head: false, ..self.table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_shows_the_columns_that_have_anything_in_it() {
        let bars = Drawing::Bars { palette_index: 0, heights: vec![1.0], words: "rates".into() };
        let table = Sheet::of("", [1, 2])
            .with(words("words"), |one| (*one == 1).then(|| "one".to_owned()))
            .with(words("notes"), |_| Cell::default().note("below"))
            .with(words("drawn"), |_| Line::default().drawn(Some(bars.clone())))
            .with(words("terminal"), |_| Cell::default().terminal_text("typed"))
            .with(words("nothing"), |_| "")
            .with(words("page only").on(PAGE), |_| "words")
            .table();
        assert_eq!(table.shown_in(Form::Text), [0, 3]);
        assert_eq!(table.shown_in(Form::Page), [0, 1, 2, 5]);
        assert_eq!(table.shown_in(Form::Markdown), [0]);
    }
}
