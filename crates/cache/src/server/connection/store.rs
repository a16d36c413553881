//! Storing: a request of any protocol becomes one job, whose data are waited for.

use wire::Output;

use super::block::Block;
use super::{CacheConnection, State, Step};
use crate::model::{Change, Entry, Mode, Seconds, StoreError, Stored};
use crate::protocol::binary::{self, Answered, HEADER_BYTES, Header, Status};
use crate::protocol::text::answer::{self, LINE_END};
use crate::protocol::text::{self, Command, Demand, Meta, MetaMode, Set};
use crate::protocol::{MOST_KEY_BYTES, Refusal};

/// A request of at most this many bytes, data included, waits in the input until all of it has
/// come: so much the loop keeps as it is. The data of a larger one are read straight into a buffer
/// of their own, which has to be claimed.
const MOST_WAITING_BYTES: usize = 4 << 10;

/// Who is told how a store has gone, and how.
#[derive(Clone, Copy)]
pub(super) enum Reply<'a> {
    /// A classic command.
    Text { noreply: bool },
    /// A meta command.
    Meta(Meta<'a>),
    /// A packet, and whether it is of a quiet kind.
    Binary { header: Header, quiet: bool },
}

/// A store that only waits for its data.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    /// What is stored, without its value.
    pub(super) change: Change<'a>,
    pub(super) value_bytes: usize,
    pub(super) reply: Reply<'a>,
}

/// What a demand of the protocol means to the store.
pub(super) fn mode(demand: Demand) -> Mode {
    match demand {
        Demand::Nothing => Mode::Set,
        Demand::Absent => Mode::Add,
        Demand::Present => Mode::Replace,
        Demand::Before => Mode::Append,
        Demand::Behind => Mode::Prepend,
    }
}

impl Job<'_> {
    /// How many bytes end the data.
    fn end_bytes(&self) -> usize {
        match self.reply {
            Reply::Text { .. } | Reply::Meta(_) => LINE_END.len(),
            Reply::Binary { .. } => 0,
        }
    }
}

impl CacheConnection {
    /// The job of a classic storage command.
    #[inline]
    pub(super) fn text_job<'a>(&self, now_s: Seconds, set: &Set<'a>, key: &'a [u8]) -> Job<'a> {
        let expires_s = self.service.clock.expires_s(set.exptime, now_s);
        let entry = Entry { key, value: b"", flags: set.flags, expires_s };
        let change = Change {
            entry,
            mode: mode(set.demand),
            compare: set.compare,
            stale_if_older: false,
            cas: None,
            vivify: false,
            binary_key: false,
        };
        let reply = Reply::Text { noreply: set.noreply };
        Job { change, value_bytes: set.value_bytes, reply }
    }

    /// The job of a meta store.
    pub(super) fn meta_job<'a>(
        &self,
        now_s: Seconds,
        meta: &Meta<'a>,
        mode_of: MetaMode,
        buffer: &'a mut [u8; MOST_KEY_BYTES],
    ) -> Job<'a> {
        let exptime = match mode_of.demand {
            // What is continued keeps its expiry; what is made instead gets the one of `N`.
            Demand::Before | Demand::Behind => meta.vivify,
            _ => meta.exptime,
        };
        let expires_s = self.service.clock.expires_s(exptime.unwrap_or(0), now_s);
        let entry = Entry { key: meta.key(buffer), value: b"", flags: meta.flags, expires_s };
        let change = Change {
            entry,
            mode: mode(mode_of.demand),
            compare: meta.compare,
            stale_if_older: meta.invalidate,
            cas: meta.cas,
            vivify: meta.vivify.is_some(),
            binary_key: meta.binary_key,
        };
        Job { change, value_bytes: mode_of.value_bytes, reply: Reply::Meta(*meta) }
    }

    /// A job whose request is `request`, and whose data begin `rest`.
    #[inline]
    pub(super) fn step_job(
        &mut self,
        now_s: Seconds,
        job: &Job<'_>,
        (request, used): (&[u8], usize),
        rest: &[u8],
        out: &mut Output,
    ) -> Step {
        let total = job.value_bytes + job.end_bytes();
        if !self.service.store.fits(job.change.entry.key.len(), job.value_bytes) {
            return self.refuse_job(now_s, job, StoreError::TooLarge, (used, total), out);
        }
        if let Some(data) = rest.get(..total) {
            let (value, end) = data.split_at(job.value_bytes);
            self.store(now_s, job, value, end, out);
            return Step::Used(used + total);
        }
        if used + total <= MOST_WAITING_BYTES {
            return Step::More(0);
        }
        let Some(claim) = self.service.incoming.claim(total) else {
            return self.refuse_job(now_s, job, StoreError::NoRoom, (used, total), out);
        };
        self.block = Block::new(request, total, claim);
        self.state = State::Block;
        Step::Used(used)
    }

    /// Refuses a job whose request took `used` bytes, and lets its `total` bytes of data pass.
    #[cold]
    fn refuse_job(
        &mut self,
        now_s: Seconds,
        job: &Job<'_>,
        why: StoreError,
        (used, total): (usize, usize),
        out: &mut Output,
    ) -> Step {
        let change = &job.change;
        let replaces = change.mode == Mode::Set && change.compare.is_none();
        self.service.store.refuse(now_s, change.entry.key, replaces, why);
        self.saw_store(now_s, job, Err(&why));
        put_refused(job, why, out);
        self.refuse_bytes(total);
        Step::Used(used)
    }

    /// All data of a large block are there: its request is read again.
    pub(super) fn finish_block(&mut self, now_s: Seconds, out: &mut Output) {
        self.state = self.idle();
        let Block { request, bytes, claim: _until_stored, .. } = std::mem::take(&mut self.block);
        let mut buffer = [0; MOST_KEY_BYTES];
        let job = if self.is_binary {
            self.packet_job_again(now_s, &request)
        } else {
            match text::read_line(&request) {
                Ok(Command::Set(set)) => set.key.ok().map(|key| self.text_job(now_s, &set, key)),
                Ok(Command::MetaSet(meta, mode)) => {
                    Some(self.meta_job(now_s, &meta, mode, &mut buffer))
                }
                _ => None,
            }
        };
        // It was read once already, with the same result.
        let Some(job) = job else { return };
        let (value, end) = bytes.split_at(job.value_bytes.min(bytes.len()));
        self.store(now_s, &job, value, end, out);
    }

    /// The job of a packet that has been accepted before.
    fn packet_job_again<'a>(&self, now_s: Seconds, request: &'a [u8]) -> Option<Job<'a>> {
        let header = Header::read(request.first_chunk::<HEADER_BYTES>()?)?;
        let row = binary::row(header.opcode)?;
        let binary::Act::Store(demand) = row.act else { return None };
        let (extras, key) = request[HEADER_BYTES..].split_at_checked(header.extras_bytes)?;
        self.packet_job(now_s, &header, (demand, row.quiet), extras, key)
    }

    #[inline]
    fn store(&mut self, now_s: Seconds, job: &Job<'_>, value: &[u8], end: &[u8], out: &mut Output) {
        let Change { entry, mode, compare, .. } = job.change;
        let entry = Entry { value, ..entry };
        if job.end_bytes() > 0 && end != LINE_END {
            let noreply = matches!(job.reply, Reply::Text { noreply: true });
            if !noreply {
                out.put(Refusal::BadChunk.line());
            }
            return;
        }
        let service = &*self.service;
        let stored = match job.reply {
            Reply::Text { .. } if mode == Mode::Set && compare.is_none() => {
                service.store.set(now_s, &entry).map(Stored::Stored)
            }
            _ => service.store.change(now_s, &Change { entry, ..job.change }),
        };
        self.saw_store(now_s, job, stored.as_ref());
        match stored {
            Ok(stored) => put_stored(job, stored, out),
            Err(error) => put_refused(job, error, out),
        }
    }
}

/// Says how a store has gone.
#[inline]
fn put_stored(job: &Job<'_>, stored: Stored, out: &mut Output) {
    match &job.reply {
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
            text::put_stored(meta, job.change.entry.key, cas, out.tail());
            out.put(LINE_END);
        }
        Reply::Binary { header, quiet } => {
            let status = match (stored, job.change.mode) {
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

/// Says why a store was refused.
fn put_refused(job: &Job<'_>, error: StoreError, out: &mut Output) {
    let (refusal, status) = match error {
        StoreError::TooLarge => (Refusal::TooLarge, Status::TooLarge),
        StoreError::NoRoom => (Refusal::NoRoom, Status::NoRoom),
    };
    match &job.reply {
        Reply::Text { noreply: true } => {}
        Reply::Text { .. } | Reply::Meta(_) => out.put(refusal.line()),
        Reply::Binary { header, .. } => binary::put_error(header, status, out.tail()),
    }
}
