//! The verdicts of a run, stored when it ends: they stay what they were when a rule changes.

use judge::{Inconclusive, Interval, Likely, Metrics, Verdict};
use ledger::{Ledger, LedgerError, PointId, RunId, RunRow, RungRow, TargetId, VerdictRow};

use crate::compare::{Beside, Bound, Compared, Contest, LikelyCompared, compare, compare_pairs};
use crate::ladder::rung_pairs;
use crate::summary::Summary;
use crate::trial_summary::TrialSummary;

/// Judges a run that ends, and stores its verdicts.
///
/// Fails when the ledger can't be read or written, or when a histogram in it is damaged.
pub fn store_verdicts(ledger: &mut Ledger, run: RunId) -> Result<(), LedgerError> {
    let view = ledger.run_view_without_slow(run)?;
    let points: Vec<PointId> = view.points.iter().map(|(id, _)| *id).collect();
    let targets: Vec<TargetId> = view.targets.iter().map(|(id, _)| *id).collect();
    let summary = Summary::of(view)?;
    let all = summary.comparisons.iter().chain(&summary.rung_comparisons);
    for (ordinal, one) in (0..).zip(all) {
        let place = (points[one.point], targets[one.a], targets[one.b]);
        ledger.add_verdict(&row(run, ordinal, place, one))?;
    }
    Ok(())
}

/// The comparisons of a run.
pub(crate) struct Judged {
    /// The first target against each other one.
    pub(crate) comparisons: Vec<Compared>,
    /// Rungs of a ladder.
    pub(crate) rung_comparisons: Vec<Compared>,
}

/// Judges a run.
pub(crate) fn judge(
    run: &RunRow,
    metrics: &Metrics,
    contest: Option<&Contest>,
    rungs: &[(usize, RungRow)],
    counts: (usize, usize),
    trials: &[TrialSummary],
) -> Judged {
    Judged {
        comparisons: compare(run, metrics, contest, counts, trials),
        rung_comparisons: compare_pairs(run, metrics, &rung_pairs(rungs, counts.1), trials),
    }
}

fn row(
    run_id: RunId,
    ordinal: u32,
    (point_id, a_id, b_id): (PointId, TargetId, TargetId),
    one: &Compared,
) -> VerdictRow {
    let ends = one.interval.filter(|interval| interval.high.is_finite());
    let (why, more_rounds) = match one.verdict {
        Verdict::CantTell { why, more_rounds } => (Some(why.code().to_owned()), more_rounds),
        _ => (None, None),
    };
    let (a_median, b_median) = one.beside.medians.unzip();
    let likely = one.likely.map(|likely| likely.found);
    VerdictRow {
        run_id,
        ordinal,
        point_id,
        a_id,
        b_id,
        metric: one.metric.suite.to_string(),
        is_primary: one.primary,
        ratio: one.interval.map(|interval| interval.ratio),
        low: ends.map(|interval| interval.low),
        high: ends.map(|interval| interval.high),
        rounds: one.interval.map(|interval| interval.rounds as u64),
        disturbed_rounds: one.disturbed_rounds as u64,
        p_value: ends.map(|interval| interval.p_value),
        log_deviation: ends.map(|interval| interval.log_deviation),
        bound: one.bound.map(|bound| bound.code().to_owned()),
        confidence: one.confidence,
        verdict: one.verdict.code().to_owned(),
        why,
        more_rounds,
        a_median,
        b_median,
        shift: one.beside.shift,
        rank_p: one.beside.rank_p,
        likely: one.likely.map(|likely| likely.code().to_owned()),
        likely_ratio: likely.map(|found| found.interval.ratio),
        likely_low: likely.map(|found| found.interval.low),
        likely_high: likely.map(|found| found.interval.high),
        likely_rounds: likely.map(|found| found.interval.rounds as u64),
        likely_disturbed_rounds: one.likely.map(|likely| likely.disturbed_rounds as u64),
        least_disturbance: likely.map(|found| found.least_disturbance),
        most_disturbance: likely.map(|found| found.most_disturbance),
    }
}

/// The stored verdicts of a run; `None` when it has none, or one that only a newer loadline knows.
pub(crate) fn stored(
    rows: &[VerdictRow],
    metrics: &Metrics,
    point: impl Fn(PointId) -> Option<usize>,
    target: impl Fn(TargetId) -> Option<usize>,
) -> Option<Judged> {
    let compared = |row: &VerdictRow| {
        Some(Compared {
            point: point(row.point_id)?,
            a: target(row.a_id)?,
            b: target(row.b_id)?,
            metric: metrics.named(&row.metric)?.clone(),
            interval: interval(row),
            verdict: verdict(row)?,
            likely: likely(row),
            bound: match &row.bound {
                Some(code) => Some(Bound::of_code(code)?),
                None => None,
            },
            disturbed_rounds: row.disturbed_rounds as usize,
            primary: row.is_primary,
            confidence: row.confidence,
            beside: Beside {
                medians: row.a_median.zip(row.b_median),
                shift: row.shift,
                rank_p: row.rank_p,
            },
        })
    };
    let all: Option<Vec<Compared>> = rows.iter().map(compared).collect();
    let all = all.filter(|all| !all.is_empty())?;
    // A rung that is compared is never a run's first target: one comes before it.
    let (comparisons, rung_comparisons) = all.into_iter().partition(|one| one.a == 0);
    Some(Judged { comparisons, rung_comparisons })
}

fn interval(row: &VerdictRow) -> Option<Interval> {
    Some(Interval {
        ratio: row.ratio?,
        low: row.low.unwrap_or(0.0),
        high: row.high.unwrap_or(f64::INFINITY),
        rounds: row.rounds? as usize,
        p_value: row.p_value.unwrap_or(1.0),
        log_deviation: row.log_deviation.unwrap_or(f64::NAN),
    })
}

fn verdict(row: &VerdictRow) -> Option<Verdict> {
    let more_rounds = row.more_rounds;
    Some(match &row.verdict[..] {
        "better" => Verdict::Better,
        "worse" => Verdict::Worse,
        "same" => Verdict::Same,
        _ => {
            let why = Inconclusive::of_code(row.why.as_deref()?)?;
            Verdict::CantTell { why, more_rounds }
        }
    })
}

fn likely(row: &VerdictRow) -> Option<LikelyCompared> {
    let interval = Interval {
        ratio: row.likely_ratio?,
        low: row.likely_low?,
        high: row.likely_high?,
        rounds: row.likely_rounds? as usize,
        // Not stored: that it is likely does not follow from them.
        p_value: f64::NAN,
        log_deviation: f64::NAN,
    };
    Some(LikelyCompared {
        found: Likely {
            interval,
            least_disturbance: row.least_disturbance?,
            most_disturbance: row.most_disturbance?,
        },
        is_better: row.likely.as_deref()? == "better",
        disturbed_rounds: row.likely_disturbed_rounds? as usize,
    })
}
