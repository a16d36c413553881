//! Memory that client and server share.

use std::io::{self, IoSlice};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Carrier, Peer, listener};
use crate::shm::{For, Link};
use crate::waiting::Wait;

/// A connection over shared memory.
#[derive(Debug)]
pub(super) struct SharedMemory(Link);

impl SharedMemory {
    /// Connects to the Unix socket over which a server passes memory.
    pub(super) fn connect(path: &Path, wait: Wait, limit: Duration) -> io::Result<Self> {
        Link::take(UnixStream::connect(path)?, wait, limit).map(Self)
    }
}

impl Carrier for SharedMemory {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.0.send(pieces)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        match self.0.wait(For::Bytes, until) {
            Ok(true) => self.0.receive(space),
            Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn wait_for_room(&mut self, until: Option<Instant>) -> io::Result<bool> {
        self.0.wait(For::BytesOrRoom, until)?;
        Ok(self.0.has_bytes())
    }

    fn waits(&self) -> u64 {
        self.0.system_calls()
    }

    fn peer(&self) -> Peer {
        listener(self.0.socket())
    }
}
