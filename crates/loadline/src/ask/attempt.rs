//! `loadline try`: a first question, without a suite. It writes the suite that it stands for, and
//! runs it as `loadline run` would.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use base::units::{ByteCount, Rate, Span, UnitError};
use http::load::Trust;
use lab::plan::Plan;
use lab::run::{RunEvent, RunOptions};
use report::one_line;

use super::question::Question;
use super::seconds::{self, Seconds};
use super::side::Side;
use super::{first_request, greeting};
use crate::exit::Failure;
use crate::out::note;
use crate::run::HowArgs;
use crate::run_lock::command_line;

/// Arguments of `loadline try`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadline try http://127.0.0.1:8080/x --rate 1k/s --for 10s
  loadline try memcached 127.0.0.1:11211
  loadline try memcached 127.0.0.1:11211 --beside redis 127.0.0.1:6379
  loadline try conditions 127.0.0.1:8350             reads what is there, and writes nothing
  loadline try -- sort big.txt                       how long does it take, how much does it vary?
  loadline try --for 5s --json -- sort -r big.txt    options before -- are try's, behind it sort's
  loadline try 'sort big.txt' --beside 'sort -u big.txt'
  loadline try http://127.0.0.1:8080/x --save mine.toml    then: loadline run mine.toml

It loads what runs already (a command it starts itself), checks every answer, and prints a line a
second. Unless you say otherwise: 10 s each, 16 connections that each ask again once they are
answered (a command: one run at a time); of a page, status 200 is right, and neither redirects are
followed nor cookies kept; a cache gets 90 % reads and 10 % writes over 10,000 keys with 100-byte
values: the writes go into your server. Two sides take turns, half a second each; the verdict is
about the first of them, and about the two processes that run now: whether two programs differ takes
several starts (loadline help verdicts). What is likely counts as an answer in the exit code.")]
pub(crate) struct TryArgs {
    /// A URL, a service's name and address, or a command in quotes
    #[arg(value_name = "WHAT", num_args = 0..=3,
        required_unless_present_any = ["command", "beside"])]
    what: Vec<String>,
    /// A second one, measured side by side with the first
    #[arg(long, value_name = "WHAT", num_args = 1..=3)]
    beside: Option<Vec<String>>,
    /// Send this many requests a second, however long answers take
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<(String, Rate)>,
    /// Connections, or commands at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,
    /// Measured time of each side; slices that other programs disturb are measured again, and a
    /// command is run five times at least
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = time)]
    time: Span,
    /// The size of values, such as 1KiB; of records the number of elements
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteCount>,
    /// The number of keys
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keys: Option<u64>,
    /// The right status of a page
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(100..600))]
    status: Option<u16>,
    /// Trust the authorities in this PEM file behind https://, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Check no certificate behind https://, neither who signed it nor whom it is for
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Load another host than this one; only do that to hosts that you may load
    #[arg(long)]
    allow_remote: bool,
    /// Write the suite that this stands for to a new file as well
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print the result as JSON on standard output
    #[arg(long)]
    json: bool,
    /// The ledger's file; otherwise the nearest .loadline/ledger.sqlite upward, or a new one here
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Wait when this host is measuring already, instead of giving up
    #[arg(long)]
    wait: bool,
    /// A command with its arguments, run to its end over and over; an option behind -- is the
    /// command's, so those of try stand before it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A rate, with the text that was typed. It has only one unit, which may be left out.
fn rate(text: &str) -> Result<(String, Rate), String> {
    let whole = format!("{text}/s");
    let (text, rate) = match (text.parse::<Rate>(), whole.parse::<Rate>()) {
        (Ok(rate), _) => (text, rate),
        (_, Ok(rate)) => (&whole[..], rate),
        (Err(error), _) => return Err(error.to_string()),
    };
    match rate.per_second > 0.0 {
        true => Ok((text.to_owned(), rate)),
        false => Err("at a rate of 0 nothing is sent".to_owned()),
    }
}

/// The least measured time: five rounds of 20 ms.
const LEAST: Span = Span::from_ms(100);

fn time(text: &str) -> Result<Span, String> {
    let wrong = |error: UnitError| match format!("{text}s").parse::<Span>() {
        Ok(_) => format!("a time has a unit: did you mean {text}s?"),
        Err(_) => error.to_string(),
    };
    let time: Span = text.parse().map_err(wrong)?;
    (time >= LEAST).then_some(time).ok_or_else(|| format!("at least {LEAST}"))
}

pub(crate) fn run(args: TryArgs) -> Result<ExitCode, Failure> {
    let mut sides = Vec::new();
    if args.what.is_empty() && args.command.is_empty() {
        // Without a second side the parser of arguments has said so already.
        let message = "--beside takes all that follows it, up to three words: put the first side \
                       before it (loadline try WHAT --beside WHAT), or a command behind --";
        return Err(Failure::Usage(message.to_owned()));
    }
    if !args.command.is_empty() {
        sides.push(Side::program(&args.command)?);
    }
    let beside = args.beside.iter();
    for words in [&args.what].into_iter().filter(|what| !what.is_empty()).chain(beside) {
        sides.push(Side::read(words, args.allow_remote)?);
    }
    if sides.len() > 2 {
        let message = "two sides at most: a suite has as many as you like (loadline new compare)";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut question = Question {
        sides,
        rate: args.rate,
        connections: args.connections.map(|connections| connections as usize),
        time: args.time,
        command_took: Vec::new(),
        size: args.size.map(|size| size.bytes),
        keys: args.keys,
        status: args.status,
        trust: match (&args.ca, args.insecure) {
            (Some(file), _) => Some(Trust::Authorities(absolute(file)?)),
            (None, true) => Some(Trust::Any),
            (None, false) => None,
        },
        allow_remote: args.allow_remote,
        typed: command_line(),
    };
    let path = args.save.as_deref().unwrap_or(Path::new("try.toml"));
    let (_, plan) = planned(&question, path)?;
    question.command_took = ask_first(&question, &plan)?;
    // How long a command takes decides how often it is run.
    let (text, plan) = planned(&question, path)?;
    if let Some(file) = &args.save {
        save(file, &text)?;
    }
    if let Some(option) = args.command.iter().skip(1).find(|word| is_own(word)) {
        note(format!("{option} is given to the command: an option of try stands before --"));
    }
    note(seconds::wrapped(&one_line(&question.announcement(&plan))));
    let mut how = HowArgs::shown_by_caller(args.json, args.ledger, args.wait);
    how.doubt = Some(doubt);
    // What runs already is never started again: a difference of two such is likely at most.
    how.accept = Some("likely".to_owned());
    measure(&plan, &how)
}

/// The suite that a question stands for, as text and as a plan.
fn planned(question: &Question, path: &Path) -> Result<(String, Plan), Failure> {
    let text = question.suite().map_err(Failure::Usage)?;
    let plan = Plan::parse(path, text.clone(), &[], crate::registry::registry());
    let plan = plan.map_err(|error| Failure::Usage(of_option(&error.to_string())))?;
    Ok((text, plan))
}

/// What is wrong with a suite that no one has written, by the option that the key comes from.
fn of_option(message: &str) -> String {
    let Some((key, problem)) = message.split_once(": ") else { return message.to_owned() };
    let option = OPTIONS.iter().find(|(part, _)| key.split('.').any(|word| word == *part));
    option.map_or(message.to_owned(), |(_, option)| format!("{option}: {problem}"))
}

/// A part of a suite's key, and the option that it comes from.
const OPTIONS: [(&str, &str); 8] = [
    ("connections", "--connections"),
    ("arrivals", "--rate"),
    ("keys", "--keys"),
    ("value", "--size"),
    ("size", "--size"),
    ("bytes", "--size"),
    ("status", "--status"),
    ("measure", "--for"),
];

/// Asks every side once, before anything is measured. Returns how long each command took.
fn ask_first(question: &Question, plan: &Plan) -> Result<Vec<Duration>, Failure> {
    let mut command_took = Vec::new();
    for (index, side) in question.sides.iter().enumerate() {
        match side {
            // A key is drawn for each request of the run.
            Side::Web(web) if !web.path.contains("{key}") => {
                let trust = question.trust.as_ref().unwrap_or(&Trust::System);
                greeting::check(web, trust, question.right_status())?;
            }
            Side::Web(_) | Side::Service(..) => first_request::check(plan, index)?,
            Side::Command(words) => command_took.push(first_request::rehearse(side, words)?),
        }
    }
    Ok(command_took)
}

/// Why the figures of a run can't be relied on: Little's law is broken, so that a latency or a
/// count leaves something out.
fn doubt(summary: &findings::Summary) -> Option<String> {
    let first = summary.littles_law.first()?;
    let (broken, all) = (summary.littles_law.len(), summary.trials.len());
    let name = &summary.targets[summary.trials[first.trial].target].name;
    Some(seconds::wrapped(&one_line(&format!(
        "Can't tell: Little's law is broken in {broken} of {all} rounds. By rate × latency {:.1} \
         of {:.0} requests to {name} were under way: time passes that no latency shows, and these \
         figures can't be relied on.",
        first.seen, first.slots
    ))))
}

/// Whether `try` has an option of this name that takes a value, which few commands have.
fn is_own(word: &str) -> bool {
    ["--for", "--rate", "--connections", "--beside", "--ledger"].contains(&word)
}

/// The file's path for a suite that may lie elsewhere.
fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(file);
    Ok(path.with_context(|| format!("cannot find {}", file.display()))?)
}

/// Measures the plan with a line a second in place of one a round.
fn measure(plan: &Plan, how: &HowArgs) -> Result<ExitCode, Failure> {
    let names: Vec<String> = plan.targets().iter().map(|target| target.name.clone()).collect();
    let batch = |target: &lab::plan::Target| matches!(target.kind, lab::plan::TargetKind::Batch(_));
    let is_batch = plan.targets().iter().any(batch);
    crate::run::measure_with(plan, how, |options| {
        let mut seconds = Seconds::of(&names, is_batch);
        let mut progress = |event: &RunEvent<'_>| seconds.progress(event);
        let RunOptions { plan, exe, ledger, build, logs, command, seed, extras, stop, .. } =
            options;
        let progress = &mut progress;
        lab::run::run(RunOptions {
            plan,
            exe,
            ledger,
            build,
            logs,
            command,
            seed,
            extras,
            stop,
            progress,
        })
    })
}

/// Writes the suite to a file that isn't there yet.
fn save(file: &Path, text: &str) -> Result<(), Failure> {
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let written = created.and_then(|mut created| {
        let written = created.write_all(text.as_bytes());
        if written.is_err() {
            // A part of a suite, such as a full disk leaves, is of no use.
            let _ = std::fs::remove_file(file);
        }
        written
    });
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Failure::Usage(
            format!("{} is there already: name another file with --save", file.display()),
        )),
        written => {
            written.with_context(|| format!("cannot write {}", file.display()))?;
            note(format!("wrote {0}: loadline run {0} runs the same again", file.display()));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_an_option_is_said_of_the_option() {
        let said = of_option("clients.all.connections: 1000000 is not from 1 to 100000");
        assert_eq!(said, "--connections: 1000000 is not from 1 to 100000");
        let other = "target.a.address: only loopback";
        assert_eq!(of_option(other), other);
    }

    #[test]
    fn a_rate_may_lack_its_unit_and_a_time_may_not() {
        for (typed, text, per_second) in
            [("1000", "1000/s", 1e3), ("2k", "2k/s", 2e3), ("5/s", "5/s", 5.0)]
        {
            assert_eq!(rate(typed), Ok((text.to_owned(), Rate { per_second })));
        }
        assert!(rate("fast").unwrap_err().contains("\"fast\" is not a rate such as"));
        assert!(rate("0").is_err());
        assert_eq!(time("5").unwrap_err(), "a time has a unit: did you mean 5s?");
        assert!(time("soon").unwrap_err().contains("is not a time such as"));
    }
}
