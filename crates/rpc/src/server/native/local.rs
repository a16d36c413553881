//! A server within the process of its client: its functions run on the caller's thread, while that
//! receives.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Buf as _;

use super::super::settings::Settings;
use super::super::shared::Shared;
use super::session::Session;

/// A server with one connection, and no socket.
pub(crate) struct Local(Session);

impl Local {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Session::new(Arc::new(Shared::new(settings)), "here", Instant::now()))
    }

    /// Takes what the client sends.
    pub(crate) fn send(&mut self, piece: &[u8]) {
        self.0.space().extend_from_slice(piece);
        self.0.receive(Instant::now());
    }

    /// Calls whose functions wait.
    pub(crate) fn outstanding(&self) -> usize {
        self.0.outstanding()
    }

    /// Whether it has something for the client now; it waits for that until the time has come.
    fn wait(&mut self, until: Option<Instant>) -> bool {
        while self.0.out().is_empty() && !self.0.is_over() {
            let due = [self.0.due(), until].into_iter().flatten().min();
            let Some(due) = due else { return false };
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.0.expire(Instant::now());
            if until.is_some_and(|until| until <= Instant::now()) {
                break;
            }
        }
        !self.0.out().is_empty()
    }

    /// Gives what it has for the client, or will have until a time; 0 once the connection has
    /// ended.
    pub(crate) fn receive(
        &mut self,
        space: &mut [u8],
        until: Option<Instant>,
    ) -> io::Result<usize> {
        if !self.wait(until) {
            return match (self.0.is_over(), until) {
                (true, _) => Ok(0),
                (false, Some(_)) => Err(io::ErrorKind::WouldBlock.into()),
                (false, None) => Err(io::Error::other("no answer will ever come")),
            };
        }
        let mut slices = [io::IoSlice::new(&[])];
        let out = self.0.out();
        let count = out.slices(&mut slices);
        let mut piece = slices[..count].first().map_or(&[][..], |slice| slice);
        let length = piece.len().min(space.len());
        piece.copy_to_slice(&mut space[..length]);
        out.advance(length);
        if out.is_empty() {
            self.0.count_memory();
            if self.0.is_paused() {
                self.0.receive(Instant::now());
            }
        }
        Ok(length)
    }
}
