//! The processes of the host, or the threads of this one: one listing of `/proc` or
//! `/proc/self/task`, through a folder and a buffer that stay.

use std::mem::MaybeUninit;

use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};

use super::source::number;

/// The buffer for listings: about a thousand entries at a time.
const ENTRIES_BYTES: usize = 32 << 10;

/// Lists processes, or threads.
#[derive(Debug)]
pub(super) struct Listing {
    folder: Option<rustix::fd::OwnedFd>,
    entries: Box<[MaybeUninit<u8>]>,
}

impl Listing {
    /// Of the processes.
    pub(super) fn open() -> Self {
        Self::of("/proc")
    }

    /// Of the threads of this process.
    pub(super) fn of_threads() -> Self {
        Self::of("/proc/self/task")
    }

    fn of(folder: &str) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self {
            folder: rustix::fs::open(folder, flags, Mode::empty()).ok(),
            entries: vec![MaybeUninit::uninit(); ENTRIES_BYTES].into_boxed_slice(),
        }
    }

    /// Replaces `pids` by those that there are now, in ascending order; false where they
    /// can't be listed.
    pub(super) fn read(&mut self, pids: &mut Vec<u32>) -> bool {
        pids.clear();
        let Some(folder) = &self.folder else { return false };
        if rustix::fs::seek(folder, SeekFrom::Start(0)).is_err() {
            return false;
        }
        let mut entries = RawDir::new(folder, &mut self.entries);
        while let Some(Ok(entry)) = entries.next() {
            let pid = number(entry.file_name().to_bytes());
            pids.extend(pid.and_then(|pid| u32::try_from(pid).ok()));
        }
        pids.sort_unstable();
        true
    }
}
