//! What a service manager is sent: sd_notify(3), whose protocol is a datagram of lines to the
//! socket that `NOTIFY_SOCKET` names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a state such as `READY=1`, where a service manager waits for one.
pub(crate) fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        let socket = socket.display();
        tracing::warn!(
            "the service manager at NOTIFY_SOCKET={socket} did not receive {state:?}: {error}"
        );
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    // A name that begins with @ is one of Linux's abstract addresses.
    let address = match socket.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_addresses_receive_the_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let name = format!("loadline-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).expect("a name");
        let received = |socket: UnixDatagram, address: &OsStr| {
            send(address, "READY=1").expect("sent");
            let mut bytes = [0; 32];
            let length = socket.recv(&mut bytes).expect("received");
            bytes[..length].to_vec()
        };
        let by_path = UnixDatagram::bind(&path).expect("bound");
        assert_eq!(received(by_path, path.as_os_str()), b"READY=1");
        let by_name = UnixDatagram::bind_addr(&abstract_name).expect("bound");
        assert_eq!(received(by_name, OsStr::new(&format!("@{name}"))), b"READY=1");
        assert!(send(OsStr::new("/nonexistent/socket"), "READY=1").is_err());
    }
}
