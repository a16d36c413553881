//! One thread's table of connections. Data plane.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::poll::Interest;
use crate::timers::NEVER;
use crate::transport::Transport;
use crate::{Address, Closed, Input, Ns, Output, SendHold};

/// Tokens with this bit stand for something other than a connection.
pub(crate) const SPECIAL: u64 = 1 << 63;

/// One connection: its socket, its protocol, and the bytes that wait.
///
/// The buffers are empty and without memory unless a message is unfinished or the peer doesn't
/// read: an idle connection costs its slot and what its protocol holds.
pub(crate) struct Slot<C, K> {
    pub(crate) socket: K,
    pub(crate) transport: Transport,
    /// None once the connection has ended and the socket only lingers.
    pub(crate) connection: Option<C>,
    pub(crate) input: Input,
    /// Present only while bytes are unsent.
    pub(crate) output: Option<Output>,
    /// Counts the memory of an output whose bytes the peer does not take.
    pub(crate) held: Option<SendHold>,
    /// Why the connection is closed once the output is sent.
    pub(crate) closing: Option<Closed>,
    /// The protocol is resumed with [`Wake::Drained`](crate::Wake) once the output is sent.
    pub(crate) drained_due: bool,
    /// In the queue of connections that have yielded.
    pub(crate) queued: bool,
    pub(crate) interest: Interest,
    /// Whether the socket is waited for: not before its first turn has found nothing to read.
    pub(crate) is_polled: bool,
    /// When a socket that only waits for its answer is polled for errors after all, or [`NEVER`].
    pub(crate) poll_by_ns: Ns,
    /// Whether a wake message is in the mailbox already.
    pub(crate) posted: Arc<AtomicBool>,
    /// The time of its one valid timer entry, or [`NEVER`].
    pub(crate) armed_ns: Ns,
    /// When bytes were last received or sent.
    pub(crate) active_ns: Ns,
    /// When the handshake or the connect has to be done, or [`NEVER`].
    pub(crate) establish_by_ns: Ns,
    /// The peer has sent its last byte, and answers are pending.
    pub(crate) input_ended: bool,
    /// An outgoing connection, which the limit on connections doesn't count.
    pub(crate) is_outgoing: bool,
    /// The peer of an outgoing connection until it is connected.
    pub(crate) connecting_to: Option<Box<Address>>,
    /// Bytes that may still be read and discarded while the socket lingers.
    pub(crate) linger_left_bytes: usize,
}

impl<C, K> Slot<C, K> {
    pub(crate) fn new(socket: K, transport: Transport, connection: C, now_ns: Ns) -> Self {
        Self {
            socket,
            transport,
            connection: Some(connection),
            input: Input::new(),
            output: None,
            held: None,
            closing: None,
            drained_due: false,
            queued: false,
            interest: Interest::Read,
            is_polled: false,
            poll_by_ns: NEVER,
            posted: Arc::default(),
            armed_ns: NEVER,
            active_ns: now_ns,
            establish_by_ns: NEVER,
            input_ended: false,
            is_outgoing: false,
            connecting_to: None,
            linger_left_bytes: 0,
        }
    }
}

/// A table of connections. A token holds an index and a generation, so that an event or a message
/// for a connection that has ended never reaches the next one at its index.
pub(crate) struct Slots<C, K> {
    entries: Vec<Entry<C, K>>,
    free: Vec<u32>,
}

struct Entry<C, K> {
    generation: u32,
    slot: Option<Slot<C, K>>,
}

impl<C, K> Slots<C, K> {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, slot: Slot<C, K>) -> (u64, &mut Slot<C, K>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, slot: None });
            u32::try_from(self.entries.len() - 1).expect("fewer connections than descriptors")
        });
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.slot.is_none(), "an index on the free list is in use");
        let token = token(index, entry.generation);
        debug_assert!(token & SPECIAL == 0, "a connection's token is taken for another kind");
        (token, entry.slot.insert(slot))
    }

    #[inline]
    pub(crate) fn get(&self, token: u64) -> Option<&Slot<C, K>> {
        let entry = self.entries.get(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.slot.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, token: u64) -> Option<&mut Slot<C, K>> {
        let entry = self.entries.get_mut(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.slot.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, token: u64) -> Option<Slot<C, K>> {
        self.get(token)?;
        let index = token as u32;
        let entry = &mut self.entries[index as usize];
        // The highest bit stays clear: it marks the tokens of other things than connections.
        entry.generation = (entry.generation + 1) & 0x7fff_ffff;
        self.free.push(index);
        let slot = entry.slot.take();
        debug_assert!(self.free.len() <= self.entries.len(), "an index was freed twice");
        slot
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

#[cfg(test)]
mod tests {
    use super::{Slot, Slots, Transport};
    use rustix::fd::OwnedFd;

    fn slot(name: &'static str) -> Slot<&'static str, ()> {
        Slot::new((), Transport::Plain, name, 0)
    }

    #[test]
    fn a_token_never_reaches_the_next_connection_at_its_index() {
        let mut slots = Slots::new();
        let first = slots.insert(slot("first")).0;
        assert!(slots.remove(first).is_some() && slots.remove(first).is_none());
        let second = slots.insert(slot("second")).0;
        assert_eq!(first as u32, second as u32, "the index is reused");
        assert!(slots.get(first).is_none() && slots.get_mut(first).is_none());
        assert_eq!(slots.get(second).and_then(|slot| slot.connection), Some("second"));
        assert_eq!((slots.len(), slots.tokens()), (1, vec![second]));
    }

    #[test]
    fn a_slot_without_waiting_bytes_is_small() {
        assert!(size_of::<Slot<(), OwnedFd>>() <= 320, "{} bytes", size_of::<Slot<(), OwnedFd>>());
    }
}
