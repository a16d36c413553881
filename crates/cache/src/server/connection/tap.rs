//! What is looked at besides being answered: by watchers, `stats detail` and samples. Which of them
//! look is asked once for each batch of commands, so a command pays for testing one byte.

use wire::Output;

use super::store::{Job, Reply};
use super::{CacheConnection, State};
use crate::model::{Mode, Seconds, StoreError, Stored};
use crate::protocol::Refusal;
use crate::protocol::text::{Streams, answer};
use crate::server::samples::Kind;
use crate::server::watch::StoreLine;

/// `stats detail` counts.
const DETAIL: u8 = 0x40;

/// This batch is a sample.
const SAMPLE: u8 = 0x80;

impl CacheConnection {
    /// Begins a batch of commands, and says whether it is a sample.
    #[inline]
    pub(super) fn begin_batch(&mut self) -> bool {
        let service = &*self.service;
        let is_sample = service.threads[self.thread].samples.is_due();
        self.taps = service.watchers.wanted().0;
        if service.detail.is_on() {
            self.taps |= DETAIL;
        }
        if is_sample {
            self.taps |= SAMPLE;
        }
        is_sample
    }

    /// Whether this batch is a sample: then each of its commands is looked at by itself.
    #[inline]
    pub(super) fn is_sampled(&self) -> bool {
        self.taps & SAMPLE != 0
    }

    /// A read, with the length of the value when there was one.
    #[inline]
    pub(super) fn saw_read(&self, now_s: Seconds, key: &[u8], found: Option<usize>) {
        if self.taps != 0 {
            self.tell_read(now_s, key, found);
        }
    }

    #[cold]
    fn tell_read(&self, now_s: Seconds, key: &[u8], found: Option<usize>) {
        self.sample_key(now_s, key);
        if self.taps & DETAIL != 0 {
            self.service.detail.get(key, found.is_some());
        }
        if Streams(self.taps).has(Streams::FETCHERS) {
            self.service.watchers.tell_read(key, found, self.number());
        }
    }

    /// A removal.
    #[inline]
    pub(super) fn saw_delete(&self, now_s: Seconds, key: &[u8]) {
        if self.taps != 0 {
            self.sample_key(now_s, key);
            if self.taps & DETAIL != 0 {
                self.service.detail.delete(key);
            }
        }
    }

    /// A number that is counted up or down.
    #[inline]
    pub(super) fn saw_sum(&self, now_s: Seconds, key: &[u8]) {
        if self.taps != 0 {
            self.sample_key(now_s, key);
        }
    }

    /// A store, and what has become of it.
    #[inline]
    pub(super) fn saw_store(
        &self,
        now_s: Seconds,
        job: &Job<'_>,
        stored: Result<&Stored, &StoreError>,
    ) {
        if self.taps != 0 {
            self.tell_store(now_s, job, stored);
        }
    }

    #[cold]
    fn tell_store(&self, now_s: Seconds, job: &Job<'_>, stored: Result<&Stored, &StoreError>) {
        let key = job.change.entry.key;
        self.sample_key(now_s, key);
        if self.taps & DETAIL != 0 {
            self.service.detail.set(key);
        }
        if Streams(self.taps).has(Streams::MUTATIONS) {
            let line = StoreLine {
                key,
                status: status(stored),
                command: command(job),
                left_s: job.change.entry.expires_s.saturating_sub(now_s),
                value_bytes: job.value_bytes,
            };
            self.service.watchers.tell_store(&line, self.number());
        }
    }

    #[inline]
    fn sample_key(&self, now_s: Seconds, key: &[u8]) {
        if self.taps & SAMPLE != 0 {
            self.service.threads[self.thread].samples.add_key(now_s, key);
        }
    }

    /// The number under which the connection is known.
    fn number(&self) -> u64 {
        self.known.as_ref().map_or(0, |known| known.number())
    }

    /// Which command begins with `bytes`; `None` where the one before goes on.
    pub(super) fn kind(&self, bytes: &[u8]) -> Option<Kind> {
        match self.state {
            State::Line => Some(Kind::of_line(bytes)),
            State::Packet => Some(Kind::of_packet(bytes)),
            _ => None,
        }
    }

    /// The command whose data are the block that has come.
    pub(super) fn kind_of_block(&self) -> Kind {
        match self.is_binary {
            true => Kind::of_packet(&self.block.request),
            false => Kind::of_line(&self.block.request),
        }
    }

    /// Makes the connection a stream of lines.
    pub(super) fn watch(&mut self, streams: Streams, out: &mut Output) {
        if !self.service.options.watch {
            return out.put(Refusal::NoWatch.line());
        }
        // Datagrams have nobody to wake.
        let Some(waker) = self.waker.clone() else { return out.put(Refusal::Unknown.line()) };
        match self.service.watchers.add(streams, waker) {
            None => out.put(Refusal::ManyWatchers.line()),
            Some(watching) => {
                out.put(answer::OK);
                self.watching = Some(watching);
                if let Some(known) = &self.known {
                    known.watches();
                }
                self.state = State::Watch;
            }
        }
    }

    /// Gives the lines that wait.
    pub(super) fn step_watch(&mut self, out: &mut Output) {
        if let Some(watching) = &self.watching
            && !out.is_full()
        {
            watching.take(out.tail());
        }
    }
}

/// memcached's word for what has become of a store.
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

/// memcached's word for a kind of store.
fn command(job: &Job<'_>) -> &'static str {
    let is_meta = matches!(job.reply, Reply::Meta(_));
    match job.change.mode {
        Mode::Set if job.change.compare.is_some() && !is_meta => "cas",
        Mode::Set => "set",
        Mode::Add => "add",
        Mode::Replace => "replace",
        Mode::Append => "append",
        Mode::Prepend => "prepend",
    }
}
