//! Options of every service.

/// Options that every service takes.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
    /// Allow addresses that other machines can reach, not only loopback ones
    #[arg(long)]
    pub public: bool,

    /// Run as this user once sockets are bound, for a service that is started by root; USER has to
    /// be able to read the files that SIGHUP reads again, and to write data
    #[arg(long, short = 'u', value_name = "USER")]
    pub user: Option<String>,

    /// What to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: tracing::Level,

    /// Log one JSON object a line
    #[arg(long)]
    pub log_json: bool,
}
