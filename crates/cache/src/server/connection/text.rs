//! Command lines: the classic commands, and what leads to the others.

use memchr::memchr;
use wire::{Output, ProtocolError};

use super::state::{CacheConnection, Keys, State, Step};
use crate::model::{Access, Batch, Item, MAX_BATCH, Seconds, Sum, Summed};
use crate::protocol::text::answer::{self, LINE_END, put_number};
use crate::protocol::text::{self, Command, Key, PlainRead, Refused, RequestForm, Set, Tokens};
use crate::protocol::{MAX_KEY_BYTES, MAX_LINE_BYTES, Refusal};

/// The number of plain reads answered in a row, under one lock where the store has one.
const MAX_IN_A_ROW: usize = 4 * MAX_BATCH;

/// The length of credentials at most.
const MAX_TOKEN_BYTES: usize = 1024;

impl CacheConnection {
    #[inline]
    pub(super) fn step_line(&mut self, now_s: Seconds, bytes: &[u8], out: &mut Output) -> Step {
        if !self.is_unauthenticated
            && let Some(first) = text::plain_read(bytes)
        {
            return Step::Consumed(self.plain_reads(now_s, first, bytes, out));
        }
        self.step_any_line(now_s, bytes, out)
    }

    fn step_any_line(&mut self, now_s: Seconds, bytes: &[u8], out: &mut Output) -> Step {
        let start = &bytes[..bytes.len().min(MAX_LINE_BYTES + 1)];
        let Some(end) = memchr(b'\n', start) else {
            return self.step_long_line(now_s, start, bytes, out);
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        let (used, rest) = (end + 1, &bytes[end + 1..]);
        let command = text::read_line(line);
        if let Err(Refused { refusal: Refusal::Foreign, .. }) = command {
            return Step::Broken(foreign());
        }
        if self.is_unauthenticated {
            return self.step_unauthenticated(command.ok(), used, rest, out);
        }
        match command {
            Ok(Command::Get { with_cas, exptime, keys }) => {
                let expires_s = exptime.map(|at| self.service.clock.expires_s(at, now_s));
                let keys_at = line.len() - keys.rest().len();
                // A line of `gat` may have no keys; one of `get` may not.
                let form = match exptime {
                    None => RequestForm::Empty,
                    Some(_) => RequestForm::Other,
                };
                let keys = Keys { with_cas, expires_s, form };
                self.step_keys(now_s, keys, keys_at, bytes, out)
            }
            Ok(Command::Set(set)) => self.step_set(now_s, &set, (line, used), rest, out),
            Ok(Command::MetaSet(meta, mode)) => {
                if let Some(refusal) = mode.refused {
                    out.put(refusal.line());
                    self.refuse_bytes(mode.value_bytes + LINE_END.len());
                    return Step::Consumed(used);
                }
                let mut buffer = [0; MAX_KEY_BYTES];
                let request = self.meta_request(now_s, &meta, mode, &mut buffer);
                let step = self.step_store(now_s, &request, (line, used), rest, out);
                if !matches!(step, Step::NeedMore(_)) {
                    self.service.threads[self.thread].add_metas(1);
                }
                step
            }
            Ok(Command::Quit) => Step::Quit,
            Ok(Command::DebugTime(change)) => {
                let allowed = self.service.set_time(now_s, change);
                out.put(if allowed { answer::OK } else { Refusal::Unknown.line() });
                Step::ClockMoved(used)
            }
            Ok(Command::Watch(streams)) => {
                self.watch(streams, out);
                Step::Consumed(used)
            }
            Ok(Command::Shutdown { rest }) => self.step_shutdown(rest, used, out),
            Ok(command) => {
                self.answer(now_s, &command, out);
                Step::Consumed(used)
            }
            Err(refused) => {
                if !refused.noreply {
                    out.put(refused.refusal.line());
                }
                Step::Consumed(used)
            }
        }
    }

    fn step_set(
        &mut self,
        now_s: Seconds,
        set: &Set<'_>,
        (line, used): (&[u8], usize),
        rest: &[u8],
        out: &mut Output,
    ) -> Step {
        match set.key {
            Ok(key) => {
                let request = self.text_request(now_s, set, key);
                self.step_store(now_s, &request, (line, used), rest, out)
            }
            Err(refusal) => {
                if !set.noreply {
                    out.put(refusal.line());
                }
                self.refuse_bytes(set.value_bytes + LINE_END.len());
                Step::Consumed(used)
            }
        }
    }

    /// A line whose end has not arrived, or is too far away.
    #[cold]
    fn step_long_line(
        &mut self,
        now_s: Seconds,
        start: &[u8],
        bytes: &[u8],
        out: &mut Output,
    ) -> Step {
        // Only the keys of a get may go on for longer: they are answered as they come.
        for (name, with_cas) in [(&b"get "[..], false), (b"gets ", true)] {
            if start.starts_with(name) && !self.is_unauthenticated {
                let keys = Keys { with_cas, expires_s: None, form: RequestForm::Empty };
                return self.step_keys(now_s, keys, name.len(), bytes, out);
            }
        }
        if start.len() <= MAX_LINE_BYTES {
            return Step::NeedMore(0);
        }
        out.put(Refusal::LongLine.line());
        Step::Broken(ProtocolError::new("a command line is longer than 2,048 bytes"))
    }

    /// A line of a client that has not authenticated: only a `set` whose data are credentials is
    /// accepted.
    fn step_unauthenticated(
        &mut self,
        command: Option<Command<'_>>,
        used: usize,
        rest: &[u8],
        out: &mut Output,
    ) -> Step {
        let set = match command {
            Some(Command::Set(set)) => set,
            Some(Command::Quit) => return Step::Quit,
            _ => {
                out.put(Refusal::Unauthenticated.line());
                return Step::Consumed(used);
            }
        };
        let total = set.value_bytes + LINE_END.len();
        if set.value_bytes > MAX_TOKEN_BYTES {
            out.put(Refusal::WrongPassword.line());
            self.refuse_bytes(total);
            return Step::Consumed(used);
        }
        let Some(data) = rest.get(..total) else { return Step::NeedMore(0) };
        let (token, end) = data.split_at(set.value_bytes);
        let mut words = Tokens::new(token);
        let answer = match (words.next(), words.next()) {
            _ if end != LINE_END => Refusal::BadTokenEnd.line(),
            (Some(name), Some(password)) => {
                if self.service.authenticate(name, password) {
                    self.is_unauthenticated = false;
                    answer::STORED
                } else {
                    self.log_failed_login(name);
                    Refusal::WrongPassword.line()
                }
            }
            _ => Refusal::BadTokenForm.line(),
        };
        out.put(answer);
        Step::Consumed(used + total)
    }

    fn log_failed_login(&self, name: &[u8]) {
        let peer = self.client.as_ref().map(|client| client.address().to_string());
        let peer = peer.unwrap_or_default();
        let name = name.escape_ascii();
        tracing::warn!(%peer, %name, "authentication failed");
    }

    fn step_shutdown(&mut self, mut rest: Tokens<'_>, used: usize, out: &mut Output) -> Step {
        let Some(shutdown) = &self.service.shutdown else {
            out.put(Refusal::NoShutdown.line());
            return Step::Consumed(used);
        };
        match (rest.next(), rest.next()) {
            (None | Some(b"graceful"), None) => {
                shutdown();
                Step::Quit
            }
            _ => {
                out.put(Refusal::BadShutdown.line());
                Step::Consumed(used)
            }
        }
    }

    /// Commands of one line and no data.
    fn answer(&mut self, now_s: Seconds, command: &Command<'_>, out: &mut Output) {
        match *command {
            Command::MetaGet(ref meta) => self.meta_get(now_s, meta, out),
            Command::MetaDelete(ref meta) => self.meta_delete(now_s, meta, out),
            Command::MetaSum(ref meta, increment) => self.meta_sum(now_s, meta, increment, out),
            Command::MetaDebug(ref meta) => self.meta_debug(now_s, meta, out),
            Command::MetaNoop => out.put(answer::META_NOOP),
            Command::Delete { key, noreply } => {
                self.observe_delete(now_s, key);
                let found = self.service.store.delete(now_s, key);
                let line = if found { answer::DELETED } else { answer::NOT_FOUND };
                put_unless(noreply, line, out);
            }
            Command::Sum { key, increment, delta, noreply } => {
                self.sum(now_s, key, increment, delta, noreply, out);
            }
            Command::Touch { key, exptime, noreply } => {
                let expires_s = Some(self.service.clock.expires_s(exptime, now_s));
                let access = Access { expires_s, ..Access::default() };
                let show = |item: &Item<'_>, _: &_| item.value.len();
                let found = self.service.store.access(now_s, key, &access, show);
                self.observe_read(now_s, key, found);
                let line = if found.is_some() { answer::TOUCHED } else { answer::NOT_FOUND };
                put_unless(noreply, line, out);
            }
            Command::FlushAll { delay, noreply } => {
                let line = self.flush(now_s, delay);
                put_unless(noreply, line, out);
            }
            _ => self.answer_about_service(now_s, command, out),
        }
    }

    fn sum(
        &mut self,
        now_s: Seconds,
        key: &[u8],
        increment: bool,
        delta: u64,
        noreply: bool,
        out: &mut Output,
    ) {
        let sum = Sum {
            increment,
            delta,
            compare: None,
            cas: None,
            create: None,
            expires_s: None,
            binary_key: false,
        };
        self.observe_sum(now_s, key);
        let line = match self.service.store.sum(now_s, key, &sum) {
            Summed::Done(total) => {
                if !noreply {
                    put_number(total.number, out.tail());
                    out.put(LINE_END);
                }
                return;
            }
            Summed::NotANumber => Refusal::NotANumber.line(),
            Summed::NoRoom => Refusal::OutOfMemoryForNumber.line(),
            Summed::NotFound | Summed::Exists => answer::NOT_FOUND,
        };
        put_unless(noreply, line, out);
    }

    /// Removes all items, now or after `delay`.
    pub(super) fn flush(&self, now_s: Seconds, delay: Result<i64, Refusal>) -> &'static [u8] {
        let service = &*self.service;
        service.count_flush();
        if !service.options.flush {
            return Refusal::NoFlush.line();
        }
        match delay {
            Err(refusal) => return refusal.line(),
            Ok(..=0) => service.store.clear(),
            Ok(delay) => {
                service.store.flush_at(service.clock.expires_s(delay, now_s));
                service.store.tick(now_s);
            }
        }
        answer::OK
    }

    /// Answers keys until the line ends, the bytes end, or the output is full.
    pub(super) fn step_keys(
        &mut self,
        now_s: Seconds,
        mut keys: Keys,
        mut used: usize,
        bytes: &[u8],
        out: &mut Output,
    ) -> Step {
        // An error takes back what this line has been answered so far, as long as it's here.
        let is_begun = self.state == State::Keys(keys);
        let is_first = keys.form == RequestForm::Empty;
        let taken_back = (!is_begun || is_first).then(|| out.len());
        self.state = State::Keys(keys);
        let store = &self.service.store;
        let mut reads = store.reads(now_s);
        loop {
            let mut batch = Batch::default();
            let mut lengths = [0; MAX_BATCH];
            let mut end = used;
            let after = loop {
                match text::next_key(&bytes[end..]) {
                    Key::One(key, length) if batch.len() < MAX_BATCH => {
                        lengths[batch.len()] = length;
                        batch.add(store, key);
                        end += length;
                    }
                    other => break other,
                }
            };
            // A touch takes the lock that finding keeps.
            if keys.expires_s.is_none() {
                reads.find(&mut batch);
            }
            for (number, length) in lengths[..batch.len()].iter().enumerate() {
                let key = batch.key(number);
                if keys.expires_s.is_some() {
                    self.get_and_touch(now_s, key, keys, out);
                } else {
                    let show = |item: &Item<'_>| self.put_item(item, keys.with_cas, out);
                    let found = reads.get_in_batch::<false, _>(&batch, number, show);
                    self.observe_read(now_s, key, found);
                }
                used += length;
                keys.form = keys.form.after(key);
                if out.is_full() {
                    self.state = State::Keys(keys);
                    return Step::Consumed(used);
                }
            }
            match after {
                Key::One(..) => {}
                Key::End(_) if keys.form == RequestForm::Whole => return Step::Broken(foreign()),
                Key::End(count) => {
                    let is_empty = keys.form == RequestForm::Empty;
                    out.put(if is_empty { Refusal::Unknown.line() } else { answer::END });
                    self.state = State::Line;
                    return Step::Consumed(used + count);
                }
                Key::TooLong => {
                    if let Some(length) = taken_back {
                        out.split_off(length);
                    }
                    out.put(Refusal::BadLine.line());
                    self.state = State::RestOfLine;
                    return Step::Consumed(used);
                }
                Key::Unfinished => {
                    self.state = State::Keys(keys);
                    return Step::NeedMore(used);
                }
            }
        }
    }

    /// Answers the plain reads at the start of `bytes`, of which `first` is the first. Returns
    /// their length.
    #[inline]
    fn plain_reads(
        &self,
        now_s: Seconds,
        first: PlainRead<'_>,
        bytes: &[u8],
        out: &mut Output,
    ) -> usize {
        let store = &self.service.store;
        let mut reads = store.reads(now_s);
        let most = if self.is_sampled() || self.is_logged() { 1 } else { MAX_IN_A_ROW };
        let (mut next, mut used, mut count, mut metas) = (Some(first), 0, 0, 0);
        'rows: while next.is_some() {
            let mut batch = Batch::default();
            let mut lines = [(0, false); MAX_BATCH];
            let mut end = used;
            while let Some(PlainRead { key, line_bytes, is_meta }) = next {
                lines[batch.len()] = (line_bytes, is_meta);
                batch.add(store, key);
                end += line_bytes;
                next = text::plain_read(&bytes[end..]);
                if batch.len() == most.min(MAX_BATCH) {
                    break;
                }
            }
            reads.find(&mut batch);
            for (number, (line_bytes, is_meta)) in lines[..batch.len()].iter().enumerate() {
                let key = batch.key(number);
                let found = if *is_meta {
                    metas += 1;
                    self.plain_meta_get(&mut reads, &batch, number, out)
                } else {
                    let show = |item: &Item<'_>| self.put_item(item, false, out);
                    let found = reads.get_in_batch::<false, _>(&batch, number, show);
                    out.put(answer::END);
                    found
                };
                self.observe_read(now_s, key, found);
                used += line_bytes;
                count += 1;
                if count == most || out.is_full() {
                    break 'rows;
                }
            }
        }
        self.service.threads[self.thread].add_metas(metas);
        used
    }

    /// Appends a value as `get` does. Returns its length.
    #[inline]
    fn put_item(&self, item: &Item<'_>, with_cas: bool, out: &mut Output) -> usize {
        let (value, cas) = (item.value, with_cas.then_some(item.cas));
        let into = out.tail();
        if self.copies(value.len()) {
            let at = answer::put_value(item.key, item.flags, value, cas, into);
            self.service.corrupt(&mut into[at..], value.len());
        } else {
            answer::put_value_line(item.key, item.flags, value.len(), cas, 0, into);
            self.share_value(item.key, value, out);
            out.put(LINE_END);
        }
        value.len()
    }

    fn get_and_touch(&self, now_s: Seconds, key: &[u8], keys: Keys, out: &mut Output) {
        let service = &*self.service;
        let access = Access { expires_s: keys.expires_s, ..Access::default() };
        let found = service
            .store
            .access(now_s, key, &access, |item, _| self.put_item(item, keys.with_cas, out));
        self.observe_read(now_s, key, found);
    }
}

/// The end of a connection over which another protocol is spoken.
#[cold]
fn foreign() -> ProtocolError {
    ProtocolError::new("a request of HTTP or a TLS handshake, where cache commands are expected")
}

/// Puts an answer, unless `noreply` was given.
pub(super) fn put_unless(noreply: bool, line: &[u8], out: &mut Output) {
    if !noreply {
        out.put(line);
    }
}
