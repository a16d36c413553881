//! The view as lines of text. What doesn't fit is left out in the order of what matters least: the
//! rates, the height of the latencies, the latencies, the notes; columns from the right.

use std::time::Duration;

use ledger::Histogram;
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::state::{Side, State};

/// The eighths of a cell, from nothing to all of it.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Each target's colour. Its name is beside it everywhere, so colours need not be distinguished.
const COLOURS: [Color; 5] = [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::Blue];

/// No latencies are higher than this many lines.
const MAX_HEIGHT: usize = 4;

/// The most notes shown.
const SAID_SHOWN: usize = 6;

/// Draws the state of a run `at` this time of it.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, at: Duration, colour: bool) {
    let area = frame.area();
    let page = Page { width: area.width.into(), height: area.height.into(), colour };
    frame.render_widget(Paragraph::new(page.lines(state, at)), area);
}

/// A place to draw on.
#[derive(Clone, Copy)]
struct Page {
    width: usize,
    height: usize,
    colour: bool,
}

impl Page {
    fn lines(self, state: &State, at: Duration) -> Vec<Line<'static>> {
        let sides: Vec<&Side> = state.sides().collect();
        let mut lines = self.head(state, at);
        lines.extend(self.table(&sides));
        let mut foot = vec![self.now(state)];
        foot.extend(sides.iter().enumerate().filter_map(|(place, side)| self.limit(place, side)));
        foot.extend(sides.iter().filter_map(|side| self.trouble(side)));
        let notes = state.said().rev().take(SAID_SHOWN).map(|said| self.plain(said));
        let notes: Vec<Line<'static>> = notes.collect();
        let mut room = self.height.saturating_sub(lines.len() + foot.len());
        // A blank line between the parts is the first thing to go.
        let blank = usize::from(room > sides.len() + 3);
        let shown = notes.len().min(room.saturating_sub(sides.len() + 1 + 2 * blank));
        room -= shown;
        let pictures = self.pictures(&sides, room.saturating_sub(2 * blank));
        if !pictures.is_empty() {
            lines.extend(vec![Line::default(); blank]);
            lines.extend(pictures);
            lines.extend(vec![Line::default(); blank]);
        }
        lines.extend(foot);
        lines.extend(notes.into_iter().take(shown).rev());
        lines
    }

    /// What runs, where it is, and how long it takes.
    fn head(self, state: &State, at: Duration) -> Vec<Line<'static>> {
        let (least, most) = state.rounds;
        let of = if least == most { format!(" of {most}") } else { String::new() };
        let points =
            if state.points > 1 { format!("{} points · ", state.points) } else { String::new() };
        let clock = format!("{points}{}", time(at));
        let room = self.width.saturating_sub(clock.chars().count() + 1);
        let title = self.style(Style::new().add_modifier(Modifier::BOLD));
        let first = Line::from(vec![
            Span::styled(left(&state.title, room), title),
            Span::raw(" "),
            Span::raw(clock),
        ]);
        let round = match state.round {
            0 => String::new(),
            round => format!("   round {round}{of}"),
        };
        let place = self.plain(&format!("{}{round}   {}", state.point, state.activity));
        let (remains, is_least) = state.left(at);
        let remains = match (is_least, remains.is_zero()) {
            _ if state.prepared.is_some() => "of the preparation".to_owned(),
            (false, _) => format!("{} left", time(remains)),
            (true, false) => format!("at least {} left", time(remains)),
            (true, true) => "the first round".to_owned(),
        };
        let share = state.prepared.unwrap_or(state.done).clamp(0.0, 1.0);
        let words = format!(" {:3.0} %  {remains}", share * 100.0);
        let bar = self.width.saturating_sub(words.chars().count()).min(40);
        let full = (share * bar as f64).round() as usize;
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(bar - full));
        let bar = Span::styled(bar, self.style(Style::new().fg(Color::Green)));
        vec![first, place, Line::from(vec![bar, Span::raw(words)])]
    }

    /// A line for each target, with as many columns as there is room for.
    fn table(self, sides: &[&Side]) -> Vec<Line<'static>> {
        let longest = sides.iter().map(|side| Span::raw(&side.name).width()).max().unwrap_or(0);
        let name_width = longest.clamp(6, 20).min(self.width / 3);
        let mut taken = name_width;
        let columns: Vec<&Column> = COLUMNS
            .iter()
            .take_while(|column| {
                taken += column.width + 1;
                taken <= self.width
            })
            .collect();
        let head = columns.iter().map(|column| right(column.head, column.width + 1));
        let mut head: Vec<Span<'static>> = head.map(Span::raw).collect();
        head.insert(0, Span::raw(" ".repeat(name_width)));
        let mut lines = vec![Line::from(head).style(self.style(DIM))];
        for (place, side) in sides.iter().enumerate() {
            let mut cells = vec![Span::styled(left(&side.name, name_width), self.of_target(place))];
            for column in &columns {
                let cell = (column.cell)(side);
                let is_bad = column.head == "wrong" && side.bad.wrong > 0;
                let style = if is_bad { self.style(BAD) } else { Style::new() };
                cells.push(Span::styled(right(&cell, column.width + 1), style));
            }
            lines.push(Line::from(cells));
        }
        lines
    }

    /// Latencies and rates, as high as there is room for.
    fn pictures(self, sides: &[&Side], room: usize) -> Vec<Line<'static>> {
        let count = sides.len();
        if count == 0 || room < count + 1 {
            return Vec::new();
        }
        let with_rates = room >= 2 * (count + 1);
        let rates = if with_rates { count + 1 } else { 0 };
        let height = ((room - rates - 1) / count).clamp(1, MAX_HEIGHT);
        let mut lines = self.latencies(sides, height);
        if with_rates {
            lines.extend(self.rates(sides));
        }
        lines
    }

    /// The latencies of every target over one logarithmic axis. A bar is as high as its answers are
    /// many, and never nothing where there are any.
    fn latencies(self, sides: &[&Side], height: usize) -> Vec<Line<'static>> {
        let (label, width) = self.labelled(sides);
        let ends = sides.iter().filter(|side| !side.latency.is_empty());
        let ends = ends.map(|side| (side.latency.min().max(1), side.latency.max().max(1)));
        let ends = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some((low, high)) = ends else {
            return vec![self.plain("latencies: none yet").style(self.style(DIM))];
        };
        let (low, high) = ((low as f64).ln(), (high as f64).ln());
        let span = (high - low).max(0.01);
        let mut lines = Vec::new();
        for (place, side) in sides.iter().enumerate() {
            let mut counts = vec![0_u64; width];
            for value in recorded(&side.latency) {
                let at = ((value.0.max(1) as f64).ln() - low) / span;
                let column = (at.clamp(0.0, 1.0) * width.saturating_sub(1) as f64) as usize;
                if let Some(count) = counts.get_mut(column) {
                    *count = count.saturating_add(value.1);
                }
            }
            let values: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
            for (row, bars) in bars(&values, height).into_iter().enumerate() {
                let name = if row + 1 == height { &side.name[..] } else { "" };
                lines.push(self.picture(place, name, label, bars));
            }
        }
        let (low, high) = (report::duration(low.exp()), report::duration(high.exp()));
        let gap = width.saturating_sub(low.chars().count() + high.chars().count());
        let axis = format!("{}{low}{:^gap$}{high}", " ".repeat(label), cut("latency", gap));
        lines.push(self.plain(&axis).style(self.style(DIM)));
        lines
    }

    /// The rate of each target, slice by slice or second by second, over one scale from nothing on.
    fn rates(self, sides: &[&Side]) -> Vec<Line<'static>> {
        let (label, width) = self.labelled(sides);
        let shown = |side: &Side| -> Vec<f64> {
            let skipped = side.rates.len().saturating_sub(width);
            side.rates.iter().skip(skipped).copied().collect()
        };
        let all: Vec<Vec<f64>> = sides.iter().map(|side| shown(side)).collect();
        let most = all.iter().flatten().copied().fold(0.0, f64::max);
        let each = if sides.iter().any(|side| side.by_second) { "second" } else { "slice" };
        let words = format!("rate of each {each}, up to {}", report::rate(most));
        let mut lines = vec![self.plain(&words).style(self.style(DIM))];
        for (place, (side, rates)) in sides.iter().zip(&all).enumerate() {
            let line = rates.iter().map(|rate| eighth(rate / most.max(f64::MIN_POSITIVE)));
            lines.push(self.picture(place, &side.name, label, line.collect()));
        }
        lines
    }

    /// How wide names and pictures are.
    fn labelled(self, sides: &[&Side]) -> (usize, usize) {
        let longest = sides.iter().map(|side| Span::raw(&side.name).width()).max().unwrap_or(0);
        let label = (longest + 1).min(self.width / 4);
        (label, self.width.saturating_sub(label))
    }

    fn picture(self, place: usize, name: &str, label: usize, bars: String) -> Line<'static> {
        let name = left(name, label.saturating_sub(1));
        let style = self.of_target(place);
        Line::from(vec![Span::styled(name, style), Span::raw(" "), Span::styled(bars, style)])
    }

    /// What the sensors see.
    fn now(self, state: &State) -> Line<'static> {
        let mut parts = vec!["CPU now:".to_owned()];
        for side in state.sides() {
            parts.extend(side.now.map(|cores| format!(" {} {cores:.2}", side.name)));
        }
        let generator = state.generator_now;
        parts.push(format!("  generator {}", cores(generator)));
        if !state.cores.is_empty() {
            let all: String = state.cores.iter().map(|(_, share)| eighth(*share)).collect();
            parts.push(format!("  cores ▕{all}▏"));
        }
        self.plain(&parts.concat())
    }

    fn limit(self, place: usize, side: &Side) -> Option<Line<'static>> {
        let limit = side.limit.as_ref()?;
        let name = Span::styled(side.name.clone(), self.of_target(place));
        Some(Line::from(vec![name, Span::raw(format!(" limit so far: {limit}"))]))
    }

    /// Why something may not be compared, or is measured again.
    fn trouble(self, side: &Side) -> Option<Line<'static>> {
        let (what, why) = match (&side.disturbed, &side.reason) {
            (Some(why), _) => ("the last slice was disturbed", why),
            (None, Some(why)) => ("not all trials count", why),
            (None, None) => return None,
        };
        let line = format!("{}: {what}: {why}", side.name);
        Some(Line::styled(line, self.style(BAD)))
    }

    fn plain(self, text: &str) -> Line<'static> {
        Line::raw(text.replace('\n', " "))
    }

    fn of_target(self, place: usize) -> Style {
        self.style(Style::new().fg(COLOURS[place % COLOURS.len()]))
    }

    fn style(self, style: Style) -> Style {
        if self.colour { style } else { Style::new() }
    }
}

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BAD: Style = Style::new().fg(Color::Red);

/// A column of the table of targets.
struct Column {
    head: &'static str,
    width: usize,
    cell: fn(&Side) -> String,
}

/// Every column, the one that matters most first.
const COLUMNS: &[Column] = &[
    Column { head: "rate", width: 8, cell: |side| side.last_rate().map_or(unseen(), report::rate) },
    Column { head: "p99", width: 8, cell: |side| latency(side, 0.99) },
    Column { head: "wrong", width: 6, cell: |side| report::count(side.bad.wrong) },
    Column { head: "p50", width: 8, cell: |side| latency(side, 0.5) },
    Column { head: "valid", width: 6, cell: |side| format!("{}/{}", side.valid, side.trials) },
    Column { head: "server", width: 6, cell: |side| cores(side.server) },
    Column { head: "load", width: 5, cell: |side| share(side.busy) },
    Column { head: "backlog", width: 7, cell: |side| side.backlog.map_or(unseen(), report::count) },
    Column { head: "lag p99", width: 8, cell: |side| quantile(&side.lag, 0.99) },
    Column { head: "max", width: 8, cell: |side| quantile(&side.latency, 1.0) },
    Column { head: "refused", width: 7, cell: |side| report::count(side.bad.refused) },
    Column { head: "missing", width: 7, cell: |side| report::count(side.bad.missing) },
];

fn unseen() -> String {
    "–".to_owned()
}

fn latency(side: &Side, q: f64) -> String {
    side.latency_ns(q).map_or(unseen(), report::duration)
}

fn quantile(histogram: &Histogram<u64>, q: f64) -> String {
    if histogram.is_empty() {
        return unseen();
    }
    report::duration(histogram.value_at_quantile(q) as f64)
}

fn cores(cores: Option<f64>) -> String {
    cores.map_or(unseen(), |cores| format!("{cores:.2}"))
}

fn share(share: Option<f64>) -> String {
    share.map_or(unseen(), |share| format!("{:.0} %", share * 100.0))
}

/// A time as people wait for it.
fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// The values of a histogram with how often each was.
fn recorded(histogram: &Histogram<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
    histogram.iter_recorded().map(|one| (one.value_iterated_to(), one.count_at_value()))
}

/// A bar for each value, over `rows` rows from the top, scaled to the highest value.
fn bars(values: &[f64], height: usize) -> Vec<String> {
    let most = values.iter().copied().fold(0.0, f64::max);
    let eighths = |value: &f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        (share * (height * 8) as f64).ceil() as usize
    };
    let filled: Vec<usize> = values.iter().map(eighths).collect();
    let row = |row: usize| {
        let below = (height - 1 - row) * 8;
        filled.iter().map(|eighths| EIGHTHS[eighths.saturating_sub(below).min(8)]).collect()
    };
    (0..height).map(row).collect()
}

/// A share as one cell: something is always more than nothing.
fn eighth(share: f64) -> char {
    EIGHTHS[(share.clamp(0.0, 1.0) * 8.0).ceil() as usize]
}

/// Text cut or filled to a width, at its left end.
fn left(text: &str, width: usize) -> String {
    let cut = cut(text, width);
    let fill = width.saturating_sub(Span::raw(&cut).width());
    format!("{cut}{}", " ".repeat(fill))
}

/// The same at its right end.
fn right(text: &str, width: usize) -> String {
    let cut = cut(text, width);
    let fill = width.saturating_sub(Span::raw(&cut).width());
    format!("{}{cut}", " ".repeat(fill))
}

/// As much of a text as fits, with a sign that there is more.
fn cut(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for one in text.chars() {
        kept.push(one);
        if Span::raw(&kept).width() >= width {
            kept.pop();
            break;
        }
    }
    if width > 0 { kept + "…" } else { kept }
}
