//! A large data block that is being received.

use wire::Ns;

use crate::server::incoming_memory::{IncomingMemory, Progress, Reservation};

/// A data block's buffer starts with at most this many bytes and doubles as they come, so that a
/// mere announcement of a large block takes no memory.
const FIRST_BYTES: usize = 64 << 10;

/// The block, and the request that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The request's line or packet, up to its data. It is read again when the data are there.
    pub(super) request: Vec<u8>,
    /// The value and the line end after it.
    pub(super) bytes: Vec<u8>,
    filled: usize,
    total: usize,
    /// Its progress at the last check; none before the first.
    progress: Option<Progress>,
    /// Its reservation, until it is stored or dropped.
    pub(super) reservation: Option<Reservation>,
}

impl Block {
    /// A block of `total` bytes for `request`, for which `reservation` keeps memory.
    pub(super) fn new(request: &[u8], total: usize, reservation: Reservation) -> Self {
        let (request, reservation) = (request.to_vec(), Some(reservation));
        Self { request, bytes: Vec::new(), filled: 0, total, progress: None, reservation }
    }

    /// Has the progress of a new block checked from now on.
    #[inline]
    pub(super) fn watch(&mut self, now: Ns, incoming: &IncomingMemory) {
        if self.progress.is_none() {
            self.progress = Some(incoming.progress(now, self.filled));
        }
    }

    /// When its progress is to be checked.
    pub(super) fn check_at(&self) -> Option<Ns> {
        self.progress.map(|progress| progress.check_at)
    }

    /// Checks its progress, if it is time. Returns whether it came too slowly.
    pub(super) fn is_too_slow(&mut self, now: Ns, incoming: &IncomingMemory) -> bool {
        let Some(since) = self.progress.filter(|since| since.check_at <= now) else { return false };
        self.progress = Some(incoming.progress(now, self.filled));
        incoming.is_too_slow(&since, self.filled)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.filled == self.total
    }

    /// Makes room for the next bytes, in proportion to those received.
    fn grow(&mut self) {
        if self.filled == self.bytes.len() {
            let wanted = (self.bytes.len() * 2).max(FIRST_BYTES).min(self.total);
            self.bytes.resize(wanted, 0);
        }
    }

    /// Returns the place of the next bytes.
    pub(super) fn place(&mut self) -> &mut [u8] {
        self.grow();
        &mut self.bytes[self.filled..]
    }

    /// Marks the next `count` bytes as filled.
    pub(super) fn placed(&mut self, count: usize) {
        self.filled += count;
    }

    /// Copies the next bytes. Returns their number.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let place = self.place();
        let count = bytes.len().min(place.len());
        place[..count].copy_from_slice(&bytes[..count]);
        self.placed(count);
        count
    }
}
