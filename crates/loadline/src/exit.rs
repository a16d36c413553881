//! Failures and their exit codes: 1 an error, 2 a mistake in the command line or the suite.
//!
//! What a finished run found has codes of its own; see `report::outcome`.

use std::process::ExitCode;

use lab::plan::SuiteError;

use crate::out::{is_unread, note};

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The suite is wrong: exit code 2.
    Suite(Box<SuiteError>),
    /// The command line is wrong in a way that only its meaning shows: exit code 2.
    Usage(String),
    /// Anything else: exit code 1.
    Other(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl Failure {
    /// Says on standard error what went wrong, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Suite(error) => {
                note(format!("{:?}", miette::Report::new(*error)));
                ExitCode::from(2)
            }
            Self::Usage(message) => {
                note(format!("error: {message}"));
                ExitCode::from(2)
            }
            Self::Other(error) if is_enough(&error) => ExitCode::SUCCESS,
            Self::Other(error) => {
                note(format!("error: {error:#}"));
                ExitCode::from(1)
            }
        }
    }
}

/// Whoever read the output has seen enough, which is no error.
fn is_enough(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).any(is_unread)
}
