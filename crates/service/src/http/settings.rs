//! Where the control plane is, and what its requests need: as typed, and as meant.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use wire::Address;

use crate::{Failure, Tokens, is_local};

/// `--metrics` and `--token-file`.
#[derive(Clone, Debug, clap::Args)]
pub struct HttpArgs {
    /// Serve counters to Prometheus at http://ADDRESS/metrics; port 0 is any
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    pub metrics: Option<SocketAddr>,

    /// Answer --metrics only with a token of this file, a line each, as `Authorization: Bearer`;
    /// tokens and counters are not encrypted: at an address that other machines reach, put a proxy
    /// with TLS before it
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub token_file: Option<PathBuf>,
}

impl HttpArgs {
    pub(crate) fn settings(&self, address: SocketAddr) -> Result<HttpSettings, Failure> {
        let tokens = self.token_file.clone().map(Tokens::read).transpose();
        let tokens = tokens.map_err(Failure::usage)?;
        // A remote scraper may name the host in any way; its requests change nothing and return no
        // data. At a loopback address only a browser that was led there would use another name.
        Ok(HttpSettings { address, takes_names: !is_loopback(address), tokens, face: Face::Pages })
    }
}

/// An address with a port, as typed; port 0 stays what it is.
///
/// # Errors
/// When it is none; the error shows one.
pub fn socket_address(written: &str) -> Result<SocketAddr, String> {
    match written.replacen("localhost:", "127.0.0.1:", 1).parse() {
        Ok(Address::Internet(address)) => Ok(address),
        _ => Err("write an address with a port, such as 127.0.0.1:9150".to_owned()),
    }
}

/// Whether only this machine reaches the address.
pub(super) fn is_loopback(address: SocketAddr) -> bool {
    is_local(&Address::Internet(address))
}

/// What is served at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Pages and counters. They are only read, every request needs a token where there are tokens,
    /// and no cache keeps them.
    Pages,
    /// A service's interface. A request that changes something needs a token where there are
    /// tokens, and comes from no page of another origin; an answer may say that caches keep it.
    Api,
}

impl Face {
    /// Its limits, unless others are set.
    pub fn limits(self) -> HttpLimits {
        let (connections, idle_s) = match self {
            Self::Pages => (128, 10),
            Self::Api => (1_024, 60),
        };
        HttpLimits { connections, idle: Duration::from_secs(idle_s) }
    }
}

/// Limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections open at once; one more ends the one that has been open for longest.
    pub connections: u32,
    /// How long a connection may be without a request after one that was answered.
    pub idle: Duration,
}

/// How a control plane is reached.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether requests may name the host in any way. Otherwise only by an address (a loopback one
    /// where it listens at one) or as localhost: a web page can make any other name resolve to this
    /// host and read the answers (DNS rebinding).
    pub takes_names: bool,
    /// Tokens, one of which a request has to carry: each one, or as [`Face::Api`] says.
    pub tokens: Option<Tokens>,
    /// What is served.
    pub face: Face,
}
