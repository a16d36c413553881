//! The verdicts of a run, stored when it ends: they stay what they were when a rule changes.

use judge::{Inconclusive, Interval, Likely, LikelyInterval, Metric, Metrics, Verdict};
use ledger::{Ledger, LedgerError, PointId, RunId, RunRow, TargetId, VerdictRow};

use crate::compare::{Bound, Compared, Contest, LikelyCompared, compare, compare_pairs};
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
    let rows = (0..).zip(all).map(|(ordinal, one)| {
        let place = (points[one.point], targets[one.a], targets[one.b]);
        row(run, ordinal, place, one)
    });
    ledger.add_verdicts(&rows.collect::<Vec<_>>())
}

/// The comparisons of a run.
pub(crate) struct Judged {
    /// The first target against each other one.
    pub(crate) comparisons: Vec<Compared>,
    /// Rungs of a ladder.
    pub(crate) rung_comparisons: Vec<Compared>,
}

/// Judges a run, of whose targets `rungs` are the measured ones of its ladder.
pub(crate) fn judge(
    run: &RunRow,
    metrics: &Metrics,
    contest: Option<&Contest>,
    rungs: &[usize],
    counts: (usize, usize),
    started_once: &[usize],
    trials: &[TrialSummary],
) -> Judged {
    let pairs = rung_pairs(rungs, counts.1);
    Judged {
        comparisons: compare(run, metrics, contest, counts, started_once, trials),
        rung_comparisons: compare_pairs(run, metrics, &pairs, started_once, trials),
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
    let (a_median, b_median) = one.medians.unzip();
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

/// The stored verdicts of a run; `None` when it has none, or one of a metric that only a newer
/// loadline knows.
///
/// Fails when one is no word that is known: what it says must not be guessed.
pub(crate) fn stored(
    rows: &[VerdictRow],
    metrics: &Metrics,
    point: impl Fn(PointId) -> Option<usize>,
    target: impl Fn(TargetId) -> Option<usize>,
) -> Result<Option<Judged>, LedgerError> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let place = || Some((point(row.point_id)?, target(row.a_id)?, target(row.b_id)?));
        let (Some(place), Some(metric)) = (place(), metrics.named(&row.metric)) else {
            return Ok(None);
        };
        all.push(compared(row, place, metric)?);
    }
    if all.is_empty() {
        return Ok(None);
    }
    // A rung that is compared is never a run's first target: one comes before it.
    let (comparisons, rung_comparisons) = all.into_iter().partition(|one| one.a == 0);
    Ok(Some(Judged { comparisons, rung_comparisons }))
}

fn compared(
    row: &VerdictRow,
    (point, a, b): (usize, usize, usize),
    metric: &Metric,
) -> Result<Compared, LedgerError> {
    let bound = match row.bound.as_deref() {
        None => None,
        Some(word) => Some(known("verdict.bound", word, Bound::of_code(word))?),
    };
    Ok(Compared {
        point,
        a,
        b,
        metric: metric.clone(),
        interval: interval(row),
        verdict: verdict(row)?,
        likely: likely(row)?,
        bound,
        disturbed_rounds: row.disturbed_rounds as usize,
        primary: row.is_primary,
        confidence: row.confidence,
        medians: row.a_median.zip(row.b_median),
    })
}

/// What a word means, or the error that names it.
fn known<T>(column: &'static str, word: &str, meaning: Option<T>) -> Result<T, LedgerError> {
    meaning.ok_or_else(|| LedgerError::UnknownWord { column, word: word.to_owned() })
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

fn verdict(row: &VerdictRow) -> Result<Verdict, LedgerError> {
    let word = &row.verdict[..];
    let meaning = match word {
        "better" => Verdict::Better,
        "worse" => Verdict::Worse,
        "same" => Verdict::Same,
        "cant_tell" => {
            let why = row.why.as_deref().unwrap_or_default();
            let why = known("verdict.why", why, Inconclusive::of_code(why))?;
            Verdict::CantTell { why, more_rounds: row.more_rounds }
        }
        _ => return known("verdict.verdict", word, None),
    };
    Ok(meaning)
}

fn likely(row: &VerdictRow) -> Result<Option<LikelyCompared>, LedgerError> {
    let Some(word) = row.likely.as_deref() else { return Ok(None) };
    let is_better = match word {
        "better" => Some(true),
        "worse" => Some(false),
        _ => None,
    };
    let is_better = known("verdict.likely", word, is_better)?;
    let found = || {
        let interval = LikelyInterval {
            ratio: row.likely_ratio?,
            low: row.likely_low?,
            high: row.likely_high?,
            rounds: row.likely_rounds? as usize,
        };
        let (least_disturbance, most_disturbance) = (row.least_disturbance?, row.most_disturbance?);
        let found = Likely { interval, least_disturbance, most_disturbance };
        let disturbed_rounds = row.likely_disturbed_rounds? as usize;
        Some(LikelyCompared { found, is_better, disturbed_rounds })
    };
    Ok(found())
}
