//! The one clock of the data plane.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the run's monotonic clock. Its zero is arbitrary; only differences mean anything.
pub type Ns = u64;

/// Nanoseconds in a second.
pub const SECOND_NS: Ns = 1_000_000_000;

/// Nanoseconds in a millisecond.
pub const MILLISECOND_NS: Ns = 1_000_000;

/// The time on `CLOCK_MONOTONIC`, read without a system call where the kernel's vDSO allows it.
///
/// Loops read it once per batch of events and hand it on: nothing below a loop reads a clock.
#[inline]
pub fn now() -> Ns {
    let time = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts at boot, so neither part is ever negative.
    time.tv_sec.unsigned_abs() * SECOND_NS + time.tv_nsec.unsigned_abs()
}

/// The CPU time that the calling thread has used, user and system. Reading it is a system call.
pub fn thread_cpu() -> Ns {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * SECOND_NS + time.tv_nsec.unsigned_abs()
}

/// The wall clock in nanoseconds since the Unix epoch: only for what others have stamped with it.
pub fn unix_now() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec.unsigned_abs() * SECOND_NS + time.tv_nsec.unsigned_abs()
}

/// A duration in nanoseconds, at most about 584 years.
pub fn duration_ns(duration: std::time::Duration) -> Ns {
    u64::try_from(duration.as_nanos()).unwrap_or(Ns::MAX)
}
