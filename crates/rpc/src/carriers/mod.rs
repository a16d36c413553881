//! What carries the bytes of own frames between a client and a server: a [`Carrier`] each, behind
//! one trait, named by an address.

mod address;
mod child;
mod duplex;
mod here;
mod polling;
mod sender;
mod stream;

use std::fmt;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;

use crate::protocol::native::Begin;
use crate::protocol::status::Status;

pub use address::{BadCarrier, CarrierAddress};
pub use sender::Sender;
pub use stream::Tuning;

/// Bytes in order to a server, and from it.
pub trait Carrier: fmt::Debug + Send {
    /// Hands over as many of these bytes as there is room for now.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is no room; others when the connection has broken.
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Waits for bytes, and takes them; 0 at the end of the connection.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing has come, `until` this time at the latest; others
    /// when the connection has broken, or nothing can come any more.
    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize>;

    /// Takes bytes that have come, as [`Carrier::receive`] does, without waiting. Where looking for
    /// them is a system call, it leaves them to that.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing has come that is found so; others as there.
    fn receive_now(&mut self, _space: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Makes a call without frames, where its function is in this process and doesn't wait; `None`
    /// where frames carry it.
    fn call_within(
        &mut self,
        _method: u32,
        _request: &Bytes,
        _how: &Begin<'_>,
    ) -> Option<Result<Bytes, Status>> {
        None
    }

    /// Waits until there are bytes, there is room, or `until` has come; returns whether there are
    /// bytes, or the end of them.
    ///
    /// # Errors
    /// When the system refuses to wait.
    fn wait_for_room(&mut self, until: Option<Instant>) -> io::Result<bool>;

    /// How many system calls have been made to wait, apart from those that send and receive.
    fn waits(&self) -> u64 {
        0
    }

    /// Its sending half, for another thread; this one then only receives.
    ///
    /// # Errors
    /// When it can't be divided.
    fn sender(&mut self) -> io::Result<Sender> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "one thread sends and receives here"))
    }

    /// Which process is at the other end, as the system knows it.
    fn peer(&self) -> Peer {
        Peer::Unknown
    }
}

/// The error of connecting, with what to do where no server is there.
pub(crate) fn unconnected(error: io::Error, advice: &str) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            anyhow::anyhow!("no server is there ({error}): {advice}")
        }
        _ => error.into(),
    }
}

/// How a server is started at a host and port, where that is of this machine alone.
pub(crate) fn start_at(address: &str, is_encrypted: bool) -> String {
    match service::parse_address(address, crate::serve::PORT) {
        Ok(at) if service::is_local(&at) && !is_encrypted => {
            format!("`loadline serve rpc --listen {address}` starts one")
        }
        _ => "is it started, and is this its port?".to_owned(),
    }
}

/// How a server is started at the file of a socket, which this flag names.
pub(crate) fn start_at_file(flag: &str, path: &Path) -> String {
    match path.metadata() {
        Ok(found) if !found.file_type().is_socket() => "the file is no socket".to_owned(),
        _ => {
            let path = path.display().to_string();
            let word = shlex::try_quote(&path).unwrap_or_else(|_| (&path[..]).into());
            format!("`loadline serve rpc {flag} {word}` starts one")
        }
    }
}

/// Which process is at the other end, as the system knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Nothing is known of it.
    Unknown,
    /// This process itself: there is no other one.
    Here,
    /// The process of this number, or one that has its socket.
    Process(u32),
    /// The process of this number, or one that descends from it.
    Within(u32),
    /// The process with the other end of this process's TCP connection.
    Tcp,
}

/// The process that listens at the other end of a Unix socket.
fn listener(socket: impl std::os::fd::AsFd) -> Peer {
    let known = rustix::net::sockopt::socket_peercred(socket).ok();
    let pid = known.and_then(|known| u32::try_from(known.pid.as_raw_nonzero().get()).ok());
    pid.map_or(Peer::Unknown, Peer::Process)
}
