//! Arguments of `loadline serve conditions`, as typed. Control plane.

use std::net::SocketAddr;
use std::path::PathBuf;

use base::units::{ByteCount, Span};
use journal::SyncPolicy;
use service::{CommonArgs, DataArgs, ListenArgs, TlsArgs, socket_address};

use super::shared::SharedArgs;

/// The port where `--listen` names none.
pub(crate) const PORT: u16 = 8350;

const EXAMPLES: &str = "\
Examples:
  loadline serve conditions --data data                        on 127.0.0.1:8350
  loadline serve conditions --data data --listen 127.0.0.1:0   any free port
  loadline serve conditions --data data --listen 0.0.0.0 --public --token-file tokens
      --tls-cert server.pem --tls-key server.key
  loadline serve conditions --data copies --metadata postgres://loadline@db/conditions \
      --segments s3://bucket/conditions                        one of several servers of these

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
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = seal_size)]
    pub(super) seal_after: ByteCount,

    /// When a change is on the disk: before it is answered (always), this long after it (500ms), or
    /// when the system likes (never). However it is, a crash of the server alone loses nothing that
    /// was answered; one of the machine loses what was not on the disk
    #[arg(long, value_name = "WHEN", default_value = "always", conflicts_with = "metadata")]
    pub(super) sync: SyncPolicy,

    #[command(flatten)]
    pub(super) shared: SharedArgs,

    /// Of several servers: the most of the segments that is copied to --data. What was read least
    /// recently is evicted, and fetched again; the indexes of all segments have to fit
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "250GiB",
        value_parser = size,
        requires = "metadata"
    )]
    pub(super) cache_size: ByteCount,

    /// Connections open at once; one more ends the one that has been open for longest
    #[arg(
        long,
        short = 'c',
        value_name = "NUMBER",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) max_connections: u32,

    /// Close a connection that has had no request for this long since its last answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = idle)]
    pub(super) idle_timeout: Span,

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

/// A time that is not zero.
fn idle(written: &str) -> Result<Span, String> {
    let time: Span = written.parse().map_err(|error| format!("{error}"))?;
    match time.duration().is_zero() {
        true => Err("each connection would end after one answer: write a time such as 60s".into()),
        false => Ok(time),
    }
}

/// The least that is worth a segment.
const LEAST_SEAL: u64 = 64 << 10;

fn seal_size(written: &str) -> Result<ByteCount, String> {
    let size = size(written)?;
    match size.bytes < LEAST_SEAL {
        true => Err("each change would be sealed: write 64KiB or more, with its unit".to_owned()),
        false => Ok(size),
    }
}

fn size(written: &str) -> Result<ByteCount, String> {
    written.parse().map_err(|error| format!("{error}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        _args: ConditionsArgs,
    }

    #[test]
    fn what_has_no_effect_or_lacks_its_unit_is_refused() {
        let said = |more: &[&str]| {
            let args = [&["serve", "--data", "data"], more].concat();
            Program::try_parse_from(args).err().map_or(String::new(), |why| why.to_string())
        };
        assert_eq!(said(&["--seal-after", "64KiB"]), "");
        assert!(said(&["--seal-after", "64"]).contains("with its unit"));
        assert!(said(&["--cache-size", "10GiB"]).contains("--metadata"));
    }
}
