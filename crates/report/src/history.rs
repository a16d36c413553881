//! All runs of a suite on one kind of host, over commits: where did it change for good?

use std::collections::{BTreeMap, BTreeSet};

use judge::{ChangePoint, Direction, Hunt, Metric, Metrics, change_points, series_interval};
use ledger::{Ledger, LedgerError, PastRun};
use serde_json::{Map, Value, json};

use crate::contest::change;
use crate::escape::one_line;
use crate::host::{kind_of, kind_words};
use crate::json::SCHEMA;
use crate::metrics::{figures_of_run, metrics};
use crate::outcome::Outcome;
use crate::phrases::{many, value};

/// Runs under which a series has no change points to speak of.
const MIN_RUNS: usize = 6;

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
    pub(crate) title: String,
    pub(crate) target: String,
    /// Every target that its runs on this kind of host have, by name.
    pub(crate) targets: Vec<String>,
    pub(crate) metric: Metric,
    /// Every metric that it may be asked for.
    pub(crate) metrics: Metrics,
    /// Its host, in words.
    pub(crate) host: String,
    /// Runs of the suite on other kinds of hosts, which are left out.
    pub(crate) elsewhere: usize,
    pub(crate) series: Vec<Series>,
}

/// One point over runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) point: String,
    pub(crate) settings: String,
    pub(crate) runs: Vec<Past>,
    pub(crate) changes: Vec<ChangePoint>,
}

/// One run of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub(crate) id: i64,
    pub(crate) started_at: String,
    pub(crate) commit: Option<String>,
    pub(crate) figure: f64,
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
        let mut series: BTreeMap<(String, String), Vec<Past>> = BTreeMap::new();
        let mut targets = BTreeSet::new();
        for run in here {
            if question.since.is_some_and(|since| run.id.get() < since) {
                continue;
            }
            let mut figures: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for row in figures_of_run(ledger, run.id, &metric)? {
                let name = run.plain_name(&row.target);
                if name == target {
                    figures.entry(row.point).or_default().push(row.value);
                }
                targets.insert(name.to_owned());
            }
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
            Series { point, settings, runs, changes }
        });
        Ok(Some(History {
            title: question.title.clone(),
            target,
            targets: targets.into_iter().collect(),
            metric,
            metrics,
            host: kind_words(&kind),
            elsewhere: elsewhere.len(),
            series: series.collect(),
        }))
    }

    /// Every target that the suite's runs on this kind of host have, by name.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// The outcome, from which the exit code follows: worse when the last change of any point is
    /// for the worse, can't tell when no point has enough runs.
    pub fn outcome(&self) -> Outcome {
        let enough = |series: &Series| series.runs.len() >= MIN_RUNS;
        Outcome {
            requirement_broken: false,
            worse: self
                .series
                .iter()
                .any(|series| series.changes.last().is_some_and(|change| self.is_worse(change))),
            cant_tell: !self.series.iter().any(enough),
        }
    }

    pub(crate) fn is_worse(&self, change: &ChangePoint) -> bool {
        match self.metric.direction {
            Direction::HigherIsBetter => change.after < change.before,
            Direction::LowerIsBetter => change.after > change.before,
        }
    }

    /// The last changes in a sentence each, or that there is none.
    pub fn sentences(&self) -> Vec<String> {
        let (name, target) = (&self.metric.suite, &self.target);
        let mut lines = Vec::new();
        for series in &self.series {
            let Some(last) = series.changes.last() else { continue };
            let word = if self.is_worse(last) { "worse" } else { "better" };
            let (before, after) = (&series.runs[last.index - 1], &series.runs[last.index]);
            lines.push(format!(
                "{target} became {word} at {}: {name} {} since run {} ({}), after {} of {} runs.",
                crate::escape::one_line(&series.point),
                change(last.after / last.before),
                after.id,
                range(before, after),
                last.index,
                series.runs.len()
            ));
        }
        if !lines.is_empty() {
            return lines;
        }
        let most = self.series.iter().map(|series| series.runs.len()).max().unwrap_or(0);
        if most < MIN_RUNS {
            return vec![format!(
                "It can't be told whether {target} changed: {} on this kind of host {} too few, \
                 it takes {MIN_RUNS}.",
                many(most, "run"),
                if most == 1 { "is" } else { "are" }
            )];
        }
        vec![format!("{target} did not change in {most} runs by {name}.")]
    }

    /// The history for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}  {} of {}\n",
            one_line(&self.title),
            self.metric.suite,
            one_line(&self.target)
        );
        text.push_str(&format!("  host  {}\n", crate::escape::one_line(&self.host)));
        if self.elsewhere > 0 {
            let runs = if self.elsewhere == 1 { "run" } else { "runs" };
            text.push_str(&format!("  {} {runs} on other hosts left out\n", self.elsewhere));
        }
        for series in &self.series {
            let settings = match series.settings_words() {
                settings if settings.is_empty() => String::new(),
                settings => format!("  {settings}"),
            };
            let point = crate::escape::one_line(&series.point);
            text.push_str(&format!("\n{point}{settings}\n"));
            for (index, run) in series.runs.iter().enumerate() {
                let mark = match series.changes.iter().find(|change| change.index == index) {
                    Some(found) => {
                        let word = if self.is_worse(found) { "worse" } else { "better" };
                        format!("  ← {word}: {}", change(found.after / found.before))
                    }
                    None => String::new(),
                };
                let figure = value(run.figure, &self.metric);
                let (id, at) = (run.id, crate::escape::one_line(&run.started_at));
                let day = at.get(..16).unwrap_or(&at).replace('T', " ");
                let commit = run.commit.as_deref().map_or("", short);
                text.push_str(&format!("  {id:>5}  {day}  {commit:<10}  {figure:>10}{mark}\n"));
            }
        }
        text.push('\n');
        for line in self.sentences() {
            text.push_str(&format!("{}\n", crate::escape::one_line(&line)));
        }
        text
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let series = |series: &Series| {
            let runs = series.runs.iter().map(|run| {
                json!({
                    "run": run.id,
                    "started_at": run.started_at,
                    "commit": run.commit,
                    "figure": run.figure,
                })
            });
            let changes = series.changes.iter().map(|change| {
                let (before, after) = (&series.runs[change.index - 1], &series.runs[change.index]);
                json!({
                    "verdict": if self.is_worse(change) { "worse" } else { "better" },
                    "before": change.before,
                    "after": change.after,
                    "ratio": change.after / change.before,
                    "p_value": change.p_value,
                    "last_run": before.id,
                    "first_run": after.id,
                    "last_commit": before.commit,
                    "first_commit": after.commit,
                })
            });
            json!({
                "point": series.point,
                "settings": series.settings,
                "runs": runs.collect::<Vec<_>>(),
                "changes": changes.collect::<Vec<_>>(),
            })
        };
        json!({
            "schema": SCHEMA,
            "suite": self.title,
            "target": self.target,
            "metric": self.metric.json,
            "host": self.host,
            "elsewhere": self.elsewhere,
            "series": self.series.iter().map(series).collect::<Vec<_>>(),
            "conclusion": self.sentences().join(" "),
        })
    }
}

impl Series {
    /// Settings beside the suite's text: `clients.pipeline = 1`; empty when nothing was.
    pub(crate) fn settings_words(&self) -> String {
        let pairs: Vec<(String, String)> = serde_json::from_str(&self.settings).unwrap_or_default();
        let words = pairs.iter().map(|(key, value)| format!("{key} = {value}"));
        crate::escape::one_line(&words.collect::<Vec<_>>().join(", "))
    }
}

/// The run that says what a suite measures: the latest that isn't a comparison, if there is any.
fn typical(runs: &[PastRun]) -> Option<&PastRun> {
    runs.iter().rev().find(|run| !run.compares).or(runs.last())
}

fn past(run: &PastRun, figure: f64) -> Past {
    let commit = fact(&run.fingerprint, "program_commit");
    Past { id: run.id.get(), started_at: run.started_at.clone(), commit, figure }
}

fn fact(fingerprint: &Map<String, Value>, name: &str) -> Option<String> {
    fingerprint.get(name).and_then(Value::as_str).map(str::to_owned)
}

pub(crate) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// `a1b2c3d4e5..0123456789`, or the runs where commits are unknown.
fn range(before: &Past, after: &Past) -> String {
    match (&before.commit, &after.commit) {
        (Some(before), Some(after)) if before != after => {
            format!("{}..{}", short(before), short(after))
        }
        (Some(before), Some(_)) => format!("both sides are commit {}", short(before)),
        _ => format!("after run {}", before.id),
    }
}
