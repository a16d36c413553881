//! A table by the numbers of calls.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by numbers that this side has given out itself: no one else can choose them so that they
/// collide, and so a multiplication spreads them well enough.
pub(super) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Spreads neighbouring numbers over all bits.
#[derive(Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 by the golden ratio. The table takes the low bits, which are the least spread.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_numbers_differ_in_the_bits_that_a_table_takes() {
        let hash = |number: u64| {
            let mut hasher = Spread::default();
            hasher.write_u64(number);
            hasher.finish()
        };
        let low: std::collections::HashSet<_> = (0..256).map(|one| hash(one) & 255).collect();
        let high: std::collections::HashSet<_> = (0..256).map(|one| hash(one) >> 57).collect();
        assert!(low.len() > 128 && high.len() > 100, "{} and {}", low.len(), high.len());
    }
}
