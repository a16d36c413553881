//! One axis of a chart: its scale, laid out over the drawing, and the values that are labelled.

use judge::{Metric, Unit};

use crate::names::shown;

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
    /// Values that it spans besides those drawn: small multiples share an axis.
    pub(super) holds: Vec<f64>,
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
        let (at, holds) = (Vec::new(), Vec::new());
        Axis { label, scale, show: crate::number::plain, binary: false, at, holds }
    }
}

impl Axis {
    pub(super) fn of(label: impl Into<String>, scale: Scale, show: fn(f64) -> String) -> Axis {
        Axis { label: label.into(), scale, show, ..Axis::default() }
    }

    /// Of a metric, from zero.
    pub(super) fn of_metric(metric: &Metric) -> Axis {
        let axis = Axis::of(&*metric.suite, Scale::FromZero, shown(metric));
        Axis { binary: metric.unit == Unit::Bytes, ..axis }
    }

    /// The name of a logarithmic scale, else nothing.
    pub(super) fn scale_name(&self) -> &'static str {
        if matches!(self.scale, Scale::Log) { " (log scale)" } else { "" }
    }

    /// Whether a value has a place on it.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite()
            && match self.scale {
                Scale::Log => value > 0.0,
                Scale::Within(from, to) => (from..=to).contains(&value),
                Scale::FromZero | Scale::Marked(_) => true,
            }
    }
}

/// An axis laid out: which values it spans, and where.
pub(super) struct Frame {
    low: f64,
    high: f64,
    log: bool,
    start: f64,
    end: f64,
}

impl Frame {
    pub(super) fn of(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        start: f64,
        end: f64,
    ) -> Frame {
        let values = values.chain(axis.holds.iter().copied());
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
            Scale::Marked(marks) => low = marks.iter().map(|mark| mark.0).fold(low, f64::min),
        }
        if high <= low {
            high = if low == 0.0 { 1.0 } else { low + low.abs() * 0.1 };
        }
        Frame { low, high, log, start, end }
    }

    /// The place of a value on the drawing, never beyond the ends of the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.start + (self.end - self.start) * share.clamp(0.0, 1.0)
    }

    /// The places and texts of labels: about `wanted` of them.
    pub(super) fn ticks(&self, axis: &Axis, wanted: usize) -> Vec<(f64, String)> {
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
pub(super) fn linear_ticks(low: f64, high: f64, wanted: usize, binary: bool) -> Vec<f64> {
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

/// Powers of ten between two ends, with 2 and 5 between them where there is room; round values
/// where fewer than two of these lie between the ends.
fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = (last - first).max(1) as usize;
    let (steps, every): (&[f64], i32) = match decades {
        d if d * 3 <= wanted + 1 => (&[1.0, 2.0, 5.0], 1),
        d => (&[1.0], d.div_ceil(wanted).max(1) as i32),
    };
    let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
    let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    let found: Vec<f64> = all.filter(|value| (low..=high).contains(value)).collect();
    // Five wanted are two at least: a step is at most half the way.
    if found.len() < 2 { linear_ticks(low, high, wanted.max(5), false) } else { found }
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
    fn a_log_axis_has_two_ticks_at_least() {
        for step in 0..400 {
            let low = 1e-3 * 1.07_f64.powi(step);
            for factor in [1.3, 1.7, 2.4, 4.0, 9.0, 30.0, 1e3, 1e6] {
                let ticks = log_ticks(low, low * factor, 5);
                assert!((2..=12).contains(&ticks.len()), "{low} × {factor}: {ticks:?}");
            }
        }
    }

    #[test]
    fn nothing_lies_beyond_the_ends_of_an_axis() {
        let axis = Axis { scale: Scale::Within(0.0, 10.0), ..Axis::default() };
        let frame = Frame::of(&axis, [-5.0, 20.0].into_iter(), 78.0, 446.0);
        assert_eq!([-5.0, 0.0, 10.0, 20.0].map(|at| frame.place(at)), [78.0, 78.0, 446.0, 446.0]);
        assert_eq!([-5.0, 0.0, 10.0, 20.0].map(|at| axis.shows(at)), [false, true, true, false]);
    }
}
