//! The memory that messages of all connections take while they wait to be whole, or to be sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::protocol::status::{Code, Status};

/// The memory of all calls.
#[derive(Debug)]
pub(super) struct Memory {
    left: AtomicUsize,
    refused: AtomicU64,
}

impl Memory {
    pub(super) fn of(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes), refused: AtomicU64::new(0) }
    }

    /// How many calls have found too little.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), Status> {
        let taken = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| {
            self.refused.fetch_add(1, Relaxed);
            let words = "messages of all connections take all memory that they may: try again, or \
                         start the server with more --max-memory";
            Status::new(Code::ResourceExhausted, words)
        })
    }
}

/// What a call takes of it; given back when this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Taken {
    pub(super) fn none(memory: &Arc<Memory>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// How many bytes it takes.
    #[cfg(feature = "grpc")]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes this much in all, more or less than before.
    pub(super) fn set(&mut self, bytes: usize) -> Result<(), Status> {
        match bytes.checked_sub(self.bytes) {
            Some(0) => {}
            Some(more) => self.memory.take(more)?,
            None => drop(self.memory.left.fetch_add(self.bytes - bytes, Relaxed)),
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.memory.left.fetch_add(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let memory = Arc::new(Memory::of(100));
        let mut one = Taken::none(&memory);
        let mut two = Taken::none(&memory);
        one.set(60).expect("room");
        assert_eq!(two.set(41).expect_err("no room").code, Code::ResourceExhausted);
        assert_eq!(memory.refused(), 1);
        two.set(40).expect("room");
        one.set(10).expect("less");
        two.set(90).expect("room");
        drop((one, two));
        assert_eq!(memory.left.load(Relaxed), 100);
    }
}
