//! Copies of large values that are being sent: readers of one value share one copy.
//!
//! An item in a ring may be overwritten as soon as its lock is free, so an answer cannot refer to
//! it. A thousand clients that ask for one value of 1 MB and don't read would otherwise hold 1 GB.
//! A copy lives for as long as an answer holds it. Its memory is then reused for the next, or
//! returned to the system: it is mapped, because an allocator would keep it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use memmap2::MmapMut;
use wire::{Bytes, SendHold, SendMemory};

/// A smaller value is copied into each answer: finding the copy to share costs about 0.2 µs, and a
/// shared value is a piece of its own in a vectored write.
pub(super) const LARGE_BYTES: usize = 16 << 10;

/// Memory of values that have been sent is kept up to this sum, in buffers of at most
/// [`KEPT_BUFFERS`], for the next: fresh memory of 1 MB costs 256 page faults.
const KEPT_BYTES: usize = 4 << 20;
const KEPT_BUFFERS: usize = 64;

/// Entries whose copy is gone are removed once there are this many.
const SWEEP_AT: usize = 1024;

/// The copies of large values of one service. Locked for a look-up and for the end of a copy, not
/// while a value is compared or copied.
#[derive(Debug)]
pub(super) struct LargeValues {
    memory: Arc<SendMemory>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The newest copy of the value of each key.
    copies: HashMap<Box<[u8]>, Weak<Copied>>,
    sweep_at: usize,
    spare: Vec<MmapMut>,
    spare_bytes: usize,
}

/// One copy.
#[derive(Debug)]
struct Copied {
    /// Taken when it is dropped.
    memory: Option<MmapMut>,
    length: usize,
    of: Weak<LargeValues>,
    _hold: SendHold,
}

/// One reader's part in a copy.
struct Reader(Arc<Copied>);

impl Copied {
    fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory[..self.length])
    }
}

impl AsRef<[u8]> for Reader {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl LargeValues {
    /// Copies are counted in `memory`.
    pub(super) fn new(memory: Arc<SendMemory>) -> Arc<Self> {
        Arc::new(Self { memory, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two calls: a panic elsewhere can't break it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a copy of `value`, which is that of `key` now: the one that others are being sent,
    /// where there is one and it is the same. `None` when the system has no memory for it.
    pub(super) fn share(self: &Arc<Self>, key: &[u8], value: &[u8]) -> Option<Bytes> {
        let known = self.lock().copies.get(key).and_then(Weak::upgrade);
        if let Some(known) = known
            && known.bytes() == value
        {
            return Some(Bytes::from_owner(Reader(known)));
        }
        let spare = self.lock().take_spare(value.len());
        let mut memory = spare.map_or_else(|| MmapMut::map_anon(value.len()), Ok).ok()?;
        memory[..value.len()].copy_from_slice(value);
        let (memory, length, of) = (Some(memory), value.len(), Arc::downgrade(self));
        let copied = Arc::new(Copied { memory, length, of, _hold: self.memory.hold(length) });
        self.lock().insert(key, Arc::downgrade(&copied));
        Some(Bytes::from_owner(Reader(copied)))
    }
}

impl State {
    /// Returns kept memory for `bytes`: the smallest that fits.
    fn take_spare(&mut self, bytes: usize) -> Option<MmapMut> {
        let fits = self.spare.iter().enumerate().filter(|(_, spare)| {
            // Much larger memory would be held for too little.
            (bytes..=2 * bytes).contains(&spare.len())
        });
        let (index, _) = fits.min_by_key(|(_, spare)| spare.len())?;
        let spare = self.spare.swap_remove(index);
        self.spare_bytes -= spare.len();
        Some(spare)
    }

    /// Keeps memory within the limits. Returns what is unmapped.
    fn keep_spare(&mut self, memory: MmapMut) -> Option<MmapMut> {
        let fits = self.spare_bytes + memory.len() <= KEPT_BYTES;
        if !fits || self.spare.len() >= KEPT_BUFFERS {
            return Some(memory);
        }
        self.spare_bytes += memory.len();
        self.spare.push(memory);
        None
    }

    fn insert(&mut self, key: &[u8], copied: Weak<Copied>) {
        match self.copies.get_mut(key) {
            Some(known) => *known = copied,
            None => {
                if self.copies.len() >= self.sweep_at.max(SWEEP_AT) {
                    self.copies.retain(|_, copied| copied.strong_count() > 0);
                    self.sweep_at = 2 * self.copies.len();
                }
                self.copies.insert(key.into(), copied);
            }
        }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        if let (Some(of), Some(memory)) = (self.of.upgrade(), self.memory.take()) {
            // Unmapped after the lock is free.
            let _unmapped = of.lock().keep_spare(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_one_value_share_one_copy_and_its_memory_is_released() {
        let memory = SendMemory::new(1 << 30);
        let values = LargeValues::new(Arc::clone(&memory));
        let value = vec![1; 100_000];
        let all: Vec<_> =
            (0..1000).map(|_| values.share(b"key", &value).expect("memory")).collect();
        assert!(all.iter().all(|one| one.as_ptr() == all[0].as_ptr()));
        assert_eq!(memory.held_bytes(), 100_000);
        // Another value of the same length is another copy, and the first stays as it was.
        let other = values.share(b"key", &vec![2; 100_000]).expect("memory");
        assert!(other[..] != all[0][..] && all[0][..] == value[..]);
        assert_eq!(memory.held_bytes(), 200_000);
        drop((all, other));
        assert_eq!(memory.held_bytes(), 0);
        assert!(values.lock().spare_bytes <= KEPT_BYTES);
    }

    #[test]
    fn neither_spare_memory_nor_entries_grow_without_limit() {
        let values = LargeValues::new(SendMemory::new(1 << 30));
        for number in 0..20_000_u32 {
            values.share(&number.to_be_bytes(), &[0; 20_000]);
        }
        let all: Vec<_> =
            (0..100_u32).map(|key| values.share(&key.to_be_bytes(), &[1; 1 << 20])).collect();
        drop(all);
        let state = values.lock();
        assert!(state.copies.len() <= 2 * SWEEP_AT && state.spare_bytes <= KEPT_BYTES);
        assert!(state.spare.len() <= KEPT_BUFFERS);
    }
}
