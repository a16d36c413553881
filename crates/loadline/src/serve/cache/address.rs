//! Where a cache listens, as it is written and as it is meant.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::bail;
use wire::Address;

use super::CacheArgs;

/// The port that memcached's clients try first.
pub(super) const DEFAULT_PORT: u16 = 11211;

/// Where to listen, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(super) place: Place,
    /// Whether its connections stay plain where others are encrypted.
    pub(super) plain: bool,
}

/// An address, with its port or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An address with its port, or a Unix socket.
    Whole(Address),
    /// An address whose port is said by another option.
    Host(IpAddr),
}

/// Where datagrams are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UdpPort {
    /// Nowhere.
    Off,
    /// At the port of TCP.
    Same,
    /// At a port of their own.
    Port(u16),
}

/// Where a service is reached.
pub(super) struct Addresses {
    pub(super) listen: Vec<Address>,
    pub(super) listen_plain: Vec<Address>,
    pub(super) datagrams: Vec<Address>,
}

/// Where it is reached, which has to be somewhere.
pub(super) fn addresses(args: &CacheArgs) -> anyhow::Result<Addresses> {
    let [listen, listen_plain] = [false, true].map(|plain| stream_addresses(args, plain));
    let datagrams = datagram_addresses(args)?;
    if listen.is_empty() && listen_plain.is_empty() && datagrams.is_empty() {
        bail!("-p 0 needs -U or -s: there is nowhere to listen");
    }
    Ok(Addresses { listen, listen_plain, datagrams })
}

/// Where connections come in, those that stay plain or the others: a Unix socket of memcached's
/// option takes the place of TCP.
fn stream_addresses(args: &CacheArgs, plain: bool) -> Vec<Address> {
    if let Some(path) = &args.memcached.socket {
        return if plain { Vec::new() } else { vec![Address::Unix(path.clone())] };
    }
    let meant = |listen: &Listen| match &listen.place {
        _ if listen.plain != plain => None,
        Place::Whole(address) => Some(address.clone()),
        Place::Host(_) if args.port == 0 => None,
        Place::Host(host) => Some(Address::Internet((*host, args.port).into())),
    };
    args.listen.iter().filter_map(meant).collect()
}

/// Where datagrams come in.
fn datagram_addresses(args: &CacheArgs) -> anyhow::Result<Vec<Address>> {
    let hosts = args.listen.iter().filter_map(|listen| match &listen.place {
        Place::Whole(Address::Internet(address)) => Some((address.ip(), address.port())),
        Place::Whole(Address::Unix(_)) => None,
        Place::Host(host) => Some((*host, args.port)),
    });
    let port = |of_tcp: u16| match args.udp_port {
        UdpPort::Off => None,
        UdpPort::Same => Some(of_tcp),
        UdpPort::Port(port) => Some(port),
    };
    let first = hosts.filter_map(|(host, of_tcp)| Some((host, port(of_tcp)?))).next();
    if first.is_none() && args.udp_port != UdpPort::Off {
        bail!("datagrams need an internet address: name one with --listen");
    }
    Ok(first.map(|address| Address::Internet(address.into())).into_iter().collect())
}

/// Where counters are shown: port 0 stays what it is, and no other port is a default.
pub(super) fn metrics_address(written: &str) -> Result<Address, String> {
    let written = written.replacen("localhost:", "127.0.0.1:", 1);
    match written.parse() {
        Ok(Address::Internet(address)) => Ok(Address::Internet(address)),
        _ => Err("write an address with a port, such as 127.0.0.1:9150".to_owned()),
    }
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
    Ok(Listen { place: place(bare.unwrap_or(written))?, plain: bare.is_some() })
}

/// An address without a port stays without one.
fn place(written: &str) -> Result<Place, String> {
    let bare = written.trim_start_matches('[').trim_end_matches(']');
    match (written, bare.parse()) {
        ("localhost", _) => Ok(Place::Host(IpAddr::V4(Ipv4Addr::LOCALHOST))),
        (_, Ok(host)) => Ok(Place::Host(host)),
        (_, Err(_)) => address(written).map(Place::Whole),
    }
}

/// An address with or without a port.
pub(crate) fn address(written: &str) -> Result<Address, String> {
    let bare = written.trim_start_matches('[').trim_end_matches(']');
    let address = match (written, bare.parse::<IpAddr>()) {
        ("localhost", _) => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        (_, Ok(address)) => Some(address),
        (_, Err(_)) => None,
    };
    if let Some(address) = address {
        return Ok(Address::Internet((address, DEFAULT_PORT).into()));
    }
    let written = match written.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => written.to_owned(),
    };
    written.parse().map_err(|_| {
        "write an address such as 127.0.0.1, 127.0.0.1:11211, [::1]:11211 or unix:/run/it.sock"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_may_leave_its_port_out() {
        for (written, meant) in [
            ("127.0.0.1", "127.0.0.1:11211"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("localhost", "127.0.0.1:11211"),
            ("localhost:5", "127.0.0.1:5"),
            ("::1", "[::1]:11211"),
            ("[::1]", "[::1]:11211"),
            ("[::1]:7", "[::1]:7"),
            ("unix:/tmp/a", "unix:/tmp/a"),
        ] {
            assert_eq!(address(written).expect(written).to_string(), meant);
        }
        for wrong in ["", "cache.example", "127.0.0.1:", "127.0.0.1:99999", "unix:"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
