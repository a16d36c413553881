//! A large data block on its way in.

use crate::server::incoming::Claim;

/// A data block's buffer starts with at most this many bytes and doubles as they come, so that a
/// mere claim of a large block takes no memory.
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
    /// What keeps room for it, until it is stored or given up.
    pub(super) claim: Option<Claim>,
}

impl Block {
    /// A block of `total` bytes for `request`, for which `claim` keeps room.
    pub(super) fn new(request: &[u8], total: usize, claim: Claim) -> Self {
        let request = request.to_vec();
        Self { request, bytes: Vec::new(), filled: 0, total, claim: Some(claim) }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.filled == self.total
    }

    /// Makes room for the next bytes, in steps that follow what has come.
    fn grow(&mut self) {
        if self.filled == self.bytes.len() {
            let wanted = (self.bytes.len() * 2).max(FIRST_BYTES).min(self.total);
            self.bytes.resize(wanted, 0);
        }
    }

    /// Where the next bytes belong.
    pub(super) fn place(&mut self) -> &mut [u8] {
        self.grow();
        &mut self.bytes[self.filled..]
    }

    /// So many bytes of the place are filled.
    pub(super) fn placed(&mut self, count: usize) {
        self.filled += count;
    }

    /// Takes the next bytes, and says how many.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let place = self.place();
        let count = bytes.len().min(place.len());
        place[..count].copy_from_slice(&bytes[..count]);
        self.placed(count);
        count
    }
}
