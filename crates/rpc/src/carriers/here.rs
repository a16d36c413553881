//! A server within this process, without the system in between.

use std::fmt;
use std::io::{self, IoSlice};
use std::time::Instant;

use bytes::Bytes;

use super::{Carrier, Peer};
use crate::protocol::native::Begin;
use crate::protocol::status::Status;
use crate::server::{Settings, native::Local};

/// A server of its own, with a total of its own.
pub(super) struct Here {
    local: Local,
    /// All calls are carried by frames.
    is_framed: bool,
}

impl Here {
    pub(super) fn new(is_framed: bool) -> Self {
        Self { local: Local::new(Settings::default()), is_framed }
    }
}

impl Carrier for Here {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        pieces.iter().for_each(|piece| self.local.send(piece));
        Ok(pieces.iter().map(|piece| piece.len()).sum())
    }

    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        self.local.receive(space, until)
    }

    fn receive_now(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.local.receive_now(space)
    }

    fn call_within(
        &mut self,
        method: u32,
        request: &Bytes,
        how: &Begin<'_>,
    ) -> Option<Result<Bytes, Status>> {
        if self.is_framed { None } else { self.local.call_at_once(method, request, how) }
    }

    fn wait_for_room(&mut self, _until: Option<Instant>) -> io::Result<bool> {
        // There always is room.
        Ok(false)
    }

    fn peer(&self) -> Peer {
        Peer::Here
    }
}

impl fmt::Debug for Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Here").field("outstanding", &self.local.outstanding()).finish()
    }
}
