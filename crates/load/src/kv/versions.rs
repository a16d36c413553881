//! The versions of keys while several clients write at once.
//!
//! Every write of a key gets the next version. A read is right when its value is a version that
//! was current at some moment between send and receipt: not one that a later write had certainly
//! replaced before the read was sent, and not one that was never written. "Certainly" is decided
//! in constant space: a write replaces everything older than the moment at which the key last had
//! no write under way, so writes that overlap are never called wrong, and without overlap the
//! check is exact.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The oldest version that a read sent now may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor(pub(super) u32);

/// A write under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The version to write.
    pub version: u32,
    /// Everything below this is replaced once the write is acknowledged.
    replaces_below: u32,
}

/// Why an answer is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The bytes are no version of this key's value.
    #[error("these bytes are no version of this key's value")]
    Corrupt,
    /// The value had been replaced before the read was sent.
    #[error("the value had been replaced before the read was sent")]
    Stale,
    /// A version that was not written yet.
    #[error("this version was never written")]
    Unwritten,
}

/// The versions of one key.
#[derive(Debug)]
struct Key {
    /// Versions issued (upper half) and writes under way (lower half).
    issued_and_open: AtomicU64,
    /// The first version issued since the key last had no write under way.
    quiet_from: AtomicU32,
    /// The oldest version that may still be current.
    floor: AtomicU32,
}

/// The version that preparation writes.
pub const PREPARED: u32 = 1;

/// The versions of all keys of one target; none of them is kept where nothing is written.
#[derive(Debug, Default)]
pub struct Versions {
    keys: Vec<Key>,
}

impl Versions {
    /// `count` keys, each at its first version.
    pub fn prepared(count: u64) -> Self {
        let prepared = || Key {
            issued_and_open: AtomicU64::new(u64::from(PREPARED) << 32),
            quiet_from: AtomicU32::new(PREPARED),
            floor: AtomicU32::new(PREPARED),
        };
        Self { keys: (0..count).map(|_| prepared()).collect() }
    }

    /// Whether versions of `key` are kept.
    #[inline]
    pub fn has(&self, key: u64) -> bool {
        (key as usize) < self.keys.len()
    }

    /// Call when a read is sent.
    #[inline]
    pub fn begin_read(&self, key: u64) -> Floor {
        match self.keys.get(key as usize) {
            Some(versions) => Floor(versions.floor.load(Ordering::Acquire)),
            None => Floor(PREPARED),
        }
    }

    /// Call when a write is sent: returns the version to write.
    #[inline]
    pub fn begin_write(&self, key: u64) -> Write {
        let Some(versions) = self.keys.get(key as usize) else {
            return Write { version: PREPARED, replaces_below: PREPARED };
        };
        let before = versions.issued_and_open.fetch_add((1 << 32) | 1, Ordering::AcqRel);
        let version = (before >> 32) as u32 + 1;
        if before as u32 == 0 {
            versions.quiet_from.store(version, Ordering::Release);
        }
        Write { version, replaces_below: versions.quiet_from.load(Ordering::Acquire).min(version) }
    }

    /// Call when the target has acknowledged a write. A write that is never acknowledged stays
    /// under way for ever, which only makes the check more lenient.
    #[inline]
    pub fn end_write(&self, key: u64, write: Write) {
        if let Some(versions) = self.keys.get(key as usize) {
            versions.floor.fetch_max(write.replaces_below, Ordering::AcqRel);
            versions.issued_and_open.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The newest version of `key` that was issued.
    #[inline]
    pub fn newest(&self, key: u64) -> u32 {
        let versions = self.keys.get(key as usize);
        versions.map_or(PREPARED, |one| (one.issued_and_open.load(Ordering::Acquire) >> 32) as u32)
    }

    /// Whether `version` of `key`, received now, answers a read sent at `floor`.
    ///
    /// # Errors
    /// In which way it is wrong.
    #[inline]
    pub fn check(&self, key: u64, floor: Floor, version: u32) -> Result<(), Mismatch> {
        match () {
            () if version < floor.0 => Err(Mismatch::Stale),
            () if version > self.newest(key) => Err(Mismatch::Unwritten),
            () => Ok(()),
        }
    }
}
