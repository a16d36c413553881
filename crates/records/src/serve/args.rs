//! Arguments of `loadline serve records`, as typed. Control plane.

use std::path::PathBuf;

use base::units::ByteCount;
use service::{CommonArgs, HttpArgs, ThreadArgs};

use super::producer::ProducerArgs;
use crate::command::typed::segment_bytes;

/// The example of a file is one that can be served.
const EXAMPLES: &str = concat!(
    "\
Examples:
  loadline serve records --config records.toml           on 127.0.0.1:5075
  loadline serve records --config records.toml --listen 0.0.0.0 --public
  loadline serve records --config records.toml --listen 127.0.0.1:0   any free port
  loadline serve records --producer array --size 1000000 --monitors 0 --log-json

EPICS_PVAS_INTF_ADDR_LIST, _SERVER_PORT, _BROADCAST_PORT, _BEACON_ADDR_LIST,
_AUTO_BEACON_ADDR_LIST, _IGNORE_ADDR_LIST and EPICS_PVA_CONN_TMO count where no option says
otherwise.

A records.toml:

",
    include_str!("../../examples/records.toml")
);

/// Arguments of `loadline serve records`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordsArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    /// The file that declares records
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Where to listen: ADDRESS or ADDRESS:PORT; may be given several times [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(super) listen: Vec<String>,

    /// The port where --listen names none [default: 5075]
    #[arg(long, short, value_name = "PORT")]
    pub(super) port: Option<u16>,

    /// The port where searches are received [default: 5076; any, where --listen has port 0]
    #[arg(long, value_name = "PORT")]
    pub(super) search_port: Option<u16>,

    /// Receive no searches over datagrams: clients need EPICS_PVA_NAME_SERVERS
    #[arg(long)]
    pub(super) no_search: bool,

    #[command(flatten)]
    pub(super) threads: ThreadArgs,

    #[command(flatten)]
    pub(super) http: HttpArgs,

    /// The largest message: what clients may put, and what fits into one update
    #[arg(long, value_name = "BYTES", default_value = "1GiB")]
    pub(super) max_message: ByteCount,

    /// Memory for what all clients are still to be sent: half for large arrays, of which two always
    /// fit and an update waits otherwise; half for the rest, for which the slowest clients are
    /// closed
    #[arg(long, value_name = "BYTES", default_value = "48MiB")]
    pub(super) send_memory: ByteCount,

    /// Send messages in segments of at most this size, for clients with small buffers
    #[arg(long, value_name = "BYTES", value_parser = segment_bytes)]
    pub(super) segment: Option<usize>,

    /// Connections open at once; one more waits
    #[arg(
        long,
        short = 'c',
        value_name = "NUMBER",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) max_connections: u32,

    /// Log each put: a JSON object a line, appended to this file
    #[arg(long, value_name = "FILE")]
    pub(super) put_log: Option<PathBuf>,

    #[command(flatten)]
    pub(super) producer: ProducerArgs,
}
