//! The payload of a segment that is kept elsewhere, with a copy here while there is room for one.
//! Whoever keeps it does the I/O: brings it, and takes it away while nothing reads it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

/// A payload that comes and goes.
#[derive(Debug)]
pub struct Lent {
    bytes: RwLock<Option<Arc<Bytes>>>,
    /// Whether it was asked for while it wasn't here.
    is_wanted: AtomicBool,
    /// What `now` was when it was read last.
    read: AtomicU64,
    now: Arc<AtomicU64>,
}

impl Lent {
    /// One that isn't here; `now` counts, for all that are kept together, those that came so far.
    pub fn new(now: Arc<AtomicU64>) -> Self {
        let read = AtomicU64::new(now.load(Relaxed));
        Self { bytes: RwLock::default(), is_wanted: AtomicBool::new(false), read, now }
    }

    /// Its bytes, which stay here as long as they are held; `None` where they aren't here, which is
    /// noted.
    pub fn get(&self) -> Option<Arc<Bytes>> {
        let bytes = self.here();
        match bytes {
            Some(_) => self.read.store(self.now.load(Relaxed), Relaxed),
            None => self.is_wanted.store(true, Relaxed),
        }
        bytes
    }

    /// The same, and nothing is noted.
    pub fn here(&self) -> Option<Arc<Bytes>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has it here from now on.
    pub fn bring(&self, bytes: Bytes) {
        self.is_wanted.store(false, Relaxed);
        // What is read from then on was read later.
        self.read.store(self.now.fetch_add(2, Relaxed) + 1, Relaxed);
        let bytes = Some(Arc::new(bytes));
        *self.bytes.write().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    /// Takes it away; returns whether that was done: not where it is being read, or isn't here.
    pub fn take(&self) -> bool {
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let is_free = bytes.as_ref().is_some_and(|bytes| Arc::strong_count(bytes) == 1);
        if is_free {
            *bytes = None;
        }
        is_free
    }

    /// Whether it was asked for, and hasn't come since.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed)
    }

    /// It is asked for no longer.
    pub fn give_up(&self) {
        self.is_wanted.store(false, Relaxed);
    }

    /// When it was read last: the less, the longer ago.
    pub fn last_read(&self) -> u64 {
        self.read.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_read_is_not_taken_away() {
        let now = Arc::new(AtomicU64::new(0));
        let [one, other] = [(), ()].map(|()| Lent::new(Arc::clone(&now)));
        assert!(one.get().is_none() && one.is_wanted() && !other.is_wanted());
        one.bring(Bytes::from_static(b"one"));
        other.bring(Bytes::from_static(b"other"));
        assert!(!one.is_wanted() && one.last_read() < other.last_read());
        let read = one.get().expect("it is here");
        assert!(!one.take() && other.take() && other.here().is_none());
        assert!(one.last_read() > other.last_read(), "it was read after both came");
        assert_eq!(**read, b"one"[..]);
        drop(read);
        assert!(one.take() && !one.take());
    }
}
