//! What a comparison can show, said before it begins.

use judge::{metric_named, smallest_difference};
use lab::plan::Plan;
use ledger::{FigureRow, Ledger, RunId};

use crate::home::Home;
use crate::run::HowArgs;

/// How many earlier runs are looked through for one that says how much figures vary.
const RUNS_SEARCHED: usize = 50;

/// Says on standard error how many rounds may come and what they can show, and notes it in the
/// plan. Without an earlier run of this suite, the first look says it.
pub(super) fn say(plan: &mut Plan, how: &HowArgs) -> anyhow::Result<()> {
    let (most, measure) = (plan.rounds.at_most, plan.rounds.measure);
    let earlier = earlier(plan, how)?;
    let Some(sequence) = &mut plan.rounds.sequence else { return Ok(()) };
    let error = sequence.error / plan.points.len() as f64;
    let last = judge::nominal_errors(&judge::looks(most), most, error);
    let last = last.and_then(|errors| errors.last().copied());
    let shown = earlier.and_then(|(deviation, run)| {
        Some((smallest_difference(deviation, most, last?)? - 1.0, format!("run {run}")))
    });
    let can_show = match &shown {
        Some((least, from)) => {
            format!(
                "{} can be shown nine times out of ten, as figures varied in {from}",
                report::percent(*least)
            )
        }
        None => "no earlier run says how much figures vary; the first look will".to_owned(),
    };
    eprintln!("at most {most} rounds of 2 × {measure} a point: {can_show}");
    sequence.least_shown = shown;
    Ok(())
}

/// How much the paired log ratios of the primary metric deviated in the latest run of this suite,
/// at its worst point.
fn earlier(plan: &Plan, how: &HowArgs) -> anyhow::Result<Option<(f64, RunId)>> {
    let home = Home::find(how.ledger.as_deref())?;
    // A ledger that isn't there yet, or is of an older version, has nothing to say.
    let Ok(ledger) = Ledger::open_read_only(&home.ledger) else { return Ok(None) };
    let Some(metric) = metric_named(plan.rounds.primary) else { return Ok(None) };
    let [a, b] = plan.targets() else { return Ok(None) };
    for run in ledger.runs()?.iter().rev().take(RUNS_SEARCHED) {
        if run.title != plan.title {
            continue;
        }
        let figures = ledger.figures(run.id, metric.sql)?;
        let at = |label: &str| deviation_at(&figures, label, &a.name, &b.name);
        let deviations: Option<Vec<f64>> =
            plan.points.iter().map(|point| at(&point.label)).collect();
        if let Some(deviations) = deviations {
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
    if left.len() >= judge::LEAST_ROUNDS {
        return judge::paired_ratio(&left, &right, 0.95).map(|interval| interval.log_deviation);
    }
    let alone: Vec<f64> = of(plain.unwrap_or(a)).iter().map(|(_, value)| *value).collect();
    if alone.len() < judge::LEAST_ROUNDS {
        return None;
    }
    let ones = vec![1.0; alone.len()];
    let own = judge::paired_ratio(&alone, &ones, 0.95)?.log_deviation;
    Some(own * 2.0_f64.sqrt())
}
