//! What is logged of one connection, where the verbosity asks for it.

use memchr::memchr;
use wire::{Closed, Output};

use super::state::{CacheConnection, State};
use crate::model::Seconds;
use crate::protocol::binary::HEADER_BYTES;
use crate::server::clients::Activity;
use crate::server::verbosity::{COMMANDS, ERRORS, STATES};

/// The most bytes of a command that are logged.
const MAX_LOGGED_BYTES: usize = 256;

impl CacheConnection {
    /// Logs the command that a step from the state `before` has carried out, the first `used` of
    /// `bytes`, and the change of state.
    #[cold]
    pub(super) fn log_step(&self, now_s: Seconds, before: State, bytes: &[u8], used: usize) {
        let (verbosity, number) = (&self.service.verbosity, self.number());
        let is_command = matches!(before, State::Line | State::Packet) && used > 0;
        if is_command && verbosity.allows(COMMANDS, now_s) {
            let line = match before {
                State::Packet => &bytes[..used],
                _ => {
                    bytes[..used].split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or(&[])
                }
            };
            let shown = line[..line.len().min(MAX_LOGGED_BYTES)].escape_ascii();
            tracing::debug!(number, command = %shown, "command");
        }
        let (from, to) = (before.name(), self.state.name());
        if from != to && verbosity.allows(STATES, now_s) {
            tracing::trace!(number, from, to, "state");
        }
    }

    /// Logs a new connection.
    pub(super) fn log_opened(&self, now_s: Seconds) {
        if let Some(client) = &self.client
            && self.service.verbosity.allows(COMMANDS, now_s)
        {
            let (number, peer) = (client.number(), client.address());
            tracing::debug!(number, %peer, "connection opened");
        }
    }

    /// Logs the end of a connection.
    pub(super) fn log_closed(&self, why: &Closed) {
        let Some(client) = &self.client else { return };
        let (number, peer, now_s) = (client.number(), client.address(), client.last_s());
        let is_error = matches!(why, Closed::ProtocolError(_) | Closed::Socket(_));
        if is_error {
            if self.service.verbosity.allows(ERRORS, now_s) {
                tracing::info!(number, %peer, ?why, "connection ended with an error");
            }
        } else if self.service.verbosity.allows(COMMANDS, now_s) {
            tracing::debug!(number, %peer, ?why, "connection closed");
        }
    }

    /// Whether `rest`, an unfinished request, is a whole command whose data are missing.
    pub(super) fn awaits_data(&self, rest: &[u8]) -> bool {
        match self.state {
            State::Line => memchr(b'\n', rest).is_some(),
            State::Packet => rest.len() >= HEADER_BYTES,
            _ => false,
        }
    }

    /// Notes what the connection waits for, for `stats conns`.
    #[inline]
    pub(super) fn note_activity(&self, awaits_data: bool, out: &Output) {
        let Some(client) = &self.client else { return };
        client.note_activity(match self.state {
            State::Watch => Activity::Watches,
            _ if out.is_full() => Activity::Writes,
            State::Block => Activity::ReadsValue,
            _ if awaits_data => Activity::ReadsValue,
            State::Refused(_) | State::RestOfLine => Activity::Swallows,
            _ => Activity::Reads,
        });
    }
}
