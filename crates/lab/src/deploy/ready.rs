//! When a target can be used: a room says so, a command accepts connections.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use wire::Address;

/// How long between two looks at a target that is not ready yet.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The ready line of a room, as far as the lab needs it.
#[derive(Deserialize)]
struct ReadyLine {
    ready: bool,
    address: String,
}

/// The address in a room's ready line, once it is there.
pub(super) fn announced(stdout: &Path) -> Option<Address> {
    let text = std::fs::read_to_string(stdout).ok()?;
    let (line, _) = text.split_once('\n')?;
    let line: ReadyLine = serde_json::from_str(line).ok()?;
    let address = line.ready.then_some(line.address)?;
    address.parse().ok().map(Address::Internet)
}

/// Whether something accepts connections at `address`.
pub(super) fn accepts(address: &Address) -> bool {
    match address {
        Address::Internet(address) => {
            TcpStream::connect_timeout(address, Duration::from_millis(100)).is_ok()
        }
        Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
    }
}

/// A loopback port that nobody uses at this moment.
pub(super) fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Ok(listener.local_addr()?.port())
}
