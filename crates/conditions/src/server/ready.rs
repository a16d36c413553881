//! Slices that were made before, ready to be sent: many clients ask for the same one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

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

/// Slices that were asked for, the oldest of which are dropped first.
#[derive(Debug, Default)]
pub(super) struct Slices(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_key: HashMap<SliceKey, Ready>,
    order: VecDeque<SliceKey>,
    bytes: usize,
}

impl Slices {
    pub(super) fn get(&self, key: &SliceKey) -> Option<Ready> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_key.get(key).cloned()
    }

    pub(super) fn has(&self, key: &SliceKey) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_key.contains_key(key)
    }

    pub(super) fn keep(&self, key: SliceKey, ready: &Ready) {
        // What is dropped is dropped without the lock, for which the thread of connections waits.
        let mut gone = Vec::new();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    #[test]
    fn the_oldest_slices_make_room_for_new_ones() {
        let slices = Slices::default();
        let key = |revision| {
            let view = View { revision, of: Of::Head };
            SliceKey { under: "/".to_owned(), view, since: 0, format: Format::Json }
        };
        let size = KEPT_BYTES / 4 - 512 - 2;
        let large = Ready::of(vec![0; size].into());
        for revision in 0..6 {
            slices.keep(key(revision), &large);
        }
        let kept = (0..6).filter(|revision| slices.get(&key(*revision)).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(slices.0.lock().expect("whole").bytes, KEPT_BYTES);
    }
}
