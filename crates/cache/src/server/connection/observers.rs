//! The observers of commands: watchers, `stats detail` and samples. Which of them are active is
//! read once for each batch of commands, so a command pays for testing one byte.

use wire::Output;

use super::state::{CacheConnection, State};
use super::store_request::{Reply, StoreRequest};
use crate::model::{Mode, Seconds, StoreError, Stored};
use crate::protocol::Refusal;
use crate::protocol::text::{Streams, answer};
use crate::server::sampling::CommandId;
use crate::server::verbosity::COMMANDS;
use crate::server::watch::StoreEvent;

/// `stats detail` counts.
const DETAIL: u8 = 0x40;

/// Commands are logged.
const LOG: u8 = 0x20;

/// This batch is a sample.
const SAMPLE: u8 = 0x80;

impl CacheConnection {
    /// Begins a batch of commands. Returns whether it is a sample.
    #[inline]
    pub(super) fn begin_batch(&mut self) -> bool {
        let service = &*self.service;
        let is_sample = service.threads[self.thread].samples.is_due();
        self.observers = service.watchers.wanted().0;
        if service.detail.is_on() {
            self.observers |= DETAIL;
        }
        if service.verbosity.level() >= COMMANDS {
            self.observers |= LOG;
        }
        if is_sample {
            self.observers |= SAMPLE;
        }
        is_sample
    }

    /// Whether commands are logged.
    #[inline]
    pub(super) fn is_logged(&self) -> bool {
        self.observers & LOG != 0
    }

    /// Whether this batch is a sample, in which each command is measured by itself.
    #[inline]
    pub(super) fn is_sampled(&self) -> bool {
        self.observers & SAMPLE != 0
    }

    /// Observes a read, with the length of the value if it was found.
    #[inline]
    pub(super) fn observe_read(&self, now_s: Seconds, key: &[u8], found: Option<usize>) {
        if self.observers != 0 {
            self.publish_read(now_s, key, found);
        }
    }

    #[cold]
    fn publish_read(&self, now_s: Seconds, key: &[u8], found: Option<usize>) {
        self.sample_key(now_s, key);
        if self.observers & DETAIL != 0 {
            self.service.detail.get(key, found.is_some());
        }
        if Streams(self.observers).has(Streams::FETCHERS) {
            self.service.watchers.publish_read(key, found, self.number());
        }
    }

    /// Observes a `delete` before it is carried out.
    #[inline]
    pub(super) fn observe_delete(&self, now_s: Seconds, key: &[u8]) {
        if self.observers != 0 {
            self.sample_key(now_s, key);
            self.publish_lookup(now_s, key);
            if self.observers & DETAIL != 0 {
                self.service.detail.delete(key);
            }
        }
    }

    /// Observes an `incr` or `decr` before it is carried out.
    #[inline]
    pub(super) fn observe_sum(&self, now_s: Seconds, key: &[u8]) {
        if self.observers != 0 {
            self.sample_key(now_s, key);
            self.publish_lookup(now_s, key);
        }
    }

    /// Publishes the look-up that a change begins with.
    #[cold]
    fn publish_lookup(&self, now_s: Seconds, key: &[u8]) {
        if Streams(self.observers).has(Streams::FETCHERS) {
            let found = self.service.store.peek(now_s, key, |item| item.value.len());
            self.service.watchers.publish_read(key, found, self.number());
        }
    }

    /// Observes a storage command and its outcome.
    #[inline]
    pub(super) fn observe_store(
        &self,
        now_s: Seconds,
        request: &StoreRequest<'_>,
        stored: Result<&Stored, &StoreError>,
    ) {
        if self.observers != 0 {
            self.publish_store(now_s, request, stored);
        }
    }

    #[cold]
    fn publish_store(
        &self,
        now_s: Seconds,
        request: &StoreRequest<'_>,
        stored: Result<&Stored, &StoreError>,
    ) {
        let key = request.change.entry.key;
        self.sample_key(now_s, key);
        if self.observers & DETAIL != 0 {
            self.service.detail.set(key);
        }
        if Streams(self.observers).has(Streams::MUTATIONS) {
            let line = StoreEvent {
                key,
                status: status(stored),
                command: command(request),
                left_s: request.change.entry.expires_s.saturating_sub(now_s),
                value_bytes: request.value_bytes,
            };
            self.service.watchers.publish_store(&line, self.number());
        }
    }

    #[inline]
    fn sample_key(&self, now_s: Seconds, key: &[u8]) {
        if self.observers & SAMPLE != 0 {
            self.service.threads[self.thread].samples.add_key(now_s, key);
        }
    }

    /// Returns the connection's number; 0 for datagrams.
    pub(super) fn number(&self) -> u64 {
        self.client.as_ref().map_or(0, |client| client.number())
    }

    /// Returns the command that begins with `bytes`; `None` where the one before continues.
    pub(super) fn kind(&self, bytes: &[u8]) -> Option<CommandId> {
        match self.state {
            State::Line => Some(CommandId::of_line(bytes)),
            State::Packet => Some(CommandId::of_packet(bytes)),
            _ => None,
        }
    }

    /// Returns the command whose data are the block that is complete.
    pub(super) fn command_of_block(&self) -> CommandId {
        match self.is_binary {
            true => CommandId::of_packet(&self.block.request),
            false => CommandId::of_line(&self.block.request),
        }
    }

    /// Makes the connection a stream of log lines.
    pub(super) fn watch(&mut self, streams: Streams, out: &mut Output) {
        if !self.service.options.watch {
            return out.put(Refusal::NoWatch.line());
        }
        // Datagrams have no waker.
        let Some(waker) = self.waker.clone() else { return out.put(Refusal::Unknown.line()) };
        match self.service.watchers.add(streams, waker) {
            None => out.put(Refusal::ManyWatchers.line()),
            Some(watching) => {
                out.put(answer::OK);
                self.watching = Some(watching);
                self.state = State::Watch;
            }
        }
    }

    /// Appends the lines that wait.
    pub(super) fn step_watch(&mut self, out: &mut Output) {
        if let Some(watching) = &self.watching
            && !out.is_full()
        {
            watching.take(out.tail());
        }
    }
}

/// Returns memcached's name of the outcome of a storage command.
fn status(stored: Result<&Stored, &StoreError>) -> &'static str {
    match stored {
        Ok(Stored::Stored(_)) => "stored",
        Ok(Stored::NotStored) => "not_stored",
        Ok(Stored::Exists) => "exists",
        Ok(Stored::NotFound) => "not_found",
        Err(StoreError::TooLarge) => "too_large",
        Err(StoreError::NoRoom) => "no_memory",
    }
}

/// Returns memcached's name of a storage command.
fn command(request: &StoreRequest<'_>) -> &'static str {
    let is_meta = matches!(request.reply, Reply::Meta(_));
    match request.change.mode {
        Mode::Set if request.change.compare.is_some() && !is_meta => "cas",
        Mode::Set => "set",
        Mode::Add => "add",
        Mode::Replace => "replace",
        Mode::Append => "append",
        Mode::Prepend => "prepend",
    }
}
