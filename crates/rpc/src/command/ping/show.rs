//! A trial as text, as benchmark tools show it, and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::caller::{Function, Work};
use super::seen::{Seen, listed};
use super::trial::{Allocated, Summary, Trial};
use base::{many, many_are};

/// Columns of the histogram; the last but one parts what is beyond the 99th percentile.
const COLUMNS: usize = 62;

/// Heights of a column of one row.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const ROWS: usize = 2;

/// A time with its unit.
pub(in crate::command) fn time(ns: f64) -> String {
    let (value, unit) = in_unit(ns);
    format!("{value:.3} {unit}")
}

/// A time with three digits.
fn short(ns: f64) -> String {
    let (value, unit) = in_unit(ns);
    match value {
        value if value >= 100.0 => format!("{value:.0} {unit}"),
        value if value >= 10.0 => format!("{value:.1} {unit}"),
        value => format!("{value:.2} {unit}"),
    }
}

fn in_unit(ns: f64) -> (f64, &'static str) {
    match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "μs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    }
}

/// Samples by their time, from the least to the 99th percentile; the last is what lies beyond.
#[derive(Debug, PartialEq)]
struct Histogram {
    bins: Vec<u64>,
    /// Whether bars are of the logarithm.
    is_log: bool,
}

impl Histogram {
    /// Of sorted samples. The logarithm is taken where the bins that hold more than a tenth of the
    /// mean are small against the largest: their median is under 5 % of it.
    fn of(sorted: &[f64], summary: &Summary) -> Self {
        let within = sorted.partition_point(|one| *one <= summary.p99);
        let columns = COLUMNS - 2;
        let width = (summary.p99 - summary.min) / columns as f64;
        let mut bins = vec![0_u64; columns];
        for one in sorted.iter().take(within) {
            let at = if width > 0.0 { ((one - summary.min) / width) as usize } else { 0 };
            if let Some(bin) = bins.get_mut(at.min(columns - 1)) {
                *bin += 1;
            }
        }
        bins.push(0);
        bins.push((sorted.len() - within) as u64);
        let least = 0.1 * sorted.len() as f64 / COLUMNS as f64;
        let mut held: Vec<_> = bins.iter().copied().filter(|bin| *bin as f64 > least).collect();
        held.sort_unstable();
        let median = held.get(held.len() / 2).copied().unwrap_or(0) as f64;
        let most = bins.iter().copied().max().unwrap_or(0) as f64;
        Self { bins, is_log: median < 0.05 * most }
    }

    /// The rows, from the upper one on.
    fn rows(&self) -> [String; ROWS] {
        let value = |bin: u64| if self.is_log { (bin as f64).ln_1p() } else { bin as f64 };
        let most = self.bins.iter().map(|bin| value(*bin)).fold(1e-9, f64::max);
        let steps = (ROWS * BARS.len()) as f64;
        let height = |bin: u64| match bin {
            0 => 1,
            bin => 2 + ((steps - 2.0) * value(bin) / most).round() as usize,
        };
        let row = |above: usize| {
            let heights = self.bins.iter().enumerate().map(move |(column, bin)| {
                // The gap before what lies beyond.
                if column == COLUMNS - 2 { 0 } else { height(*bin) }
            });
            let bar = |height: usize| {
                let inside = height.saturating_sub(above * BARS.len()).min(BARS.len());
                inside.checked_sub(1).and_then(|at| BARS.get(at)).copied().unwrap_or(' ')
            };
            heights.map(bar).collect::<String>()
        };
        [row(1), row(0)]
    }
}

/// A size with its unit.
fn size(bytes: u64) -> String {
    match bytes as f64 {
        kib if kib < 1024.0 => many(bytes, "byte"),
        kib if kib < 1024.0 * 1024.0 => format!("{:.2} KiB", kib / 1024.0),
        mib => format!("{:.2} MiB", mib / (1024.0 * 1024.0)),
    }
}

/// What is known beside the times.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) allocated: Allocated,
    pub(super) seen: Seen,
}

fn what(work: &Work) -> String {
    match work.function {
        Function::Add => "add".to_owned(),
        Function::Echo => format!("echo, {} each way", many(work.bytes, "byte")),
    }
}

/// The trial as text.
pub(super) fn text(address: &str, work: &Work, trial: &Trial, beside: &Beside) -> String {
    let summary = trial.summary();
    let (count, evaluations) = (trial.samples_ns.len(), trial.evaluations);
    let mut out = String::new();
    // A String takes all that is written.
    let _ = writeln!(out, "{address} · {}", what(work));
    let _ = writeln!(out, "{} with {}.", many(count, "sample"), many(evaluations, "evaluation"));
    let kernel = trial
        .kernel_share
        .map_or("too short to say".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let pair = |left: f64, right: f64| format!("{:>11} … {:<11}", time(left), time(right));
    let spread = format!("{:>11} ± {:<11}", time(summary.mean), time(summary.sigma));
    let _ = writeln!(
        out,
        " Range  (min … max):  {} ┊ in the kernel: {kernel}",
        pair(summary.min, summary.max)
    );
    let _ = writeln!(out, " Time   (median):     {:>11}               ┊", time(summary.median));
    let _ = writeln!(out, " Time   (mean ± σ):   {spread} ┊");
    let histogram = Histogram::of(&trial.samples_ns, &summary);
    out.push('\n');
    for row in histogram.rows() {
        let _ = writeln!(out, "  {row}");
    }
    let label = match histogram.is_log {
        true => "Histogram: log(frequency) by time",
        false => "Histogram: frequency by time",
    };
    let (left, right) = (short(summary.min), format!("{} <", short(summary.p99)));
    let between = COLUMNS.saturating_sub(left.chars().count() + right.chars().count());
    let _ = writeln!(out, "  {left}{label:^between$}{right}");
    let Beside { allocated: Allocated { count, bytes }, seen } = beside;
    let size = size(*bytes);
    let _ = writeln!(out, "\n Memory estimate: {size}, allocs estimate: {count} (this side).");
    let (here, server) = (listed(&seen.here), listed(&seen.server));
    let _ = writeln!(out, " Cores: {here} (this side); {server} (the server).\n");
    let checked = match work.totals() {
        Some((first, last)) => {
            format!(" {} exact: {first} … {last}.", many_are(work.calls(), "total"))
        }
        None => format!(" {} right.", many_are(work.calls(), "answer")),
    };
    let _ = writeln!(out, "{checked}");
    out
}

/// The trial as JSON, times in nanoseconds.
pub(super) fn json(address: &str, work: &Work, trial: &Trial, beside: &Beside) -> String {
    let summary = trial.summary();
    let histogram = Histogram::of(&trial.samples_ns, &summary);
    let function = match work.function {
        Function::Add => "add",
        Function::Echo => "echo",
    };
    let shown = json!({
        "schema": 1,
        "address": address,
        "function": function,
        "request_bytes": work.bytes,
        "samples": trial.samples_ns.len(),
        "evaluations": trial.evaluations,
        "min_ns": summary.min,
        "median_ns": summary.median,
        "mean_ns": summary.mean,
        "sigma_ns": summary.sigma,
        "p99_ns": summary.p99,
        "max_ns": summary.max,
        "kernel_share": trial.kernel_share,
        "allocations": beside.allocated.count,
        "allocated_bytes": beside.allocated.bytes,
        "cores": { "here": beside.seen.here, "server": beside.seen.server },
        "histogram": {
            "from_ns": summary.min,
            "to_ns": summary.p99,
            "bins": histogram.bins.get(..COLUMNS - 2),
            "beyond": histogram.bins.last(),
            "log": histogram.is_log,
        },
        "calls": work.calls(),
        "totals": work.totals().map(|(first, last)| [first, last]),
    });
    format!("{shown}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(samples_ns: Vec<f64>) -> (Histogram, Trial) {
        let trial = Trial { samples_ns, evaluations: 1, kernel_share: Some(0.5) };
        (Histogram::of(&trial.samples_ns, &trial.summary()), trial)
    }

    #[test]
    fn bars_are_of_the_frequency_until_few_bins_hold_nearly_all() {
        let (even, _) = trial((0..6_000).map(f64::from).collect());
        assert!(!even.is_log);
        assert_eq!(even.bins.iter().sum::<u64>(), 6_000);
        assert_eq!(even.bins.last(), Some(&60), "a hundredth lies beyond");
        // Nearly all in one bin, and many bins of a few.
        let mut spiked = vec![100.0; 50_000];
        spiked.extend((0..12_000).map(|at| 100.0 + f64::from(at) / 10.0));
        spiked.sort_by(f64::total_cmp);
        let (spiked, _) = trial(spiked);
        assert!(spiked.is_log);
        let rows = spiked.rows();
        assert!(rows.iter().all(|row| row.chars().count() == COLUMNS));
        assert!(rows[0].starts_with('█') && rows[1].starts_with('█'), "{rows:?}");
        assert_eq!(rows[1].chars().nth(COLUMNS - 2), Some(' '), "the gap");
    }

    #[test]
    fn samples_that_are_all_equal_are_one_bar() {
        let (histogram, trial) = trial(vec![7.0; 3]);
        assert_eq!(histogram.bins[0], 3);
        let allocated = Allocated { count: 3, bytes: 209_531 };
        let seen = Seen { here: [0, 1].into(), ..Seen::default() };
        let beside = Beside { allocated, seen };
        let text = text("here:", &Work::new(Function::Echo, 8), &trial, &beside);
        assert!(text.contains("3 samples with 1 evaluation.\n"), "{text}");
        assert!(text.contains("7.000 ns … 7.000 ns"), "{text}");
        assert!(text.contains("in the kernel: 50.0 %"), "{text}");
        let memory = "Memory estimate: 204.62 KiB, allocs estimate: 3 (this side).\n";
        assert!(text.contains(memory), "{text}");
        let cores = "Cores: 0, 1 (this side); not known (the server).\n";
        assert!(text.contains(cores), "{text}");
    }

    #[test]
    fn times_have_units_and_digits() {
        assert_eq!(time(137_833.0), "137.833 μs");
        assert_eq!(
            (short(1_178.4), short(43_167.0), short(579e3)),
            ("1.18 μs".to_owned(), "43.2 μs".to_owned(), "579 μs".to_owned())
        );
        assert_eq!(time(2.5e9), "2.500 s");
    }
}
