//! Charts as SVG: lines over an axis that is linear, logarithmic, or marked by hand.
//!
//! A chart is plain data until it is drawn. Colours are classes (`s0` to `s7`) that the style sheet
//! names for light and dark pages; every line also has a dash or a mark of its own, so that no
//! reader needs the colour.

use maud::{Markup, html};

/// Size of the drawing in its own units; the page scales it to the width it has.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 230.0;
/// Budget for the labels of the axes.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 42.0;

/// About the width of a letter, on a narrow page where letters are larger.
const LETTER: f64 = 8.0;

/// The most points of a line that are marked one by one; more would be a smear.
const MAX_MARKS: usize = 40;

/// Number of line styles before they repeat.
pub(super) const LOOKS: usize = 8;

/// One chart.
#[derive(Debug, Default)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    pub(super) bands: Vec<Band>,
    /// Stretches of the x axis that are marked at its foot, each list in a look.
    pub(super) stripes: Vec<(usize, Vec<(f64, f64)>)>,
    /// Where lines are broken if they have a gap there: nothing was measured before these places.
    pub(super) breaks: Vec<f64>,
    /// Events, each list with a name and a mark of its own.
    pub(super) events: Vec<Moments>,
    /// One more sentence under it.
    pub(super) note: String,
}

/// The marks on the x axis: events of one name.
#[derive(Debug, Default)]
pub(super) struct Moments {
    pub(super) name: String,
    /// Which mark it has; the same thing has the same mark in every chart of a page.
    pub(super) mark: usize,
    /// When each began and ended, in order.
    pub(super) times: Vec<(f64, f64)>,
}

/// A gap is this many times the usual distance of two points of its line.
const GAP: f64 = 2.5;

/// Number of event marks before they repeat.
pub(super) const EVENT_MARKS: usize = 8;

/// Events that begin closer together than this on the drawing share a mark.
const EVENTS_APART: f64 = 5.0;

/// One axis.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    /// The format of a value.
    pub(super) show: fn(f64) -> String,
    /// Whether round values are multiples of powers of 1024: those of memory are.
    pub(super) binary: bool,
    /// Values to label in place of round ones: those that were measured, where they are few.
    pub(super) at: Vec<f64>,
}

/// The range and the scale of an axis.
#[derive(Debug, Clone, Default)]
pub(super) enum Scale {
    /// From zero, or from the least value when that is below zero.
    #[default]
    FromZero,
    /// Between two ends: charts with the same ends lie on the same clock.
    Within(f64, f64),
    /// Powers of ten; values that aren't positive are left out.
    Log,
    /// Between the least and the greatest value, with labels at these places only.
    Marked(Vec<(f64, String)>),
}

impl Default for Axis {
    fn default() -> Axis {
        let (label, scale) = (String::new(), Scale::FromZero);
        Axis { label, scale, show: crate::number::plain, binary: false, at: Vec::new() }
    }
}

/// One line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    /// Which look it has; the same thing has the same look in every chart of a page.
    pub(super) look: usize,
    /// Whether each of its points is a mark: measured points are, distributions aren't.
    pub(super) marked: bool,
    pub(super) points: Vec<Dot>,
}

/// One point, with its interval where it has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) range: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Dot {
    fn from((x, y): (f64, f64)) -> Dot {
        Dot { x, y, range: None }
    }
}

/// A stretch of the x axis that is shaded.
#[derive(Debug)]
pub(super) struct Band {
    pub(super) from: f64,
    pub(super) to: f64,
    /// The class that the style sheet shades: `disturbed`, `phase`.
    pub(super) class: &'static str,
    pub(super) title: String,
}

impl Chart {
    /// The chart as a figure; nothing when it has no point to show.
    pub(super) fn draw(&self) -> Markup {
        let dots = || self.lines.iter().flat_map(|line| &line.points).filter(|dot| self.shows(dot));
        if dots().next().is_none() {
            return html! {};
        }
        let has_dots = |line: &&Line| line.points.iter().any(|dot| self.shows(dot));
        let drawn: Vec<&Line> = self.lines.iter().filter(has_dots).collect();
        let ys = dots().flat_map(|dot| {
            let (low, high) = dot.range.unwrap_or((dot.y, dot.y));
            [dot.y, low, high].into_iter().filter(|y| y.is_finite())
        });
        let x = Frame::of(&self.x, dots().map(|dot| dot.x), LEFT, WIDTH - RIGHT);
        let y = Frame::of(&self.y, ys, HEIGHT - BOTTOM, TOP);
        let mut said = format!("{}: {} over {}", self.title, self.y.label, self.x.label);
        for one in &self.events {
            said.push_str(&format!("; {} events: {}", one.times.len(), one.name));
        }
        html! {
            figure.chart {
                figcaption { (self.title) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(said) {
                    @for band in &self.bands { (draw_band(band, &x)) }
                    (self.axes(&x, &y))
                    @for one in &self.events { (draw_events(one, &x)) }
                    @for (look, stretches) in &self.stripes { (draw_stripes(*look, stretches, &x)) }
                    @for line in &drawn { (self.draw_line(line, &x, &y)) }
                }
                @if drawn.len() > 1 || !self.events.is_empty() || !self.note.is_empty() {
                    p.legend {
                        @if drawn.len() > 1 {
                            @for line in &drawn { (key(line)) }
                        }
                        @for one in &self.events {
                            span.key { (event_key(one.mark)) (one.name) }
                        }
                        @if !self.note.is_empty() { span.note { (self.note) } }
                    }
                }
            }
        }
    }

    fn shows(&self, dot: &Dot) -> bool {
        let fits = |scale: &Scale, value: f64| {
            value.is_finite() && (!matches!(scale, Scale::Log) || value > 0.0)
        };
        fits(&self.x.scale, dot.x) && fits(&self.y.scale, dot.y)
    }

    fn axes(&self, x: &Frame, y: &Frame) -> Markup {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        html! {
            g.grid {
                @for (at, label) in y.ticks(&self.y, 5) {
                    line x1=(LEFT) x2=(right) y1=(px(at)) y2=(px(at)) {}
                    text x=(LEFT - 6.0) y=(px(at + 4.0)) text-anchor="end" { (label) }
                }
                @for (at, label) in apart(x.ticks(&self.x, 5), right) {
                    line x1=(px(at)) x2=(px(at)) y1=(TOP) y2=(bottom) {}
                    @if let Some((anchor, label)) = label {
                        text x=(px(at)) y=(bottom + 16.0) text-anchor=(anchor) { (label) }
                    }
                }
                text.axis x=((LEFT + right) / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" {
                    (self.x.label)
                }
            }
        }
    }

    fn draw_line(&self, line: &Line, x: &Frame, y: &Frame) -> Markup {
        let dots: Vec<&Dot> = line.points.iter().filter(|dot| self.shows(dot)).collect();
        let class = format!("s{}", line.look % LOOKS);
        let words = |dot: &Dot| {
            let name = if line.name.is_empty() { &self.title } else { &line.name };
            format!("{name}: {} at {}", (self.y.show)(dot.y), (self.x.show)(dot.x))
        };
        let marked = dots.len() == 1 || (line.marked && dots.len() <= MAX_MARKS);
        html! {
            g class=(class) {
                path.line d=(self.path(&dots, x, y)) {}
                @for dot in dots.iter().filter(|dot| marked && dot.range.is_some()) {
                    @let (low, high) = dot.range.unwrap_or_default();
                    line.whisker x1=(px(x.place(dot.x))) x2=(px(x.place(dot.x)))
                        y1=(px(y.place(low))) y2=(px(y.place(high))) {}
                }
                @if marked {
                    @for dot in &dots {
                        path.mark d=(mark(line.look, x.place(dot.x), y.place(dot.y))) {
                            title { (words(dot)) }
                        }
                    }
                }
            }
        }
    }
}

impl Chart {
    /// A line through these points, in parts where it has gaps.
    fn path(&self, dots: &[&Dot], x: &Frame, y: &Frame) -> String {
        let mut steps: Vec<f64> = dots.windows(2).map(|two| two[1].x - two[0].x).collect();
        steps.sort_by(f64::total_cmp);
        let usual = steps.get(steps.len() / 2).copied().unwrap_or_default();
        let is_gap = |from: f64, to: f64| {
            to - from > GAP * usual && self.breaks.iter().any(|at| (from..to).contains(at))
        };
        let parts = dots.chunk_by(|a, b| !is_gap(a.x, b.x));
        let part = |part: &[&Dot]| {
            let place = |dot: &&Dot| format!("{} {}", px(x.place(dot.x)), px(y.place(dot.y)));
            let places: Vec<String> = part.iter().map(place).collect();
            // A point alone is a short line, or nothing would be seen of it.
            let alone = if part.len() == 1 && dots.len() > 1 { "m-2 0h4" } else { "" };
            format!("M{}{alone}", places.join("L"))
        };
        parts.map(part).collect()
    }
}

fn key(line: &Line) -> Markup {
    html! {
        span.key {
            svg viewBox="0 0 26 10" class=(format!("s{}", line.look % LOOKS)) aria-hidden="true" {
                path.line d="M1 5L25 5" {}
                @if line.marked { path.mark d=(mark(line.look, 13.0, 5.0)) {} }
            }
            (line.name)
        }
    }
}

fn draw_band(band: &Band, x: &Frame) -> Markup {
    let from = x.place(band.from).clamp(LEFT, WIDTH - RIGHT);
    let to = x.place(band.to).clamp(LEFT, WIDTH - RIGHT);
    html! {
        rect class=(band.class) x=(px(from)) y=(TOP) width=(px((to - from).max(0.5)))
            height=(HEIGHT - TOP - BOTTOM) {
            @if !band.title.is_empty() { title { (band.title) } }
        }
    }
}

/// Labels of the x axis with their anchors, without those that would overlap the one before.
fn apart(ticks: Vec<(f64, String)>, right: f64) -> Vec<(f64, Option<(&'static str, String)>)> {
    let mut taken = f64::NEG_INFINITY;
    let place = |(at, label): (f64, String)| {
        let width = label.chars().count() as f64 * LETTER;
        // A label at the right end would reach beyond the drawing.
        let (anchor, start) = match at + width / 2.0 > right + RIGHT {
            true => ("end", at - width),
            false => ("middle", at - width / 2.0),
        };
        let shown = start > taken;
        taken = if shown { start + width + LETTER } else { taken };
        (at, shown.then_some((anchor, label)))
    };
    ticks.into_iter().map(place).collect()
}

/// All stretches of a look as one path, because there are many.
fn draw_stripes(look: usize, stretches: &[(f64, f64)], x: &Frame) -> Markup {
    let (top, height) = (HEIGHT - BOTTOM - 5.0, 5.0);
    let stripe = |(from, to): &(f64, f64)| {
        let (from, to) = (x.place(*from), x.place(*to));
        format!("M{} {top}h{1}v{height}h-{1}z", px(from), px((to - from).max(0.3)))
    };
    html! {
        path class=(format!("stripe s{}", look % LOOKS))
            d=(stretches.iter().map(stripe).collect::<String>()) {}
    }
}

/// Events: the time that each took shaded, and its mark at the top.
fn draw_events(events: &Moments, x: &Frame) -> Markup {
    let (height, mut last) = (HEIGHT - TOP - BOTTOM, f64::NEG_INFINITY);
    let (mut shades, mut marks) = (String::new(), String::new());
    for (from, to) in &events.times {
        let (from, to) = (x.place(*from), x.place(*to));
        if from - last < EVENTS_APART && to - last < EVENTS_APART {
            continue;
        }
        last = from;
        let width = px((to - from).max(1.0));
        shades.push_str(&format!("M{} {TOP}h{width}v{height}h-{width}z", px(from)));
        marks.push_str(&event_mark(events.mark, from, TOP));
    }
    html! {
        path.event d=(shades) {}
        path class=(event_class(events.mark)) d=(marks) {
            title { (events.name) ": " (events.times.len()) }
        }
    }
}

/// The mark of events, for a legend.
pub(super) fn event_key(mark: usize) -> Markup {
    html! {
        svg.happens viewBox="0 0 12 10" aria-hidden="true" {
            path class=(event_class(mark)) d=(event_mark(mark, 6.0, 1.0)) {}
        }
    }
}

/// The first marks are filled, the others hollow: colours need not be distinguished.
fn event_class(mark: usize) -> &'static str {
    if mark % EVENT_MARKS < EVENT_MARKS / 2 { "happened" } else { "happened hollow" }
}

/// A mark below a place: a triangle that points down, a square, a diamond or one that points up.
fn event_mark(mark: usize, x: f64, top: f64) -> String {
    let (x, top) = (px(x), px(top));
    match mark % (EVENT_MARKS / 2) {
        0 => format!("M{x} {top}m-4 0h8l-4 8z"),
        1 => format!("M{x} {top}m-3.5 0h7v7h-7z"),
        2 => format!("M{x} {top}l4 4l-4 4l-4-4z"),
        _ => format!("M{x} {top}l4 8h-8z"),
    }
}

/// The mark of a look around a place: a circle, a square, a triangle or a diamond.
fn mark(look: usize, x: f64, y: f64) -> String {
    let (x, y) = (px(x), px(y));
    match look % 4 {
        0 => format!("M{x} {y}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0"),
        1 => format!("M{x} {y}m-3-3h6v6h-6z"),
        2 => format!("M{x} {y}m0-4l4 7h-8z"),
        _ => format!("M{x} {y}m0-4.5l4 4.5l-4 4.5l-4-4.5z"),
    }
}

/// A place on the drawing, to a tenth of its units: more digits only make the page longer.
fn px(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    format!("{tenths}")
}

/// An axis laid out: which values it spans, and where.
struct Frame {
    low: f64,
    high: f64,
    log: bool,
    start: f64,
    end: f64,
}

impl Frame {
    fn of(axis: &Axis, values: impl Iterator<Item = f64>, start: f64, end: f64) -> Frame {
        let (mut low, mut high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), one| (a.min(one), b.max(one)));
        let log = matches!(axis.scale, Scale::Log);
        match &axis.scale {
            Scale::Log => {
                // An interval may reach to nothing; a logarithm can't.
                low = low.max(high / 1e9);
                (low, high) = (low / 1.15, high * 1.15);
            }
            Scale::FromZero => {
                low = low.min(0.0);
                high += (high - low) * 0.05;
            }
            Scale::Within(from, to) => (low, high) = (*from, *to),
            Scale::Marked(marks) => {
                low = marks.iter().map(|mark| mark.0).fold(low, f64::min);
                high = marks.iter().map(|mark| mark.0).filter(|at| *at < high).fold(high, f64::max);
            }
        }
        if high <= low {
            high = if low == 0.0 { 1.0 } else { low + low.abs() * 0.1 };
        }
        Frame { low, high, log, start, end }
    }

    fn place(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.start + (self.end - self.start) * share.clamp(-0.02, 1.02)
    }

    /// The places and texts of labels: about `wanted` of them.
    fn ticks(&self, axis: &Axis, wanted: usize) -> Vec<(f64, String)> {
        let values = match &axis.scale {
            Scale::Marked(marks) => {
                let seen = marks.iter().filter(|mark| mark.0 <= self.high * 1.001);
                return seen.map(|(at, label)| (self.place(*at), label.clone())).collect();
            }
            _ if !axis.at.is_empty() => axis.at.clone(),
            Scale::Log => log_ticks(self.low, self.high, wanted),
            Scale::FromZero | Scale::Within(..) => {
                linear_ticks(self.low, self.high, wanted, axis.binary)
            }
        };
        let label = |value| if value == 0.0 { "0".to_owned() } else { (axis.show)(value) };
        values.into_iter().map(|value| (self.place(value), label(value))).collect()
    }
}

/// Round values between two ends: steps of 1, 2 or 5 times a power of ten, or of ten and 1024.
fn linear_ticks(low: f64, high: f64, wanted: usize, binary: bool) -> Vec<f64> {
    let rough = (high - low) / wanted as f64;
    let unit = match binary {
        true => 1024_f64.powf((rough.max(1.0).ln() / 1024_f64.ln()).floor()),
        false => 1.0,
    };
    let power = 10_f64.powf((rough / unit).log10().floor()) * unit;
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).take(wanted * 3).map(|at| at as f64 * step).collect()
}

/// Powers of ten between two ends, with 2 and 5 between them where there is room.
fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = (last - first).max(1) as usize;
    let (steps, every): (&[f64], i32) = match decades {
        d if d * 3 <= wanted + 1 => (&[1.0, 2.0, 5.0], 1),
        d => (&[1.0], d.div_ceil(wanted).max(1) as i32),
    };
    let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
    let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    all.filter(|value| (low..=high).contains(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(linear_ticks(0.0, 10.0, 5, false), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(
            linear_ticks(0.0, 0.25, 5, false),
            [0.0, 0.05, 0.1, 0.15000000000000002, 0.2, 0.25]
        );
        let mib = f64::from(1 << 20);
        assert_eq!(linear_ticks(0.0, 7.0 * mib, 5, true), [0.0, 2.0 * mib, 4.0 * mib, 6.0 * mib]);
        assert_eq!(log_ticks(900.0, 1.1e6, 5), [1e3, 1e4, 1e5, 1e6]);
        assert_eq!(log_ticks(8.0, 60.0, 5), [10.0, 20.0, 50.0]);
    }

    #[test]
    fn a_line_is_broken_where_nothing_was_measured_and_only_there() {
        let at = [0.0, 1.0, 2.0, 10.0, 11.0, 14.5, 15.0, 30.0];
        let points = at.iter().map(|x| Dot::from((*x, 5.0))).collect();
        let chart = Chart {
            x: Axis { scale: Scale::Within(0.0, 30.0), ..Axis::default() },
            lines: vec![Line { points, ..Line::default() }],
            breaks: vec![0.5, 9.0, 29.0],
            ..Chart::default()
        };
        let drawn = chart.draw().into_string();
        let path =
            drawn.split("class=\"line\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
        let path = path.expect("a line");
        let parts = path.split('M').skip(1).map(|part| part.matches('L').count());
        let parts: Vec<_> = parts.collect();
        assert_eq!(parts, [2, 3, 0], "{path}");
        assert!(path.ends_with("m-2 0h4"), "a point alone is seen: {path}");
    }

    #[test]
    fn a_chart_without_points_is_nothing_and_odd_values_are_left_out() {
        let axis = || Axis { scale: Scale::Log, ..Axis::default() };
        let chart = |points: &[(f64, f64)]| Chart {
            x: axis(),
            y: axis(),
            lines: vec![Line {
                points: points.iter().copied().map(Dot::from).collect(),
                ..Line::default()
            }],
            ..Chart::default()
        };
        assert_eq!(chart(&[(1.0, 0.0), (f64::NAN, 2.0)]).draw().into_string(), "");
        let drawn = chart(&[(1.0, 5.0), (2.0, f64::INFINITY)]).draw().into_string();
        assert!(drawn.contains("<svg") && !drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
