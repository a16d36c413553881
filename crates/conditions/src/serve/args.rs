//! Arguments of `loadline serve conditions`, as typed. Control plane.

use std::net::SocketAddr;
use std::path::PathBuf;

use base::units::ByteCount;
use service::{CommonArgs, DataArgs, ListenArgs, TlsArgs, socket_address};

/// The port where `--listen` names none.
pub(crate) const PORT: u16 = 8350;

const EXAMPLES: &str = "\
Examples:
  loadline serve conditions --data data                        on 127.0.0.1:8350
  loadline serve conditions --data data --listen 127.0.0.1:0   any free port
  loadline serve conditions --data data --listen 0.0.0.0 --public --token-file tokens
      --tls-cert server.pem --tls-key server.key

Folders are made, and objects inserted and read, with `loadline conditions`, or by any client of
HTTP: docs/conditions.md lists the requests.";

/// Arguments of `loadline serve conditions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConditionsArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    #[command(flatten)]
    pub(super) listen: ListenArgs,

    #[command(flatten)]
    pub(super) data: DataArgs,

    /// Keep this much in memory and in the journal, then put it into segments on disk: more makes
    /// starts longer, less writes more
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = seal_after)]
    pub(super) seal_after: ByteCount,

    /// Make changes only for requests with a token of this file, a line each, as
    /// `Authorization: Bearer`; questions need none
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) encryption: TlsArgs,

    /// Serve counters to Prometheus at http://ADDRESS/metrics, too; port 0 is any
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    pub(super) metrics: Option<SocketAddr>,
}

fn seal_after(written: &str) -> Result<ByteCount, String> {
    written.parse().map_err(|error| format!("{error}"))
}
