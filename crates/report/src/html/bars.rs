//! Bars with intervals over one axis, as SVG: a name and a figure above each, so that both can be
//! read on a narrow page.

use findings::{Summary, TargetSummary};
use judge::{Metric, series_interval};
use maud::{Markup, html};

use super::axis::linear_ticks;
use super::budget::fit;
use super::chart::{LOOKS, px};

/// The width of the drawing, and the heights of a bar with its words and of the axis below, in
/// units of the drawing.
const WIDTH: f64 = 460.0;
const ROW: f64 = 38.0;
const AXIS: f64 = 22.0;

/// The most bars of one drawing.
const MAX_BARS: usize = 40;

/// A drawing of bars that begin at zero.
#[derive(Debug)]
pub(super) struct Bars {
    pub(super) title: String,
    /// The format of a value.
    pub(super) show: fn(f64) -> String,
    pub(super) bars: Vec<Bar>,
    /// One more sentence under it.
    pub(super) note: String,
}

/// One bar.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: f64,
    /// Its interval, where it has one.
    pub(super) range: Option<(f64, f64)>,
    /// The look of its target; `None` for a bar without one, such as a floor of the host.
    pub(super) look: Option<usize>,
}

/// The interval of a metric over the rounds that a target's figures are of.
pub(super) fn interval(
    summary: &Summary,
    index: usize,
    target: &TargetSummary,
    metric: &Metric,
) -> Option<(f64, f64)> {
    let trials = summary.trials_at(index).map(|(_, trial)| trial);
    let own = trials
        .filter(|one| one.target == target.target && one.row.validity == target.grade.validity);
    let values: Vec<f64> = own.filter_map(|trial| trial.figures.value(metric)).collect();
    series_interval(&values, summary.run.confidence).map(|one| (one.low, one.high))
}

impl Bar {
    /// A metric of a target at a point; `None` where it has none.
    pub(super) fn of(
        summary: &Summary,
        index: usize,
        target: &TargetSummary,
        metric: &Metric,
    ) -> Option<Bar> {
        Some(Bar {
            name: summary.targets[target.target].name.clone(),
            value: crate::content::value(summary, target, metric)?,
            range: interval(summary, index, target, metric),
            look: Some(target.target),
        })
    }
}

impl Bars {
    /// The bars as a figure; nothing when there are none.
    pub(super) fn draw(&self) -> Markup {
        let drawn = || self.bars.iter().filter(|bar| bar.value.is_finite()).take(MAX_BARS);
        let ends = drawn().map(|bar| bar.range.map_or(bar.value, |(_, high)| high.max(bar.value)));
        let most = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        let foot = ROW * drawn().count() as f64;
        let scale = (WIDTH - 8.0) / most;
        let more = self.bars.len().saturating_sub(MAX_BARS);
        html! {
            @if most > 0.0 {
                figure.chart {
                    figcaption { (self.title) }
                    svg viewBox=(format!("0 0 {WIDTH} {}", foot + AXIS)) role="img"
                        aria-label=(self.title) {
                        (self.axis(most, scale, foot))
                        @for (at, bar) in drawn().enumerate() {
                            (self.bar(bar, ROW * at as f64, scale))
                        }
                    }
                    @if !self.note.is_empty() { p.note { (self.note) } }
                    @if more > 0 { p.note { (more) " more bars have no room here." } }
                }
            }
        }
    }

    /// The axis below, with a short line at each of its labels.
    fn axis(&self, most: f64, scale: f64, foot: f64) -> Markup {
        html! {
            g.grid {
                path d=(format!("M0 {foot}H{WIDTH}")) {}
                @for value in linear_ticks(0.0, most, 4, false) {
                    @let at = value * scale;
                    @let (anchor, label) = match value {
                        0.0 => ("start", "0".to_owned()),
                        value if at > WIDTH - 40.0 => ("end", (self.show)(value)),
                        value => ("middle", (self.show)(value)),
                    };
                    path d=(format!("M{} {foot}v4", px(at))) {}
                    text x=(px(at)) y=(foot + 18.0) text-anchor=(anchor) { (label) }
                }
            }
        }
    }

    fn bar(&self, bar: &Bar, top: f64, scale: f64) -> Markup {
        let width = (bar.value * scale).max(1.0);
        let class = match bar.look {
            Some(look) => format!("s{}", look % LOOKS),
            None => "floor".to_owned(),
        };
        let range = bar.range.filter(|(low, high)| low.is_finite() && high.is_finite());
        html! {
            text x="0" y=(top + 14.0) { (fit(&bar.name, 44)) }
            text.axis x=(WIDTH) y=(top + 14.0) text-anchor="end" { ((self.show)(bar.value)) }
            g class=(class) {
                path.bars d=(format!("M0 {}h{width:.1}v12h-{width:.1}z", top + 20.0)) {
                    title { (bar.name) ": " ((self.show)(bar.value)) }
                }
                @if let Some((low, high)) = range {
                    @let (low, high) = (low.max(0.0) * scale, high * scale);
                    path.range d=(format!(
                        "M{low:.1} {0}v8M{low:.1} {1}H{high:.1}M{high:.1} {0}v8",
                        top + 22.0,
                        top + 26.0
                    )) {}
                }
            }
        }
    }
}
