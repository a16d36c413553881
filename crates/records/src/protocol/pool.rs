//! Memory for large messages and arrays that is reused while it is warm: the first access to a
//! page costs more than filling it. Large buffers lie in huge pages where the system has them
//! (madvise(2), `MADV_HUGEPAGE`), which fault 512 times less often. A peer that announces a large
//! message and sends little of it gets small pages: one byte would else take 2 MiB.

use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

use memmap2::{Advice, MmapMut};
use wire::Bytes;

/// Buffers of at least this size get pages of their own, of which a huge one has as many bytes.
const MAPPED_BYTES: usize = 2 << 20;

/// A buffer for a peer's bytes gets huge pages once this many have arrived.
const HUGE_FROM_BYTES: usize = 2 * MAPPED_BYTES;

/// Where a buffer's bytes are.
enum Memory {
    Heap(Vec<u8>),
    /// Pages, and whether they may be huge.
    Mapped(MmapMut, bool),
}

impl Memory {
    /// Zeros in small pages, which cost nothing before they are touched; `None` where the system
    /// refuses that many.
    fn new(len: usize) -> Option<Self> {
        if len < MAPPED_BYTES {
            return Some(Self::Heap(vec![0; len]));
        }
        let map = MmapMut::map_anon(len).ok()?;
        // A kernel without huge pages refuses; small ones do, too.
        let _ = map.advise(Advice::NoHugePage);
        Some(Self::Mapped(map, false))
    }

    /// Lets further pages be huge.
    fn allow_huge_pages(&mut self) {
        if let Self::Mapped(map, is_huge @ false) = self {
            *is_huge = true;
            let _ = map.advise(Advice::HugePage);
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Mapped(map, _) => map,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Mapped(map, _) => map,
        }
    }

    fn len(&self) -> usize {
        self.bytes().len()
    }
}

/// Large buffers that are kept for the next use.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    spare: Mutex<Spare>,
    most: usize,
}

struct Spare {
    buffers: Vec<Memory>,
    /// How many buffers may still be taken before the pool looks whether it has too many.
    left: usize,
    /// The fewest that were spare after each was taken: this many were never needed.
    fewest: usize,
}

/// Buffers that weren't needed while this many were taken are returned to the system.
const LOOK_EVERY: usize = 64;

impl Pool {
    /// A pool that keeps at most `most` buffers; one of none has every buffer made anew.
    pub fn new(most: usize) -> Self {
        let spare = Spare { buffers: Vec::new(), left: LOOK_EVERY, fewest: usize::MAX };
        Self(Arc::new(Shared { spare: Mutex::new(spare), most }))
    }

    /// A buffer of `len` bytes, whatever they are, which will be filled.
    ///
    /// # Panics
    /// When the system refuses the memory. Where a peer has chosen `len`, see [`Pool::try_take`].
    pub fn take(&self, len: usize) -> Buffer {
        let buffer = self.try_take(len);
        let mut buffer = buffer.unwrap_or_else(|| panic!("the system refuses {len} bytes"));
        buffer.memory.allow_huge_pages();
        buffer
    }

    /// A buffer of as many bytes as a peer has announced; [`Buffer::arrived`] follows them. `None`
    /// where the system refuses that much, as under a limit on address space.
    pub fn try_take(&self, len: usize) -> Option<Buffer> {
        // One that is much too large is left for a larger need. The last is the warmest.
        let fits = |had: &Memory| had.len() >= len && had.len() / 2 <= len;
        let (found, unneeded) = {
            let mut spare = self.lock();
            let found = spare.buffers.iter().rposition(fits);
            (found.map(|index| spare.buffers.remove(index)), spare.unneeded())
        };
        drop(unneeded);
        let memory = found.or_else(|| Memory::new(len))?;
        assert!(memory.len() >= len, "a buffer of {} bytes for {len}", memory.len());
        Some(Buffer { memory, len, pool: self.clone() })
    }

    /// How many buffers wait to be used again.
    pub fn spare(&self) -> usize {
        self.lock().buffers.len()
    }

    /// Returns the buffers that wait to the system.
    pub fn clear(&self) {
        let spare = std::mem::take(&mut self.lock().buffers);
        drop(spare);
    }

    fn give_back(&self, memory: Memory) {
        let given_up = {
            let mut spare = self.lock();
            spare.buffers.push(memory);
            // What was given back longest ago fits today's needs the least.
            let given_up = (spare.buffers.len() > self.0.most).then(|| spare.buffers.remove(0));
            debug_assert!(spare.buffers.len() <= self.0.most, "the pool keeps what it may");
            given_up
        };
        drop(given_up);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Spare> {
        // A list is whole between any two calls: a panic elsewhere can't break it.
        self.0.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spare {
    /// Called when a buffer is taken. Returns those that have not been needed for long.
    fn unneeded(&mut self) -> Vec<Memory> {
        self.fewest = self.fewest.min(self.buffers.len());
        self.left -= 1;
        if self.left > 0 {
            return Vec::new();
        }
        self.left = LOOK_EVERY;
        let fewest = std::mem::replace(&mut self.fewest, usize::MAX);
        self.buffers.drain(..fewest).collect()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {})", self.spare(), self.0.most)
    }
}

/// Bytes of a pool, which return to it with the last reference.
pub struct Buffer {
    memory: Memory,
    len: usize,
    pool: Pool,
}

impl Buffer {
    /// Notes that the first `bytes` have arrived.
    pub fn arrived(&mut self, bytes: usize) {
        if bytes >= HUGE_FROM_BYTES {
            self.memory.allow_huge_pages();
        }
    }

    /// Returns the bytes as a shared slice. They return to the pool with its last copy.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.give_back(mem::replace(&mut self.memory, Memory::Heap(Vec::new())));
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOK_EVERY, Pool};

    #[test]
    fn a_buffer_comes_back_when_its_last_copy_is_dropped() {
        let pool = Pool::new(1);
        let mut buffer = pool.take(1000);
        buffer.as_mut()[0] = 7;
        let at = buffer.as_ref().as_ptr();
        let bytes = buffer.freeze();
        let slice = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(pool.spare(), 0);
        drop(slice);
        assert_eq!(pool.spare(), 1);
        assert_ne!(pool.take(400).as_ref().as_ptr(), at, "too large for that");
        drop(pool.take(900));
        assert_eq!(pool.spare(), 1, "it keeps one");
        let again = pool.take(900);
        assert_eq!((again.as_ref().len(), pool.spare()), (900, 0));
        let none = Pool::new(0);
        drop(none.take(10));
        assert_eq!(none.spare(), 0);
    }

    #[test]
    fn what_is_not_needed_for_long_is_given_up() {
        let pool = Pool::new(4);
        drop([(); 4].map(|()| pool.take(1000)));
        assert_eq!(pool.spare(), 4);
        for _ in 0..2 * LOOK_EVERY {
            drop([(); 2].map(|()| pool.take(1000)));
        }
        assert_eq!(pool.spare(), 2, "two at a time are needed");
    }

    #[test]
    fn memory_that_the_system_refuses_is_no_panic() {
        assert!(Pool::new(1).try_take(1 << 60).is_none());
    }
}
