//! The random numbers of a simulation, and the digest of its events.

/// A generator whose numbers depend on its seed alone, in every version of this crate: a seed that
/// has failed once is replayed years later. (SplitMix64: G. Steele, D. Lea, C. Flood, Fast
/// Splittable Pseudorandom Number Generators, OOPSLA 2014.)
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of a remainder is below 2⁻³² for the bounds of a simulation.
        self.bits() % bound.max(1)
    }

    /// An index of a list of `len` elements, at least 1.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number from 1 to `most`, which is at least 1: half of them small, whatever `most` is.
    pub fn up_to(&mut self, most: usize) -> usize {
        let most = most.max(1) as u64;
        let bound = if self.chance(512) { most } else { 1 + self.below(most) };
        1 + self.below(bound.min(most)) as usize
    }

    /// True in `per_1024` of 1,024 cases.
    #[inline]
    pub fn chance(&mut self, per_1024: u32) -> bool {
        self.below(1024) < u64::from(per_1024)
    }

    /// A generator of its own, whose numbers don't depend on how many others are drawn.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.bits())
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.index(last + 1));
        }
    }
}

/// A hash of everything that has happened, in order: two runs of a seed with the same digest were
/// the same run.
#[derive(Clone, Debug, Default)]
pub(super) struct Digest(u64);

impl Digest {
    /// Adds a number.
    #[inline]
    pub(super) fn add(&mut self, number: u64) {
        // The multiplier of FxHash, and a rotation so that the order counts.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Adds bytes.
    pub(super) fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.add(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        words.remainder().iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    /// The hash so far.
    pub(super) fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_has_the_same_numbers_for_ever() {
        let mut random = Random::new(7);
        let first: Vec<_> = (0..3).map(|_| random.bits()).collect();
        let known = [0x63cb_e1e4_5932_0dd7, 0x044c_3cd7_f43c_661c, 0xe698_4080_bab1_2a02];
        assert_eq!(first, known);
        assert!((0..1000).all(|_| (1..=5).contains(&random.up_to(5))));
    }
}
