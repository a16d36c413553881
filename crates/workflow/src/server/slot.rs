//! What a connection and the owner share of one request: its memory, and the place of its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wire::Waker;

use crate::protocol::Reply;

/// The memory of all documents, and its limit.
#[derive(Debug)]
pub(super) struct Memory {
    held: AtomicU64,
    pub(super) most: u64,
}

impl Memory {
    /// Memory of at most this number of bytes.
    pub(super) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { held: AtomicU64::new(0), most })
    }
}

/// Memory of a document, given back when it is dropped.
pub(super) struct Held {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Held {
    /// Takes memory, unless all of it is taken.
    pub(super) fn take(memory: &Arc<Memory>, bytes: u64) -> Option<Self> {
        let before = memory.held.fetch_add(bytes, Ordering::Relaxed);
        let held = Self { memory: Arc::clone(memory), bytes };
        (before.saturating_add(bytes) <= memory.most).then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An answer on its way.
pub(super) enum Answer {
    /// To be rendered by the connection's thread.
    Reply(Reply),
    /// Rendered, with its frame.
    Bytes(Bytes),
}

/// Where the answer to a connection's request is put.
#[derive(Clone)]
pub(super) struct Slot(Arc<Place>);

struct Place {
    answer: Mutex<Option<Answer>>,
    waker: Waker,
}

impl Slot {
    /// An empty one; `waker` wakes the connection.
    pub(super) fn new(waker: Waker) -> Self {
        Self(Arc::new(Place { answer: Mutex::new(None), waker }))
    }

    /// Answers; never waits.
    pub(super) fn put(&self, answer: Answer) {
        *self.0.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.0.waker.wake();
    }

    /// The answer, once.
    pub(super) fn take(&self) -> Option<Answer> {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
