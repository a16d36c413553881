//! All runs of a suite on one kind of host, over commits: where did it change for good?

use std::collections::{BTreeMap, BTreeSet};

use judge::{ChangePoint, Direction, Hunt, Metric, Metrics, change_points, series_interval};
use ledger::{Ledger, LedgerError, PastRun};
use serde_json::{Map, Value};

use crate::host::{kind_of, kind_words};
use crate::metrics::metrics;
use crate::outcome::Outcome;

/// Runs under which a series has no change points to speak of.
pub const MIN_RUNS: usize = 6;

/// The question: a suite, and what of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The suite's title.
    pub title: String,
    /// The target; the first one of the latest run unless given, of one that isn't a comparison if
    /// there is any.
    pub target: Option<String>,
    /// The metric, by its name in suites; the latest run's primary one unless given.
    pub metric: Option<String>,
    /// Runs before this one are left out.
    pub since: Option<i64>,
    /// The parameters of the search for change points.
    pub hunt: Hunt,
}

/// The history of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The suite's title.
    pub title: String,
    /// The target.
    pub target: String,
    /// Every target that its runs on this kind of host have, by name.
    pub targets: Vec<String>,
    /// The metric.
    pub metric: Metric,
    /// Every metric that it may be asked for.
    pub metrics: Metrics,
    /// Its host, in words.
    pub host: String,
    /// Runs of the suite on other kinds of hosts, which are left out.
    pub elsewhere: usize,
    /// Runs of the suite on this kind of host that have no valid round of the target.
    pub without_figure: usize,
    /// Every point, with each of the settings that it was measured with.
    pub series: Vec<PointHistory>,
}

/// One point over runs.
#[derive(Debug, Clone, PartialEq)]
pub struct PointHistory {
    /// The point.
    pub point: String,
    /// What was set beside the suite's text, as JSON.
    pub settings: String,
    /// Its runs, in their order.
    pub runs: Vec<PastFigure>,
    /// Where its figure changed for good.
    pub changes: Vec<ChangePoint>,
}

/// One run of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct PastFigure {
    /// The run's id.
    pub id: i64,
    /// When it was started.
    pub started_at: String,
    /// The commit of its program; `None` is unseen.
    pub commit: Option<String>,
    /// The mean over its valid trials.
    pub figure: f64,
}

impl History {
    /// The metrics that the suite with this title has: those of its latest run that isn't a
    /// comparison, if there is any. `None` when it has no run.
    ///
    /// Fails when the ledger can't be read.
    pub fn metrics(ledger: &Ledger, title: &str) -> Result<Option<Metrics>, LedgerError> {
        let runs = ledger.past_runs(title)?;
        let Some(typical) = typical(&runs) else { return Ok(None) };
        Ok(Some(metrics(&ledger.program_figures(typical.id)?)))
    }

    /// The history that the ledger holds, on the latest run's kind of host. `None` when the suite
    /// has no run in it, or the metric isn't known.
    ///
    /// Fails when the ledger can't be read.
    pub fn of(ledger: &Ledger, question: &Question) -> Result<Option<History>, LedgerError> {
        let runs = ledger.past_runs(&question.title)?;
        let Some((latest, typical)) = runs.last().zip(typical(&runs)) else { return Ok(None) };
        let metrics = metrics(&ledger.program_figures(typical.id)?);
        let name = question.metric.as_ref().unwrap_or(&typical.primary_metric);
        let Some(metric) = metrics.named(name).cloned() else { return Ok(None) };
        let target = question.target.clone().unwrap_or_else(|| typical.target.clone());
        let kind = kind_of(&latest.fingerprint);
        let (here, elsewhere): (Vec<&PastRun>, Vec<&PastRun>) =
            runs.iter().partition(|run| kind_of(&run.fingerprint) == kind);
        let mut series: BTreeMap<(String, String), Vec<PastFigure>> = BTreeMap::new();
        let (mut targets, mut without_figure) = (BTreeSet::new(), 0);
        for run in here {
            if question.since.is_some_and(|since| run.id.get() < since) {
                continue;
            }
            let mut figures: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for row in ledger.figures(run.id, &metric.suite)? {
                let name = run.plain_name(&row.target);
                if name == target {
                    figures.entry(row.point).or_default().push(row.value);
                }
                targets.insert(name.to_owned());
            }
            without_figure += usize::from(figures.is_empty());
            for (point, values) in figures {
                let Some(interval) = series_interval(&values, 0.95) else { continue };
                let key = (point, run.settings.clone());
                series.entry(key).or_default().push(past(run, interval.mean));
            }
        }
        let series = series.into_iter().map(|((point, settings), runs)| {
            let figures: Vec<f64> = runs.iter().map(|run| run.figure).collect();
            let changes = match figures.len() >= MIN_RUNS {
                true => change_points(&figures, &question.hunt),
                false => Vec::new(),
            };
            PointHistory { point, settings, runs, changes }
        });
        Ok(Some(History {
            title: question.title.clone(),
            target,
            targets: targets.into_iter().collect(),
            metric,
            metrics,
            host: kind_words(&kind),
            elsewhere: elsewhere.len(),
            without_figure,
            series: series.collect(),
        }))
    }

    /// The outcome, from which the exit code follows: worse when the last change of any point is
    /// for the worse, can't tell when no point has enough runs.
    pub fn outcome(&self) -> Outcome {
        let enough = |series: &PointHistory| series.runs.len() >= MIN_RUNS;
        Outcome {
            requirement_broken: false,
            worse: self
                .series
                .iter()
                .any(|series| series.changes.last().is_some_and(|change| self.is_worse(change))),
            cant_tell: !self.series.iter().any(enough),
            ..Outcome::default()
        }
    }

    /// Whether a change is for the worse.
    pub fn is_worse(&self, change: &ChangePoint) -> bool {
        match self.metric.direction {
            Direction::HigherIsBetter => change.after < change.before,
            Direction::LowerIsBetter => change.after > change.before,
        }
    }
}

/// The run that says what a suite measures: the latest that isn't a comparison, if there is any.
fn typical(runs: &[PastRun]) -> Option<&PastRun> {
    runs.iter().rev().find(|run| !run.compares).or(runs.last())
}

fn past(run: &PastRun, figure: f64) -> PastFigure {
    let commit = fact(&run.fingerprint, "program_commit");
    PastFigure { id: run.id.get(), started_at: run.started_at.clone(), commit, figure }
}

fn fact(fingerprint: &Map<String, Value>, name: &str) -> Option<String> {
    fingerprint.get(name).and_then(Value::as_str).map(str::to_owned)
}
