//! Encrypted connections of the client: who vouches for the server, and by which name.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ureq::config::{Config, ConfigBuilder};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// The authorities that are trusted, and the client's own identity, as PEM.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// The authorities that sign servers' certificates.
    pub authorities: &'a [u8],
    /// The client's certificate and its key, for servers that ask for one.
    pub identity: Option<(&'a [u8], &'a [u8])>,
    /// The name that the server's certificate is for, if it is not the address.
    pub name: Option<&'a str>,
}

/// What all clients have in common.
pub(super) fn config(timeout: Duration) -> ConfigBuilder<AgentScope> {
    let config = ureq::Agent::config_builder();
    let config = config.http_status_as_error(false).timeout_global(Some(timeout));
    config.max_redirects(0).max_redirects_will_error(false).proxy(None)
}

/// Leads every name to one server.
#[derive(Debug)]
struct Only(SocketAddr);

impl Resolver for Only {
    fn resolve(
        &self,
        _: &ureq::http::Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(self.0);
        Ok(addresses)
    }
}

/// What asks the server at this address, encrypted.
///
/// # Errors
/// When the PEM can't be used.
pub(super) fn agent(
    server: SocketAddr,
    trust: &Trust<'_>,
    timeout: Duration,
) -> anyhow::Result<ureq::Agent> {
    let roots = certificates(trust.authorities).context("the authorities")?;
    let identity = trust.identity.map(|(chain, key)| {
        let chain = certificates(chain).context("the own certificate")?;
        let key = PrivateKey::from_pem(key).context("the own key")?;
        anyhow::Ok(ClientCert::new_with_certs(&chain, key))
    });
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .client_cert(identity.transpose()?)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let config = config(timeout).https_only(true).tls_config(tls).build();
    Ok(ureq::Agent::with_parts(config, DefaultConnector::default(), Only(server)))
}

fn certificates(pem: &[u8]) -> anyhow::Result<Vec<Certificate<'static>>> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item? {
            found.push(certificate);
        }
    }
    anyhow::ensure!(!found.is_empty(), "there is no certificate in PEM");
    Ok(found)
}
