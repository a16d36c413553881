//! `loadline history`: where did a suite's figures change for good, over commits?

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use base::units::Share;
use findings::{History, Question};
use judge::{Hunt, Metrics};
use ledger::Ledger;

use crate::exit::Failure;
use crate::out;
use crate::storage::Storage;

/// Arguments of `loadline history`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline history suites/tour.toml
  loadline history suites/tour.toml --metric latency.p99 --target memcached
  loadline history suites/tour.toml --fail-on worse     for CI

Runs on the latest run's kind of host are one series per point. docs/verdicts.md says how changes
are found.")]
pub(crate) struct HistoryArgs {
    /// The suite's TOML file; the suite of the last run unless given
    suite: Option<PathBuf>,
    /// The target; the first one unless given
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// The metric, such as rate_per_s or latency.p99; the suite's primary one unless given
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Leave out runs before this one: a change that was accepted
    #[arg(long, value_name = "RUN")]
    since: Option<i64>,
    /// Only changes of at least this much
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    least_change: Share,
    /// The most probable chance that counts as a change
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    p_value: f64,
    /// The least runs on either side of a change
    #[arg(long, value_name = "RUNS", default_value_t = 2)]
    least_segment: usize,
    /// Print it as JSON on standard output
    #[arg(long)]
    json: bool,
    /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Exit with 3 when the last change at any point is for the worse
    #[arg(long, value_name = "VERDICT", value_parser = ["worse"])]
    fail_on: Option<String>,
}

pub(crate) fn run(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    if !(args.p_value > 0.0 && args.p_value < 0.5) || args.least_segment == 0 {
        let message = "--p-value lies between 0 and 0.5, and --least-segment above 0";
        return Err(Failure::Usage(message.to_owned()));
    }
    let storage = Storage::find(args.ledger.as_deref())?;
    let ledger = match storage.read() {
        Ok(ledger) => ledger,
        // Without runs no suite declares more metrics.
        Err(error) => {
            check_metric(args, &Metrics::default())?;
            return Err(error);
        }
    };
    let title = title(args, &ledger)?;
    check_metric(args, &History::metrics(&ledger, &title)?.unwrap_or_default())?;
    let question = Question {
        title: title.clone(),
        target: args.target.clone(),
        metric: args.metric.clone(),
        since: args.since,
        hunt: Hunt {
            p_value: args.p_value,
            least_change: args.least_change.fraction,
            least_segment: args.least_segment,
            ..Hunt::default()
        },
    };
    let history = History::of(&ledger, &question)?;
    let history = history.with_context(|| format!("the ledger has no run of \"{title}\""))?;
    if let Some(name) = args.target.as_ref().filter(|name| !history.targets.contains(name)) {
        let known = history.targets.join(", ");
        return Err(Failure::Usage(format!(
            "no run of \"{title}\" has a target \"{name}\"; there are {known}"
        )));
    }
    match args.json {
        true => out::print(format!("{:#}\n", report::history_json(&history)))?,
        false => out::print(report::history_text(&history))?,
    }
    Ok(ExitCode::from(history.outcome().exit_code(args.fail_on.is_some())))
}

/// Refuses a metric that the suite doesn't have.
fn check_metric(args: &HistoryArgs, metrics: &Metrics) -> Result<(), Failure> {
    let asked = args.metric.as_deref();
    let Some(name) = asked.filter(|name| metrics.named(name).is_none()) else { return Ok(()) };
    let known: Vec<&str> = metrics.iter().map(|metric| &*metric.suite).collect();
    let known = known.join(", ");
    Err(Failure::Usage(format!("there is no metric \"{name}\"; there are {known}")))
}

/// The title of the suite, which runs are known by.
fn title(args: &HistoryArgs, ledger: &Ledger) -> Result<String, Failure> {
    let Some(path) = &args.suite else {
        let runs = ledger.runs()?;
        return Ok(runs.last().context("the ledger has no run yet")?.title.clone());
    };
    let text = base::read_text(path, lab::plan::MAX_SUITE_BYTES).map_err(Failure::usage)?;
    let table: toml::Table =
        text.parse().map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let title = table.get("title").and_then(toml::Value::as_str);
    let missing = || Failure::Usage(format!("{}: it has no title", path.display()));
    Ok(title.ok_or_else(missing)?.to_owned())
}
