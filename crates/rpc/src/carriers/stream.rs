//! A socket: TCP or Unix.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, recv, sendmsg, socket_with, sockopt,
};

use super::polling::wait_for;
use super::{Carrier, Peer, Sender, listener};
use crate::waiting::{Wait, spin};

/// The longest that a hybrid wait stays on the CPU: about what a wake-up takes.
const MOST_SPIN: Duration = Duration::from_micros(50);

/// How a connection differs from what is best for most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Leaves Nagle's algorithm on.
    pub nagle: bool,
    /// Asks for immediate acknowledgements after each read.
    pub quickack: bool,
    /// How answers are waited for: asleep where it isn't said, and over shared memory by both.
    pub wait: Option<Wait>,
}

impl Tuning {
    /// How long a wait that the system would end stays on the CPU before.
    pub(super) fn budget(self) -> Duration {
        self.wait.unwrap_or(Wait::Park).budget(MOST_SPIN)
    }
}

/// The shortest time that connecting is given: none would be without end.
const LEAST_LIMIT: Duration = Duration::from_millis(1);

/// Connects to a Unix socket within a time: its server may accept nothing.
pub(super) fn connect_unix(path: &Path, limit: Duration) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // What sending may take is what the system waits for room in the server's queue.
    let time = Some(limit.max(LEAST_LIMIT));
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, time)?;
    connect(&socket, &SocketAddrUnix::new(path)?).map_err(|error| match error {
        rustix::io::Errno::AGAIN => {
            io::Error::new(io::ErrorKind::TimedOut, "the server accepts no connection in time")
        }
        error => error.into(),
    })?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, None)?;
    Ok(socket)
}

/// A connected socket.
#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    is_tcp: bool,
    tuning: Tuning,
    waits: u64,
}

/// A read waits this long at once, so that it needs no call of its own to wait for a deadline that
/// is later.
const READ_TIME: Duration = Duration::from_secs(1);

/// Connects to the first address that takes it. Each has its share of the time that is left: one
/// that answers nothing leaves some to the next.
fn connect_tcp(addresses: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let until = Instant::now() + limit;
    for (address, remaining) in addresses.iter().zip((1..=addresses.len() as u32).rev()) {
        let left = until.saturating_duration_since(Instant::now()) / remaining;
        match TcpStream::connect_timeout(address, left.max(LEAST_LIMIT)) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Stream {
    fn new(socket: OwnedFd, is_tcp: bool, tuning: Tuning) -> io::Result<Self> {
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(READ_TIME))?;
        Ok(Self { socket, is_tcp, tuning, waits: 0 })
    }

    pub(super) fn unix(path: &Path, tuning: Tuning, limit: Duration) -> io::Result<Self> {
        Self::new(connect_unix(path, limit)?, false, tuning)
    }

    pub(super) fn tcp(address: &str, tuning: Tuning, limit: Duration) -> io::Result<Self> {
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        let stream = connect_tcp(&addresses, limit)?;
        stream.set_nodelay(!tuning.nagle)?;
        Self::new(stream.into(), true, tuning)
    }

    /// Waits for bytes, or a time, and takes them.
    fn read(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        let socket = &self.socket;
        let spun = spin(self.tuning.budget(), until, &mut self.waits, || {
            Ok(recv(socket, &mut *space, RecvFlags::DONTWAIT)?.0)
        });
        if let Some(count) = spun? {
            return Ok(count);
        }
        if let Some(until) = until
            && until.saturating_duration_since(Instant::now()) < READ_TIME
        {
            self.waits += 1;
            if !wait_for(&self.socket, None::<&OwnedFd>, Some(until))? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        loop {
            match retry_on_intr(|| rustix::io::read(&self.socket, &mut *space)) {
                Err(rustix::io::Errno::AGAIN) if until.is_none() => {}
                read => return Ok(read?),
            }
        }
    }
}

impl Carrier for Stream {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut none = SendAncillaryBuffer::default();
        Ok(retry_on_intr(|| sendmsg(&self.socket, pieces, &mut none, flags))?)
    }

    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        let count = self.read(space, until)?;
        if self.tuning.quickack {
            sockopt::set_tcp_quickack(&self.socket, true)?;
        }
        Ok(count)
    }

    fn wait_for_room(&mut self, until: Option<Instant>) -> io::Result<bool> {
        self.waits += 1;
        wait_for(&self.socket, Some(&self.socket), until)
    }

    fn waits(&self) -> u64 {
        self.waits
    }

    fn sender(&mut self) -> io::Result<Sender> {
        self.socket.try_clone().map(Sender::socket)
    }

    fn peer(&self) -> Peer {
        if self.is_tcp { Peer::Tcp } else { listener(&self.socket) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_address_that_answers_nothing_leaves_time_to_the_next() {
        let full = TcpListener::bind("127.0.0.1:0").expect("a port");
        rustix::net::listen(&full, 0).expect("a queue of one");
        let silent = full.local_addr().expect("an address");
        let queued = TcpStream::connect(silent).expect("the queue's one");
        let open = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addresses = [silent, open.local_addr().expect("an address")];
        let (begun, limit) = (Instant::now(), Duration::from_secs(2));
        let stream = connect_tcp(&addresses, limit).expect("the second");
        assert_eq!(stream.peer_addr().ok(), Some(addresses[1]));
        let took = begun.elapsed();
        assert!(took >= limit / 4, "{took:?}");
        drop(queued);
    }
}
