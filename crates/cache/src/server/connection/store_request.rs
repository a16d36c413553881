//! Storage commands: a request of any protocol becomes one type, and waits for its data.

use wire::Output;

use super::block::Block;
use super::state::{CacheConnection, State, Step};
use crate::model::{Change, Entry, Mode, Seconds, StoreError, Stored};
use crate::protocol::binary::{self, Answered, HEADER_BYTES, Header, Status};
use crate::protocol::text::answer::{self, LINE_END};
use crate::protocol::text::{self, Command, Meta, MetaMode, Set, StoreVerb};
use crate::protocol::{MAX_KEY_BYTES, Refusal};

/// A request of at most this many bytes, data included, waits in the input until all of it has
/// come: the loop keeps that much as it is. The data of a larger one are read straight into a
/// buffer of their own, which has to be reserved.
const MAX_WAITING_BYTES: usize = 4 << 10;

/// The form of the answer.
#[derive(Clone, Copy)]
pub(super) enum Reply<'a> {
    /// A classic command.
    Text { noreply: bool },
    /// A meta command.
    Meta(Meta<'a>),
    /// A packet, and whether it is of a quiet kind.
    Binary { header: Header, quiet: bool },
}

/// A storage command that only waits for its data.
#[derive(Clone, Copy)]
pub(super) struct StoreRequest<'a> {
    /// What is stored, without its value.
    pub(super) change: Change<'a>,
    pub(super) value_bytes: usize,
    pub(super) reply: Reply<'a>,
}

/// Returns the store's mode for a storage command.
pub(super) fn mode(verb: StoreVerb) -> Mode {
    match verb {
        StoreVerb::Set => Mode::Set,
        StoreVerb::Add => Mode::Add,
        StoreVerb::Replace => Mode::Replace,
        StoreVerb::Append => Mode::Append,
        StoreVerb::Prepend => Mode::Prepend,
    }
}

impl StoreRequest<'_> {
    /// Returns the length of the end of the data.
    fn end_bytes(&self) -> usize {
        match self.reply {
            Reply::Text { .. } | Reply::Meta(_) => LINE_END.len(),
            Reply::Binary { .. } => 0,
        }
    }
}

impl CacheConnection {
    /// Returns the request of a classic storage command.
    #[inline]
    pub(super) fn text_request<'a>(
        &self,
        now_s: Seconds,
        set: &Set<'a>,
        key: &'a [u8],
    ) -> StoreRequest<'a> {
        let expires_s = self.service.clock.expires_s(set.exptime, now_s);
        let entry = Entry { key, value: b"", flags: set.flags, expires_s };
        let change = Change {
            entry,
            mode: mode(set.verb),
            compare: set.compare,
            stale_if_older: false,
            cas: None,
            vivify: false,
            binary_key: false,
        };
        let reply = Reply::Text { noreply: set.noreply };
        StoreRequest { change, value_bytes: set.value_bytes, reply }
    }

    /// Returns the request of a meta set.
    pub(super) fn meta_request<'a>(
        &self,
        now_s: Seconds,
        meta: &Meta<'a>,
        mode_of: MetaMode,
        buffer: &'a mut [u8; MAX_KEY_BYTES],
    ) -> StoreRequest<'a> {
        let exptime = match mode_of.verb {
            // An item that is continued keeps its expiry; one that is created gets that of `N`.
            StoreVerb::Append | StoreVerb::Prepend => meta.vivify,
            _ => meta.exptime,
        };
        let expires_s = self.service.clock.expires_s(exptime.unwrap_or(0), now_s);
        let entry = Entry { key: meta.key(buffer), value: b"", flags: meta.flags, expires_s };
        let change = Change {
            entry,
            mode: mode(mode_of.verb),
            compare: meta.compare,
            stale_if_older: meta.invalidate,
            cas: meta.cas,
            vivify: meta.vivify.is_some(),
            binary_key: meta.binary_key,
        };
        StoreRequest { change, value_bytes: mode_of.value_bytes, reply: Reply::Meta(*meta) }
    }

    /// Carries out a request, whose line or packet is `head`, once all its data are in `rest`.
    #[inline]
    pub(super) fn step_store(
        &mut self,
        now_s: Seconds,
        request: &StoreRequest<'_>,
        (head, used): (&[u8], usize),
        rest: &[u8],
        out: &mut Output,
    ) -> Step {
        let total = request.value_bytes + request.end_bytes();
        if !self.service.store.fits(request.change.entry.key.len(), request.value_bytes) {
            return self.refuse_store(now_s, request, StoreError::TooLarge, (used, total), out);
        }
        if let Some(data) = rest.get(..total) {
            let (value, end) = data.split_at(request.value_bytes);
            self.store(now_s, request, value, end, out);
            return Step::Consumed(used + total);
        }
        if used + total <= MAX_WAITING_BYTES {
            return Step::NeedMore(0);
        }
        let Some(reservation) = self.service.incoming.reserve(total) else {
            return self.refuse_store(now_s, request, StoreError::NoRoom, (used, total), out);
        };
        self.block = Block::new(head, total, reservation);
        self.state = State::Block;
        Step::Consumed(used)
    }

    /// Refuses a request whose line or packet took `used` bytes, and skips its `total` bytes of
    /// data.
    #[cold]
    fn refuse_store(
        &mut self,
        now_s: Seconds,
        request: &StoreRequest<'_>,
        why: StoreError,
        (used, total): (usize, usize),
        out: &mut Output,
    ) -> Step {
        self.refuse(now_s, request, why, out);
        self.refuse_bytes(total);
        Step::Consumed(used)
    }

    fn refuse(
        &mut self,
        now_s: Seconds,
        request: &StoreRequest<'_>,
        why: StoreError,
        out: &mut Output,
    ) {
        let change = &request.change;
        let replaces = change.mode == Mode::Set && change.compare.is_none();
        self.service.store.refuse(now_s, change.entry.key, replaces, why);
        self.observe_store(now_s, request, Err(&why));
        put_refused(request, why, out);
    }

    /// Carries out the request of a block that is complete.
    pub(super) fn finish_block(&mut self, now_s: Seconds, out: &mut Output) {
        self.end_block(now_s, |connection, request, bytes| {
            let (value, end) = bytes.split_at(request.value_bytes.min(bytes.len()));
            connection.store(now_s, request, value, end, out);
        });
    }

    /// Refuses the request of a block that is not complete.
    #[cold]
    pub(super) fn refuse_block(&mut self, now_s: Seconds, out: &mut Output) {
        self.end_block(now_s, |connection, request, _| {
            connection.refuse(now_s, request, StoreError::NoRoom, out);
        });
    }

    /// Ends a block with its request, which is parsed again, and its bytes.
    fn end_block(&mut self, now_s: Seconds, act: impl FnOnce(&mut Self, &StoreRequest<'_>, &[u8])) {
        self.state = self.idle();
        let Block { request: head, bytes, reservation: _until_stored, .. } =
            std::mem::take(&mut self.block);
        let mut buffer = [0; MAX_KEY_BYTES];
        let request = if self.is_binary {
            self.packet_request_again(now_s, &head)
        } else {
            match text::read_line(&head) {
                Ok(Command::Set(set)) => {
                    set.key.ok().map(|key| self.text_request(now_s, &set, key))
                }
                Ok(Command::MetaSet(meta, mode)) => {
                    Some(self.meta_request(now_s, &meta, mode, &mut buffer))
                }
                _ => None,
            }
        };
        // It has been parsed before, with the same result.
        let Some(request) = request else { return };
        act(self, &request, &bytes);
    }

    /// Returns the request of a packet that has been accepted before.
    fn packet_request_again<'a>(
        &self,
        now_s: Seconds,
        request: &'a [u8],
    ) -> Option<StoreRequest<'a>> {
        let header = Header::read(request.first_chunk::<HEADER_BYTES>()?)?;
        let row = binary::row(header.opcode)?;
        let binary::Action::Store(verb) = row.act else { return None };
        let (extras, key) = request[HEADER_BYTES..].split_at_checked(header.extras_bytes)?;
        self.packet_request(now_s, &header, (verb, row.quiet), extras, key)
    }

    #[inline]
    fn store(
        &mut self,
        now_s: Seconds,
        request: &StoreRequest<'_>,
        value: &[u8],
        end: &[u8],
        out: &mut Output,
    ) {
        let Change { entry, mode, compare, .. } = request.change;
        let entry = Entry { value, ..entry };
        if request.end_bytes() > 0 && end != LINE_END {
            let noreply = matches!(request.reply, Reply::Text { noreply: true });
            if !noreply {
                out.put(Refusal::BadChunk.line());
            }
            return;
        }
        let service = &*self.service;
        let stored = match request.reply {
            Reply::Text { .. } if mode == Mode::Set && compare.is_none() => {
                service.store.set(now_s, &entry).map(Stored::Stored)
            }
            _ => service.store.change(now_s, &Change { entry, ..request.change }),
        };
        self.observe_store(now_s, request, stored.as_ref());
        match stored {
            Ok(stored) => put_stored(request, stored, out),
            Err(error) => put_refused(request, error, out),
        }
    }
}

/// Appends the answer of a storage command.
#[inline]
fn put_stored(request: &StoreRequest<'_>, stored: Stored, out: &mut Output) {
    match &request.reply {
        Reply::Text { noreply: true } => {}
        Reply::Text { .. } => out.put(match stored {
            Stored::Stored(_) => answer::STORED,
            Stored::NotStored => answer::NOT_STORED,
            Stored::Exists => answer::EXISTS,
            Stored::NotFound => answer::NOT_FOUND,
        }),
        Reply::Meta(meta) => {
            let (code, cas) = match stored {
                Stored::Stored(_) if meta.quiet => return,
                Stored::Stored(cas) => (b"HD", cas),
                Stored::NotStored => (b"NS", 0),
                Stored::Exists => (b"EX", 0),
                Stored::NotFound => (b"NF", 0),
            };
            out.put(code);
            text::put_stored(meta, request.change.entry.key, cas, out.tail());
            out.put(LINE_END);
        }
        Reply::Binary { header, quiet } => {
            let status = match (stored, request.change.mode) {
                (Stored::Stored(_), _) if *quiet => return,
                (Stored::Stored(cas), _) => {
                    let answered = Answered { cas, ..Answered::default() };
                    binary::put_answer(header, Status::Done, &answered, out.tail());
                    return;
                }
                (Stored::Exists, _) | (Stored::NotStored, Mode::Add) => Status::Exists,
                (Stored::NotFound, _) | (Stored::NotStored, Mode::Replace) => Status::NotFound,
                (Stored::NotStored, _) => Status::NotStored,
            };
            binary::put_error(header, status, out.tail());
        }
    }
}

/// Appends the answer of a refused storage command.
fn put_refused(request: &StoreRequest<'_>, error: StoreError, out: &mut Output) {
    let (refusal, status) = match error {
        StoreError::TooLarge => (Refusal::TooLarge, Status::TooLarge),
        StoreError::NoRoom => (Refusal::OutOfMemory, Status::OutOfMemory),
    };
    match &request.reply {
        Reply::Text { noreply: true } => {}
        Reply::Text { .. } | Reply::Meta(_) => out.put(refusal.line()),
        Reply::Binary { header, .. } => binary::put_error(header, status, out.tail()),
    }
}
