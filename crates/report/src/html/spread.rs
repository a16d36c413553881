//! The latency distributions of a point: by percentile, and each target's in a row of figures with
//! a small histogram.

use findings::{ChartData, EVALUATIONS, Summary, TargetSummary, fastest};
use ledger::Histogram;
use maud::Markup;

use super::chart::{Axis, Chart, Dot, Line as Curve, Scale};
use super::render::table;
use crate::content;
use crate::document::{Drawing, Line, NamedFigure, Sheet, number, words};
use crate::number::{count, duration, plain};

/// Columns of a small histogram.
const SMALL_BINS: usize = 48;

/// Latency against the share of answers that were faster.
pub(super) fn percentiles(summary: &Summary, data: &ChartData, index: usize) -> Markup {
    // Each next label is a tenth of the answers before: the axis is -log10(1 - share).
    let marks = ["0", "p90", "p99", "p99.9", "p99.99", "p99.999", "p99.9999"];
    let marks = marks.iter().enumerate().map(|(at, label)| (at as f64, (*label).to_owned()));
    let points = |histogram: &Histogram<u64>| {
        // Ten answers at least lie beyond the last percentile that is drawn.
        let nines = (histogram.len() as f64 / 10.0).max(1.0).log10();
        let steps = (nines * 12.0).ceil().clamp(1.0, 90.0) as usize;
        let xs = || (0..=steps).map(|step| nines * step as f64 / steps as f64);
        let values = at_shares(histogram, xs().map(|x| 1.0 - 10_f64.powf(-x)));
        xs().zip(values).map(|(x, ns)| (x, ns as f64).into()).collect()
    };
    let x = Axis::of("share of answers that were faster", Scale::Marked(marks.collect()), |x| {
        format!("{} %", 100.0 * (1.0 - 10_f64.powf(-x)))
    });
    let y = Axis::of("latency", Scale::Log, duration);
    Chart::of("Latency by percentile", x, y, each(data, summary, index, points)).draw()
}

/// The latencies at these shares of answers, which ascend: in one walk over the histogram, where
/// each look for one begins anew.
fn at_shares(histogram: &Histogram<u64>, shares: impl Iterator<Item = f64>) -> Vec<u64> {
    let mut recorded = histogram.iter_recorded();
    let (mut below, mut value) = (0, histogram.min());
    let at = |share: f64| {
        let wanted = ((share * histogram.len() as f64).ceil() as u64).max(1);
        while below < wanted
            && let Some(one) = recorded.next()
        {
            below += one.count_at_value();
            value = one.value_iterated_to();
        }
        if share > 0.0 { value } else { histogram.min() }
    };
    shares.map(at).collect()
}

fn each(
    data: &ChartData,
    summary: &Summary,
    index: usize,
    points: impl Fn(&Histogram<u64>) -> Vec<Dot>,
) -> Vec<Curve> {
    let line = |(target, row): (usize, &ledger::TargetRow)| {
        let histogram = data.distribution(index, target)?;
        Some(Curve::of(&row.name, target, points(histogram)))
    };
    summary.targets.iter().enumerate().filter_map(line).collect()
}

/// The latencies of each target as one row of figures with a small histogram.
pub(super) fn rows(summary: &Summary, data: &ChartData, index: usize) -> Markup {
    let targets = &summary.points[index].targets;
    let is_graded = targets.iter().any(|one| !one.grade.is_clean());
    let seen = targets.iter().filter_map(|one| Some((one, data.distribution(index, one.target)?)));
    let figures: [NamedFigure<Histogram<u64>, f64>; 5] = [
        ("min", |all| all.min() as f64),
        ("median", |all| all.value_at_quantile(0.5) as f64),
        ("mean", Histogram::mean),
        ("σ", Histogram::stdev),
        ("max", |all| all.max() as f64),
    ];
    let title = if is_graded { "Latencies" } else { "Latencies of valid trials" };
    let sheet = Sheet::of(title, seen)
        .with(words("target"), |(one, _)| {
            content::name(summary, one.target).note(evaluated(one).unwrap_or_default())
        })
        .with(words("grade"), |(one, _)| is_graded.then(|| content::grade(one)))
        .with(words("fastest 99 %"), |(one, all)| small(one.target, all));
    let sheet = figures
        .into_iter()
        .fold(sheet, |sheet, (name, of)| sheet.with(number(name), |(_, all)| duration(of(all))));
    table(&sheet.with(number("answers"), |(_, all)| count(all.len())).table())
}

fn small(palette_index: usize, histogram: &Histogram<u64>) -> Line {
    let ns = |value: u64| duration(value as f64);
    let (low, high) = (histogram.min(), histogram.value_at_quantile(0.99));
    let bins = fastest(histogram, SMALL_BINS);
    let most = bins.iter().copied().max().unwrap_or(1).max(1) as f64;
    let heights = bins.iter().map(|answers| *answers as f64 / most).collect();
    let words = format!("histogram from {} to p99 {}", ns(low), ns(high));
    Line::default().drawn(Some(Drawing::Bars { palette_index, heights, words }))
}

/// `2,963 samples × 64 evaluations · 32 B in 2 allocations each`, of operations in process.
fn evaluated(target: &TargetSummary) -> Option<String> {
    let value = |name: &str| target.values.iter().find(|one| one.name == name);
    let samples = value("samples")?;
    let evaluations = value(EVALUATIONS)?;
    let all = samples.mean * samples.count as f64;
    let mut words =
        format!("{} samples × {} evaluations", plain(all.round()), plain(evaluations.median));
    if let Some(bytes) = value("allocated_bytes_per_op") {
        let allocations = value("allocations_per_op").map_or(0.0, |one| one.median);
        words.push_str(&format!(
            " · {} B in {} allocations each",
            plain(bytes.median),
            plain(allocations)
        ));
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_walk_finds_what_a_look_for_each_would() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        for n in 1..5_000_u64 {
            histogram.record_n(n * n * 37 % 9_000_000 + 1, n % 7 + 1).unwrap();
        }
        let shares = || (0..=90).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / 20.0));
        let each: Vec<u64> = shares().map(|share| histogram.value_at_quantile(share)).collect();
        assert_eq!(at_shares(&histogram, shares()), each);
    }
}
