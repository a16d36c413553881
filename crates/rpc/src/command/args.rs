//! How a command reaches a server, as typed. Control plane.

use std::path::PathBuf;

use base::units::{ByteCount, Span};
use service::TrustArgs;

/// How a server is reached, and what it is asked with.
#[derive(Debug, clap::Args)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(super) struct SessionArgs {
    /// Metadata of each call, such as `authorization: Bearer TOKEN`; a value of a name that ends in
    /// -bin is base64; may be given several times
    #[arg(long, short = 'H', global = true, value_name = "NAME: VALUE")]
    pub(super) header: Vec<String>,

    /// How long a call may take; the server gets it, too. Without it `ping` and `why` take
    /// --connect-timeout
    #[arg(long, global = true, value_name = "TIME", value_parser = time)]
    pub(super) timeout: Option<Span>,

    /// How long connecting may take, until the server has answered
    #[arg(long, global = true, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(super) connect_timeout: Span,

    /// Read what functions take from this .proto file, not from the server; may be given several
    /// times
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) proto: Vec<PathBuf>,

    /// Look for the imports of --proto here, too; may be given several times
    #[arg(long, global = true, value_name = "DIR", requires = "proto")]
    pub(super) import: Vec<PathBuf>,

    /// Compress requests with gzip
    #[arg(long, global = true)]
    pub(super) gzip: bool,

    /// The largest message of an answer
    #[arg(long, global = true, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub(super) max_message: ByteCount,

    /// Print JSON, as `call` always does
    #[arg(long, global = true)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) encryption: TrustArgs,
}

/// A time of more than nothing.
pub(super) fn time(written: &str) -> Result<Span, String> {
    let time: Span = written.parse().map_err(|error| format!("{error}"))?;
    match time.duration().is_zero() {
        true => Err("it has to be more than nothing, such as 2s".to_owned()),
        false => Ok(time),
    }
}

/// The bytes of an echo.
#[cfg(feature = "grpc")]
pub(super) fn echoed(written: &str) -> Result<ByteCount, String> {
    let size = size(written)?;
    match size.bytes <= 1 << 30 {
        true => Ok(size),
        false => Err(format!("{size} are more than 1 GiB")),
    }
}

fn size(written: &str) -> Result<ByteCount, String> {
    written.parse().map_err(|error| format!("{error}"))
}
