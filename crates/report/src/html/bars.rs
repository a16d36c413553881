//! Bars with intervals, as SVG: a name and a figure above each, so that both can be read on a
//! narrow page.

use maud::{Markup, html};

use super::budget::fit;
use super::chart::LOOKS;

/// The width of the drawing and the height of a bar with its words, in units of the drawing.
const WIDTH: f64 = 460.0;
const ROW: f64 = 38.0;

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
    /// Its annotation.
    pub(super) said: String,
}

impl Bars {
    /// The bars as a figure; nothing when there are none.
    pub(super) fn draw(&self) -> Markup {
        let drawn = || self.bars.iter().filter(|bar| bar.value.is_finite()).take(MAX_BARS);
        let ends = drawn().map(|bar| bar.range.map_or(bar.value, |(_, high)| high.max(bar.value)));
        let most = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        let height = ROW * drawn().count() as f64;
        let more = self.bars.len().saturating_sub(MAX_BARS);
        html! {
            @if most > 0.0 {
                figure.chart {
                    figcaption { (self.title) }
                    svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
                        aria-label=(self.title) {
                        @for (at, bar) in drawn().enumerate() {
                            (self.bar(bar, ROW * at as f64, (WIDTH - 8.0) / most))
                        }
                    }
                    @if !self.note.is_empty() { p.note { (self.note) } }
                    @if more > 0 { p.note { (more) " more bars have no room here." } }
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
            text.axis x=(WIDTH) y=(top + 14.0) text-anchor="end" {
                ((self.show)(bar.value)) (bar.said)
            }
            g class=(class) {
                path.bars d=(format!("M0 {}h{width:.1}v12h-{width:.1}z", top + 20.0)) {
                    title { (bar.name) ": " ((self.show)(bar.value)) (bar.said) }
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
