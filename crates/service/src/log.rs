//! Options of every service, and its log on standard error.

use std::io::{self, IsTerminal as _};

/// Options that every service takes.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
    /// Allow addresses that other machines can reach, not only loopback ones
    #[arg(long)]
    pub public: bool,

    /// Run as this user once sockets are bound, for a service that is started by root
    #[arg(long, short = 'u', value_name = "USER")]
    pub user: Option<String>,

    /// What to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: tracing::Level,

    /// Log one JSON object a line
    #[arg(long)]
    pub log_json: bool,
}

/// Logs to standard error from here on.
pub(crate) fn start(level: tracing::Level, json: bool) {
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    let log = log.with_ansi(io::stderr().is_terminal());
    // A log that has been started already stays as it is.
    let _ = if json { log.json().try_init() } else { log.with_target(false).try_init() };
}
