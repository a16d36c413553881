//! A server as a command asks it. Control plane.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use service::{Failure, Outcome, out};
use wire::TlsTrust;

use super::args::SessionArgs;
use crate::client::{CallOptions, Client, Encryption, Schema, SchemaError, ServerAddress};
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
        let options = args.options()?;
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

/// The exit code of a call, whose end is printed unless it is OK.
pub(super) fn exit(ended: &Ended) -> ExitCode {
    if ended.status.code == Code::Ok {
        return ExitCode::SUCCESS;
    }
    out::note(format!("error: {}", ended.status));
    ExitCode::from(STATUS_BASE + ended.status.code as u8)
}
