//! Values that anyone can compute again: a pure function of seed, key and version.
//!
//! A value of 16 bytes or more starts with its key (8 bytes) and version (8 bytes), little-endian,
//! so that a wrong answer says whose value it is. The rest, and all of a shorter value, is mixed
//! from seed, key and version, so that two values differ in nearly every byte.

/// Computes and checks values.
#[derive(Clone, Debug)]
pub struct Values {
    seed: u64,
    bytes: usize,
}

/// From this length on a value carries its key and version in plain sight.
const HEAD_BYTES: usize = 16;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014): every input bit changes about half of the output bits.
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Values {
    /// Values of `bytes` bytes each.
    pub fn new(seed: u64, bytes: usize) -> Self {
        Self { seed, bytes }
    }

    /// How long the value of `key` is, in any version.
    #[inline]
    pub fn len(&self, _key: u64) -> usize {
        self.bytes
    }

    /// Word `index` of a value whose seed, key and version are mixed into `base`. One
    /// multiplication a word is enough: it has to tell values apart, not to look random.
    #[inline]
    fn word(base: u64, index: u64) -> u64 {
        (base ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    #[inline]
    fn base(&self, key: u64, version: u32) -> u64 {
        mix(self.seed ^ mix(key.wrapping_add(u64::from(version) << 40)))
    }

    /// Appends the value of `key` at `version`.
    #[inline]
    pub fn put(&self, key: u64, version: u32, into: &mut Vec<u8>) {
        let length = self.len(key);
        let end = into.len() + length;
        let base = self.base(key, version);
        let mut first = 0;
        if length >= HEAD_BYTES {
            into.extend_from_slice(&key.to_le_bytes());
            into.extend_from_slice(&u64::from(version).to_le_bytes());
            first = 2;
        }
        for index in first..length as u64 / 8 {
            into.extend_from_slice(&Self::word(base, index).to_le_bytes());
        }
        let rest = end - into.len();
        into.extend_from_slice(&Self::word(base, u64::MAX).to_le_bytes()[..rest]);
    }

    /// Whether `bytes` are exactly the value of `key` at `version`.
    #[inline]
    pub fn is(&self, key: u64, version: u32, bytes: &[u8]) -> bool {
        if bytes.len() != self.len(key) {
            return false;
        }
        let base = self.base(key, version);
        let mut words = bytes.chunks_exact(8);
        let mut first = 0;
        if bytes.len() >= HEAD_BYTES {
            let head = [words.next(), words.next()];
            if head != [Some(&key.to_le_bytes()[..]), Some(&u64::from(version).to_le_bytes()[..])] {
                return false;
            }
            first = 2;
        }
        let rest = words.remainder();
        // Without an early way out the comparison becomes a straight run of vector code.
        let wrong = (first..).zip(words).fold(0, |wrong, (index, word)| {
            wrong
                | (Self::word(base, index) ^ u64::from_le_bytes(word.try_into().unwrap_or([0; 8])))
        });
        wrong == 0 && Self::word(base, u64::MAX).to_le_bytes()[..rest.len()] == *rest
    }

    /// The version that `bytes` claim, when they are long enough to say.
    #[inline]
    pub fn claimed_version(&self, bytes: &[u8]) -> Option<u32> {
        let version = bytes.get(8..HEAD_BYTES)?;
        u32::try_from(u64::from_le_bytes(version.try_into().ok()?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Values;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_is_itself_and_no_other_key_version_or_corruption(
            seed: u64, key: u64, version: u32, bytes in 4_usize..200, flip: prop::sample::Index,
        ) {
            let values = Values::new(seed, bytes);
            let mut value = Vec::new();
            values.put(key, version, &mut value);
            prop_assert_eq!(value.len(), bytes);
            prop_assert!(values.is(key, version, &value));
            prop_assert!(!values.is(key.wrapping_add(1), version, &value));
            prop_assert!(!values.is(key, version.wrapping_add(1), &value));
            if bytes >= 16 {
                prop_assert_eq!(values.claimed_version(&value), Some(version));
            }
            let at = flip.index(bytes);
            value[at] ^= 1;
            prop_assert!(!values.is(key, version, &value));
            value[at] ^= 1;
            value.pop();
            prop_assert!(!values.is(key, version, &value));
        }
    }
}
