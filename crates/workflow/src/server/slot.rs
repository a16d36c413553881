//! What a connection and the owner share of one request: its memory, and the place of its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use wire::Waker;

use crate::protocol::Reply;

/// A document up to this size waits in the loop's buffer until it is whole, and is parsed there.
pub(super) const SMALL_BYTES: usize = 64 << 10;

/// The most bytes of one document, with what is around a text: its frame can't name more.
const DOCUMENT_BYTES: u64 = u32::MAX as u64 - (64 << 10);

/// Memory that all connections share, and its limit.
#[derive(Debug)]
pub(super) struct Memory {
    held: AtomicU64,
    pub(super) most: u64,
    /// A long text that has been sent, for others who ask for it; it makes room for any other.
    kept: Mutex<Option<Bytes>>,
}

/// A text is kept where it takes at most this part of the memory.
const KEPT_PART: u64 = 4;

impl Memory {
    /// Memory of at most this number of bytes.
    pub(super) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { held: AtomicU64::new(0), most, kept: Mutex::default() })
    }

    fn kept(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a text in place of the one before, unless it is short, or too long; returns whether it
    /// does.
    pub(super) fn keep(&self, text: &Bytes) -> bool {
        let is_kept = text.len() > SMALL_BYTES && text.len() as u64 <= self.most / KEPT_PART;
        if is_kept {
            drop(self.kept().replace(text.clone()));
        }
        is_kept
    }

    /// Drops what is kept, which gives much memory back. Who needs that meanwhile waits for it.
    pub(super) fn forget(&self) {
        *self.kept() = None;
    }

    /// Takes memory, unless that is more than there is.
    fn take(&self, bytes: u64) -> bool {
        let more = |held: u64| held.checked_add(bytes).filter(|held| *held <= self.most);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// The same; what is kept is dropped first.
    fn take_for_another(&self, bytes: u64) -> bool {
        self.take(bytes) || {
            self.forget();
            self.take(bytes)
        }
    }

    /// The answer where there is not as much as an answer takes.
    pub(super) fn refusal(&self) -> Reply {
        let most = self.most;
        Reply::error(format!(
            "answers of {most} bytes wait for those who asked (--send-memory): try again"
        ))
    }
}

/// Memory of one document or answer, given back when it is dropped.
pub(super) struct Held {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Held {
    /// None yet.
    pub(super) fn none(memory: &Arc<Memory>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Takes more, unless that is more than there is; returns whether it did.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let is_short_enough = self.bytes.saturating_add(bytes) <= DOCUMENT_BYTES;
        let has_room = is_short_enough && self.memory.take_for_another(bytes);
        if has_room {
            self.bytes += bytes;
        }
        has_room
    }

    /// Takes more, up to this many bytes in all, as [`Self::grow`].
    pub(super) fn reach(&mut self, bytes: usize) -> bool {
        let more = (bytes as u64).saturating_sub(self.bytes);
        more == 0 || self.grow(usize::try_from(more).unwrap_or(usize::MAX))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A rendered answer, whose memory is held until it is sent.
pub(super) struct Rendered {
    bytes: Box<[u8]>,
    _held: Held,
}

impl Rendered {
    /// Bytes whose memory is counted from here on, where they are more than a few; `None` where
    /// there isn't as much.
    pub(super) fn counted(bytes: Vec<u8>, memory: &Arc<Memory>) -> Option<Self> {
        let mut held = Held::none(memory);
        let has_room = bytes.len() <= SMALL_BYTES || held.reach(bytes.len());
        has_room.then(|| Self::held(bytes, held))
    }

    /// Bytes whose memory is counted already. What they have grown by beyond their length isn't,
    /// and is given back.
    pub(super) fn held(bytes: Vec<u8>, held: Held) -> Self {
        Self { bytes: bytes.into_boxed_slice(), _held: held }
    }
}

impl AsRef<[u8]> for Rendered {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The numbers of a tree's last changes: of states, of structure.
pub(super) type Numbers = (u32, u32);

/// An answer on its way.
pub(super) enum Answer {
    /// To be rendered by the connection's thread.
    Reply(Reply),
    /// Rendered, with its frame.
    Bytes(Bytes),
    /// A text that others may be sent, too, and what of the answer stands before and behind it.
    Around(Bytes, [Vec<u8>; 2]),
    /// What has changed up to these numbers, for a client that follows; nothing where that is no
    /// news to it.
    Changes(Bytes, Numbers),
}

/// Where the answer to a connection's request is put.
#[derive(Clone)]
pub(super) struct Slot(Arc<Place>);

struct Place {
    state: Mutex<Placed>,
    waker: Waker,
}

#[derive(Default)]
struct Placed {
    answer: Option<Answer>,
    /// Whether the connection waits for it to be woken.
    is_awaited: bool,
}

impl Slot {
    /// An empty one; `waker` wakes whoever waits for the answer.
    pub(super) fn new(waker: Waker) -> Self {
        let state = Placed { answer: None, is_awaited: true };
        Self(Arc::new(Place { state: Mutex::new(state), waker }))
    }

    /// The same of a connection that looks for the answer in the turn in which it asks, and is not
    /// woken before that.
    pub(super) fn of_turn(waker: Waker) -> Self {
        Self(Arc::new(Place { state: Mutex::default(), waker }))
    }

    fn lock(&self) -> MutexGuard<'_, Placed> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether someone may still take the answer: a connection that is closed has dropped it. It is
    /// taken for someone, too, who holds another clone for a moment, as while work is passed on.
    pub(super) fn has_taker(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Answers; never waits.
    pub(super) fn put(&self, answer: Answer) {
        let mut state = self.lock();
        state.answer = Some(answer);
        let is_awaited = state.is_awaited;
        drop(state);
        if is_awaited {
            self.0.waker.wake();
        }
    }

    /// The answer, once; where there is none yet, the connection is woken when there is.
    pub(super) fn take(&self) -> Option<Answer> {
        let mut state = self.lock();
        state.is_awaited = true;
        state.answer.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_longer_than_its_frame_can_name_finds_no_room() {
        let memory = Memory::new(u64::MAX);
        let mut held = Held::none(&memory);
        assert!(held.grow(3 << 30) && !held.grow(1 << 30) && held.grow(1 << 20));
    }
}
