//! Charts as SVG: lines over an axis that is linear, logarithmic, or marked by hand.
//!
//! A chart is plain data until it is drawn. A colour (`s0` to `s11`) is a target, on every page and
//! in every chart; the style sheet names it for light and dark pages. A dash and a mark (`d0` to
//! `d7`) are the value of a second sweep, or else the target's again, so that no reader needs the
//! colour.

use maud::{Markup, html};

use super::axis::Frame;
pub(super) use super::axis::{Axis, Scale};

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

/// Number of colours before they repeat.
pub(super) const LOOKS: usize = 12;

/// Number of dashes, and of marks, before they repeat.
pub(super) const VARIANTS: usize = 8;

/// One chart.
#[derive(Debug, Default)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    pub(super) bands: Vec<Band>,
    /// The id of a drawing behind it that several charts share.
    pub(super) behind: Option<&'static str>,
    /// Stretches of the x axis that are marked at its foot, each list in a look.
    pub(super) stripes: Vec<(usize, Vec<(f64, f64)>)>,
    /// Where lines are broken if they have a gap there: nothing was measured before these places.
    pub(super) breaks: Vec<f64>,
    /// Events, each list with a name and a mark of its own.
    pub(super) events: Vec<Moments>,
    /// One more sentence under it.
    pub(super) note: String,
    /// What is required of the figure, by its words, as a line over the same axes.
    pub(super) bound: Option<(String, Vec<(f64, f64)>)>,
    /// Whether the lines are named elsewhere: in the legend that several charts share.
    pub(super) is_named: bool,
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

/// One line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    /// The other swept values that it is of; empty without a second sweep.
    pub(super) swept: String,
    /// Its colour: its target has the same in every chart of a page.
    pub(super) look: usize,
    /// Its dash and mark.
    pub(super) variant: usize,
    /// Whether each of its points is a mark: measured points are, distributions aren't.
    pub(super) marked: bool,
    pub(super) points: Vec<Dot>,
}

impl Line {
    /// A line of a target, whose dash and mark are the target's, too.
    pub(super) fn of(name: &str, look: usize, points: Vec<Dot>) -> Line {
        let (name, swept) = (name.to_owned(), String::new());
        Line { name, swept, look, variant: look, marked: false, points }
    }

    /// The same with a mark at each point.
    pub(super) fn marked(self) -> Line {
        Line { marked: true, ..self }
    }

    fn class(&self) -> String {
        format!("s{} d{}", self.look % LOOKS, self.variant % VARIANTS)
    }
}

/// One point, with its interval where it has one.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) range: Option<(f64, f64)>,
    /// The address of what it stands for: its round, its point, its run.
    pub(super) way: Option<String>,
}

impl From<(f64, f64)> for Dot {
    fn from((x, y): (f64, f64)) -> Dot {
        Dot { x, y, range: None, way: None }
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
    pub(super) fn of(title: impl Into<String>, x: Axis, y: Axis, lines: Vec<Line>) -> Chart {
        Chart { title: title.into(), x, y, lines, ..Chart::default() }
    }

    /// The chart as a figure; nothing when it has no point to show.
    pub(super) fn draw(&self) -> Markup {
        let dots = || self.lines.iter().flat_map(|line| &line.points).filter(|dot| self.shows(dot));
        if dots().next().is_none() {
            return html! {};
        }
        let drawn = self.drawn();
        let ys = dots().flat_map(|dot| {
            let (low, high) = dot.range.unwrap_or((dot.y, dot.y));
            [dot.y, low, high].into_iter().filter(|y| y.is_finite())
        });
        let required = self.bound.iter().flat_map(|(_, points)| points).map(|(_, y)| *y);
        let x = Frame::of(&self.x, dots().map(|dot| dot.x), LEFT, WIDTH - RIGHT);
        let y = Frame::of(&self.y, ys.chain(required), HEIGHT - BOTTOM, TOP);
        let mut said = format!("{}: {} over {}", self.title, self.y.label, self.x.label);
        for one in &self.events {
            said.push_str(&format!("; {} events: {}", one.times.len(), one.name));
        }
        // The parts of an image can't be reached one by one; those of a group can.
        let role = if dots().any(|dot| dot.way.is_some()) { "group" } else { "img" };
        html! {
            figure.chart {
                figcaption { (self.title) span.note { (self.y.scale_name()) } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role=(role) aria-label=(said) {
                    @if let Some(id) = self.behind { use href=(format!("#{id}")) {} }
                    @for band in &self.bands { (draw_band(band, &x)) }
                    (self.axes(&x, &y))
                    @for one in &self.events { (draw_events(one, &x)) }
                    @for (look, stretches) in &self.stripes { (draw_stripes(*look, stretches, &x)) }
                    @if let Some((words, points)) = &self.bound {
                        path.bound d=(bound(points, &x, &y)) { title { (words) } }
                    }
                    @for line in &drawn { (self.draw_line(line, &x, &y)) }
                }
                (self.legend(&drawn))
            }
        }
    }

    /// The bands over this axis as a drawing of its own, for [`Chart::behind`].
    pub(super) fn shared_bands(id: &str, axis: &Axis, bands: &[Band]) -> Markup {
        let x = Frame::of(axis, std::iter::empty(), LEFT, WIDTH - RIGHT);
        html! {
            svg.shared aria-hidden="true" {
                defs { g id=(id) { @for band in bands { (draw_band(band, &x)) } } }
            }
        }
    }

    /// Whether there is a point to show.
    pub(super) fn has_points(&self) -> bool {
        !self.drawn().is_empty()
    }

    /// The lines that have a point to show.
    fn drawn(&self) -> Vec<&Line> {
        let has_dots = |line: &&Line| line.points.iter().any(|dot| self.shows(dot));
        self.lines.iter().filter(has_dots).collect()
    }

    fn shows(&self, dot: &Dot) -> bool {
        self.x.shows(dot.x) && self.y.shows(dot.y)
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
                    (self.x.label) (self.x.scale_name())
                }
            }
        }
    }

    fn draw_line(&self, line: &Line, x: &Frame, y: &Frame) -> Markup {
        let dots: Vec<&Dot> = line.points.iter().filter(|dot| self.shows(dot)).collect();
        let name = if line.name.is_empty() { &self.title } else { &line.name };
        let comma = if line.swept.is_empty() { "" } else { ", " };
        let words = |dot: &Dot| {
            let (value, at) = ((self.y.show)(dot.y), (self.x.show)(dot.x));
            let range = dot.range.map_or(String::new(), |(low, high)| {
                format!(" [{}, {}]", (self.y.show)(low), (self.y.show)(high))
            });
            format!("{name}{comma}{}: {value}{range} at {at}", line.swept)
        };
        let shape = |dot: &Dot| {
            html! {
                path class=(mark_class(line.variant))
                    d=(mark(line.variant, x.place(dot.x), y.place(dot.y))) {
                    title { (words(dot)) }
                }
            }
        };
        let marked = dots.len() == 1 || (line.marked && dots.len() <= MAX_MARKS);
        html! {
            g class=(line.class()) {
                path.line d=(self.path(&dots, x, y)) {}
                @for dot in dots.iter().filter(|_| marked) {
                    @if let Some((low, high)) = dot.range {
                        line.whisker x1=(px(x.place(dot.x))) x2=(px(x.place(dot.x)))
                            y1=(px(y.place(low))) y2=(px(y.place(high))) {}
                    }
                }
                @for dot in dots.iter().filter(|_| marked) {
                    @match &dot.way {
                        // Tables have the same links for who comes by keyboard.
                        Some(way) => { a href=(way) tabindex="-1" { (shape(dot)) } }
                        None => { (shape(dot)) }
                    }
                }
            }
        }
    }

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

    /// The lines' names, the events' and the note.
    fn legend(&self, drawn: &[&Line]) -> Markup {
        let keys = if self.is_named {
            html! {}
        } else {
            keys(drawn)
        };
        html! {
            @if !keys.0.is_empty() || !self.events.is_empty() || !self.note.is_empty()
                || self.bound.is_some()
            {
                p.legend {
                    (keys)
                    @if let Some((words, _)) = &self.bound {
                        span.key {
                            svg viewBox="0 0 24 8" aria-hidden="true" { path.bound d="M0 4h24" {} }
                            (words)
                        }
                    }
                    @for one in &self.events { span.key { (event_key(one.mark)) (one.name) } }
                    @if !self.note.is_empty() { span.note { (self.note) } }
                }
            }
        }
    }
}

/// A line through these points, on axes that hold them.
fn bound(points: &[(f64, f64)], x: &Frame, y: &Frame) -> String {
    let place = |(at, value): &(f64, f64)| format!("{} {}", px(x.place(*at)), px(y.place(*value)));
    let places: Vec<String> = points.iter().map(place).collect();
    format!("M{}", places.join("L"))
}

/// Charts that stand together. Where all have the same lines their legend is one, before them.
pub(super) fn together(mut charts: Vec<Chart>) -> (Markup, Vec<Markup>) {
    let mut named = charts.iter().map(Chart::drawn).filter(|drawn| !drawn.is_empty());
    let first = named.next().map(|drawn| keys(&drawn)).unwrap_or_default();
    let mut others = named.map(|drawn| keys(&drawn)).peekable();
    let is_shared =
        !first.0.is_empty() && others.peek().is_some() && others.all(|o| o.0 == first.0);
    charts.iter_mut().for_each(|chart| chart.is_named = is_shared);
    let legend = html! { @if is_shared { p.legend.shared { (first) } } };
    (legend, charts.iter().map(Chart::draw).collect())
}

/// The targets by colour and, where there is a second sweep, its values by dash and mark.
fn keys(drawn: &[&Line]) -> Markup {
    let mut targets: Vec<&Line> = Vec::new();
    let mut swept: Vec<&Line> = Vec::new();
    for line in drawn {
        if targets.iter().all(|one| one.name != line.name) {
            targets.push(line);
        }
        if !line.swept.is_empty() && swept.iter().all(|one| one.swept != line.swept) {
            swept.push(line);
        }
    }
    html! {
        @if targets.len() > 1 || !swept.is_empty() {
            @for line in targets {
                @match swept.is_empty() {
                    true => (key(&line.class(), line, &line.name)),
                    false => span.key {
                        span class=(format!("dot s{}", line.look % LOOKS)) {}
                        (line.name)
                    }
                }
            }
            @for line in swept {
                (key(&format!("d{}", line.variant % VARIANTS), line, &line.swept))
            }
        }
    }
}

fn key(class: &str, line: &Line, words: &str) -> Markup {
    html! {
        span.key {
            svg viewBox="0 0 26 10" class=(class) aria-hidden="true" {
                path.line d="M1 5L25 5" {}
                @if line.marked {
                    path class=(mark_class(line.variant)) d=(mark(line.variant, 13.0, 5.0)) {}
                }
            }
            (words)
        }
    }
}

fn draw_band(band: &Band, x: &Frame) -> Markup {
    let (from, to) = (x.place(band.from), x.place(band.to));
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

fn mark_class(variant: usize) -> &'static str {
    if variant % VARIANTS < VARIANTS / 2 { "mark" } else { "mark hollow" }
}

/// The mark of a variant around a place: a circle, a square, a triangle or a diamond.
fn mark(variant: usize, x: f64, y: f64) -> String {
    let (x, y) = (px(x), px(y));
    match variant % (VARIANTS / 2) {
        0 => format!("M{x} {y}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0"),
        1 => format!("M{x} {y}m-3-3h6v6h-6z"),
        2 => format!("M{x} {y}m0-4l4 7h-8z"),
        _ => format!("M{x} {y}m0-4.5l4 4.5l-4 4.5l-4-4.5z"),
    }
}

/// A place on the drawing, to a tenth of its units: more digits only make the page longer.
pub(super) fn px(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    format!("{tenths}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_where_nothing_was_measured_and_only_there() {
        let at = [0.0, 1.0, 2.0, 10.0, 11.0, 14.5, 15.0, 30.0];
        let points = at.iter().map(|x| Dot::from((*x, 5.0))).collect();
        let chart = Chart {
            x: Axis { scale: Scale::Within(0.0, 30.0), ..Axis::default() },
            lines: vec![Line::of("", 0, points)],
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
            lines: vec![Line::of("", 0, points.iter().copied().map(Dot::from).collect())],
            ..Chart::default()
        };
        assert_eq!(chart(&[(1.0, 0.0), (f64::NAN, 2.0)]).draw().into_string(), "");
        let drawn = chart(&[(1.0, 5.0), (2.0, f64::INFINITY)]).draw().into_string();
        assert!(drawn.contains("<svg") && !drawn.contains("NaN") && !drawn.contains("inf"));
        assert!(drawn.matches("(log scale)").count() == 2, "both axes say so: {drawn}");
    }

    #[test]
    fn charts_of_the_same_lines_share_a_legend_and_others_do_not() {
        let chart = |names: &[&str]| {
            let line = |(look, name): (usize, &&str)| {
                Line::of(name, look, vec![(1.0, 2.0).into(), (2.0, 3.0).into()])
            };
            Chart { lines: names.iter().enumerate().map(line).collect(), ..Chart::default() }
        };
        let drawn = |charts: Vec<Chart>| {
            let (legend, charts) = together(charts);
            let keys = |one: Markup| one.0.matches("class=\"key\"").count();
            (keys(legend), charts.into_iter().map(keys).collect::<Vec<_>>())
        };
        let (two, other) = (["ours", "theirs"], ["ours", "another"]);
        assert_eq!(drawn(vec![chart(&two), chart(&[]), chart(&two)]), (2, vec![0, 0, 0]));
        assert_eq!(drawn(vec![chart(&two), chart(&other)]), (0, vec![2, 2]));
        assert_eq!(drawn(vec![chart(&two)]), (0, vec![2]), "one chart has its own");
        assert_eq!(drawn(vec![chart(&["ours"]), chart(&["ours"])]), (0, vec![0, 0]));
    }

    #[test]
    fn a_point_is_named_and_leads_to_what_it_stands_for() {
        let dot = |x: f64| Dot { range: Some((1.0, 3.0)), ..Dot::from((x, 2.0)) };
        let linked = Dot { way: Some("#round-2".to_owned()), ..dot(2.0) };
        let line = Line { swept: "depth 4".into(), ..Line::of("ours", 0, vec![dot(1.0), linked]) };
        let chart = Chart { lines: vec![line.marked()], ..Chart::default() };
        let drawn = chart.draw().into_string();
        assert!(drawn.contains("<title>ours, depth 4: 2 [1, 3] at 1</title>"), "{drawn}");
        assert!(drawn.contains("<a href=\"#round-2\"") && drawn.contains("role=\"group\""));
    }
}
