//! One connection: command lines in, answers out. Data plane: nothing is allocated per command,
//! and the answers to a batch of commands go into one output that the loop sends with one write.

use std::sync::Arc;

use memchr::memchr;
use wire::{Connection, Fault, Flow, Input, Ns, Output};

use super::service::{Service, ThreadCounts};
use super::statistics;
use crate::model::{Entry, Item, Seconds};
use crate::protocol::text::answer::{self, MetaFacts};
use crate::protocol::text::{self, Command, Key, MetaGet};
use crate::protocol::{MOST_LINE_BYTES, Refusal};

/// A data block of at most this many bytes waits in the input until all of it has come; a larger
/// one is read straight into a buffer of its own.
const MOST_WAITING_BYTES: usize = 16 << 10;

/// A data block's buffer starts with at most this many bytes and doubles as they come, so that a
/// mere claim of a large block takes no memory.
const FIRST_BLOCK_BYTES: usize = 64 << 10;

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A command line.
    Line,
    /// The keys of a `get`: with unique numbers, and whether none has come yet.
    Keys { with_cas: bool, is_first: bool },
    /// The rest of a line that has been refused.
    RestOfLine,
    /// A data block that belongs into `block`.
    Block,
    /// So many bytes of a data block that has been refused.
    Refused(usize),
}

/// What a step has done with the bytes it was given.
enum Step {
    /// Understood so many.
    Used(usize),
    /// Needs more bytes first, having understood so many.
    More(usize),
    /// The client wants no more.
    Quit,
    /// The client can't be understood any more.
    Broken(Fault),
}

/// A large data block on its way in.
#[derive(Debug, Default)]
struct Block {
    key: Vec<u8>,
    /// The value and the line end after it.
    bytes: Vec<u8>,
    filled: usize,
    total: usize,
    flags: u32,
    expires_s: Seconds,
    noreply: bool,
}

impl Block {
    fn is_complete(&self) -> bool {
        self.filled == self.total
    }

    /// Makes room for the next bytes, in steps that follow what has come.
    fn grow(&mut self) {
        if self.filled == self.bytes.len() {
            let wanted = (self.bytes.len() * 2).max(FIRST_BLOCK_BYTES).min(self.total);
            self.bytes.resize(wanted, 0);
        }
    }

    fn take(&mut self, bytes: &[u8]) -> usize {
        self.grow();
        let count = bytes.len().min(self.bytes.len() - self.filled);
        self.bytes[self.filled..self.filled + count].copy_from_slice(&bytes[..count]);
        self.filled += count;
        count
    }
}

/// The server side of one connection.
#[derive(Debug)]
pub struct CacheConnection {
    service: Arc<Service>,
    thread: usize,
    state: State,
    block: Block,
}

impl CacheConnection {
    /// A connection to `service` that lives on thread number `thread`.
    pub fn new(service: Arc<Service>, thread: usize) -> Self {
        Self { service, thread, state: State::Line, block: Block::default() }
    }

    #[inline]
    fn step(&mut self, now_s: Seconds, bytes: &[u8], out: &mut Output) -> Step {
        match self.state {
            State::Line => {
                if let Some((key, used)) = text::plain_get(bytes) {
                    self.get(now_s, key, false, out);
                    out.put(answer::END);
                    return Step::Used(used);
                }
                self.step_line(now_s, bytes, out)
            }
            State::Keys { with_cas, is_first } => {
                self.step_keys(now_s, with_cas, is_first, 0, bytes, out)
            }
            State::RestOfLine => match memchr(b'\n', bytes) {
                None => Step::Used(bytes.len()),
                Some(end) => {
                    self.state = State::Line;
                    Step::Used(end + 1)
                }
            },
            State::Block => {
                let used = self.block.take(bytes);
                if self.block.is_complete() {
                    self.finish_block(now_s, out);
                }
                Step::Used(used)
            }
            State::Refused(left) => {
                let used = bytes.len().min(left);
                self.state = if used == left { State::Line } else { State::Refused(left - used) };
                Step::Used(used)
            }
        }
    }

    fn step_line(&mut self, now_s: Seconds, bytes: &[u8], out: &mut Output) -> Step {
        let start = &bytes[..bytes.len().min(MOST_LINE_BYTES + 1)];
        let Some(end) = memchr(b'\n', start) else {
            // Only the keys of a get may go on for longer: they are answered as they come.
            return match start {
                _ if start.starts_with(b"get ") => {
                    self.step_keys(now_s, false, true, 4, bytes, out)
                }
                _ if start.starts_with(b"gets ") => {
                    self.step_keys(now_s, true, true, 5, bytes, out)
                }
                _ if start.len() <= MOST_LINE_BYTES => Step::More(0),
                _ => {
                    out.put(Refusal::LongLine.line());
                    Step::Broken(Fault::new("a command line is longer than 2,048 bytes"))
                }
            };
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        match text::read_line(line) {
            Ok(Command::Get { with_cas, .. }) => {
                let name = line.iter().take_while(|byte| **byte == b' ').count() + 3;
                let used = name + usize::from(with_cas);
                self.step_keys(now_s, with_cas, true, used, bytes, out)
            }
            Ok(Command::Set(set)) => self.step_set(now_s, &set, &bytes[end + 1..], end + 1, out),
            Ok(Command::Quit) => Step::Quit,
            Ok(command) => {
                self.answer(now_s, &command, out);
                Step::Used(end + 1)
            }
            Err(refusal) => {
                out.put(refusal.line());
                Step::Used(end + 1)
            }
        }
    }

    /// Commands of one line and no data.
    fn answer(&mut self, now_s: Seconds, command: &Command<'_>, out: &mut Output) {
        match *command {
            Command::MetaGet(ref get) => self.meta_get(now_s, get, out),
            Command::MetaNoop => out.put(answer::META_NOOP),
            Command::Delete { key, noreply } => {
                let found = self.service.store.delete(now_s, key);
                if !noreply {
                    out.put(if found { answer::DELETED } else { answer::NOT_FOUND });
                }
            }
            Command::Stats { group } => statistics::answer(&self.service, now_s, group, out.tail()),
            Command::Version => {
                out.put(b"VERSION ");
                out.put(crate::VERSION.as_bytes());
                out.put(answer::LINE_END);
            }
            // These never come here: their data or their end is the caller's business.
            Command::Get { .. } | Command::Set(_) | Command::Quit => {}
        }
    }

    /// Answers keys until the line ends, the bytes end, or the output is full.
    fn step_keys(
        &mut self,
        now_s: Seconds,
        with_cas: bool,
        mut is_first: bool,
        mut used: usize,
        bytes: &[u8],
        out: &mut Output,
    ) -> Step {
        // An error takes back what this line has been answered so far, as long as it's here.
        let taken_back = is_first.then(|| out.tail().len());
        self.state = State::Keys { with_cas, is_first };
        loop {
            match text::next_key(&bytes[used..]) {
                Key::One(key, count) => {
                    self.get(now_s, key, with_cas, out);
                    used += count;
                    is_first = false;
                    if out.is_full() {
                        self.state = State::Keys { with_cas, is_first };
                        return Step::Used(used);
                    }
                }
                Key::End(count) => {
                    out.put(if is_first { Refusal::Unknown.line() } else { answer::END });
                    self.state = State::Line;
                    return Step::Used(used + count);
                }
                Key::TooLong => {
                    if let Some(length) = taken_back {
                        out.tail().truncate(length);
                    }
                    out.put(Refusal::BadLine.line());
                    self.state = State::RestOfLine;
                    return Step::Used(used);
                }
                Key::Unfinished => {
                    self.state = State::Keys { with_cas, is_first };
                    return Step::More(used);
                }
            }
        }
    }

    #[inline]
    fn get(&mut self, now_s: Seconds, key: &[u8], with_cas: bool, out: &mut Output) {
        let service = &*self.service;
        service.store.get(now_s, key, |item| {
            let cas = with_cas.then_some(item.cas);
            let at = answer::put_value(item.key, item.flags, item.value, cas, out.tail());
            service.corrupt(&mut out.tail()[at..], item.value.len());
        });
    }

    fn meta_get(&mut self, now_s: Seconds, get: &MetaGet<'_>, out: &mut Output) {
        let service = &*self.service;
        service.threads[self.thread].add_meta();
        let found = service.store.get(now_s, get.key, |item| {
            put_meta_hit(now_s, get, item, out.tail());
            if get.value {
                let at = out.tail().len();
                out.put(item.value);
                out.put(answer::LINE_END);
                service.corrupt(&mut out.tail()[at..], item.value.len());
            }
        });
        if found.is_none() && !get.quiet {
            out.put(answer::META_MISS);
            get.flags().for_each(|flag| answer::put_meta_echo(&flag, get.key, out.tail()));
            out.put(answer::LINE_END);
        }
    }

    /// A `set` whose line took `line_bytes`, and whose data begins `rest`.
    #[inline]
    fn step_set(
        &mut self,
        now_s: Seconds,
        set: &text::Set<'_>,
        rest: &[u8],
        line_bytes: usize,
        out: &mut Output,
    ) -> Step {
        let total = set.value_bytes + answer::LINE_END.len();
        let expires_s = self.service.clock.expires_s(set.exptime, now_s);
        let key = match set.key {
            Ok(key) if self.service.store.fits(key.len(), set.value_bytes) => key,
            refused => {
                let refusal = refused.map_or_else(
                    |refusal| refusal,
                    |key| {
                        self.service.store.refuse(now_s, key);
                        Refusal::TooLarge
                    },
                );
                if !set.noreply {
                    out.put(refusal.line());
                }
                self.state = State::Refused(total);
                return Step::Used(line_bytes);
            }
        };
        if let Some(data) = rest.get(..total) {
            let entry = Entry { key, value: &data[..set.value_bytes], flags: set.flags, expires_s };
            self.store(now_s, &entry, &data[set.value_bytes..], set.noreply, out);
            return Step::Used(line_bytes + total);
        }
        if set.value_bytes <= MOST_WAITING_BYTES {
            return Step::More(0);
        }
        self.block.key.clear();
        self.block.key.extend_from_slice(key);
        self.block.filled = 0;
        self.block.total = total;
        self.block.flags = set.flags;
        self.block.expires_s = expires_s;
        self.block.noreply = set.noreply;
        self.block.grow();
        self.state = State::Block;
        Step::Used(line_bytes)
    }

    fn finish_block(&mut self, now_s: Seconds, out: &mut Output) {
        let block = std::mem::take(&mut self.block);
        let (value, end) = block.bytes.split_at(block.total - answer::LINE_END.len());
        let (flags, expires_s) = (block.flags, block.expires_s);
        let entry = Entry { key: &block.key, value, flags, expires_s };
        self.store(now_s, &entry, end, block.noreply, out);
        self.state = State::Line;
    }

    #[inline]
    fn store(
        &mut self,
        now_s: Seconds,
        entry: &Entry<'_>,
        end: &[u8],
        noreply: bool,
        out: &mut Output,
    ) {
        let line = if end != answer::LINE_END {
            Refusal::BadChunk.line()
        } else if self.service.store.set(now_s, entry).is_ok() {
            answer::STORED
        } else {
            Refusal::TooLarge.line()
        };
        if !noreply {
            out.put(line);
        }
    }
}

fn put_meta_hit(now_s: Seconds, get: &MetaGet<'_>, item: &Item<'_>, into: &mut Vec<u8>) {
    if get.value {
        into.extend_from_slice(b"VA ");
        answer::put_number(item.value.len() as u64, into);
    } else {
        into.extend_from_slice(b"HD");
    }
    let facts = MetaFacts {
        key: item.key,
        flags: item.flags,
        cas: item.cas,
        value_bytes: item.value.len(),
        fetched: item.fetched,
        idle_s: now_s.saturating_sub(item.accessed_s),
        left_s: (item.expires_s != 0).then(|| item.expires_s.saturating_sub(now_s)),
    };
    get.flags().for_each(|flag| answer::put_meta_flag(&flag, &facts, into));
    into.extend_from_slice(answer::LINE_END);
}

impl Connection for CacheConnection {
    fn receive(&mut self, now: Ns, input: &mut Input, out: &mut Output) -> Result<Flow, Fault> {
        let now_s = self.service.clock.seconds(now);
        if self.state == State::Block && self.block.is_complete() {
            self.finish_block(now_s, out);
        }
        let mut used = 0;
        let result = loop {
            let bytes = &input.bytes()[used..];
            if bytes.is_empty() || out.is_full() {
                break Ok(Flow::Continue);
            }
            match self.step(now_s, bytes, out) {
                Step::Used(count) => used += count,
                Step::More(count) => {
                    used += count;
                    break Ok(Flow::Continue);
                }
                Step::Quit => break Ok(Flow::Close),
                Step::Broken(fault) => break Err(fault),
            }
        };
        input.consume(used);
        result
    }

    fn place(&mut self) -> Option<&mut [u8]> {
        if self.state != State::Block || self.block.is_complete() {
            return None;
        }
        self.block.grow();
        Some(&mut self.block.bytes[self.block.filled..])
    }

    fn placed(&mut self, count: usize) {
        self.block.filled += count;
    }
}

impl ThreadCounts {
    /// Counts one meta command. Only the owning thread writes, so no atomic addition is needed.
    #[inline]
    fn add_meta(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        self.cmd_meta.store(self.cmd_meta.load(Relaxed).wrapping_add(1), Relaxed);
    }
}
