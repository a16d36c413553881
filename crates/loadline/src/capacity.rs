//! `loadline capacity`: the highest load that meets every requirement of a suite.

use std::path::PathBuf;
use std::process::ExitCode;

use base::units::{Rate, Share, Span};
use judge::Search;
use lab::plan::{Arrivals, Plan, SuiteError};
use lab::run::{CapacitySearch, LEAST_DUE};

use crate::exit::Failure;
use crate::out::note;
use crate::run::HowArgs;

/// Arguments of `loadline capacity`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline capacity suites/tour.toml --set clients.pipeline=1
  loadline capacity suites/tour.toml --target memcached --set clients.pipeline=1 --from 20k/s
  loadline capacity suites/tour.toml --over clients.connections --set clients.pipeline=16

Loads are doubled until a `require` line breaks, then the gap is halved until it is as narrow as
--precision. Each load is measured for 3 to 12 rounds, until it is clear whether it holds.
docs/verdicts.md says how, and what the knee and the scalability law are.")]
pub(crate) struct CapacityArgs {
    /// The suite's TOML file; one point, with `require` lines
    suite: PathBuf,
    /// Set one of the suite's keys, e.g. clients.pipeline=1; a swept key is no longer swept
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = lab::plan::parse_setting)]
    settings: Vec<(String, toml::Value)>,
    /// The target that is loaded; the first one unless given
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// The key whose value is the load: clients.arrivals.rate (the default), clients.connections,
    /// clients.NAME.pipeline, …
    #[arg(long, value_name = "KEY", default_value = "clients.arrivals.rate")]
    over: String,
    /// The first load: a rate such as 20k/s, or a number; else the suite's own, or 1k/s, or 1
    #[arg(long, value_name = "LOAD")]
    from: Option<String>,
    /// No load above this is tried
    #[arg(long, value_name = "LOAD")]
    most: Option<String>,
    /// The gap between held and broken that is narrow enough
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    precision: Share,
    /// Measured time of a round; unless given the suite's own, but 1 s at most, or what 1,000
    /// requests need, but 10 s at most
    #[arg(long, value_name = "TIME", value_parser = crate::plan::measured_time)]
    measure: Option<Span>,
    /// Time after which no further load is tried
    #[arg(long, value_name = "TIME", default_value = "10min")]
    budget: Span,
    #[command(flatten)]
    how: HowArgs,
}

/// The most connections, pipeline and threads of any suite.
const MAX_NUMBER: f64 = 100_000.0;

/// A rate that no host reaches.
const MAX_RATE: f64 = 1e9;

/// A round of a search is no longer than this unless asked for, or needed: it is about many loads.
const MAX_MEASURE: Span = Span { ns: 1_000_000_000 };

/// No round is longer than this for the requests that an overload needs to be seen, unless asked
/// for.
const MAX_NEEDED: Span = Span { ns: 10_000_000_000 };

pub(crate) fn run(args: &CapacityArgs) -> Result<ExitCode, Failure> {
    let base = Plan::read(&args.suite, &args.settings, crate::registry::registry())
        .map_err(crate::exit::suite)?;
    crate::builds::refuse_worktrees(&base)?;
    let is_rate = args.over.ends_with("rate");
    let from = load_of(args, &args.from, is_rate)?;
    let most = load_of(args, &args.most, is_rate)?;
    if let Some((from, most)) = from.zip(most).filter(|(from, most)| from > most) {
        let [from, most] = [from, most].map(|load| words(args, load));
        return Err(Failure::Usage(format!("--from {from} is above --most {most}")));
    }
    let usual = || first_load(&base, args).min(most.unwrap_or(f64::MAX));
    let from = from.unwrap_or_else(usual);
    let precision = args.precision.fraction;
    if !(precision > 0.0 && precision < 1.0) {
        return Err(Failure::Usage("--precision lies between 0 and 100 %".to_owned()));
    }
    let search = Search {
        from,
        least: 1.0,
        most: most.unwrap_or(if is_rate { MAX_RATE } else { MAX_NUMBER }),
        precision,
        whole: !is_rate,
    };
    let plan_at = |load: f64| plan_at(args, &base, load);
    let first = plan_at(from).map_err(crate::exit::suite)?;
    check(&first, args)?;
    let target = &first.targets()[0].name;
    let over = &args.over;
    note(format!(
        "searching the highest {over} that {target} carries, from {}; no further one is tried \
         after {}",
        words(args, from),
        args.budget
    ));
    let (key, budget) = (args.over.clone(), args.budget);
    let search = CapacitySearch { key, search, plan_at: &plan_at, budget };
    crate::run::measure_with(&first, &args.how, |options| lab::run::capacity(options, &search))
}

/// What was typed as a load.
fn load_of(
    args: &CapacityArgs,
    typed: &Option<String>,
    is_rate: bool,
) -> Result<Option<f64>, Failure> {
    let Some(text) = typed else { return Ok(None) };
    let load = match is_rate {
        true => text.parse::<Rate>().ok().map(|rate| rate.per_second),
        false => text.parse::<u32>().ok().map(f64::from),
    };
    let load = load.filter(|load| *load >= 1.0).ok_or_else(|| {
        let what = if is_rate { "a rate such as 20k/s" } else { "a whole number from 1 on" };
        Failure::Usage(format!("\"{text}\" is no load of {}: say {what}", args.over))
    })?;
    Ok(Some(load))
}

/// The suite's own rate, or a modest one.
fn first_load(base: &Plan, args: &CapacityArgs) -> f64 {
    if !args.over.ends_with("rate") {
        return 1.0;
    }
    let scheduled = base.points.first().and_then(|point| {
        point.clients.iter().find_map(|group| match &group.arrivals {
            Arrivals::Open(schedule) => schedule.stretches.first(),
            _ => None,
        })
    });
    scheduled.map_or(1_000.0, |stretch| stretch.rate.per_second.max(1.0))
}

/// The suite at one load, with one target. The load is swept over its one value, so that the point
/// carries it among its keys.
fn plan_at(args: &CapacityArgs, base: &Plan, load: f64) -> Result<Plan, Box<SuiteError>> {
    let value: toml::Value = match args.over.ends_with("rate") {
        true => format!("{load:.3}/s").into(),
        false => (load as i64).into(),
    };
    let mut settings = args.settings.clone();
    let arrivals = args.over.strip_suffix(".rate");
    let scheduled = base.points.first().is_some_and(|point| {
        point.clients.iter().any(|group| matches!(group.arrivals, Arrivals::Open(_)))
    });
    match arrivals {
        // Closed clients become independent ones; others keep their spacing.
        Some(arrivals) if !scheduled => {
            let mut table = toml::Table::new();
            table.insert("rate".to_owned(), value.clone());
            table.insert("spacing".to_owned(), "poisson".into());
            settings.push((arrivals.to_owned(), table.into()));
        }
        _ => settings.push((args.over.clone(), value.clone())),
    }
    settings.push((format!("sweep.{}", args.over), vec![value].into()));
    let mut plan =
        Plan::parse(&base.path, base.text.clone(), &settings, crate::registry::registry())?;
    let usual = plan.rounds.measure.min(MAX_MEASURE);
    let needed = match args.over.ends_with("rate") {
        true => Span { ns: (LEAST_DUE as f64 / load * 1e9) as u64 },
        false => Span::default(),
    };
    let measure = args.measure.unwrap_or(usual.max(needed.min(MAX_NEEDED)));
    plan.rounds.measure = measure;
    let fits = |slice: &Span| *slice < measure && *slice >= needed;
    plan.rounds.slice = plan.rounds.slice.filter(fits);
    plan.rounds.at_least = 3;
    plan.rounds.budget = None;
    for point in &mut plan.points {
        let wanted = args.target.as_ref().or(point.targets.first().map(|target| &target.name));
        let wanted = wanted.cloned().unwrap_or_default();
        point.targets.retain(|target| target.name == wanted);
    }
    Ok(plan)
}

/// What a search can't be about.
fn check(plan: &Plan, args: &CapacityArgs) -> Result<(), Failure> {
    let usage = |message: String| Err(Failure::Usage(message));
    if plan.points.len() > 1 {
        return usage(choose_one(plan));
    }
    let Some(target) = plan.targets().first() else {
        let wanted = args.target.as_deref().unwrap_or_default();
        return usage(format!("there is no target \"{wanted}\" in the suite"));
    };
    if let Some(why) = &target.skipped {
        return usage(format!("{} can't be measured: {why}", target.name));
    }
    if plan.points[0].requirements.is_empty() {
        let example = "[require]\n\"latency.p99\" = \"< 1ms\"";
        return usage(format!("the suite says nothing that must hold; write e.g.\n{example}"));
    }
    Ok(())
}

/// How to name one of several points: the first, for example.
fn choose_one(plan: &Plan) -> String {
    let mut message = format!("the suite has {} points; choose one, such as", plan.points.len());
    for (key, value) in &plan.points[0].keys {
        if plan.points.iter().any(|point| point.keys.get(key) != Some(value)) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            message += &format!(" --set {key}={value}");
        }
    }
    message
}

fn words(args: &CapacityArgs, load: f64) -> String {
    if args.over.ends_with("rate") { report::rate(load) } else { report::plain(load) }
}
