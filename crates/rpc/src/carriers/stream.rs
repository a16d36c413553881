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
}

impl Stream {
    pub(super) fn unix(path: &Path) -> io::Result<Self> {
        Ok(Self { socket: UnixStream::connect(path)?.into(), quickack: false })
    }

    pub(super) fn tcp(address: &str, tuning: Tuning, limit: Duration) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => {
                    stream.set_nodelay(!tuning.nagle)?;
                    return Ok(Self { socket: stream.into(), quickack: tuning.quickack });
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

    fn receive(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = retry_on_intr(|| rustix::io::read(&self.socket, &mut *space))?;
        if self.quickack {
            sockopt::set_tcp_quickack(&self.socket, true)?;
        }
        Ok(count)
    }

    fn wait(&mut self, for_room: bool, until: Option<Instant>) -> io::Result<bool> {
        wait_for(&self.socket, for_room.then_some(&self.socket), until)
    }
}
