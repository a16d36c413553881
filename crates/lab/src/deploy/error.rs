//! Why a target could not be started.

use std::io;
use std::path::PathBuf;

/// Why a target isn't ready.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// It could not be started.
    #[error("{name}: can't start {program}: {source}")]
    Start {
        /// The target.
        name: String,
        /// Its program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{name}: {how}")]
    Ended {
        /// The target.
        name: String,
        /// How it ended, with its last lines.
        how: String,
    },
    /// It was not ready in time.
    #[error("{name}: not ready within {within}: {awaited} did not come{lines}")]
    NotReady {
        /// The target.
        name: String,
        /// The time it had.
        within: base::units::Span,
        /// What was waited for.
        awaited: String,
        /// Its last lines.
        lines: String,
    },
    /// A command around it failed.
    #[error("{name}: its {what} failed: {how}")]
    Helper {
        /// The target.
        name: String,
        /// `build` or `setup`.
        what: &'static str,
        /// What happened, with its last lines.
        how: String,
    },
    /// This program's file was replaced since the start of the run.
    #[error("{} was replaced since the run began, as by a build: run it again", exe.display())]
    Replaced {
        /// The file.
        exe: PathBuf,
    },
    /// The run was stopped while the target started.
    #[error("interrupted")]
    Interrupted,
}
