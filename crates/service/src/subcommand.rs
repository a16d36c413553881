//! A service as the command knows it: its name, and its two subcommands.

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::Failure;

/// What a command comes to: an exit code, or why it could not do what it was asked.
pub type Outcome = Result<ExitCode, Failure>;

/// A service's row.
#[derive(Debug)]
pub struct Service {
    /// Its name in `serve NAME`, and in `NAME …` where it has a client.
    pub name: &'static str,
    /// One line for the help of `serve`.
    pub doc: &'static str,
    /// Whether help leaves it out.
    pub is_hidden: bool,
    /// `serve NAME`.
    pub serve: Subcommand,
    /// `NAME …`, with one line for the help.
    pub command: Option<(&'static str, Subcommand)>,
}

/// Arguments of a command, and what they do.
pub trait Run: clap::Args {
    /// Does what was typed.
    ///
    /// # Errors
    /// When it can't be done.
    fn run(self) -> Outcome;
}

/// A command of a service: its arguments for clap, and its function.
#[derive(Clone, Copy, Debug)]
pub struct Subcommand {
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Outcome,
}

impl Subcommand {
    /// The command whose arguments are `A`.
    pub const fn of<A: Run>() -> Self {
        Self { arguments: A::augment_args, run: run::<A> }
    }

    /// The command for clap.
    pub fn command(self, name: &'static str, doc: &'static str) -> Command {
        // The doc comment of the arguments would be their help otherwise.
        (self.arguments)(Command::new(name)).about(doc).long_about(None)
    }

    /// Runs the command with what clap has matched.
    ///
    /// # Errors
    /// When it can't be done.
    pub fn run(self, matches: &ArgMatches) -> Outcome {
        (self.run)(matches)
    }
}

impl Service {
    /// `serve NAME` for clap.
    pub fn serve_command(&self) -> Command {
        self.serve.command(self.name, self.doc).hide(self.is_hidden)
    }
}

fn run<A: Run>(matches: &ArgMatches) -> Outcome {
    let arguments = A::from_arg_matches(matches);
    arguments.map_err(|error| Failure::Explained(error.render().to_string()))?.run()
}
