//! `loadline workflow simulate`: what would run when. Control plane.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant as Clock;

use serde_json::json;
use service::{Failure, Outcome, out};

use super::input;
use crate::model::{Attribute, Date, Duration, Instant, Kind, NodeId, Snapshot, State};
use crate::simulate::{
    Assumed, Assumption, Happened, Pass, Plan, Simulated, Simulation, What, horizon,
};
use base::many;

const EXAMPLES: &str = "\
Examples:
  loadline workflow simulate x.def
  loadline workflow simulate x.def --until 7d --duration 00:10
  loadline workflow simulate x.def --what-if /x/f/a=aborted --what-if /x/g=duration=02:00
  loadline workflow simulate x.def --start 2026-12-24T00:00 --until 2026-12-27 --json | jq .path

PATH may be a family or suite: all tasks below it. STATE is complete, aborted, or active (its jobs
never end).";

/// How many tasks that have not run are listed unless more are asked for.
const NEVER: usize = 20;

/// What is simulated.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SimulateArgs {
    /// The definition
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Until when: a time (2026-12-24T10:00), or as long as 7d, 12:00 or 90m; without it to the
    /// endclock, or as long as ecFlow's simulator: a day, with days a week, with dates seven
    /// months, with crons or repeats a year
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// When suites begin whose clock has no date; without it now
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// How long jobs take
    #[arg(long, value_name = "HH:MM", default_value = "00:01")]
    duration: String,
    /// How jobs of a task end, and how long they take: PATH=STATE, PATH=duration=HH:MM, or both
    /// with a comma
    #[arg(long, value_name = "PATH=STATE,duration=HH:MM")]
    what_if: Vec<String>,
    /// Look at the tree once a minute, as ecFlow's own simulator does, to compare both
    #[arg(long)]
    as_ecflow: bool,
    /// Print the summary only
    #[arg(long, short)]
    quiet: bool,
    /// How many tasks that never ran are listed, with the reason
    #[arg(long, value_name = "NUMBER", default_value_t = NEVER)]
    never: usize,
    /// Print one JSON object a line, the summary last
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &SimulateArgs) -> Outcome {
    let examined = input::definition(&args.file)?;
    let tree: &Snapshot = &examined.tree;
    let plan = plan(args, tree)?;
    let mut output = BufWriter::with_capacity(1 << 16, out::stream());
    let mut written = Ok(());
    let started = Clock::now();
    let simulated = Simulation::run(tree, input::variables()?, &plan, |tree, happened| {
        if !args.quiet && written.is_ok() {
            written = if args.json {
                writeln!(output, "{}", as_json(tree, &happened))
            } else {
                line(&mut output, tree, &happened)
            };
        }
    });
    let simulated = simulated.map_err(Failure::usage)?;
    written?;
    summary(args, &mut output, &simulated, started.elapsed().as_secs_f64())?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn line(output: &mut impl Write, tree: &Snapshot, happened: &Happened) -> std::io::Result<()> {
    let Happened { at, node, what, .. } = happened;
    let path = tree.path(*node);
    match what {
        What::Started(1) => writeln!(output, "{at}  started   {path}"),
        What::Started(try_no) => writeln!(output, "{at}  started   {path}  (try {try_no})"),
        What::Complete => writeln!(output, "{at}  complete  {path}"),
        What::Aborted => writeln!(output, "{at}  aborted   {path}"),
    }
}

fn as_json(tree: &Snapshot, happened: &Happened) -> serde_json::Value {
    let (what, try_no) = match happened.what {
        What::Started(try_no) => ("started", Some(try_no)),
        What::Complete => ("complete", None),
        What::Aborted => ("aborted", None),
    };
    json!({
        "at": input::iso(happened.at),
        "what": what,
        "path": tree.path(happened.node),
        "try": try_no,
    })
}

fn summary(
    args: &SimulateArgs,
    output: &mut impl Write,
    simulated: &Simulated,
    seconds: f64,
) -> std::io::Result<()> {
    let Simulated { tree, runs, events, minute, is_endless } = simulated;
    let tasks = tree.walk(NodeId::ROOT).filter(|id| tree.node(*id).kind == Kind::Task);
    let idle: Vec<NodeId> = tasks.filter(|id| !runs.contains_key(id)).collect();
    let never = idle.iter().filter(|id| !is_meant_idle(tree, **id)).copied();
    let never: Vec<NodeId> = never.collect();
    let left: Vec<NodeId> = tree.walk(NodeId::ROOT).filter(|id| is_left(tree, *id)).collect();
    let jobs: u64 = runs.values().sum();
    let rate = *events as f64 / seconds.max(1e-9);
    if args.json {
        let reasons =
            never.iter().map(|id| json!({"path": tree.path(*id), "why": reasons(tree, *id)}));
        let reasons: Vec<_> = reasons.take(args.never).collect();
        let state = |id: &NodeId| json!({"path": tree.path(*id), "state": word(tree, *id)});
        let listed: Vec<_> = left.iter().take(args.never).map(state).collect();
        let all = json!({
            "schema": 1, "minutes": minute, "jobs": jobs, "tasks_run": runs.len(),
            "never": never.len(), "never_ran": reasons, "left": listed, "left_count": left.len(),
            "events": events,
            "events_per_s": rate, "seconds": seconds, "is_endless": is_endless,
        });
        return writeln!(output, "{all}");
    }
    if *is_endless {
        writeln!(
            output,
            "Ended at minute {minute}: more than 100,000 jobs started in it. A repeat \
             without an end \
             needs jobs that take time: --duration 00:01"
        )?;
    }
    listed(args.never, output, tree, (&never, &left))?;
    let span = Duration::minutes(*minute);
    writeln!(
        output,
        "\n{} of {} in {} h {} min; {} never ran; {} in {seconds:.2} s, \
         {:.2} million a second",
        many(jobs, "job"),
        many(runs.len(), "task"),
        span.whole_minutes() / 60,
        span.whole_minutes() % 60,
        many(never.len(), "task"),
        many(*events, "event"),
        rate / 1e6,
    )
}

/// The tasks that never ran, each with the reason, and those that are left at the end.
fn listed(
    most: usize,
    output: &mut impl Write,
    tree: &Snapshot,
    (never, left): (&[NodeId], &[NodeId]),
) -> std::io::Result<()> {
    if !never.is_empty() {
        writeln!(output, "\nNever ran:")?;
    }
    for id in never.iter().take(most) {
        writeln!(output, "  {}", tree.path(*id))?;
        for reason in reasons(tree, *id) {
            writeln!(output, "      {reason}")?;
        }
    }
    if never.len() > most {
        writeln!(output, "  and {} more (--never {})", never.len() - most, never.len())?;
    }
    if !left.is_empty() {
        writeln!(
            output,
            "\nSubmitted, active or aborted at the end, so that others may wait for them:"
        )?;
    }
    for id in left.iter().take(most) {
        writeln!(output, "  {}  {}", tree.path(*id), word(tree, *id))?;
    }
    if left.len() > most {
        writeln!(output, "  and {} more (--never {})", left.len() - most, left.len())?;
    }
    Ok(())
}

/// Whether a task is submitted or active at the end, or has failed.
fn is_left(tree: &Snapshot, id: NodeId) -> bool {
    let node = tree.node(id);
    let state = node.state;
    node.kind == Kind::Task && matches!(state, State::Submitted | State::Active | State::Aborted)
}

fn word(tree: &Snapshot, id: NodeId) -> &'static str {
    tree.node(id).state.word()
}

/// A task that is complete from the start, or by its rule, is not one that waits.
fn is_meant_idle(tree: &Snapshot, id: NodeId) -> bool {
    tree.node(id).state == State::Complete && tree.completed_by_date(id).is_none()
}

/// Why a task waits at the end.
fn reasons(tree: &Snapshot, id: NodeId) -> Vec<String> {
    if let Some(at) = tree.completed_by_date(id) {
        let who = format!("{} {}", tree.node(at).kind.word(), tree.path(at));
        let why = "its suite's hybrid clock, whose date stands still";
        return vec![format!("{who} is complete: its date or day is none of {why}")];
    }
    let lines = tree.why(id, &mut |_| None);
    if lines.is_empty() {
        return vec!["it was about to run when the simulation ended".to_owned()];
    }
    lines
}

fn plan(args: &SimulateArgs, tree: &Snapshot) -> Result<Plan, Failure> {
    let start = match &args.start {
        None => input::now(),
        Some(text) => instant(text).ok_or_else(|| bad("--start", text, TIME))?,
    };
    let minutes = match &args.until {
        None => horizon(tree, start),
        Some(text) => until(text, tree, start)?,
    };
    let job_minutes =
        minutes_of(&args.duration).ok_or_else(|| bad("--duration", &args.duration, SPAN))?;
    let assumptions = args.what_if.iter().map(|text| assumption(text, tree));
    Ok(Plan {
        start,
        minutes,
        job_minutes,
        pass: if args.as_ecflow { Pass::EachMinute } else { Pass::AtOnce },
        assumptions: assumptions.collect::<Result<_, _>>()?,
        skips: !args.as_ecflow,
    })
}

const TIME: &str = "write such as 2026-12-24T10:00";
const SPAN: &str = "write such as 00:10, 90m, 12h or 7d";

fn bad(option: &str, text: &str, fix: &str) -> Failure {
    Failure::Usage(format!("{option} {text}: {fix}"))
}

fn until(text: &str, tree: &Snapshot, start: Instant) -> Result<i64, Failure> {
    if let Some(minutes) = minutes_of(text) {
        return Ok(minutes);
    }
    let end =
        instant(text).ok_or_else(|| bad("--until", text, "write such as 7d or 2026-12-24"))?;
    let begins = tree.suites().map(|suite| {
        let clock = tree.node(suite).attributes.iter().find_map(|one| match one {
            Attribute::Clock(clock) => Some(clock.start(start)),
            _ => None,
        });
        clock.unwrap_or(start)
    });
    let minutes = begins.map(|begin| end.since(begin).whole_minutes()).max().unwrap_or(0);
    if minutes <= 0 {
        return Err(bad("--until", text, "no suite has begun by then: write a later time"));
    }
    Ok(minutes)
}

/// A date, with or without a time of day.
fn instant(text: &str) -> Option<Instant> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    Some(Instant::midnight(Date::of_text(date)?).plus(Duration::of_text(time)?))
}

/// Minutes of `hh:mm`, `90m`, `12h` or `7d`.
fn minutes_of(text: &str) -> Option<i64> {
    const MOST: i64 = 100 * 366 * 24 * 60;
    let text = text.strip_prefix('+').unwrap_or(text);
    let minutes = if let Some((hours, minutes)) = text.split_once(':') {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(hours) || !is_number(minutes) {
            return None;
        }
        let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
        if minutes > 59 {
            return None;
        }
        hours.checked_mul(60)?.checked_add(minutes)?
    } else {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let unit = match unit {
            "m" => 1,
            "h" => 60,
            "d" => 24 * 60,
            _ => return None,
        };
        number.parse::<u32>().ok().map(i64::from)?.checked_mul(unit)?
    };
    (minutes <= MOST).then_some(minutes)
}

fn assumption(text: &str, tree: &Snapshot) -> Result<Assumption, Failure> {
    let wrong = |fix: &str| bad("--what-if", text, fix);
    let (path, rest) = text.split_once('=').ok_or_else(|| wrong("write PATH=STATE"))?;
    if tree.find(path).is_none() {
        return Err(wrong("there is no such node"));
    }
    let mut found = Assumption { path: path.to_owned(), assumed: None, minutes: None };
    for part in rest.split(',') {
        match (part, part.strip_prefix("duration=")) {
            (_, Some(span)) => {
                found.minutes = Some(minutes_of(span).ok_or_else(|| wrong(SPAN))?);
            }
            ("complete", _) => found.assumed = Some(Assumed::Complete),
            ("aborted", _) => found.assumed = Some(Assumed::Aborted),
            ("active", _) => found.assumed = Some(Assumed::Active),
            _ => return Err(wrong("a state is complete, aborted or active")),
        }
    }
    Ok(found)
}
