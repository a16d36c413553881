//! Memory for large messages and arrays that is used again while it is warm: touching a fresh
//! page costs more than filling it.

use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

use wire::Bytes;

/// Large buffers that have been given back.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    spare: Mutex<Vec<Vec<u8>>>,
    most: usize,
}

impl Pool {
    /// A pool that keeps at most `most` buffers; one of none has every buffer made anew.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Shared { spare: Mutex::default(), most }))
    }

    /// A buffer of `len` bytes, whatever they are.
    pub fn take(&self, len: usize) -> Buffer {
        let mut spare = self.lock();
        // One that is much too large is left for a larger need.
        let fits = |had: &Vec<u8>| had.len() >= len && had.len() / 2 <= len;
        let found = spare.iter().position(fits).map(|index| spare.swap_remove(index));
        drop(spare);
        let bytes = found.unwrap_or_else(|| vec![0; len]);
        Buffer { bytes, len, pool: self.clone() }
    }

    /// How many buffers wait to be used again.
    pub fn spare(&self) -> usize {
        self.lock().len()
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let mut spare = self.lock();
        if spare.len() == self.0.most && !spare.is_empty() {
            // What was given back longest ago fits today's needs the least.
            spare.remove(0);
        }
        if self.0.most > 0 {
            spare.push(bytes);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        // A list is whole between any two calls: a panic elsewhere can't break it.
        self.0.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {})", self.spare(), self.0.most)
    }
}

/// Bytes of a pool; they go back to it once nobody needs them.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    len: usize,
    pool: Pool,
}

impl Buffer {
    /// The bytes, to be shared. They go back when the last copy is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.give_back(mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

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
}
