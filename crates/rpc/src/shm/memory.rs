//! The memory that both ends of a connection share: a file without a name, sealed so that it can't
//! become shorter. The only `unsafe` code of this carrier. All of it is read and written as atomic
//! words, so that whatever the other process writes meanwhile is a value, never a fault.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    memfd_create,
};

/// Bytes of a cache line; what each side writes has lines of its own.
const LINE_BYTES: usize = 64;

/// Lines before the rings.
const HEAD_LINES: usize = 64;

/// Bytes of a ring.
pub(super) const RING_BYTES: usize = 256 << 10;

const ALL_BYTES: usize = HEAD_LINES * LINE_BYTES + 2 * RING_BYTES;

/// Shared memory.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
    map: MmapRaw,
}

impl Memory {
    /// New memory, all zeros, which is there: a full system refuses it now, not by a fault later.
    pub(super) fn create() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("rpc", flags)?);
        fallocate(&file, FallocateFlags::empty(), 0, ALL_BYTES as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::map(file)
    }

    /// That of the other side, which has to be sealed: else it could cut it, and reading would be
    /// a fault.
    pub(super) fn of(file: OwnedFd) -> io::Result<Self> {
        let seals = fcntl_get_seals(&file)?;
        let bytes = fstat(&file)?.st_size;
        if !seals.contains(SealFlags::SHRINK) || bytes != ALL_BYTES as i64 {
            return Err(io::Error::other(
                "the memory that was offered isn't sealed, or not as large",
            ));
        }
        Self::map(File::from(file))
    }

    fn map(file: File) -> io::Result<Self> {
        let map = MmapOptions::new().len(ALL_BYTES).map_raw(&file)?;
        Ok(Self { file, map })
    }

    /// The file, to be passed on.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The words of a ring, 0 or 1.
    #[allow(unsafe_code)]
    pub(super) fn ring(&self, ring: usize) -> &[AtomicU64] {
        let at = HEAD_LINES * LINE_BYTES + (ring & 1) * RING_BYTES;
        // SAFETY: the mapping has ALL_BYTES, begins at a page, is not moved or unmapped while it is
        // borrowed, and its file can't become shorter (its seals). A ring is within it and begins
        // at a multiple of 8. Its words are read and written as atomics only, by both processes.
        unsafe { std::slice::from_raw_parts(self.map.as_mut_ptr().add(at).cast(), RING_BYTES / 8) }
    }

    /// A word of the head, on the line of this number.
    #[allow(unsafe_code)]
    pub(super) fn word(&self, line: usize) -> &AtomicU64 {
        // SAFETY: as in `ring`; the head has HEAD_LINES lines, and begins with the mapping.
        unsafe {
            AtomicU64::from_ptr(self.map.as_mut_ptr().add(line % HEAD_LINES * LINE_BYTES).cast())
        }
    }

    /// Half a word of the head, on the line of this number: what the system can wait for. No line
    /// is used as both.
    #[allow(unsafe_code)]
    pub(super) fn half(&self, line: usize) -> &AtomicU32 {
        // SAFETY: as in `word`.
        unsafe {
            AtomicU32::from_ptr(self.map.as_mut_ptr().add(line % HEAD_LINES * LINE_BYTES).cast())
        }
    }
}
