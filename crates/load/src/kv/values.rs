//! Values that anyone can compute again: a pure function of seed, key and version.
//!
//! A value of 16 bytes or more starts with its key (8 bytes) and version (8 bytes), little-endian,
//! so that a wrong answer says whose value it is. The rest, and all of a shorter value, is mixed
//! from seed, key and version, so that two values differ in nearly every byte.

use crate::mix::scramble;

/// Computes and checks values.
#[derive(Clone, Debug)]
pub struct Values {
    seed: u64,
    sizes: Sizes,
}

/// How long values are. A key's value has the same length in every version.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All alike, in bytes.
    Fixed(usize),
    /// Every length between two, both included, equally often.
    Uniform(usize, usize),
    /// The logarithm of the length is normally distributed.
    LogNormal {
        /// Half of the values are at most this long.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
        /// No value is longer than this.
        most: usize,
    },
    /// These lengths, each with the sum of its and all earlier weights.
    Weighted(Vec<(u64, usize)>),
}

impl Sizes {
    /// The length that `hash` stands for.
    fn of(&self, hash: u64) -> usize {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform(least, most) => {
                let span = (most - least + 1) as u128;
                least + ((u128::from(hash) * span) >> 64) as usize
            }
            Self::LogNormal { median, sigma, most } => {
                let bytes = median * (sigma * normal(hash)).exp();
                (bytes.round() as usize).clamp(1, *most)
            }
            Self::Weighted(sizes) => {
                let total = sizes.last().map_or(1, |(sum, _)| *sum);
                let drawn = ((u128::from(hash) * u128::from(total)) >> 64) as u64;
                let found = sizes.iter().find(|(sum, _)| drawn < *sum);
                found.map_or(1, |(_, bytes)| *bytes)
            }
        }
    }

    /// The longest that a value can be.
    pub fn longest(&self) -> usize {
        match self {
            Self::Fixed(bytes) | Self::Uniform(_, bytes) => *bytes,
            Self::LogNormal { most, .. } => *most,
            Self::Weighted(sizes) => sizes.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0),
        }
    }
}

impl From<usize> for Sizes {
    fn from(bytes: usize) -> Self {
        Self::Fixed(bytes)
    }
}

/// A standard normal number from a hash (Box and Muller, "A note on the generation of random
/// normal deviates", 1958).
fn normal(hash: u64) -> f64 {
    let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / 2_f64.powi(53);
    let (radius, angle) = (uniform(hash), uniform(scramble(hash)));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// From this length on a value carries its key and version in plain sight.
const HEAD_BYTES: usize = 16;

impl Values {
    /// Values of these sizes.
    pub fn new(seed: u64, sizes: impl Into<Sizes>) -> Self {
        Self { seed, sizes: sizes.into() }
    }

    /// How long values are.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// How long the value of `key` is, in any version.
    #[inline]
    pub fn len(&self, key: u64) -> usize {
        match &self.sizes {
            Sizes::Fixed(bytes) => *bytes,
            sizes => sizes.of(scramble(self.seed ^ scramble(!key))),
        }
    }

    /// Word `index` of a value whose seed, key and version are mixed into `base`. One
    /// multiplication a word is enough: it has to tell values apart, not to look random.
    #[inline]
    fn word(base: u64, index: u64) -> u64 {
        (base ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    #[inline]
    fn base(&self, key: u64, version: u32) -> u64 {
        scramble(self.seed ^ scramble(key.wrapping_add(u64::from(version) << 40)))
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
            // Words of a known length need no call to be compared.
            let (number, after) = bytes.split_at(8);
            words = bytes[HEAD_BYTES..].chunks_exact(8);
            if number.first_chunk() != Some(&key.to_le_bytes())
                || after.first_chunk() != Some(&u64::from(version).to_le_bytes())
            {
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
        let is_rest = || Self::word(base, u64::MAX).to_le_bytes()[..rest.len()] == *rest;
        wrong == 0 && (rest.is_empty() || is_rest())
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
    use super::*;
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

    fn lengths(sizes: Sizes) -> Vec<usize> {
        let values = Values::new(3, sizes);
        (0..100_000).map(|key| values.len(key)).collect()
    }

    #[test]
    fn sizes_have_the_distribution_that_was_asked_for() {
        let uniform = lengths(Sizes::Uniform(10, 19));
        let count = |bytes| uniform.iter().filter(|length| **length == bytes).count();
        assert!((10..=19).all(|bytes| (9_500..10_500).contains(&count(bytes))));
        assert_eq!(uniform.len(), (10..=19).map(count).sum::<usize>());
        let mut log_normal = lengths(Sizes::LogNormal { median: 300.0, sigma: 1.0, most: 5000 });
        log_normal.sort_unstable();
        let median = log_normal[50_000] as f64;
        assert!((median / 300.0 - 1.0).abs() < 0.02, "median {median}");
        // One standard deviation above the median lie 84.13 % of the values.
        let upper = log_normal[84_134] as f64;
        assert!((upper / (300.0 * std::f64::consts::E) - 1.0).abs() < 0.03, "upper {upper}");
        assert!(log_normal[99_999] <= 5000);
        let weighted = lengths(Sizes::Weighted(vec![(9, 100), (10, 7)]));
        let small = weighted.iter().filter(|length| **length == 7).count();
        assert!((9_500..10_500).contains(&small), "{small}");
    }
}
