//! The requests in flight on a connection, and what has come back of them so far: the part of a
//! dialect that does not depend on the protocol. Data plane: nothing is allocated per request after
//! warm-up, except for findings.

use std::collections::VecDeque;
use std::sync::Arc;

use load::kv::{Floor, Oracle, Write};
use load::{Done, Events, Finding, Tag};

use super::operations::{ASIDE, DELETE, MG, RULES, SET};

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// With the values of its keys.
    Values,
    /// With the value of its key, to a meta get.
    Meta,
    /// The same; what isn't there is stored.
    Aside,
    /// With whether it is stored.
    Store,
    /// With whether it was there.
    Delete,
}

/// An outstanding request.
#[derive(Clone, Copy, Debug)]
struct Request {
    tag: Tag,
    form: Form,
    /// Which of the service's operations.
    operation: u8,
    /// Keys not yet answered.
    keys_left: u32,
    /// The engine has given up on it: its answer is read and not reported.
    is_expired: bool,
}

/// What was known of a key when its request was sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sent {
    /// It is read.
    Read(Floor),
    /// A version of it is written; a removal is one that is never read.
    Write(Write),
    /// It is prepared.
    Prepare,
}

/// All requests that wait for their answers, in order.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) oracle: Arc<Oracle>,
    requests: VecDeque<Request>,
    /// The keys of all outstanding requests, in order, without those already answered.
    keys: VecDeque<(u64, Sent)>,
    /// What has been found about the oldest request so far.
    done: Done,
    /// Keys that were not there and are to be stored.
    missed: Vec<u64>,
    /// A right answer about a key, as the dialect would receive it.
    example: fn(&Oracle, Form, u64) -> Vec<u8>,
}

impl InFlight {
    pub(super) fn new(oracle: &Arc<Oracle>, example: fn(&Oracle, Form, u64) -> Vec<u8>) -> Self {
        Self {
            oracle: Arc::clone(oracle),
            requests: VecDeque::new(),
            keys: VecDeque::new(),
            done: Done::default(),
            missed: Vec::new(),
            example,
        }
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.keys.clear();
        self.done = Done::default();
        self.missed.clear();
    }

    /// A read of `key` is sent.
    #[inline]
    pub(super) fn read(&mut self, key: u64) {
        self.keys.push_back((key, Sent::Read(self.oracle.versions.begin_read(key))));
    }

    /// A write or removal of `key` is sent; returns the version.
    #[inline]
    pub(super) fn write(&mut self, key: u64) -> u32 {
        let write = self.oracle.versions.begin_write(key);
        self.keys.push_back((key, Sent::Write(write)));
        write.version
    }

    /// The write that prepares `key` is sent; returns the version.
    pub(super) fn prepare(&mut self, key: u64) -> u32 {
        self.keys.push_back((key, Sent::Prepare));
        self.oracle.prepared_version()
    }

    /// A request is sent, whose `keys` were the last ones.
    #[inline]
    pub(super) fn send(&mut self, tag: Tag, operation: usize, keys: usize) {
        let form = match operation {
            SET => Form::Store,
            DELETE => Form::Delete,
            MG => Form::Meta,
            ASIDE => Form::Aside,
            _ => Form::Values,
        };
        let (operation, keys_left) = (operation as u8, keys as u32);
        self.requests.push_back(Request { tag, form, operation, keys_left, is_expired: false });
    }

    /// The form of the oldest request's answer.
    #[inline]
    pub(super) fn form(&self) -> Option<Form> {
        self.requests.front().map(|request| request.form)
    }

    /// How many of the oldest request's keys are not answered.
    #[inline]
    pub(super) fn keys_left(&self) -> usize {
        self.requests.front().map_or(0, |request| request.keys_left as usize)
    }

    /// The key that the oldest request waits for next.
    #[inline]
    pub(super) fn expected_key(&self) -> Option<u64> {
        if self.keys_left() == 0 {
            return None;
        }
        self.keys.front().map(|(key, _)| *key)
    }

    /// Where among the keys still expected from the oldest request `text` is.
    pub(super) fn position_of(&self, text: &[u8]) -> Option<usize> {
        let mut written = Vec::new();
        self.keys.iter().take(self.keys_left()).position(|(key, _)| {
            written.clear();
            self.oracle.keys.put(*key, &mut written);
            written == text
        })
    }

    /// Counts the next expected key as answered.
    #[inline]
    fn answered(&mut self) -> (u64, Sent) {
        if let Some(request) = self.requests.front_mut() {
            request.keys_left = request.keys_left.saturating_sub(1);
        }
        self.done.answers += 1;
        self.keys.pop_front().unwrap_or((0, Sent::Prepare))
    }

    /// A write or removal has been carried out.
    #[inline]
    pub(super) fn written(&mut self) {
        if let (key, Sent::Write(write)) = self.answered() {
            self.oracle.versions.end_write(key, write);
        }
    }

    /// There was nothing to remove, which is so from now on.
    pub(super) fn nothing_removed(&mut self, received: &[u8], events: &mut Events) {
        if let Some((key, Sent::Write(write))) = self.keys.front() {
            self.oracle.versions.end_write(*key, *write);
        }
        self.miss(received, events);
    }

    /// A value has come.
    #[inline]
    pub(super) fn check(&mut self, value: &[u8], events: &mut Events) {
        let (key, sent) = self.answered();
        let Sent::Read(floor) = sent else { return };
        if let Err(mismatch) = self.oracle.check(key, floor, value) {
            self.done.wrong += 1;
            let expected = || self.oracle.example(key);
            events.found(|| self.finding(key, expected(), value, &mismatch.to_string()));
        }
    }

    /// The next expected key is not there.
    #[inline]
    pub(super) fn miss(&mut self, received: &[u8], events: &mut Events) {
        let form = self.form();
        let (key, _) = self.answered();
        self.done.misses += 1;
        if form == Some(Form::Aside) {
            self.missed.push(key);
        }
        if !self.oracle.misses_allowed {
            self.done.wrong += 1;
            events.found(|| {
                self.finding(key, self.shown(form, key), received, "the key is not there")
            });
        }
    }

    /// A key that was not there and is to be stored, if there is one left.
    #[inline]
    pub(super) fn next_missed(&mut self) -> Option<u64> {
        self.missed.pop()
    }

    /// Counts the next expected key, if there is one, as wrongly answered.
    #[cold]
    pub(super) fn wrong(&mut self, received: &[u8], note: &str, events: &mut Events) {
        self.done.wrong += 1;
        self.shows(received, note, events);
    }

    /// Counts all expected keys of the oldest request as answered by an error: a refusal, if the
    /// server is well but has too much to do, or no room.
    #[cold]
    pub(super) fn fails(&mut self, received: &[u8], is_refusal: bool, events: &mut Events) {
        for _ in 0..self.keys_left().max(1) {
            let kind = if is_refusal { &mut self.done.refused } else { &mut self.done.wrong };
            *kind += 1;
            self.shows(received, "the server refused", events);
        }
    }

    /// The next expected key is answered with what is shown.
    fn shows(&mut self, received: &[u8], note: &str, events: &mut Events) {
        let form = self.form();
        if self.keys_left() > 0 {
            let (key, _) = self.answered();
            events.found(|| self.finding(key, self.shown(form, key), received, note));
        } else {
            events.found(|| Finding {
                operation: self.operation_name().into(),
                key: Vec::new(),
                expected: Vec::new(),
                received: received.to_vec(),
                note: note.to_owned(),
            });
        }
    }

    /// A right answer in the same form as the wrong one that it is shown beside.
    fn shown(&self, form: Option<Form>, key: u64) -> Vec<u8> {
        form.map_or_else(Vec::new, |form| (self.example)(&self.oracle, form, key))
    }

    /// Nothing of the oldest request is known any more.
    pub(super) fn forget_done(&mut self) {
        self.done = Done::default();
    }

    /// The name of the oldest request's operation; empty when there is none.
    fn operation_name(&self) -> &'static str {
        let row =
            self.requests.front().and_then(|one| RULES.operations.get(one.operation as usize));
        row.map_or("", |row| row.0)
    }

    #[cold]
    fn finding(&self, key: u64, expected: Vec<u8>, received: &[u8], note: &str) -> Finding {
        let mut text = Vec::new();
        self.oracle.keys.put(key, &mut text);
        Finding {
            operation: self.operation_name().into(),
            key: text,
            expected,
            received: received.to_vec(),
            note: note.to_owned(),
        }
    }

    /// Reports the oldest request, unless the engine has given up on it.
    #[inline]
    pub(super) fn finish(&mut self, events: &mut Events) {
        let done = std::mem::take(&mut self.done);
        if let Some(request) = self.requests.pop_front() {
            // Keys that a broken answer has left unanswered are gone with it.
            self.keys.drain(..(request.keys_left as usize).min(self.keys.len()));
            if !request.is_expired {
                events.done.push(Done { tag: request.tag, ..done });
            }
        }
    }

    /// The engine has given up on a request; whether it is one of these.
    pub(super) fn expire(&mut self, tag: Tag) -> bool {
        let mut live = self.requests.iter_mut().filter(|request| !request.is_expired);
        let found = live.find(|request| request.tag == tag);
        found.map(|request| request.is_expired = true).is_some()
    }

    /// Whether an answer to one of these is still awaited.
    pub(super) fn is_awaited(&self) -> bool {
        self.requests.iter().any(|request| !request.is_expired)
    }
}
