//! Arguments of `loadline serve workflow`, as typed. Control plane.

use std::net::SocketAddr;
use std::path::PathBuf;

use base::units::ByteCount;
use journal::SyncPolicy;
use service::{CommonArgs, ListenArgs, ThreadArgs, TlsArgs, socket_address};

use crate::server::LogFlush;

/// The port where none is named.
pub(super) const PORT: u16 = 3141;

const EXAMPLES: &str = "\
Examples:
  loadline serve workflow --data home                    on 127.0.0.1:3141
  loadline serve workflow --data home --port 14141
  loadline serve workflow --data home --listen 0.0.0.0 --public
  loadline serve workflow --data home --http 127.0.0.1:8080 --token-file tokens
  ln -s loadline ecflow_server; ./ecflow_server --port=3141      as ecFlow's own server is started

Clients are ecFlow's, one command a call: ecflow_client --port=3141 --load=x.def. Jobs call
ecflow_client, too. Called as ecflow_server, ECF_HOME and ECF_PORT count; ECF_LOG, ECF_CHECK,
ECF_CHECKOLD, ECF_CHECKINTERVAL, ECF_LISTS, ECF_PASSWD, ECF_CUSTOM_PASSWD, ECF_TASK_THRESHOLD,
ECF_PRUNE_NODE_LOG, ECF_SSL and the ECF_..._CMD do always.";

/// Arguments of `loadline serve workflow`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub(crate) struct WorkflowArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    #[command(flatten)]
    pub(super) listen: ListenArgs,

    /// The port where --listen names none [default: 3141]
    #[arg(long, value_name = "PORT")]
    pub(super) port: Option<u16>,

    /// The directory of scripts, jobs and the server's files, ecFlow's ECF_HOME; it is made if it
    /// isn't there, in one that is; what is this program's own lies in DIR/.loadline
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,

    /// Seconds between two looks at times; each is a minute of the suites' calendars
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u8).range(1..=60)
    )]
    pub(super) ecfinterval: u8,

    /// Start no jobs and none of their commands (ECF_KILL_CMD, ECF_STATUS_CMD), and send no nodes
    /// to other servers
    #[arg(long = "dis_job_gen", alias = "dis-job-gen")]
    pub(super) dis_job_gen: bool,

    /// As ecFlow's; --log debug says more
    #[arg(long, hide = true)]
    pub(super) debug: bool,

    /// Take what isn't typed from ECF_HOME and ECF_PORT; other machines may reach it
    #[arg(long, hide = true)]
    pub(super) ecflow_server: bool,

    /// When a change is on the disk: before it is answered (always), this long after it (500ms), or
    /// when the system likes (never). However it is, a crash of the server alone loses nothing that
    /// was answered; one of the machine loses what was not on the disk
    #[arg(long, value_name = "WHEN", default_value = "always")]
    pub(super) sync: SyncPolicy,

    /// When lines of the log are written: each by a write of its own (write), at the end of the
    /// command that caused them (command), with all that come within 2 ms (group), at a
    /// checkpoint, or with the next error. Or one for requests and one for the changes of states
    /// that they cause: message=command,change=checkpoint. Errors and warnings are written at once,
    /// with all that is before them. No answer waits for lines: a crash loses those that wait,
    /// 1 MiB at most, and those that the disk has not taken yet
    #[arg(long, value_name = "UNTIL", default_value = "group")]
    pub(super) log_flush: LogFlush,

    /// The largest request
    #[arg(long, value_name = "BYTES", default_value = "1GiB")]
    pub(super) max_message: ByteCount,

    /// Memory of all requests that are being read or carried out
    #[arg(long, value_name = "BYTES", default_value = "2GiB")]
    pub(super) receive_memory: ByteCount,

    /// Memory of all large answers that are being sent; one more is refused
    #[arg(long, value_name = "BYTES", default_value = "1GiB")]
    pub(super) send_memory: ByteCount,

    /// Commands of jobs (ECF_JOB_CMD) that run at once; others wait. Of ECF_KILL_CMD and
    /// ECF_STATUS_CMD 32 each run beside them
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) max_jobs: u32,

    /// Connections open at once; one more waits
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) max_connections: u32,

    /// Encrypt with the certificate in $HOME/.ecflowrc/ssl, as ECF_SSL does: server.crt and
    /// server.key, else HOST.PORT.crt and HOST.PORT.key
    #[arg(long, conflicts_with = "tls_cert")]
    pub(super) ssl: bool,

    #[command(flatten)]
    pub(super) encryption: TlsArgs,

    #[command(flatten)]
    pub(super) threads: ThreadArgs,

    /// Serve the tree over HTTP, too: a page at http://ADDRESS/, and ecflow_http's interface v1 for
    /// programs; port 0 is any. Encrypted where the other connections are
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    pub(super) http: Option<SocketAddr>,

    /// Serve counters to Prometheus at http://ADDRESS/metrics; port 0 is any
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    pub(super) metrics: Option<SocketAddr>,

    /// Tokens, a line each, one of which a change over --http needs as `Authorization: Bearer`, and
    /// --metrics for all; what only reads needs one, too, where other machines reach the address
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
}
