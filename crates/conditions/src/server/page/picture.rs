//! Channels over time, as a picture: a row for each channel, a bar for each interval, and an axis
//! of times, which are numbers without a unit.

use base::grouped;
use maud::{Markup, html};

use super::words::{clipped, end, many};
use crate::model::{Intervals, MAX_TIME};

/// Channels of one picture.
pub(super) const LANES: usize = 50;

/// Bars of one picture, and of one channel.
pub(super) const BARS: usize = 2_000;
const BARS_OF_ONE: usize = 400;

/// The width of a picture in units of its own.
const WIDTH: f64 = 1_000.0;

/// The longest address that every bar has.
const ADDRESS_BYTES: usize = 200;

/// About how many times an axis names.
const TICKS: u64 = 5;

/// The most bars of a channel, where there are this many.
pub(super) fn bars_of_one(lanes: usize) -> usize {
    (BARS / lanes.max(1)).min(BARS_OF_ONE)
}

/// A channel with what it shows.
pub(super) struct Lane {
    pub(super) name: Option<String>,
    pub(super) intervals: Intervals,
}

/// A picture.
pub(super) struct Picture {
    /// The first time, and the one that it ends before.
    pub(super) range: (u64, u64),
    pub(super) lanes: Vec<Lane>,
    /// Where a bar leads, when its time is added.
    pub(super) place: String,
}

impl Picture {
    pub(super) fn drawn(&self) -> Markup {
        let scale = Scale::of(self.range);
        let shown = |lane: &Lane| lane.intervals.shown.iter().any(|(_, until)| *until == MAX_TIME);
        let has_open = self.lanes.iter().any(shown);
        let has_more = self.lanes.iter().any(|lane| lane.intervals.has_more);
        html! {
            figure.picture {
                figcaption {
                    span { "Time " (scale.caption()) }
                    span.legend {
                        span.key { (key("a")) (key("b")) "intervals" }
                        @if has_open { span.key { (key("a")) span.open { "▶" } "open end" } }
                        @if has_more { span.key { (key("more")) "more than are drawn" } }
                    }
                }
                div.lanes {
                    span {}
                    div.axis { @for (number, tick) in scale.ticks.iter().enumerate() {
                        @let class = if number % 2 == 0 { "tick" } else { "tick odd" };
                        span class=(class) style={ "left:" (percent(tick.share)) } { (tick.label) }
                    } }
                    @for lane in &self.lanes { (self.lane(lane, &scale)) }
                }
            }
        }
    }

    fn lane(&self, lane: &Lane, scale: &Scale) -> Markup {
        let Intervals { channel, shown, has_more } = &lane.intervals;
        let is_open = !has_more && shown.last().is_some_and(|(_, until)| *until == MAX_TIME);
        let last = shown.last().map_or(0, |(_, until)| *until);
        let said = match shown.last() {
            None => "nothing".to_owned(),
            Some((since, _)) if is_open => {
                format!("{}, the last one open since {since}", many(shown.len() as u64, "interval"))
            }
            Some(_) if *has_more => format!("more than {}", many(shown.len() as u64, "interval")),
            Some(_) => many(shown.len() as u64, "interval"),
        };
        html! {
            span.who {
                b { (channel) }
                @if let Some(name) = &lane.name { " " bdi title=(name) { (clipped(name, 60)) } }
            }
            div.lane {
                svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img"
                    aria-label={ "channel " (channel) ": " (said) } {
                    @for tick in &scale.ticks {
                        @let x = format!("{:.1}", tick.share * WIDTH);
                        path.grid d={ "M" (x) " 0v20" } {}
                    }
                    @for (number, interval) in shown.iter().enumerate() {
                        (self.bar(*interval, number))
                    }
                    @if *has_more {
                        @let x = round(self.place_of(last));
                        path.more d={ "M" (x) " 6H1000v8H" (x) "z" } {
                            title { "more than " (many(shown.len() as u64, "interval")) }
                        }
                    }
                }
                @if is_open { span.open aria-hidden="true" { "▶" } }
            }
        }
    }

    fn bar(&self, (since, until): (u64, u64), number: usize) -> Markup {
        let (begin, end_at) = (self.place_of(since), self.place_of(until));
        // What is thinner than a line can't be seen.
        let width = (end_at - begin).max(1.0);
        let class = match (width > 8.0, number % 2) {
            (true, 0) => "a wide",
            (true, _) => "b wide",
            (false, 0) => "a",
            (false, _) => "b",
        };
        let path = format!("M{} 3h{}v14h-{}z", round(begin), round(width), round(width));
        let bar = html! {
            path class=(class) d=(path) { title { (since) " – " (end(until)) } }
        };
        html! {
            @if self.place.len() <= ADDRESS_BYTES {
                a href={ (self.place) "&t=" (since) } tabindex="-1" { (bar) }
            } @else {
                (bar)
            }
        }
    }

    fn place_of(&self, time: u64) -> f64 {
        share(self.range, time) * WIDTH
    }
}

fn share((since, until): (u64, u64), time: u64) -> f64 {
    let width = until.saturating_sub(since).max(1) as f64;
    time.saturating_sub(since) as f64 / width.max(time.saturating_sub(since) as f64)
}

fn key(class: &str) -> Markup {
    html! {
        svg.sample viewBox="0 0 12 8" aria-hidden="true" {
            path class=(class) d="M0 0h12v8H0z" {}
        }
    }
}

/// A number with a decimal, where it has one.
fn round(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn percent(share: f64) -> String {
    format!("{}%", round(share * 100.0))
}

/// An axis: labels are `(time - base) / unit`.
#[derive(Debug, PartialEq)]
struct Scale {
    base: u64,
    unit: u64,
    ticks: Vec<Tick>,
}

#[derive(Debug, PartialEq)]
struct Tick {
    share: f64,
    label: String,
}

impl Scale {
    fn of((since, until): (u64, u64)) -> Self {
        let width = until.saturating_sub(since).max(1);
        let wanted = (width / TICKS).max(1);
        let power = 10_u64.pow(wanted.ilog10());
        let step = [1, 2, 5, 10].map(|times| power.saturating_mul(times));
        let step = step.into_iter().find(|step| *step >= wanted).unwrap_or(wanted);
        // Labels of at most seven digits are the times themselves.
        let is_short = until < 10_000_000;
        let unit = if is_short { 1 } else { 1_000_u64.pow(width.ilog(1_000)) };
        let round = 10_u64.checked_pow(width.ilog10() + 1).unwrap_or(u64::MAX);
        let base = if until / unit < 10_000 { 0 } else { since / round * round };
        let first = since.div_ceil(step);
        let times = (first..first + 2 * TICKS + 2).map_while(|place| place.checked_mul(step));
        let ticks = times.take_while(|time| *time <= until).map(|time| Tick {
            share: share((since, until), time),
            label: label(time - base.min(time), unit),
        });
        Self { base, unit, ticks: ticks.collect() }
    }

    /// What a label means, where it is not the time.
    fn caption(&self) -> String {
        let power = self.unit.ilog10();
        let digit = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize - '0' as usize);
        let power: String = power.to_string().chars().filter_map(digit).collect();
        match (self.base, self.unit) {
            (0, 1) => String::new(),
            (0, _) => format!("in 10{power}"),
            (base, 1) => format!("from {} on", grouped(base)),
            (base, _) => format!("from {} on, in 10{power}", grouped(base)),
        }
    }
}

/// A multiple of a unit, with two decimals at most.
fn label(number: u64, unit: u64) -> String {
    let (whole, rest) = (grouped(number / unit), number % unit);
    if rest == 0 {
        return whole;
    }
    let decimals = format!("{:02}", u128::from(rest) * 100 / u128::from(unit));
    format!("{whole}.{}", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(range: (u64, u64)) -> (Vec<String>, String) {
        let scale = Scale::of(range);
        assert!(scale.ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.share)), "{scale:?}");
        (scale.ticks.iter().map(|tick| tick.label.clone()).collect(), scale.caption())
    }

    #[test]
    fn an_axis_names_round_times_and_says_what_its_numbers_are() {
        assert_eq!(labels((0, 1)), (vec!["0".to_owned(), "1".to_owned()], String::new()));
        assert_eq!(labels((90, 215)).0, ["100", "150", "200"]);
        let (ticks, caption) = labels((1_700_000_000_500_000_000, 1_700_000_003_500_000_000));
        assert_eq!(ticks, ["1", "2", "3"]);
        assert_eq!(caption, "from 1,700,000,000,000,000,000 on, in 10⁹");
        let (ticks, caption) = labels((0, MAX_TIME));
        assert_eq!((ticks[1].as_str(), caption.as_str()), ("2", "in 10¹⁸"));
        let (ticks, caption) = labels((MAX_TIME - 3, MAX_TIME));
        assert_eq!(caption, "from 9,223,372,036,854,775,800 on");
        assert_eq!(ticks, ["4", "5", "6", "7"]);
    }

    #[test]
    fn any_range_has_a_few_ticks() {
        for shift in 0..63 {
            for width in [1_u64, 2, 7, 1 << shift] {
                let since = (1_u64 << shift).wrapping_sub(1).min(MAX_TIME - 1);
                let (ticks, _) = labels((since, since.saturating_add(width).min(MAX_TIME)));
                assert!((1..=11).contains(&ticks.len()), "{since}, {width}: {ticks:?}");
            }
        }
    }
}
