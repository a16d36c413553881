//! Addresses and ports of a cache, as typed.

use service::ListenAddress;

/// The port that memcached's clients try first.
pub(crate) const DEFAULT_PORT: u16 = 11211;

/// Where to listen, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listen {
    pub(super) place: ListenAddress,
    /// Whether its connections stay plain where others are encrypted.
    pub(super) plain: bool,
}

/// Where datagrams are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UdpPort {
    /// Nowhere.
    Off,
    /// At the port of TCP.
    Same,
    /// At a port of their own.
    Port(u16),
}

/// A port of datagrams as it is written.
pub(super) fn udp_port(written: &str) -> Result<UdpPort, String> {
    match (written, written.parse()) {
        ("same", _) => Ok(UdpPort::Same),
        (_, Ok(0)) => Ok(UdpPort::Off),
        (_, Ok(port)) => Ok(UdpPort::Port(port)),
        (_, Err(_)) => Err("write a port, `same`, or 0 for none".to_owned()),
    }
}

/// Where to listen, and whether plainly.
pub(super) fn listen(written: &str) -> Result<Listen, String> {
    let bare = written.strip_prefix("notls:");
    Ok(Listen { place: bare.unwrap_or(written).parse()?, plain: bare.is_some() })
}
