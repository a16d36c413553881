//! A server within the process of its client: its functions run on the caller's thread, while that
//! receives.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::super::settings::Settings;
use super::super::shared::Shared;
use super::session::Session;
use super::when::When;
use crate::protocol::native::Begin;
use crate::protocol::status::Status;

/// A server with one connection, and no socket.
pub(crate) struct Local(Session);

impl Local {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Session::new(Arc::new(Shared::new(settings)), "here", Instant::now()))
    }

    /// Takes what the client sends.
    pub(crate) fn send(&mut self, piece: &[u8]) {
        self.0.append(piece);
        self.0.receive(&When::default());
    }

    /// Makes a call without frames, where its function doesn't wait and no frame is under way.
    pub(crate) fn call_at_once(
        &mut self,
        method: u32,
        request: &Bytes,
        how: &Begin<'_>,
    ) -> Option<Result<Bytes, Status>> {
        self.0.call_at_once(method, request, how)
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
        if !self.wait(until) && !self.0.is_over() && until.is_none() {
            return Err(io::Error::other("no answer will ever come"));
        }
        self.receive_now(space)
    }

    /// Gives what it has for the client now.
    pub(crate) fn receive_now(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let length = self.0.out().with_slices(|slices| {
            let piece = slices.first().map_or(&[][..], |slice| slice);
            let length = piece.len().min(space.len());
            space[..length].copy_from_slice(&piece[..length]);
            length
        });
        if length == 0 {
            return match self.0.is_over() {
                true => Ok(0),
                false => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        let out = self.0.out();
        out.advance(length);
        if out.is_empty() {
            self.0.count_memory();
            if self.0.is_paused() {
                self.0.receive(&When::default());
            }
        }
        Ok(length)
    }
}
