//! A thread's ring, and the memory of its batches. Data plane.

use crate::system::{MAX_BATCH, Outcome};

/// The most bytes received for one connection per submission; the rest follows in its next turn.
/// Not a power of two, so that the starts of all spaces don't share the same few cache sets.
pub(crate) const SPACE_BYTES: usize = (16 << 10) + 5 * 64;

/// A thread's ring, and the memory of its batches.
#[derive(Debug)]
pub(crate) struct UringBatch<R> {
    pub(crate) ring: R,
    pub(crate) space: Vec<u8>,
    /// The tokens of the connections that receive in this batch, and their outcomes.
    pub(crate) receiving: Vec<u64>,
    pub(crate) outcomes: Vec<Outcome>,
    /// The tokens of the connections whose answers wait for the batch's send.
    pub(crate) sending: Vec<u64>,
}

impl<R> UringBatch<R> {
    pub(crate) fn new(ring: R) -> Self {
        let space = vec![0; MAX_BATCH * SPACE_BYTES];
        Self { ring, space, receiving: Vec::new(), outcomes: Vec::new(), sending: Vec::new() }
    }
}

/// Whether a turn has sent its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It was sent, as far as the socket took it.
    Now,
    /// It waits for the batch's send.
    Deferred,
}
