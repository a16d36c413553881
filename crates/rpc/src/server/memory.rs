//! The memory that messages of all connections take while they wait to be whole or to be sent, or
//! while running functions have them, and that metadata of calls that wait take.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::protocol::status::{Code, Status};

/// The C library keeps what is freed. Once messages take this much less than they took at most, it
/// goes back to the system; half of what they may take, where that is less.
const FREED_BYTES: usize = 64 << 20;

/// It goes back as often as this at most: under load what is freed is soon taken again.
const PAUSE: Duration = Duration::from_secs(1);

/// The memory of all calls.
#[derive(Debug)]
pub(super) struct Memory {
    left: AtomicUsize,
    /// What is much, once it is freed.
    much: usize,
    /// The least that was left since memory went back.
    least: AtomicUsize,
    refused: AtomicU64,
    /// Wakes the thread that gives it back.
    freed: OnceLock<SyncSender<()>>,
}

impl Memory {
    pub(super) fn of(bytes: usize) -> Self {
        let [left, least] = [bytes, bytes].map(AtomicUsize::new);
        let much = FREED_BYTES.min(bytes / 2);
        Self { left, much, least, refused: AtomicU64::new(0), freed: OnceLock::new() }
    }

    /// Has a thread give memory back to the system, for as long as there is this.
    ///
    /// # Errors
    /// When the system has no thread.
    pub(super) fn give_back(self: &Arc<Self>) -> io::Result<()> {
        let (sender, freed) = sync_channel(1);
        let memory = Arc::downgrade(self);
        let work = move || {
            while freed.recv().is_ok() {
                // More is freed meanwhile, or all is taken again.
                std::thread::sleep(PAUSE);
                if memory.upgrade().is_some_and(|memory| memory.take_freed()) {
                    base::memory::give_back();
                }
            }
        };
        std::thread::Builder::new().name("rpc-memory".to_owned()).spawn(work)?;
        let _ = self.freed.set(sender);
        Ok(())
    }

    /// Whether much was freed, which is counted anew then.
    fn take_freed(&self) -> bool {
        let left = self.left.load(Relaxed);
        let is_much = left.saturating_sub(self.least.load(Relaxed)) >= self.much;
        if is_much {
            self.least.store(left, Relaxed);
        }
        is_much
    }

    fn free(&self, bytes: usize) {
        let left = self.left.fetch_add(bytes, Relaxed) + bytes;
        if left.saturating_sub(self.least.load(Relaxed)) >= self.much
            && let Some(freed) = self.freed.get()
        {
            // It is awake already where there is no room.
            let _ = freed.try_send(());
        }
    }

    /// How many calls have found too little.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), Status> {
        let taken = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        if let Ok(left) = taken
            && left - bytes < self.least.load(Relaxed)
        {
            self.least.fetch_min(left - bytes, Relaxed);
        }
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
            None => self.memory.free(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.memory.free(self.bytes);
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

    #[test]
    fn much_that_is_freed_goes_back_once() {
        let memory = Arc::new(Memory::of(1 << 30));
        let (sender, freed) = sync_channel(1);
        memory.freed.set(sender).expect("unset");
        let mut one = Taken::none(&memory);
        for (taken, is_much) in [(FREED_BYTES, false), (1, false), (0, true), (1, false)] {
            one.set(taken).expect("room");
            assert_eq!((freed.try_recv().is_ok(), memory.take_freed()), (is_much, is_much));
        }
        one.set(2 * FREED_BYTES).expect("room");
        drop(one);
        assert!(freed.try_recv().is_ok());
        let mut again = Taken::none(&memory);
        again.set(2 * FREED_BYTES).expect("room");
        assert!(!memory.take_freed(), "it is taken again");
        // Where little may be taken, less is much.
        let memory = Arc::new(Memory::of(FREED_BYTES));
        Taken::none(&memory).set(FREED_BYTES / 2).expect("room");
        assert!(memory.take_freed());
    }
}
