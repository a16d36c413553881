//! `--http`, `--metrics` and their tokens, as meant. Control plane.

use service::{
    BoundHttp, Face, Failure, Harness, HttpArgs, HttpServer, HttpSettings, Tokens, is_local,
};
use wire::{Address, Tls};

use super::args::WorkflowArgs;
use crate::server::WorkflowServer;

/// An address that is bound, and who may ask there.
pub(super) struct Web {
    bound: BoundHttp,
    tokens: Option<Tokens>,
    is_public: bool,
}

impl Web {
    /// Serves the tree of a server.
    pub(super) fn start(self, server: &WorkflowServer) -> anyhow::Result<HttpServer> {
        server.serve_http(self.bound, self.tokens, self.is_public)
    }
}

/// Binds what is asked for, and reads the tokens.
///
/// # Errors
/// When an address is not allowed or can't be bound, or the tokens can't be read.
pub(super) fn bind(
    args: &WorkflowArgs,
    harness: &mut Harness,
    tls: Option<&Tls>,
) -> Result<Option<Web>, Failure> {
    let (metrics, token_file) = (args.metrics, args.token_file.clone());
    if token_file.is_some() && metrics.is_none() && args.http.is_none() {
        let words = "--token-file is of use with --http or --metrics only: add one of them";
        return Err(Failure::Usage(words.to_owned()));
    }
    harness.bind_metrics(&HttpArgs { metrics, token_file: token_file.clone() })?;
    let Some(address) = args.http else { return Ok(None) };
    let internet = Address::Internet(address);
    harness.check_exposure("--http", std::slice::from_ref(&internet))?;
    let is_public = !is_local(&internet);
    let tokens = token_file.map(Tokens::read).transpose().map_err(Failure::usage)?;
    match &tokens {
        Some(tokens) => {
            let tokens = tokens.clone();
            harness.reload("tokens", move || tokens.read_again());
        }
        None if is_public => {
            let words = format!(
                "--http {address}: other machines reach it, and may ask nothing without a token: \
                 add --token-file"
            );
            return Err(Failure::Usage(words));
        }
        None => {}
    }
    if is_public && tls.is_none() {
        tracing::warn!(
            "--http {address}: tokens, scripts and outputs cross the network unencrypted; add \
             --ssl or --tls-cert, or put a proxy with TLS before a loopback address"
        );
    }
    let settings = HttpSettings { address, takes_names: is_public, tokens: None, face: Face::Api };
    let mut bound = BoundHttp::bind(settings)?;
    if let Some(tls) = tls {
        bound = bound.encrypted(tls.clone(), args.encryption.handshake_timeout());
    }
    Ok(Some(Web { bound, tokens, is_public }))
}
