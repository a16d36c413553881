//! The most memory of this process during a step, beside what it had before.

use std::fs;

use super::super::tree::Process;

/// A step whose memory is watched.
pub(super) struct Peak {
    before_bytes: u64,
}

impl Peak {
    /// Begins; `None` where the system doesn't tell.
    pub(super) fn begin() -> Option<Self> {
        // The most so far is what there is now, from here on (proc(5)).
        fs::write("/proc/self/clear_refs", "5").ok()?;
        Some(Self { before_bytes: own()?.resident_bytes()? })
    }

    /// The most since then, in bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        Some(own()?.peak_bytes()?.saturating_sub(self.before_bytes))
    }
}

fn own() -> Option<Process> {
    i32::try_from(std::process::id()).ok().and_then(Process::of)
}
