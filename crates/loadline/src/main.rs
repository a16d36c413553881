//! The command: parses what was typed, runs it, and turns the outcome into an exit code.

// Both macros panic once standard output or standard error is closed; `out` returns the error.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ask;
mod builds;
mod capacity;
mod compare;
mod detectable;
mod doctor;
mod exit;
mod history;
mod ladder;
mod ledgers;
mod live;
mod plan;
mod registry;
mod report;
mod rerun;
mod run;
mod run_lock;
mod shell;
mod storage;
mod ui;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use service::out;

/// Finds how much load a service that keeps state carries, what gives way first, and whether a
/// change helped.
#[derive(Debug, Parser)]
#[command(
    version = env!("LOADLINE_VERSION"),
    propagate_version = true,
    after_help = EXAMPLES,
    max_term_width = 100,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  loadline try http://127.0.0.1:8080/      a first question, without a suite
  loadline try -- sort big.txt             how long does it take?
  loadline run suites/tour.toml            measure, check every answer, and say what was found
  loadline compare suites/tour.toml --a loadline --b memcached
  loadline capacity suites/tour.toml --set clients.pipeline=1    the highest rate that it carries
  loadline plan suites/tour.toml           say what would run, and for how long
  loadline report last --json              the last run again, for a program
  loadline ui                              look at all runs in a browser
  loadline help suites                     the documents in this program
  loadline serve cache --memory 256MiB     a memcached-compatible cache
  loadline cache get KEY                   ask it
  loadline serve records --config FILE     live records for EPICS clients
  loadline records monitor NAME            what a channel of any pvAccess server holds
  loadline completions bash > ~/.local/share/bash-completion/completions/loadline

Exit codes:
  0 held; better, worse or the same   1 error   2 usage or suite error
  3 a requirement is broken, or worse with --fail-on worse
  4 can't tell, likely or invalid     130 interrupted     (loadline help verdicts)";

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure a URL, a service at an address or a command, one or two, without a suite
    Try(Box<ask::TryArgs>),
    /// Print a suite to begin with
    New(ask::NewArgs),
    /// Run a suite: start its targets, load them, check every answer, keep and report what was seen
    Run(run::RunArgs),
    /// Say whether one target, commit or series of figures is better than another
    Compare(Box<compare::CompareArgs>),
    /// Find the highest load that meets every requirement of a suite
    Capacity(Box<capacity::CapacityArgs>),
    /// Say where a suite's figures changed for good, over all its runs on this kind of host
    History(history::HistoryArgs),
    /// Judge one change on top of another: each rung against the one before and the first
    Ladder(Box<ladder::LadderArgs>),
    /// Say what a suite would run and for how long, without starting anything
    Plan(plan::PlanArgs),
    /// Report a run that is in the ledger
    Report(report::ReportArgs),
    /// Run the suite of an earlier run again, with the same settings
    Rerun(rerun::RerunArgs),
    /// List, merge, prune and export the runs in the ledger
    Ledger(ledgers::LedgerArgs),
    /// Say what this host is good for as a place to measure on, and what to do about it
    Doctor(doctor::DoctorArgs),
    /// Show the ledger in a browser: its runs, their pages, what is being measured
    Ui(ui::UiArgs),
    /// Say what a word of suites and reports means
    Explain(ask::ExplainArgs),
    /// Print the help of a command, or a document such as `suites` or `verdicts`
    Help(ask::HelpArgs),
    /// Print what a shell needs to complete commands and options
    #[command(display_order = 100)]
    Completions(shell::CompletionArgs),
    /// Print the manual page, or write those of all commands to a directory
    #[command(display_order = 100)]
    Man(shell::ManArgs),
    /// Print the version, and what is known of how this program was built
    #[command(display_order = 100)]
    Version,
    /// Run a program once and say what it cost (used by `run` itself)
    #[command(hide = true)]
    Once {
        /// The file for its output, the program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Evaluate operations that need no socket (used by `run` itself)
    #[command(hide = true)]
    InProcess {
        /// The file that says what, and for how many seconds
        arguments: Vec<String>,
    },
    /// Run a program, and end all that descends from it when the caller ends (used by `run` itself)
    #[command(hide = true)]
    Supervise {
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

/// The commands of the lab and of all services.
fn command() -> clap::Command {
    let command = Cli::command().subcommands(registry::commands());
    // Alone they show their forms; that an argument is missing would name only one of them.
    ["compare", "try"].into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |one| one.arg_required_else_help(true))
    })
}

/// The error with the command that was most likely meant: clap knows of no letters that changed
/// places. Without its tip to pass what looks like an option as a value: that is hardly ever meant.
fn meant(mut error: clap::Error) -> clap::Error {
    let tip = error.get(ContextKind::Suggested).map(ToString::to_string);
    if tip.is_some_and(|tip| tip.contains("as a value, use")) {
        error.remove(ContextKind::Suggested);
    }
    if let Some(tip) = listening(&error) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let Some(ContextValue::String(asked)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let is_first = std::env::args().nth(1).as_ref() == Some(asked);
    if is_first && error.get(ContextKind::SuggestedSubcommand).is_none() {
        let command = command();
        let names = command.get_subcommands().filter(|one| !one.is_hide_set());
        let near = ask::nearest(asked, names.map(clap::Command::get_name), 1);
        let near: Vec<String> = near.into_iter().map(str::to_owned).collect();
        if !near.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
        }
    }
    error
}

/// How a service is given a port that has no `--port`.
fn listening(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(asked)) = error.get(ContextKind::InvalidArg) else { return None };
    let words: Vec<String> = std::env::args().skip(1).take(2).collect();
    let [serve, service] = &words[..] else { return None };
    let command = command();
    let service = command.find_subcommand(serve)?.find_subcommand(service)?;
    let listens = service.get_arguments().any(|one| one.get_long() == Some("listen"));
    (matches!(&asked[..], "--port" | "-p") && listens)
        .then_some("a port is part of '--listen HOST:PORT'")
}

fn main() -> ExitCode {
    service::file_limit::turn_into_error();
    let (meaning, words) = registry::typed(command(), std::env::args_os());
    let matches = match meaning.try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return exit::typed(&meant(error)),
    };
    if let Some(outcome) = registry::run(&matches) {
        return outcome.unwrap_or_else(exit::report);
    }
    let typed = match Cli::from_arg_matches(&matches) {
        Ok(typed) => typed,
        Err(error) => return exit::typed(&error),
    };
    let outcome = match typed.command {
        Command::Try(args) => ask::attempt(*args),
        Command::New(args) => ask::new(&args),
        Command::Explain(args) => ask::explain(&args),
        Command::Help(args) => ask::help(&args, command()),
        Command::Run(args) => run::run(&args),
        Command::Capacity(args) => capacity::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::History(args) => history::run(&args),
        Command::Ladder(args) => ladder::run(*args),
        Command::Plan(args) => plan::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Rerun(args) => rerun::run(args),
        Command::Ledger(args) => ledgers::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Ui(args) => ui::run(&args),
        Command::Completions(args) => args.run(command()),
        Command::Man(args) => args.run(command()),
        Command::Version => shell::version(),
        Command::Once { arguments } => Ok(lab::drive::once_main(&arguments)),
        Command::InProcess { arguments } => {
            Ok(lab::in_process::in_process_main(registry::registry(), &arguments))
        }
        Command::Supervise { command } => Ok(lab::deploy::supervise_main(&command)),
    };
    outcome.unwrap_or_else(exit::report)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of an example as a shell divides them: up to what isn't this program's, or two
    /// spaces, behind which it is explained.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for sign in example.chars() {
            let Some(word) = words.last_mut() else { break };
            match sign {
                '\'' => is_quoted = !is_quoted,
                '|' | '&' | '<' | '>' if !is_quoted => break,
                ' ' if !is_quoted && word.is_empty() => break,
                ' ' if !is_quoted => words.push(String::new()),
                sign => word.push(sign),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// The examples of a command and of those below it.
    fn examples(of: &clap::Command) -> Vec<Vec<String>> {
        let help = of.get_after_help().map(ToString::to_string).unwrap_or_default();
        // An option that begins a line belongs to the one before.
        let help = help.replace("\n      --", " --");
        // A link to this program is no call of it.
        let lines = help.lines().filter(|line| line.starts_with("  ") && !line.contains("ln -s"));
        let found = lines.filter_map(|line| Some(&line[line.find(" loadline ")? + 1..]));
        let own = found.map(words).collect::<Vec<_>>();
        own.into_iter().chain(of.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn every_example_of_a_help_text_is_understood_as_it_is_typed() {
        let examples = examples(&command());
        assert!(examples.len() > 100, "{}", examples.len());
        let refused = examples.into_iter().filter_map(|example| {
            let why = command().try_get_matches_from(&example).err()?;
            Some(format!("{}: {why}", example.join(" ")))
        });
        assert_eq!(refused.collect::<Vec<_>>(), [""; 0]);
    }
}
