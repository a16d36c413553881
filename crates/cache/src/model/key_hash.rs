//! Keys with their hashes.

use std::hash::{BuildHasher, Hasher as _};

/// The hash function, seeded in every process, so that clients can't choose colliding keys.
pub(super) type Hasher = foldhash::quality::SeedableRandomState;

/// A key with its hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hashed<'a> {
    /// The upper half of the hash, by which the index is ordered.
    pub(super) tag: u32,
    /// The lower half of the hash, whose lowest bits select the shard.
    pub(super) shard: u32,
    pub(super) key: &'a [u8],
}

impl<'a> Hashed<'a> {
    #[inline]
    pub(super) fn of(hasher: &Hasher, key: &'a [u8]) -> Self {
        let mut state = hasher.build_hasher();
        state.write(key);
        let hash = state.finish();
        Self { tag: (hash >> 32) as u32, shard: hash as u32, key }
    }
}
