//! When a target is ready: a service prints its ready line, a command accepts connections.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use wire::Address;

use crate::plan::Medium;

/// The period of checks of a target that isn't ready yet.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The ready line of a service, as far as the lab needs it.
#[derive(Deserialize)]
struct ReadyLine {
    ready: bool,
    address: String,
    #[serde(default)]
    addresses: BTreeMap<String, String>,
}

/// The address for `medium` in a service's ready line, once the line is there.
///
/// # Errors
/// When the service is ready and does not serve that medium.
pub(super) fn announced(stdout: &Path, medium: Medium) -> Result<Option<Address>, String> {
    let text = std::fs::read_to_string(stdout).unwrap_or_default();
    let Some((line, _)) = text.split_once('\n') else { return Ok(None) };
    let line: ReadyLine =
        serde_json::from_str(line).map_err(|error| format!("no ready line: {error}: {line}"))?;
    let address = match medium {
        Medium::Udp => {
            line.addresses.get("udp").ok_or("it serves no UDP; set its option for it")?
        }
        Medium::Tcp | Medium::Tcp6 | Medium::Unix => &line.address,
    };
    let read = address.parse().map_err(|_| format!("not an address: {address}"))?;
    Ok(line.ready.then_some(read))
}

/// Whether something accepts connections, or has bound datagrams, at `address`.
pub(super) fn accepts(address: &Address, medium: Medium) -> bool {
    match address {
        Address::Internet(address) if medium == Medium::Udp => {
            // The port was free; once it can't be bound, the target has it.
            UdpSocket::bind(address).is_err()
        }
        Address::Internet(address) => {
            TcpStream::connect_timeout(address, Duration::from_millis(100)).is_ok()
        }
        Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
    }
}

/// The last port that is not of the dynamic range of RFC 6335: some servers take none beyond.
const LAST_REGISTERED: u16 = 49_151;

/// A loopback port that is free at this moment, and not of the dynamic range where the kernel has
/// such a one.
pub(super) fn free_port() -> std::io::Result<u16> {
    // Those that are refused stay bound meanwhile, so that each try brings another one.
    let mut tried = Vec::new();
    loop {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let port = listener.local_addr()?.port();
        if port <= LAST_REGISTERED || tried.len() >= 32 {
            return Ok(port);
        }
        tried.push(listener);
    }
}
