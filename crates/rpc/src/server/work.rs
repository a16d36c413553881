//! What this process has done to carry calls: reads, writes and waits, counted where they are made,
//! so that `loadline rpc why` can say what a call costs the server.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::runtime::Handle;

use crate::model::call::Here;

static READS: AtomicU64 = AtomicU64::new(0);
static WRITES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// System calls of a thread without a runtime.
    static SYSTEM_CALLS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Something was read.
pub(super) fn has_read() {
    READS.fetch_add(1, Relaxed);
}

/// Something was written.
pub(super) fn has_written() {
    WRITES.fetch_add(1, Relaxed);
}

/// All system calls that this thread has made until now; it has no runtime, and its reads and
/// writes are none.
pub(super) fn system_calls_are(count: u64) {
    SYSTEM_CALLS.set(Some(count));
}

/// Where the caller runs, and what was done until now.
pub(super) fn here() -> Here {
    let (reads, writes) = (READS.load(Relaxed), WRITES.load(Relaxed));
    let system_calls = SYSTEM_CALLS.get().unwrap_or_else(|| {
        // Each time the runtime has nothing to do it waits by one system call.
        let waits = Handle::try_current().map_or(0, |handle| handle.metrics().worker_park_count(0));
        reads + writes + waits
    });
    Here { core: rustix::thread::sched_getcpu() as u32, reads, writes, system_calls }
}
