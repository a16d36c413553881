//! A connection for which the thread that calls waits itself: shared memory, and MPI.

use std::io::{self, IoSlice};
use std::time::Instant;

use super::{Carrier, Peer};
use crate::duplex::{Duplex, For};

/// A side of it.
#[derive(Debug)]
pub(super) struct OverDuplex<D> {
    pub(super) duplex: D,
    pub(super) peer: Peer,
}

impl<D: Duplex> Carrier for OverDuplex<D> {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.duplex.send(pieces)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        match self.duplex.wait(For::Bytes, until) {
            Ok(true) => self.duplex.receive(space),
            Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn receive_now(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self.duplex.has_bytes()? {
            true => self.duplex.receive(space),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn wait_for_room(&mut self, until: Option<Instant>) -> io::Result<bool> {
        match self.duplex.wait(For::BytesOrRoom, until) {
            Ok(_) => self.duplex.has_bytes(),
            // The end is what is taken next.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn waits(&self) -> u64 {
        self.duplex.system_calls()
    }

    fn peer(&self) -> Peer {
        self.peer
    }
}
