//! Keys: how many, how they are written, and which come how often.

use rand::{Rng, RngExt, rngs::SmallRng};
use rand_distr::Zipf;

/// The keys of a workload: key `i` is written as `k` and zero-padded decimal digits.
#[derive(Clone, Debug)]
pub struct Keys {
    count: u64,
    bytes: usize,
}

impl Keys {
    /// `count` keys of `bytes` bytes each; `None` when so many do not fit into that length.
    pub fn new(count: u64, bytes: usize) -> Option<Self> {
        let digits = bytes.checked_sub(1)?;
        let fits = digits >= 20 || 10_u64.checked_pow(digits as u32).is_none_or(|n| count <= n);
        (count > 0 && fits).then_some(Self { count, bytes })
    }

    /// No keys at all, for a workload that asks for none, and what draws from them.
    pub(crate) fn none() -> (Self, Sampler) {
        (Self { count: 0, bytes: 0 }, Sampler { count: 0, zipf: None })
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How long every key is, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the text of `key`.
    #[inline]
    pub fn put(&self, mut key: u64, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + self.bytes, b'0');
        let text = &mut into[start..];
        text[0] = b'k';
        for digit in text[1..].iter_mut().rev() {
            if key == 0 {
                break;
            }
            *digit = b'0' + (key % 10) as u8;
            key /= 10;
        }
    }
}

/// Which keys come how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Every key equally often.
    Uniform,
    /// The key of rank r comes in proportion to r^-skew (Zipf).
    Zipf {
        /// The exponent; 0 is uniform, 1 the classic law.
        skew: f64,
    },
}

/// Draws keys from a distribution.
#[derive(Clone, Debug)]
pub struct Sampler {
    count: u64,
    zipf: Option<(Zipf<f64>, u64)>,
}

impl Sampler {
    /// A sampler of `count` keys; `None` when the distribution's numbers make no sense.
    pub fn new(count: u64, distribution: Distribution) -> Option<Self> {
        let zipf = match distribution {
            Distribution::Uniform => None,
            Distribution::Zipf { skew } => {
                Some((Zipf::new(count as f64, skew).ok()?, scatter_step(count)))
            }
        };
        Some(Self { count, zipf })
    }

    /// The next key.
    #[inline]
    pub fn draw(&self, random: &mut SmallRng) -> u64 {
        match &self.zipf {
            // Lemire's multiplication gives a range without a division; its bias of at most
            // count/2^64 is far below anything a run could see.
            None => ((u128::from(random.next_u64()) * u128::from(self.count)) >> 64) as u64,
            Some((zipf, step)) => {
                let rank = random.sample::<f64, _>(zipf) as u64 - 1;
                ((u128::from(rank) * u128::from(*step)) % u128::from(self.count)) as u64
            }
        }
    }
}

/// A step that visits every key once, so that popular keys do not lie side by side.
fn scatter_step(count: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let golden = (count as f64 * 0.618_033_988_75) as u64 | 1;
    (golden..).find(|step| gcd(*step, count) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn keys_are_written_with_padding_and_all_differ() {
        let keys = Keys::new(1000, 8).unwrap();
        let mut text = Vec::new();
        keys.put(0, &mut text);
        keys.put(907, &mut text);
        assert_eq!(text, b"k0000000k0000907");
        assert!(Keys::new(1001, 4).is_none());
        assert!(Keys::new(1000, 4).is_some());
        assert!(Keys::new(1, 0).is_none());
        assert!(Keys::new(u64::MAX, 250).is_some());
    }

    #[test]
    fn zipf_gives_rank_one_its_share() {
        let count = 100;
        let sampler = Sampler::new(count, Distribution::Zipf { skew: 1.0 }).unwrap();
        let mut random = SmallRng::seed_from_u64(7);
        let draws = 200_000;
        let first = (0..draws).filter(|_| sampler.draw(&mut random) == 0).count();
        // The harmonic number H(100) is 5.18738: rank one has the share 1/5.18738.
        let share = first as f64 / f64::from(draws);
        assert!((share - 1.0 / 5.187_38).abs() < 0.005, "share {share}");
    }

    #[test]
    fn every_rank_is_a_key_of_its_own() {
        for count in [1, 2, 10, 21_000, 65_536, 99_991] {
            let step = scatter_step(count);
            let mut seen: Vec<u64> = (0..count).map(|rank| rank * step % count).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len() as u64, count);
        }
    }
}
