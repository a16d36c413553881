//! The log on standard error.

use std::io::{self, IsTerminal as _};

/// Logs to standard error from here on.
pub(crate) fn start(level: tracing::Level, json: bool) {
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    // What reports a failed write of the log writes to the same place, and would panic there.
    let log = log.log_internal_errors(false);
    let log = log.with_ansi(io::stderr().is_terminal());
    // A log that has been started already stays as it is.
    let _ = if json { log.json().try_init() } else { log.with_target(false).try_init() };
}
