//! Answers that are kept ready, or wait for their clients: a limit of their bytes together.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most bytes of large answers that are kept or not sent yet, in KiB, and from where on one is
/// large.
const UNSENT_KIB: usize = 1 << 20;
const LARGE_BYTES: usize = 64 << 10;

/// Room for large answers that are not sent yet.
pub(crate) struct Unsent(Arc<Semaphore>);

impl Default for Unsent {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNSENT_KIB)))
    }
}

/// Bytes that have their room until they are sent.
struct Held {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Too many bytes wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Unsent {
    /// The bytes of an answer, unless those of all clients together are too many.
    pub(crate) fn hold(&self, mut bytes: Vec<u8>) -> Result<Bytes, NoRoom> {
        if bytes.len() < LARGE_BYTES {
            return Ok(bytes.into());
        }
        // A buffer that grew may be twice as large.
        bytes.shrink_to_fit();
        let room = self.room(bytes.capacity())?;
        Ok(Bytes::from_owner(Held { bytes, _room: room }))
    }

    /// Room for what an answer needs until all of it is sent; a little takes none.
    pub(super) fn room(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, NoRoom> {
        if bytes < LARGE_BYTES {
            return Ok(None);
        }
        let kib = u32::try_from(bytes.div_ceil(1024)).map_err(|_| NoRoom)?;
        Arc::clone(&self.0).try_acquire_many_owned(kib).map(Some).map_err(|_| NoRoom)
    }

    /// Refuses an answer of up to this many bytes before it is made.
    pub(super) fn check(&self, bytes: usize) -> Result<(), NoRoom> {
        if self.0.available_permits() >= bytes.div_ceil(1024) { Ok(()) } else { Err(NoRoom) }
    }

    /// How much room is left, in KiB.
    #[cfg(test)]
    pub(super) fn left_kib(&self) -> usize {
        self.0.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_have_room_until_they_are_dropped() {
        let unsent = Unsent::default();
        let half = || unsent.hold(vec![0; UNSENT_KIB << 9]);
        let (first, second) = (half(), half());
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(half(), Err(NoRoom));
        assert!(unsent.hold(vec![0; 100]).is_ok(), "a small one needs none");
        drop(first);
        assert!(half().is_ok());
    }
}
