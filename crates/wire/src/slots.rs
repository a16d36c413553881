//! The connections of one thread, and the buffers that they borrow.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fd::OwnedFd;

use crate::link::Link;
use crate::poll::Interest;
use crate::timers::NEVER;
use crate::{Closed, Input, Ns, Output};

/// Tokens with this bit stand for something other than a connection.
pub(crate) const SPECIAL: u64 = 1 << 63;

/// One connection: its socket, its protocol, and what of its bytes waits.
///
/// The buffers are empty and without memory unless a message is unfinished or the peer doesn't
/// read: an idle connection costs its slot and what its protocol holds.
pub(crate) struct Slot<C> {
    pub(crate) socket: OwnedFd,
    pub(crate) link: Link,
    /// Gone once the connection has ended and the socket only lingers.
    pub(crate) connection: Option<C>,
    pub(crate) input: Input,
    /// There only while something is unsent.
    pub(crate) output: Option<Output>,
    /// Why it will be closed once the output is sent.
    pub(crate) closing: Option<Closed>,
    /// Once the output is sent, the protocol is to be told so.
    pub(crate) owed: bool,
    /// It has a place in the queue of those that go on in the next turn.
    pub(crate) queued: bool,
    pub(crate) interest: Interest,
    /// Whether a letter to wake it is under way.
    pub(crate) posted: Arc<AtomicBool>,
    /// The time of its one timer entry that counts, or [`NEVER`].
    pub(crate) armed_ns: Ns,
    /// When bytes last moved.
    pub(crate) active_ns: Ns,
    /// How many more bytes are read and thrown away while the socket lingers.
    pub(crate) linger_left_bytes: usize,
}

impl<C> Slot<C> {
    pub(crate) fn new(socket: OwnedFd, link: Link, connection: C, now_ns: Ns) -> Self {
        Self {
            socket,
            link,
            connection: Some(connection),
            input: Input::new(),
            output: None,
            closing: None,
            owed: false,
            queued: false,
            interest: Interest::Read,
            posted: Arc::default(),
            armed_ns: NEVER,
            active_ns: now_ns,
            linger_left_bytes: 0,
        }
    }
}

/// A table of connections. A token names a place and how often it has been used, so that an event
/// or a letter for a connection that has gone never reaches the next one in its place.
pub(crate) struct Slots<C> {
    entries: Vec<Entry<C>>,
    free: Vec<u32>,
}

struct Entry<C> {
    generation: u32,
    slot: Option<Slot<C>>,
}

impl<C> Slots<C> {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, slot: Slot<C>) -> (u64, &mut Slot<C>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, slot: None });
            u32::try_from(self.entries.len() - 1).expect("fewer connections than descriptors")
        });
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.slot.is_none(), "a free place is empty");
        (token(index, entry.generation), entry.slot.insert(slot))
    }

    #[inline]
    pub(crate) fn get(&self, token: u64) -> Option<&Slot<C>> {
        let entry = self.entries.get(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.slot.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, token: u64) -> Option<&mut Slot<C>> {
        let entry = self.entries.get_mut(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.slot.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, token: u64) -> Option<Slot<C>> {
        self.get(token)?;
        let index = token as u32;
        let entry = &mut self.entries[index as usize];
        // The highest bit stays clear: it marks tokens that are no connection's.
        entry.generation = (entry.generation + 1) & 0x7fff_ffff;
        self.free.push(index);
        entry.slot.take()
    }

    /// The tokens of all connections.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        let used = self.entries.iter().enumerate().filter(|(_, entry)| entry.slot.is_some());
        used.map(|(index, entry)| token(index as u32, entry.generation)).collect()
    }
}

fn token(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

/// This many emptied output buffers, with so much memory in all, are kept for the next connections
/// whose answers wait.
const SPARE_OUTPUTS: usize = 64;
const SPARE_BYTES: usize = 4 << 20;

/// What waits in a buffer with more memory than this is copied into another if it is little: the
/// memory of large answers is not handed round with small ones.
const LARGE_BYTES: usize = 128 << 10;

/// An unfinished message up to this size is copied back into the lent buffer to be read on; a
/// larger one is read on where it is.
pub(crate) const SMALL_REST_BYTES: usize = 4096;

/// The buffers that a thread lends to each of its connections in turn.
pub(crate) struct Lent {
    pub(crate) input: Input,
    pub(crate) output: Output,
    spare: Vec<Output>,
    spare_bytes: usize,
    limit_bytes: usize,
}

impl Lent {
    pub(crate) fn new(input_bytes: usize, limit_bytes: usize) -> Self {
        let mut input = Input::new();
        // Grows the buffer to its full size once and for all; no limit is passed here.
        let _ = input.space(input_bytes, input_bytes);
        let output = Output::new(limit_bytes);
        Self { input, output, spare: Vec::new(), spare_bytes: 0, limit_bytes }
    }

    /// The buffer that a connection is read into: the lent one, unless much of a message waits in
    /// its own.
    #[inline]
    pub(crate) fn input_for<'a>(&'a mut self, own: &'a mut Input) -> &'a mut Input {
        if own.len() > SMALL_REST_BYTES {
            return own;
        }
        if !own.is_empty() {
            self.input.append(own.bytes());
            *own = Input::new();
        }
        &mut self.input
    }

    /// Makes the connection's unsent output, if it has any, the one that is written to.
    #[inline]
    pub(crate) fn begin(&mut self, own: &mut Option<Output>) {
        if let Some(own) = own.take() {
            let lent = mem::replace(&mut self.output, own);
            self.keep(lent);
        }
    }

    /// Leaves what is unsent with the connection; an empty buffer stays here.
    #[inline]
    pub(crate) fn end(&mut self, own: &mut Option<Output>) {
        if !self.output.is_empty() {
            let mut next = self.spare();
            match self.output.plain() {
                Some(bytes)
                    if self.output.capacity() > LARGE_BYTES && bytes.len() <= LARGE_BYTES / 2 =>
                {
                    next.put(bytes);
                    self.output.clear(self.keep_bytes());
                }
                _ => mem::swap(&mut next, &mut self.output),
            }
            *own = Some(next);
        } else if self.output.capacity() > self.keep_bytes() {
            self.output.clear(self.keep_bytes());
        }
    }

    /// Takes an empty buffer back, if it is to be had for the next.
    #[inline]
    pub(crate) fn keep(&mut self, empty: Output) {
        let spare_bytes = self.spare_bytes + empty.capacity();
        if self.spare.len() < SPARE_OUTPUTS && spare_bytes <= SPARE_BYTES {
            self.spare_bytes = spare_bytes;
            self.spare.push(empty);
        }
    }

    #[inline]
    fn spare(&mut self) -> Output {
        match self.spare.pop() {
            Some(spare) => {
                self.spare_bytes -= spare.capacity();
                spare
            }
            None => Output::new(self.limit_bytes),
        }
    }

    /// Throws away what a connection that has ended can't use any more.
    pub(crate) fn discard(&mut self) {
        self.input.clear();
        self.output.clear(self.keep_bytes());
    }

    /// A buffer grows by doubling, so one that keeps to the limit has at most twice its size; the
    /// last answer may pass it by a little.
    fn keep_bytes(&self) -> usize {
        self.limit_bytes.saturating_mul(2).saturating_add(64 * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lent, Link, Output, SPARE_BYTES, Slot, Slots};

    fn slot(name: &'static str) -> Slot<&'static str> {
        let (socket, _) = std::os::unix::net::UnixStream::pair().expect("a pair");
        Slot::new(socket.into(), Link::Plain, name, 0)
    }

    #[test]
    fn a_token_never_reaches_the_next_connection_in_its_place() {
        let mut slots = Slots::new();
        let first = slots.insert(slot("first")).0;
        assert!(slots.remove(first).is_some() && slots.remove(first).is_none());
        let second = slots.insert(slot("second")).0;
        assert_eq!(first as u32, second as u32, "the place is used again");
        assert!(slots.get(first).is_none() && slots.get_mut(first).is_none());
        assert_eq!(slots.get(second).and_then(|slot| slot.connection), Some("second"));
        assert_eq!((slots.len(), slots.tokens()), (1, vec![second]));
    }

    #[test]
    fn a_slot_without_waiting_bytes_is_small() {
        assert!(size_of::<Slot<()>>() <= 320, "{} bytes", size_of::<Slot<()>>());
    }

    #[test]
    fn unsent_output_moves_to_its_connection_and_its_memory_comes_back() {
        let mut lent = Lent::new(4096, 1000);
        let mut own = None;
        lent.begin(&mut own);
        lent.output.put(&[1; 500_000]);
        lent.end(&mut own);
        assert!(lent.output.is_empty() && own.as_ref().is_some_and(|own| own.len() == 500_000));
        lent.begin(&mut own);
        assert!(own.is_none());
        lent.output.advance(500_000);
        lent.end(&mut own);
        assert!(own.is_none());
        assert!(lent.output.capacity() < 100_000, "an overgrown buffer shrinks");
    }

    #[test]
    fn the_memory_of_large_answers_is_neither_handed_round_nor_kept_without_limit() {
        let mut lent = Lent::new(4096, 1 << 20);
        let mut all = [const { None }; 100];
        let answer = |lent: &mut Lent, own: &mut _, bytes| {
            lent.output.put(&vec![1; bytes]);
            lent.end(own);
        };
        for own in &mut all {
            lent.output.put(&[1; 300_000]);
            lent.output.advance(300_000);
            answer(&mut lent, own, 1000);
        }
        let held = |own: &Option<Output>| own.as_ref().map_or(0, Output::capacity);
        assert!(all.iter().all(|own| held(own) < 10_000) && lent.output.capacity() >= 300_000);
        for own in &mut all {
            answer(&mut lent, own, 300_000);
        }
        for own in &mut all {
            lent.begin(own);
            lent.output.advance(300_000);
        }
        assert!(lent.spare.iter().map(Output::capacity).sum::<usize>() <= SPARE_BYTES);
        assert_eq!(lent.spare.iter().map(Output::capacity).sum::<usize>(), lent.spare_bytes);
        assert!(!lent.spare.is_empty());
    }
}
