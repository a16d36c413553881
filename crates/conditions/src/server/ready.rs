//! Slices that were made before, ready to be sent: many clients ask for the same one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Bytes;

use super::known::Digest;
use crate::model::View;
use crate::protocol::Format;

/// The most bytes of slices that are kept.
const KEPT_BYTES: usize = 256 << 20;

/// What one slice is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SliceKey {
    pub(super) under: String,
    pub(super) view: View,
    pub(super) since: u64,
    pub(super) format: Format,
}

/// A slice with its digest.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) bytes: Bytes,
    pub(super) digest: Digest,
}

impl Ready {
    pub(super) fn of(bytes: Bytes) -> Self {
        let digest = Digest::of(&bytes);
        Self { bytes, digest }
    }
}

/// A slice that is being made; `None` in it where that failed.
type Awaited = OnceLock<Option<Ready>>;

/// What whoever needs a slice has to do.
pub(super) enum Turn<'a> {
    /// Nothing.
    Ready(Ready),
    /// To make it: all others wait for that.
    Make(Making<'a>),
    /// To wait until another thread has made it.
    Wait(Arc<Awaited>),
}

/// The making of a slice, which has failed where this is dropped before it is made.
pub(super) struct Making<'a> {
    slices: &'a Slices,
    key: SliceKey,
    awaited: Arc<Awaited>,
}

impl Making<'_> {
    /// The slice is made.
    pub(super) fn made(self, ready: Ready) -> Ready {
        self.slices.keep(self.key.clone(), &ready);
        let _ = self.awaited.set(Some(ready.clone()));
        ready
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.slices.lock().making.remove(&self.key);
        let _ = self.awaited.set(None);
    }
}

/// Slices that were asked for, the oldest of which are dropped first.
#[derive(Debug, Default)]
pub(super) struct Slices(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<SliceKey, Ready>,
    /// Those that a thread makes now.
    making: HashMap<SliceKey, Arc<Awaited>>,
    order: VecDeque<SliceKey>,
    bytes: usize,
}

impl Slices {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slice, or whose turn it is to make it: of simultaneous questions one does.
    pub(super) fn turn(&self, key: &SliceKey) -> Turn<'_> {
        let mut kept = self.lock();
        if let Some(ready) = kept.by_key.get(key) {
            return Turn::Ready(ready.clone());
        }
        if let Some(awaited) = kept.making.get(key) {
            return Turn::Wait(Arc::clone(awaited));
        }
        let (key, awaited) = (key.clone(), Arc::new(Awaited::new()));
        kept.making.insert(key.clone(), Arc::clone(&awaited));
        Turn::Make(Making { slices: self, key, awaited })
    }

    pub(super) fn has(&self, key: &SliceKey) -> bool {
        self.lock().by_key.contains_key(key)
    }

    fn keep(&self, key: SliceKey, ready: &Ready) {
        // What is dropped is dropped without the lock, for which the thread of connections waits.
        let mut gone = Vec::new();
        let mut kept = self.lock();
        let size = kept_bytes(&key, ready);
        if size > KEPT_BYTES / 4 || kept.by_key.insert(key.clone(), ready.clone()).is_some() {
            return;
        }
        kept.bytes += size;
        kept.order.push_back(key);
        while kept.bytes > KEPT_BYTES
            && let Some(oldest) = kept.order.pop_front()
        {
            let oldest_one = kept.by_key.remove(&oldest);
            kept.bytes -= oldest_one.as_ref().map_or(0, |one| kept_bytes(&oldest, one));
            gone.push(oldest_one);
        }
        drop(kept);
    }
}

/// What is counted of a slice: its bytes, its key at both places, and some for what holds them.
fn kept_bytes(key: &SliceKey, ready: &Ready) -> usize {
    ready.bytes.len() + 2 * key.under.len() + 512
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Of;

    fn key(revision: u64) -> SliceKey {
        let view = View { revision, of: Of::Head };
        SliceKey { under: "/".to_owned(), view, since: 0, format: Format::Json }
    }

    #[test]
    fn one_makes_a_slice_that_several_need_and_another_one_where_it_fails() {
        let slices = Slices::default();
        let first = slices.turn(&key(1));
        let Turn::Make(making) = first else { panic!("it isn't made yet") };
        let awaited = |key: &SliceKey| match slices.turn(key) {
            Turn::Wait(awaited) => awaited,
            _ => panic!("it is being made"),
        };
        let others = [awaited(&key(1)), awaited(&key(1))];
        assert!(matches!(slices.turn(&key(2)), Turn::Make(_)), "another one");
        let made = std::thread::scope(|scope| {
            let waits = others.each_ref().map(|one| scope.spawn(|| one.wait().clone()));
            making.made(Ready::of(Bytes::from_static(b"slice")));
            waits.map(|one| one.join().expect("no panic").expect("made").bytes)
        });
        assert_eq!(made, [&b"slice"[..]; 2]);
        assert!(matches!(slices.turn(&key(1)), Turn::Ready(_)));
        let Turn::Make(failing) = slices.turn(&key(2)) else { panic!("the one before failed") };
        let waits = awaited(&key(2));
        drop(failing);
        assert!(waits.wait().is_none());
        assert!(matches!(slices.turn(&key(2)), Turn::Make(_)));
    }

    #[test]
    fn the_oldest_slices_make_room_for_new_ones() {
        let slices = Slices::default();
        let size = KEPT_BYTES / 4 - 512 - 2;
        let large = Ready::of(vec![0; size].into());
        for revision in 0..6 {
            slices.keep(key(revision), &large);
        }
        let kept = (0..6).filter(|revision| slices.has(&key(*revision)));
        assert_eq!(kept.collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(slices.0.lock().expect("whole").bytes, KEPT_BYTES);
    }
}
