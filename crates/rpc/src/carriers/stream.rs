//! A socket: TCP or Unix.

use std::io::{self, IoSlice};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg, sockopt};

use super::{Carrier, wait_for};

/// How a TCP connection differs from what is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Leaves Nagle's algorithm on.
    pub nagle: bool,
    /// Asks for immediate acknowledgements after each read.
    pub quickack: bool,
}

/// A connected socket.
#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    quickack: bool,
    waits: u64,
}

/// A read waits this long at once, so that it needs no call of its own to wait for a deadline that
/// is later.
const READ_TIME: Duration = Duration::from_secs(1);

impl Stream {
    fn new(socket: OwnedFd, quickack: bool) -> io::Result<Self> {
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(READ_TIME))?;
        Ok(Self { socket, quickack, waits: 0 })
    }

    pub(super) fn unix(path: &Path) -> io::Result<Self> {
        Self::new(UnixStream::connect(path)?.into(), false)
    }

    pub(super) fn tcp(address: &str, tuning: Tuning, limit: Duration) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => {
                    stream.set_nodelay(!tuning.nagle)?;
                    return Self::new(stream.into(), tuning.quickack);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Carrier for Stream {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut none = SendAncillaryBuffer::default();
        Ok(retry_on_intr(|| sendmsg(&self.socket, pieces, &mut none, flags))?)
    }

    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        if let Some(until) = until
            && until.saturating_duration_since(Instant::now()) < READ_TIME
        {
            self.waits += 1;
            if !wait_for(&self.socket, None::<&OwnedFd>, Some(until))? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        let mut read = || retry_on_intr(|| rustix::io::read(&self.socket, &mut *space));
        let count = loop {
            match read() {
                Err(rustix::io::Errno::AGAIN) if until.is_none() => {}
                read => break read?,
            }
        };
        if self.quickack {
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
}
