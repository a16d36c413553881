//! How a command reaches a server, and what it asks there, as typed. Control plane.

use std::path::PathBuf;

use base::units::{ByteCount, Span};
use service::{Failure, TrustArgs};

use crate::client::CallOptions;
use crate::protocol::metadata::{Metadata, from_base64, is_binary, is_name};

/// The metadata that carries a token.
pub(super) const AUTHORIZATION: &str = "authorization";

/// How a server is reached, and what it is asked with.
#[derive(Debug, clap::Args)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(super) struct SessionArgs {
    /// Metadata of each call, such as `authorization: Bearer TOKEN`, which is all that own frames
    /// take; a value of a name that ends in -bin is base64; may be given several times
    #[arg(long, short = 'H', global = true, value_name = "NAME: VALUE")]
    pub(super) header: Vec<String>,

    /// The first token of this file is sent with each call
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,

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

impl SessionArgs {
    /// How calls are made.
    pub(super) fn options(&self) -> Result<CallOptions, Failure> {
        let mut metadata = Metadata::default();
        for written in &self.header {
            add_header(&mut metadata, written).map_err(Failure::Usage)?;
        }
        if let Some(path) = &self.token_file {
            if metadata.iter().any(|(name, _)| name == AUTHORIZATION) {
                let words = "--token-file and --header authorization are two tokens: give one";
                return Err(Failure::Usage(words.to_owned()));
            }
            let token = service::first_token(path).map_err(Failure::usage)?;
            metadata.add(AUTHORIZATION, format!("Bearer {token}").into_bytes());
        }
        Ok(CallOptions {
            metadata,
            timeout: self.timeout.map(|time| time.duration()),
            gzip: self.gzip,
            max_message_bytes: self.max_message.bytes as usize,
        })
    }
}

/// What is asked of a server of gRPC.
#[derive(Debug, clap::Subcommand)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))]
pub(super) enum RpcCommand {
    /// Print the services of a server, or the functions of one
    List {
        /// The server: HOST, HOST:PORT, grpcs://HOST:PORT or unix:PATH
        address: String,
        /// The service
        service: Option<String>,
    },
    /// Print what a service, function, message or enumeration is, as a .proto file writes it
    Describe {
        /// The server
        address: String,
        /// Its name; all services without one
        symbol: Option<String>,
    },
    /// Ask whether a server, or one of its services, serves: exit code 0 if it does, 1 if not, 69
    /// if the server has none of this name
    Health {
        /// The server
        address: String,
        /// The service; without one the whole server
        service: Option<String>,
    },
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

fn add_header(metadata: &mut Metadata, written: &str) -> Result<(), String> {
    let wrong = |why: &str| format!("--header \"{written}\": {why}");
    let Some((name, value)) = written.split_once(':') else {
        return Err(wrong("write NAME: VALUE"));
    };
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    if !is_name(&name) {
        let why = "a name has letters, digits, _, - and ., and doesn't begin with grpc-";
        return Err(wrong(why));
    }
    if is_binary(&name) {
        let values = from_base64(value.as_bytes());
        let values = values.ok_or_else(|| wrong("the value of a -bin name is base64"))?;
        values.into_iter().for_each(|value| metadata.add(&name[..], value));
        return Ok(());
    }
    if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err(wrong("a value is printable ASCII, unless its name ends in -bin"));
    }
    metadata.add(name, value.as_bytes().to_vec());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let mut metadata = Metadata::default();
        for written in ["X-One: 1", "x-one:2", "x-data-bin: AAH/"] {
            add_header(&mut metadata, written).expect(written);
        }
        let all: Vec<_> = metadata.iter().map(|(name, value)| (name, &value[..])).collect();
        assert_eq!(all, [("x-one", &b"1"[..]), ("x-one", b"2"), ("x-data-bin", &[0, 1, 255])]);
        for wrong in ["x", "x y: 1", "grpc-timeout: 1S", "x-bin: !", "x: ö", ": 1"] {
            assert!(add_header(&mut metadata, wrong).is_err(), "{wrong}");
        }
    }
}
