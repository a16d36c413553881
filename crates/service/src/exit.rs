//! Failures and their exit codes.
//!
//! 2 is for what was typed: an option or value that is wrong, a run, target or commit that doesn't
//! exist, a named file that is missing or isn't what it has to be (a suite, a ledger, records,
//! accounts, certificates), a wrong environment variable. 1 is for what the system or another
//! program refuses: a server that can't be reached, an address or data directory in use, data of
//! another version, a full disk.

use std::fmt;
use std::process::ExitCode;

use crate::file_limit;
use crate::out::{is_unread, note};

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// What was typed is wrong, explained by a text that is shown as it is: exit code 2.
    Explained(String),
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Explained(text) | Self::Usage(text) => f.write_str(text),
            Self::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl Failure {
    /// A usage error, with all its causes.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::Usage(format!("{:#}", error.into()))
    }

    /// Prints what went wrong on standard error, and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::Explained(text) => {
                note(text);
                ExitCode::from(2)
            }
            Self::Usage(message) => {
                note(format!("error: {message}"));
                ExitCode::from(2)
            }
            Self::Other(error) if is_reader_gone(&error) => ExitCode::SUCCESS,
            Self::Other(error) => {
                note(format!("error: {error:#}"));
                if let Some(advice) = file_limit::advice() {
                    note(format!("  {advice}"));
                }
                ExitCode::FAILURE
            }
        }
    }
}

/// Whether standard output was closed by its reader, as `head` does: that is no failure.
fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).any(is_unread)
}
