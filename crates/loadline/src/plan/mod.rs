//! `loadline plan`: what a suite would run, and for how long, without starting anything.

mod executed;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::units::{ByteCount, Span, UnitError};
use lab::plan::{MIN_MEASURE, Plan, Point, Rounds, Target, TargetKind};
use ledger::{Ledger, LedgerError};
use report::{one_line, wrapped};
use serde_json::{Value, json};

use crate::detectable::Detectable;
use crate::exit::Failure;
use crate::out;
use crate::storage::Storage;

/// The least time of a plan that says what makes it shorter.
const LONG: Span = Span::from_ms(30 * 60 * 1000);

/// Arguments of `loadline plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  loadline plan suites/tour.toml --set rounds.measure=2s")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
    /// Print it as JSON on standard output
    #[arg(long)]
    json: bool,
    /// The ledger whose runs say what can be shown; else the nearest .loadline/ledger.sqlite upward
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

/// The suite, and the keys that are set differently.
#[derive(Debug, clap::Args)]
pub(crate) struct SuiteArgs {
    /// The suite's TOML file
    pub(crate) suite: PathBuf,
    /// Set one of the suite's keys, e.g. clients.connections=64; a swept key is no longer swept
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = lab::plan::parse_setting)]
    pub(crate) settings: Vec<(String, toml::Value)>,
}

impl SuiteArgs {
    /// Reads the suite.
    pub(crate) fn read(&self) -> Result<Plan, Failure> {
        Plan::read(&self.suite, &self.settings, crate::registry::registry())
            .map_err(crate::exit::suite)
    }
}

/// The measured time of a round, as it is typed.
pub(crate) fn measured_time(written: &str) -> Result<Span, String> {
    let time: Span = written.parse().map_err(|error: UnitError| error.to_string())?;
    let short = || format!("at least {MIN_MEASURE}: less measures the starting and stopping");
    (time >= MIN_MEASURE).then_some(time).ok_or_else(short)
}

pub(crate) fn run(args: &PlanArgs) -> Result<ExitCode, Failure> {
    let plan = args.suite.read()?;
    check_ledger(args.ledger.as_deref())?;
    let detectable = detectable(&plan, args.ledger.as_deref())?;
    if args.json {
        out::print(format!("{:#}\n", as_json(&plan, detectable.as_ref())))?;
    } else {
        out::print(as_text(&plan, detectable.as_ref()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a file that was named and is no ledger. One that isn't there yet has no run that could
/// say anything; `run` makes it.
fn check_ledger(named: Option<&Path>) -> Result<(), Failure> {
    let Some(named) = named else { return Ok(()) };
    let storage = Storage::find(Some(named))?;
    match Ledger::open_read_only(&storage.ledger) {
        Ok(_) | Err(LedgerError::Missing { .. }) => Ok(()),
        Err(error) => Err(storage.failure(error)),
    }
}

/// The smallest difference that the least rounds of a run can show, over all of its comparisons.
fn detectable(plan: &Plan, ledger: Option<&Path>) -> Result<Option<Detectable>, Failure> {
    let others = plan.targets().iter().filter(|target| target.skipped.is_none()).count();
    let comparisons = plan.points.len() * others.saturating_sub(1);
    let rounds = plan.rounds.at_least;
    if comparisons == 0 || (rounds as usize) < judge::MIN_ROUNDS {
        return Ok(None);
    }
    let error = (1.0 - plan.rounds.confidence()) / comparisons as f64;
    Ok(Detectable::of(plan, &Storage::find(ledger)?, rounds, error)?)
}

fn as_text(plan: &Plan, detectable: Option<&Detectable>) -> String {
    let mut text = format!("{}\n", one_line(&plan.title));
    for claim in &plan.claims {
        let _ = writeln!(text, "  claims: {}", one_line(claim));
    }
    for compromise in &plan.compromises {
        let _ = writeln!(text, "  compromise: {}", one_line(compromise));
    }
    for note in &plan.notes {
        let _ = writeln!(text, "  note: {}", one_line(note));
    }
    wrapped(&text) + &executed_by(plan) + &wrapped(&rounds_as_text(plan, detectable))
}

/// The rounds, and what they take of time and memory.
fn rounds_as_text(plan: &Plan, detectable: Option<&Detectable>) -> String {
    let mut text = String::new();
    let rounds = &plan.rounds;
    let slices = pieces(rounds);
    let before = match rounds.is_cold {
        true => "cold: fresh, and loaded by nothing before".to_owned(),
        false => format!("after {} of warm-up", rounds.warm_up),
    };
    let _ = writeln!(
        text,
        "rounds\n  at least {}, at most {}; {} of each target in {slices}, {before}",
        rounds.at_least, rounds.at_most, rounds.measure
    );
    if let Some(until) = rounds.until {
        let percent = until.fraction * 100.0;
        let _ = writeln!(text, "  until {} is known to ±{percent} %", rounds.primary.suite);
    }
    let least = judge::MIN_ROUNDS;
    if (rounds.at_least as usize) < least {
        let _ = writeln!(text, "  fewer than {least} rounds carry no verdict: can't tell");
    }
    if let Some(detectable) = detectable {
        let (metric, rounds) = (&rounds.primary.suite, rounds.at_least);
        let _ = writeln!(text, "  in {rounds} rounds, of {metric}: {}", detectable.words());
    }
    let _ = writeln!(text, "time\n  {}", time_as_text(plan));
    let _ = writeln!(text, "data\n  {} of keys and values a target, at most", data(plan));
    text
}

/// In which pieces a target is measured: `500 ms slices`, `4 slices of 900 ms, the last of 800 ms`.
fn pieces(rounds: &Rounds) -> String {
    let Some(slice) = rounds.slice.filter(|slice| slice.ns > 0) else {
        return "one piece".to_owned();
    };
    let (all, rest) = (rounds.measure.ns.div_ceil(slice.ns), rounds.measure.ns % slice.ns);
    match rest {
        0 => format!("{slice} slices"),
        ns => format!("{all} slices of {slice}, the last of {}", Span { ns }),
    }
}

/// How long a run takes.
fn time_as_text(plan: &Plan) -> String {
    if plan.targets().iter().all(|target| target.skipped.is_some()) {
        return "none: every target is left out, and nothing would run".to_owned();
    }
    let (least, disturbed) = (plan.shortest(), plan.shortest_disturbed());
    let again = match disturbed > least {
        true => format!("; {disturbed} when slices are disturbed and measured again"),
        false => String::new(),
    };
    let is_batch = |target: &Target| matches!(target.kind, TargetKind::Batch(_));
    let unknown = match plan.targets().iter().any(is_batch) {
        true => ", and longer where a run of a batch takes longer, which is known once it has run",
        false => "",
    };
    format!("about {least} at least{again}{unknown}{}", shorter(plan))
}

/// What makes a run shorter that takes over half an hour.
fn shorter(plan: &Plan) -> String {
    if plan.shortest() < LONG {
        return String::new();
    }
    let points = plan.points.len();
    let fewer = match points {
        1 => "--set rounds.measure=SPAN shortens".to_owned(),
        _ => format!(
            "there are {points} points: --set KEY=VALUE leaves one value of a swept key, and \
             --set rounds.measure=SPAN shortens"
        ),
    };
    format!("\n  {fewer} each of at least {} rounds", plan.rounds.at_least)
}

/// The targets, points and events of a plan with all that they execute. Commands are not wrapped:
/// they are copied.
pub(crate) fn executed_by(plan: &Plan) -> String {
    let mut text = "targets\n".to_owned();
    for target in plan.targets() {
        text.push_str(&target_as_text(target));
    }
    text.push_str("points\n");
    for point in &plan.points {
        text.push_str(&point_as_text(plan, point));
    }
    let events = executed::events(plan);
    if !events.is_empty() {
        text.push_str("events of each slice\n");
        events.iter().for_each(|event| text.push_str(&format!("  {event}")));
    }
    text
}

/// A target with all that it executes: what starts it in the first line, the rest below.
fn target_as_text(target: &Target) -> String {
    let executed = executed::of(target);
    let skipped = target.skipped.as_deref().map(|why| format!("  LEFT OUT: {}", one_line(why)));
    let skipped = skipped.unwrap_or_default();
    let pinned = (!target.cpus.is_empty()).then(|| format!(" on CPUs {:?}", target.cpus));
    let cpus = pinned.unwrap_or_default();
    let Some(((key, own), others)) = executed.split_first() else { return String::new() };
    let what = match *key {
        "in_process" => format!("in process: {}", target.speaks.dialect.doc),
        _ => executed::in_shell(own),
    };
    let what: Vec<_> = what.lines().map(one_line).collect();
    let what = what.join("\n      ");
    let others = executed::text(others, "    ");
    format!("  {}: {what}{cpus}{skipped}\n{others}", one_line(&target.name))
}

/// A point with its requirements, and with what it executes otherwise than the first point.
fn point_as_text(plan: &Plan, point: &Point) -> String {
    let mut text = format!("  {}\n", one_line(&point.label));
    for requirement in &point.requirements {
        let _ = writeln!(text, "    requires {}", one_line(&requirement.text));
    }
    text = wrapped(&text);
    for target in point.targets.iter().filter(|target| !target.is_here) {
        let _ = writeln!(text, "    without {}", one_line(&target.name));
    }
    for (target, first) in point.targets.iter().zip(plan.targets()) {
        let before = executed::of(first);
        let mut differs = executed::of(target);
        differs.retain(|one| !before.contains(one));
        if !differs.is_empty() {
            let _ = writeln!(text, "    {}", one_line(&target.name));
            text.push_str(&executed::text(&differs, "      "));
        }
    }
    text
}

/// The most bytes of keys and values that any point prepares.
fn data(plan: &Plan) -> ByteCount {
    let of_point = |point: &lab::plan::Point| point.workload.workload.preparation().bytes;
    ByteCount { bytes: plan.points.iter().map(of_point).max().unwrap_or(0) }
}

fn as_json(plan: &Plan, detectable: Option<&Detectable>) -> Value {
    let target = |target: &Target| {
        let (name, skipped, cpus) = (&target.name, &target.skipped, &target.cpus);
        let mut about = json!({ "name": name, "skipped": skipped, "cpus": cpus });
        for (key, value) in executed::of(target) {
            about[key] = value;
        }
        about
    };
    let targets = |targets: &[Target]| targets.iter().map(target).collect::<Vec<_>>();
    let point = |point: &Point| {
        let events: Vec<_> = point.events.iter().map(executed::of_event).collect();
        let targets = targets(&point.targets);
        json!({ "label": point.label, "keys": point.keys, "targets": targets, "events": events })
    };
    let points = plan.points.iter().map(point);
    json!({
        "schema": 1,
        "title": plan.title,
        "notes": plan.notes,
        "targets": targets(plan.targets()),
        "points": points.collect::<Vec<_>>(),
        "rounds": { "at_least": plan.rounds.at_least, "at_most": plan.rounds.at_most },
        "shortest_ns": plan.shortest().ns,
        "shortest_disturbed_ns": plan.shortest_disturbed().ns,
        "data_bytes": data(plan).bytes,
        "least_shown": detectable.map(|one| one.least),
        "least_shown_from": detectable.and_then(|one| Some(one.from?.get())),
    })
}
