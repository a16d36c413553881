//! Failures and their exit codes.
//!
//! 2 is for whoever typed: an option or value that is wrong, a run, target or commit that isn't
//! there, a file that is named and is missing or isn't what it has to be (a suite, a ledger,
//! records, accounts, certificates), a wrong variable of the environment. 1 is for what the world
//! refuses: a server that isn't reached, an address that another one has, a full disk.
//!
//! What a finished run found has codes of its own; see `report::outcome`.

use std::process::ExitCode;

use ::cache::client::ClientError;
use lab::plan::SuiteError;

use crate::file_limit;
use crate::out::{is_unread, note};

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The suite is wrong: exit code 2.
    Suite(Box<SuiteError>),
    /// What was typed is wrong in a way that only its meaning shows: exit code 2.
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
    /// A mistake of whoever typed, with all its causes.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::Usage(format!("{:#}", error.into()))
    }

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
                if let Some(advice) = file_limit::advice() {
                    note(format!("  {advice}"));
                }
                ExitCode::from(if is_typed(&error) { 2 } else { 1 })
            }
        }
    }
}

/// Whether it is a key that was typed, which only the cache's client refuses.
fn is_typed(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::BadKey))
}

/// Whoever read the output has seen enough, which is no error.
fn is_enough(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).any(is_unread)
}
