//! The environment variables that configure where EPICS programs search: pvxs'
//! `documentation/netconfig.rst`. Reads nothing itself; it is handed what looks a name up.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// The default port of connections.
pub const SERVER_PORT: u16 = 5075;

/// The default port of searches and beacons.
pub const BROADCAST_PORT: u16 = 5076;

/// A client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEnvironment {
    /// Where searches are sent: `EPICS_PVA_ADDR_LIST` and, unless `EPICS_PVA_AUTO_ADDR_LIST` is
    /// `NO`, all of the local network and this host, whose loopback no broadcast reaches.
    pub searches: Vec<SocketAddr>,
    /// Servers that are asked by a connection: `EPICS_PVA_NAME_SERVERS`.
    pub name_servers: Vec<SocketAddr>,
    /// A connection without a byte for this long is given up: `EPICS_PVA_CONN_TMO`, 30 s by
    /// default, of which peers make 4/3.
    pub idle_timeout: Duration,
}

/// A server's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEnvironment {
    /// The addresses to listen on: `EPICS_PVAS_INTF_ADDR_LIST`; unset, when it is empty.
    pub interfaces: Vec<IpAddr>,
    /// The port of connections: `EPICS_PVAS_SERVER_PORT` or `EPICS_PVA_SERVER_PORT`.
    pub port: u16,
    /// The port of searches: `EPICS_PVAS_BROADCAST_PORT` or `EPICS_PVA_BROADCAST_PORT`.
    pub search_port: u16,
    /// Where beacons are sent: `EPICS_PVAS_BEACON_ADDR_LIST` or `EPICS_PVA_ADDR_LIST`.
    pub beacons: Vec<SocketAddr>,
    /// Whether they are also sent to all of the local network: not when
    /// `EPICS_PVAS_AUTO_BEACON_ADDR_LIST` or `EPICS_PVA_AUTO_ADDR_LIST` is `NO`.
    pub beacons_to_all: bool,
    /// Whose searches aren't answered: `EPICS_PVAS_IGNORE_ADDR_LIST`.
    pub ignore: Vec<IpAddr>,
    /// As for clients.
    pub idle_timeout: Duration,
}

/// A variable whose value makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} has {value:?}, which is no {wanted}")]
pub struct EnvironmentError {
    name: &'static str,
    value: String,
    wanted: &'static str,
}

/// Looks up a variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl ClientEnvironment {
    /// Reads what there is.
    ///
    /// # Errors
    /// When a value makes no sense.
    pub fn read(lookup: Lookup<'_>) -> Result<Self, EnvironmentError> {
        let port = port(lookup, &["EPICS_PVA_BROADCAST_PORT"], BROADCAST_PORT)?;
        let server_port = self::port(lookup, &["EPICS_PVA_SERVER_PORT"], SERVER_PORT)?;
        let mut searches = places(lookup, &["EPICS_PVA_ADDR_LIST"], port)?;
        if is_yes(lookup, &["EPICS_PVA_AUTO_ADDR_LIST"])? {
            let everybody = [Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST];
            searches.extend(everybody.map(|ip| SocketAddr::from((ip, port))));
        }
        let name_servers = places(lookup, &["EPICS_PVA_NAME_SERVERS"], server_port)?;
        Ok(Self { searches, name_servers, idle_timeout: idle_timeout(lookup)? })
    }
}

impl ServerEnvironment {
    /// Reads what there is.
    ///
    /// # Errors
    /// When a value makes no sense.
    pub fn read(lookup: Lookup<'_>) -> Result<Self, EnvironmentError> {
        let ports = ["EPICS_PVAS_BROADCAST_PORT", "EPICS_PVA_BROADCAST_PORT"];
        let search_port = port(lookup, &ports, BROADCAST_PORT)?;
        let ips = |names: &[&'static str]| {
            let places = places(lookup, names, 0)?;
            Ok::<_, EnvironmentError>(places.iter().map(SocketAddr::ip).collect())
        };
        let beacons = ["EPICS_PVAS_BEACON_ADDR_LIST", "EPICS_PVA_ADDR_LIST"];
        let to_all = ["EPICS_PVAS_AUTO_BEACON_ADDR_LIST", "EPICS_PVA_AUTO_ADDR_LIST"];
        Ok(Self {
            interfaces: ips(&["EPICS_PVAS_INTF_ADDR_LIST"])?,
            port: port(lookup, &["EPICS_PVAS_SERVER_PORT", "EPICS_PVA_SERVER_PORT"], SERVER_PORT)?,
            search_port,
            beacons: places(lookup, &beacons, search_port)?,
            beacons_to_all: is_yes(lookup, &to_all)?,
            ignore: ips(&["EPICS_PVAS_IGNORE_ADDR_LIST"])?,
            idle_timeout: idle_timeout(lookup)?,
        })
    }
}

/// The first of these variables that is set.
fn first(lookup: Lookup<'_>, names: &[&'static str]) -> Option<(&'static str, String)> {
    let said = names.iter().filter_map(|name| Some((*name, lookup(name)?)));
    said.map(|(name, value)| (name, value.trim().to_owned())).find(|(_, value)| !value.is_empty())
}

fn port(lookup: Lookup<'_>, names: &[&'static str], usual: u16) -> Result<u16, EnvironmentError> {
    let Some((name, value)) = first(lookup, names) else { return Ok(usual) };
    value.parse().map_err(|_| EnvironmentError { name, value, wanted: "port" })
}

fn is_yes(lookup: Lookup<'_>, names: &[&'static str]) -> Result<bool, EnvironmentError> {
    let Some((name, value)) = first(lookup, names) else { return Ok(true) };
    match value.to_ascii_lowercase().as_str() {
        "yes" | "1" => Ok(true),
        "no" | "0" => Ok(false),
        _ => Err(EnvironmentError { name, value, wanted: "YES or NO" }),
    }
}

fn idle_timeout(lookup: Lookup<'_>) -> Result<Duration, EnvironmentError> {
    let name = "EPICS_PVA_CONN_TMO";
    let Some((name, value)) = first(lookup, &[name]) else { return Ok(Duration::from_secs(40)) };
    let seconds = value.parse().ok().filter(|seconds: &f64| (0.5..1e6).contains(seconds));
    let wanted = "number of seconds, at least 0.5";
    let seconds = seconds.ok_or(EnvironmentError { name, value, wanted })?;
    Ok(Duration::from_secs_f64(seconds * 4.0 / 3.0))
}

fn places(
    lookup: Lookup<'_>,
    names: &[&'static str],
    port: u16,
) -> Result<Vec<SocketAddr>, EnvironmentError> {
    let Some((name, value)) = first(lookup, names) else { return Ok(Vec::new()) };
    let words = value.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let wanted = "list of addresses, each perhaps with a port";
            place(word, port).ok_or(EnvironmentError { name, value: word.to_owned(), wanted })
        })
        .collect()
}

/// An address or a host's name, perhaps with a port. What pvxs allows after it (`,TTL` and
/// `@interface`) isn't understood.
pub fn place(word: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(whole) = word.parse() {
        return Some(whole);
    }
    if let Ok(ip) = word.trim_start_matches('[').trim_end_matches(']').parse() {
        return Some(SocketAddr::new(ip, port));
    }
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (word, port),
    };
    let all = (host, port).to_socket_addrs().ok()?;
    let mut all: Vec<_> = all.collect();
    // IPv4 first: that is where EPICS servers are.
    all.sort_by_key(SocketAddr::is_ipv6);
    all.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup<'a>(said: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |wanted| said.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn a_server_is_told_where_to_listen_and_where_to_be_found() {
        let said = [
            ("EPICS_PVAS_INTF_ADDR_LIST", "127.0.0.1 10.0.0.1:7"),
            ("EPICS_PVA_SERVER_PORT", "6000"),
            ("EPICS_PVAS_SERVER_PORT", "6001"),
            ("EPICS_PVA_BROADCAST_PORT", "6002"),
            ("EPICS_PVAS_BEACON_ADDR_LIST", "10.0.0.255,10.0.1.255:9"),
            ("EPICS_PVA_AUTO_ADDR_LIST", "NO"),
            ("EPICS_PVA_CONN_TMO", "3"),
        ];
        let read = ServerEnvironment::read(&lookup(&said)).unwrap();
        assert_eq!(read.interfaces.len(), 2);
        assert_eq!((read.port, read.search_port, read.beacons_to_all), (6001, 6002, false));
        assert_eq!(read.beacons[0].to_string(), "10.0.0.255:6002");
        assert_eq!(read.beacons[1].to_string(), "10.0.1.255:9");
        assert_eq!(read.idle_timeout, Duration::from_secs(4));
        let usual = ServerEnvironment::read(&|_| None).unwrap();
        assert_eq!((usual.port, usual.search_port, usual.beacons_to_all), (5075, 5076, true));
    }

    #[test]
    fn a_client_is_told_where_to_search() {
        let said = [
            ("EPICS_PVA_ADDR_LIST", "127.0.0.1:6002"),
            ("EPICS_PVA_AUTO_ADDR_LIST", "no"),
            ("EPICS_PVA_NAME_SERVERS", "127.0.0.1 localhost:7000"),
        ];
        let read = ClientEnvironment::read(&lookup(&said)).unwrap();
        assert_eq!(read.searches, ["127.0.0.1:6002".parse().unwrap()]);
        let names: Vec<_> = read.name_servers.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["127.0.0.1:5075", "127.0.0.1:7000"]);
        let usual = ClientEnvironment::read(&|_| None).unwrap();
        let usual: Vec<_> = usual.searches.iter().map(ToString::to_string).collect();
        assert_eq!(usual, ["127.0.0.1:5076", "255.255.255.255:5076"]);
        let wrong = [("EPICS_PVA_AUTO_ADDR_LIST", "perhaps")];
        let error = ClientEnvironment::read(&lookup(&wrong)).unwrap_err().to_string();
        assert!(error.contains("has \"perhaps\", which is no YES or NO"), "{error}");
    }
}
