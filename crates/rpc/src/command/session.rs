//! A server as a command asks it. Control plane.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use service::{Failure, Outcome, out};
use wire::TlsTrust;

use super::args::SessionArgs;
use crate::client::{CallOptions, Client, Encryption, Schema, SchemaError, ServerAddress};
use crate::protocol::metadata::{Metadata, from_base64, is_binary, is_name};
use crate::protocol::status::{Code, Ended};

/// What a status is added to for an exit code.
const STATUS_BASE: u8 = 64;

/// A server, and how it is asked.
pub(super) struct Session {
    address: ServerAddress,
    args: SessionArgs,
    encryption: Option<Encryption>,
    pub(super) options: CallOptions,
}

impl Session {
    /// Reads what is typed; nothing is connected yet.
    pub(super) fn begin(address: &str, args: SessionArgs) -> Result<Self, Failure> {
        let mut address: ServerAddress = address.parse().map_err(Failure::usage)?;
        let trusted = args.encryption.read().map_err(Failure::usage)?;
        let encryption = trusted
            .map(|trusted| {
                let trust =
                    TlsTrust { authorities: &trusted.authorities, identity: trusted.identity() };
                let config = trust.config();
                let words = "--tls-ca, --tls-cert and --tls-key name files of PEM";
                let config = config.context(words).map_err(Failure::usage)?;
                Ok::<_, Failure>(Encryption { config, name: args.encryption.tls_name.clone() })
            })
            .transpose()?;
        match &mut address {
            ServerAddress::Tcp { is_encrypted: true, .. } if encryption.is_none() => {
                let words = "grpcs: say who vouches for the server with --tls-ca FILE";
                return Err(Failure::Usage(words.to_owned()));
            }
            ServerAddress::Unix(_) if encryption.is_some() => {
                let words = "--tls-ca: a Unix socket is not encrypted";
                return Err(Failure::Usage(words.to_owned()));
            }
            _ => {}
        }
        let options = options(&args)?;
        Ok(Self { address, args, encryption, options })
    }

    pub(super) async fn connect(&self) -> anyhow::Result<Client> {
        let limit = self.args.connect_timeout.duration();
        Client::connect(&self.address, self.encryption.clone(), limit).await
    }

    /// What functions take: of the files that are named, or of the server.
    pub(super) async fn schema(
        &self,
        client: &Client,
        symbols: &[&str],
    ) -> Result<Schema, Failure> {
        if !self.args.proto.is_empty() {
            return self.schema_of_files();
        }
        let timeout = self.options.timeout.or(Some(Duration::from_secs(60)));
        let options = CallOptions { timeout, gzip: false, ..self.options.clone() };
        Schema::of_server(client, &options, symbols).await.map_err(failure)
    }

    /// That of the files that are named.
    pub(super) fn schema_of_files(&self) -> Result<Schema, Failure> {
        Schema::of_files(&self.args.proto, &self.args.import).map_err(failure)
    }

    /// Whether files are named, so that the server isn't asked.
    pub(super) fn has_files(&self) -> bool {
        !self.args.proto.is_empty()
    }
}

/// How calls are made.
pub(super) fn options(args: &SessionArgs) -> Result<CallOptions, Failure> {
    let mut metadata = Metadata::default();
    for written in &args.header {
        add_header(&mut metadata, written).map_err(Failure::Usage)?;
    }
    Ok(CallOptions {
        metadata,
        timeout: args.timeout.map(|time| time.duration()),
        gzip: args.gzip,
        max_message_bytes: args.max_message.bytes as usize,
    })
}

/// An outcome with the exit code of the status by which reflection has refused it: the call would
/// have ended with it. A server that has no reflection says nothing of the call.
pub(super) fn with_exit_code(outcome: Outcome) -> Outcome {
    if let Err(Failure::Other(error)) = &outcome
        && let Some(SchemaError::Refused(status)) = error.downcast_ref()
        && status.code != Code::Unimplemented
    {
        out::note(format!("error: {error}"));
        return Ok(ExitCode::from(STATUS_BASE + status.code as u8));
    }
    outcome
}

/// What names nothing, or a file that is wrong, was typed wrong.
pub(super) fn failure(error: SchemaError) -> Failure {
    match error {
        SchemaError::Refused(_) => Failure::Other(error.into()),
        SchemaError::NotFound(_) | SchemaError::Unusable(_) => Failure::usage(error),
    }
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

/// The exit code of a call, whose end is printed unless it is OK.
pub(super) fn exit(ended: &Ended) -> ExitCode {
    if ended.status.code == Code::Ok {
        return ExitCode::SUCCESS;
    }
    out::note(format!("error: {}", ended.status));
    ExitCode::from(STATUS_BASE + ended.status.code as u8)
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
