//! The smallest difference that a run can show, estimated before it begins from how much figures
//! varied in an earlier one.

use judge::smallest_difference;
use lab::plan::Plan;
use ledger::{FigureRow, Ledger, RunId};

use crate::storage::Storage;

/// How many earlier runs are looked through for one that shows how much figures vary.
const RUNS_SEARCHED: usize = 50;

/// What is assumed when no run shows how much the paired log ratios deviate from round to round: on
/// a quiet host CPU time per operation varies by about as much.
const ASSUMED: f64 = 0.01;

/// The smallest difference that some rounds show nine times out of ten.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detectable {
    /// The difference: 0.02 is 2 %.
    pub(crate) least: f64,
    /// The run whose figures it is estimated from; `None` when it is only an assumption.
    pub(crate) from: Option<RunId>,
}

impl Detectable {
    /// With this many rounds, when the last look is judged at `nominal_error`; `None` under two.
    pub(crate) fn of(
        plan: &Plan,
        storage: &Storage,
        rounds: u32,
        nominal_error: f64,
    ) -> anyhow::Result<Option<Self>> {
        let earlier = earlier(plan, storage)?;
        let (deviation, from) = earlier.map_or((ASSUMED, None), |(by, run)| (by, Some(run)));
        let least = smallest_difference(deviation, rounds, nominal_error);
        Ok(least.map(|ratio| Self { least: ratio - 1.0, from }))
    }

    /// `1.2 % can be shown nine times out of ten, as figures varied in run 12`.
    pub(crate) fn words(&self) -> String {
        let least = report::percent(self.least);
        match self.from {
            Some(run) => format!(
                "{least} can be shown nine times out of ten, as figures varied in run {run}"
            ),
            None => format!(
                "{least} can be shown nine times out of ten if figures vary by {} from round to \
                 round; no earlier run says how much they do",
                report::percent(ASSUMED)
            ),
        }
    }
}

/// How much the paired log ratios of the primary metric deviated in the latest run of this suite,
/// at its worst point.
fn earlier(plan: &Plan, storage: &Storage) -> anyhow::Result<Option<(f64, RunId)>> {
    // A ledger that isn't there yet holds no earlier run.
    let Ok(ledger) = Ledger::open_read_only(&storage.ledger) else { return Ok(None) };
    let metric = &plan.rounds.primary;
    let [a, others @ ..] = plan.targets() else { return Ok(None) };
    for run in ledger.runs()?.iter().rev().take(RUNS_SEARCHED) {
        if run.title != plan.title {
            continue;
        }
        let figures = ledger.figures(run.id, &metric.suite)?;
        let pairs = plan.points.iter().flat_map(|point| others.iter().map(move |b| (point, b)));
        let deviations: Option<Vec<f64>> = pairs
            .map(|(point, b)| deviation_at(&figures, &point.label, &a.name, &b.name))
            .collect();
        if let Some(deviations) = deviations.filter(|all| !all.is_empty()) {
            return Ok(Some((deviations.into_iter().fold(0.0, f64::max), run.id)));
        }
    }
    Ok(None)
}

/// The deviation of the log ratio of two targets at one point: of the pair itself where both were
/// measured, else what the first one's own deviation lets expect of two independent ones.
fn deviation_at(figures: &[FigureRow], point: &str, a: &str, b: &str) -> Option<f64> {
    let plain = a.strip_suffix(".a").filter(|plain| b.strip_suffix(".b") == Some(plain));
    let of = |name: &str| {
        let here = figures.iter().filter(|row| row.point == point && row.target == name);
        here.map(|row| (row.round, row.value)).collect::<Vec<_>>()
    };
    let (first, second) = (of(a), of(b));
    let pairs = first.iter().filter_map(|(round, a)| {
        let (_, b) = second.iter().find(|(other, _)| other == round)?;
        Some((*a, *b))
    });
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.unzip();
    if left.len() >= judge::MIN_ROUNDS {
        return judge::paired_ratio(&left, &right, 0.95).map(|interval| interval.log_deviation);
    }
    let alone: Vec<f64> = of(plain.unwrap_or(a)).iter().map(|(_, value)| *value).collect();
    if alone.len() < judge::MIN_ROUNDS {
        return None;
    }
    let ones = vec![1.0; alone.len()];
    let own = judge::paired_ratio(&alone, &ones, 0.95)?.log_deviation;
    Some(own * 2.0_f64.sqrt())
}
