//! Open channels, and the clients that they belong to.

use std::net::IpAddr;
use std::sync::Arc;

use crate::model::Record;

/// The name of the channel by which the service itself is called.
pub(super) const SERVICE_CHANNEL: &str = "server";

/// What a channel leads to.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Record(Arc<Record>),
    /// The service itself, which can be called.
    Service,
}

/// One open channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) server_id: u32,
    pub(super) client_id: u32,
    pub(super) target: Target,
    /// Whether this client may change it.
    pub(super) may_put: bool,
}

/// A client, as it has introduced itself: only the address is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name; `anonymous`, unless another was given.
    pub user: Arc<str>,
    /// The host's name, as the client gave it.
    pub host: Arc<str>,
    /// The address of its end of the connection.
    pub address: Arc<str>,
}

impl Identity {
    /// Whether it is on this host.
    pub(super) fn is_local(&self) -> bool {
        let address: Option<IpAddr> = self.address.parse().ok();
        address.is_some_and(|address| address.is_loopback())
    }
}
