//! `loadline workflow history`: what a server's log says of the runs of tasks. Control plane.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use service::{Failure, Outcome, out};

use super::input;
use crate::history::{LimitUse, Run, Runs, critical, limits, tasks};
use crate::model::Instant;

const EXAMPLES: &str = "\
Examples:
  loadline workflow history home/HOST.3141.ecf.log             the slowest tasks
  loadline workflow history *.ecf.log --under /x/f --defs x.def
  loadline workflow history HOST.3141.ecf.log --json | jq '.tasks[] | select(.aborted > 0)'

The log is this server's, or ecFlow's own. With a definition (loadline workflow get) also the chain
of triggers that ended last, and how full limits were. Times are whole seconds, as the log's.";

/// The most runs that are kept, and bytes of a line.
const RUNS: usize = 5_000_000;
const LINE: u64 = 1 << 20;

/// Logs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HistoryArgs {
    /// Logs of one server, the oldest first
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Only tasks at and below this node
    #[arg(long, value_name = "NODE", default_value = "/")]
    under: String,
    /// The definition: for the chain of triggers, and limits
    #[arg(long, value_name = "FILE")]
    defs: Option<PathBuf>,
    /// How many tasks and limits are listed
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    slowest: usize,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &HistoryArgs) -> Outcome {
    let definition = args.defs.as_deref().map(input::definition).transpose()?;
    let mut runs = Runs::new(&args.under);
    for log in &args.logs {
        let wrong = |why: std::io::Error| Failure::Usage(format!("{}: {why}", log.display()));
        let mut reader = BufReader::with_capacity(1 << 16, File::open(log).map_err(wrong)?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = (&mut reader).take(LINE).read_until(b'\n', &mut line).map_err(wrong)?;
            if count == 0 {
                break;
            }
            runs.take(String::from_utf8_lossy(&line).trim_end());
            if runs.all.len() > RUNS {
                let text = format!("{}: more than {RUNS} runs: --under NODE", log.display());
                return Err(Failure::Usage(text));
            }
        }
    }
    runs.only_tasks();
    let tree = definition.as_ref().map(|one| &one.tree);
    let chain = tree.map(|tree| critical(tree, &runs.all)).unwrap_or_default();
    let mut limits = tree.map(|tree| limits(tree, &runs.all)).unwrap_or_default();
    limits.truncate(args.slowest);
    let mut all = tasks(&runs.all);
    let (count, ended) = (all.len(), all.iter().map(|task| task.runs).sum::<usize>());
    all.truncate(args.slowest);
    if args.json {
        let open = runs.all.iter().filter(|run| run.end.is_none()).count();
        let all = json!({
            "schema": 1, "tasks_run": count, "runs": ended, "not_ended": open, "tasks": all,
            "critical": chain, "limits": limits,
        });
        out::print(format_args!("{all}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{ended} runs of {count} tasks\n");
    if !all.is_empty() {
        let head = ["longest", "total", "waited", "runs", "aborted"];
        let [a, b, c, d, e] = head;
        let _ = writeln!(text, "\n{a:>10}{b:>12}{c:>10}{d:>7}{e:>9}  task");
    }
    for task in &all {
        let (longest, total, wait) =
            (span(task.longest), span(task.total), span(task.longest_wait));
        let (runs, aborted, path) = (task.runs, task.aborted, &task.path);
        let _ = writeln!(text, "{longest:>10}{total:>12}{wait:>10}{runs:>7}{aborted:>9}  {path}");
    }
    show_causes(&mut text, &chain, &limits);
    out::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn show_causes(text: &mut String, chain: &[&Run], limits: &[LimitUse]) {
    if !chain.is_empty() {
        text.push_str("\nThe chain that ended last:\n");
    }
    for run in chain {
        let end = run.end.unwrap_or(run.submitted);
        let (at, took) = (Instant::seconds(run.submitted), span(end - run.submitted));
        let _ = writeln!(text, "  {at}  {took:>10}  {}  {}", run.state, run.path);
    }
    if !limits.is_empty() {
        text.push_str("\nLimits:\n");
    }
    for LimitUse { limit, max, most, full, used } in limits {
        let (full, used) = (span(*full), span(*used));
        let _ = writeln!(text, "  {limit}  at most {most} of {max}, full {full} of {used} in use");
    }
}

/// `1:02:03`.
fn span(seconds: i64) -> String {
    let (hours, rest) = (seconds / 3600, seconds % 3600);
    match hours {
        0 => format!("{}:{:02}", rest / 60, rest % 60),
        hours => format!("{hours}:{:02}:{:02}", rest / 60, rest % 60),
    }
}
