//! A server within this process, without the system in between.

use std::fmt;
use std::io::{self, IoSlice};
use std::time::Instant;

use super::Carrier;
use crate::server::{Settings, native::Local};

/// A server of its own, with a total of its own.
pub(super) struct Here(Local);

impl Default for Here {
    fn default() -> Self {
        Self(Local::new(Settings::default()))
    }
}

impl Carrier for Here {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        pieces.iter().for_each(|piece| self.0.send(piece));
        Ok(pieces.iter().map(|piece| piece.len()).sum())
    }

    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize> {
        self.0.receive(space, until)
    }

    fn receive_now(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.receive_now(space)
    }

    fn wait_for_room(&mut self, _until: Option<Instant>) -> io::Result<bool> {
        // There always is room.
        Ok(false)
    }
}

impl fmt::Debug for Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Here").field("outstanding", &self.0.outstanding()).finish()
    }
}
