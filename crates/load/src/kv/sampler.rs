//! Which keys come how often, and how that changes.

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::Zipf;

use super::keys::Keys;
use crate::mix::Random;

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
    /// A part of the keys gets a part of the requests; within both parts keys are equal.
    Hot {
        /// The part of the keys that is hot.
        keys: f64,
        /// The part of the requests that goes to them.
        requests: f64,
    },
    /// One key after another through the first so many, again and again. Each slot begins
    /// somewhere else.
    Loop {
        /// How many keys; all of them make a scan.
        keys: u64,
    },
}

/// A distribution with what disturbs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Popularity {
    /// The distribution.
    pub distribution: Distribution,
    /// The part of the requests that goes to keys that come only once.
    pub one_hit: f64,
    /// After so many requests of a slot, every rank moves on to the next key.
    pub drift_every: Option<u64>,
}

/// Draws keys, for one slot.
#[derive(Clone, Debug)]
pub struct Sampler {
    count: u64,
    law: Law,
    /// A draw below this, of 2^64, is of a key that comes only once.
    one_hit_below: u64,
    /// How many keys beyond the known ones can be written.
    spare: u64,
    drift_every: u64,
    drawn: u64,
    /// Visits every key once, so that popular keys do not lie side by side.
    step: u64,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform,
    Zipf(Zipf<f64>),
    Hot { keys: u64, requests_below: u64 },
    Loop { keys: u64, at: Option<u64> },
}

/// A part of 2^64.
fn part(fraction: f64) -> u64 {
    (fraction * 2_f64.powi(64)) as u64
}

impl Sampler {
    /// A sampler of `keys`.
    ///
    /// # Errors
    /// What makes no sense about the numbers.
    pub fn new(keys: &Keys, popularity: Popularity) -> Result<Self, &'static str> {
        let count = keys.count();
        let is_part = |fraction: f64| (0.0..=1.0).contains(&fraction);
        let law = match popularity.distribution {
            Distribution::Uniform => Law::Uniform,
            Distribution::Zipf { skew } => Law::Zipf(
                Zipf::new(count as f64, skew).map_err(|_| "the skew is a number from 0 up")?,
            ),
            Distribution::Hot { keys, requests } if is_part(keys) && is_part(requests) => {
                let hot = ((count as f64 * keys).round() as u64).clamp(1, count);
                Law::Hot { keys: hot, requests_below: part(requests) }
            }
            Distribution::Hot { .. } => return Err("hot parts are from 0% to 100%"),
            Distribution::Loop { keys } if (1..=count).contains(&keys) => {
                Law::Loop { keys, at: None }
            }
            Distribution::Loop { .. } => return Err("a loop goes through 1 key to all of them"),
        };
        if !is_part(popularity.one_hit) {
            return Err("one_hit is from 0% to 100%");
        }
        if popularity.one_hit > 0.0 && keys.spare() < count {
            return Err("keys that come only once need longer keys: raise `bytes`");
        }
        Ok(Self {
            count,
            law,
            one_hit_below: part(popularity.one_hit),
            spare: keys.spare(),
            drift_every: popularity.drift_every.unwrap_or(u64::MAX).max(1),
            drawn: 0,
            step: scatter_step(count),
        })
    }

    /// Every key equally often.
    pub fn uniform(keys: &Keys) -> Self {
        let (count, step) = (keys.count(), scatter_step(keys.count()));
        Self { count, step, spare: keys.spare(), ..Self::none() }
    }

    /// Of no keys at all.
    pub fn none() -> Self {
        let (law, step) = (Law::Uniform, 1);
        Self { count: 0, law, one_hit_below: 0, spare: 0, drift_every: u64::MAX, drawn: 0, step }
    }

    /// How many keys there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The next key. Keys from the count on are those that come only once.
    #[inline]
    pub fn draw(&mut self, random: &mut Random) -> u64 {
        if self.one_hit_below > 0 && random.next_u64() < self.one_hit_below {
            return self.count + below(random, self.spare);
        }
        let rank = match &mut self.law {
            Law::Uniform => return below(random, self.count),
            Law::Zipf(zipf) => random.sample::<f64, _>(&*zipf) as u64 - 1,
            Law::Hot { keys, requests_below } => {
                let (hot, cold) = (*keys, self.count - *keys);
                if random.next_u64() < *requests_below || cold == 0 {
                    below(random, hot)
                } else {
                    hot + below(random, cold)
                }
            }
            Law::Loop { keys, at } => {
                let next = at.map_or_else(|| below(random, *keys), |at| (at + 1) % *keys);
                *at = Some(next);
                return next;
            }
        };
        let moved = self.drawn / self.drift_every;
        self.drawn += 1;
        let place = u128::from(rank) + u128::from(moved);
        ((place * u128::from(self.step)) % u128::from(self.count)) as u64
    }

    /// Draws `count` keys at once, and returns a number that stands for them: [`Sampler::expand`]
    /// turns it into the keys, on any sampler of the same keys.
    pub fn draw_many(&mut self, random: &mut Random, count: u64) -> u64 {
        let position = match &mut self.law {
            Law::Loop { keys, at } => {
                let first = at.map_or_else(|| below(random, *keys), |at| (at + 1) % *keys);
                *at = Some((first + count - 1) % *keys);
                first
            }
            _ => self.drawn / self.drift_every % self.count.max(1),
        };
        self.drawn += count;
        position << 32 | random.next_u64() >> 32
    }

    /// The keys that `drawn` stands for, `count` of them.
    pub fn expand(&self, drawn: u64, count: usize, keys: &mut Vec<u64>) {
        let (position, mut random) = (drawn >> 32, Random::seed_from_u64(drawn));
        let mut sampler = self.clone();
        // The drift moves on between requests, not within one.
        (sampler.drawn, sampler.drift_every) = (position, 1);
        for _ in 0..count {
            if let Law::Loop { keys, at } = &mut sampler.law
                && at.is_none()
            {
                *at = Some((position + *keys - 1) % *keys);
            }
            keys.push(sampler.draw(&mut random));
            sampler.drawn = position;
        }
    }
}

/// A number below `count`. Lemire's multiplication gives a range without a division; its bias of
/// at most count/2^64 is far below anything a run could see.
#[inline]
fn below(random: &mut Random, count: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}

/// A step that visits every key once.
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

    const PLAIN: Popularity =
        Popularity { distribution: Distribution::Uniform, one_hit: 0.0, drift_every: None };

    fn draws(count: u64, popularity: Popularity, number: usize) -> Vec<u64> {
        let keys = Keys::new(count, 12).unwrap();
        let mut sampler = Sampler::new(&keys, popularity).unwrap();
        let mut random = Random::seed_from_u64(7);
        (0..number).map(|_| sampler.draw(&mut random)).collect()
    }

    fn share(draws: &[u64], wanted: impl Fn(&u64) -> bool) -> f64 {
        draws.iter().filter(|key| wanted(key)).count() as f64 / draws.len() as f64
    }

    #[test]
    fn zipf_gives_rank_one_its_share() {
        let zipf = Popularity { distribution: Distribution::Zipf { skew: 1.0 }, ..PLAIN };
        // The harmonic number H(100) is 5.18738: rank one has the share 1/5.18738.
        let share = share(&draws(100, zipf, 200_000), |key| *key == 0);
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

    #[test]
    fn a_hot_set_gets_its_part_of_the_requests() {
        let hot = Distribution::Hot { keys: 0.1, requests: 0.9 };
        let draws = draws(1000, Popularity { distribution: hot, ..PLAIN }, 100_000);
        let step = scatter_step(1000);
        let hot: Vec<u64> = (0..100).map(|rank| rank * step % 1000).collect();
        let share = share(&draws, |key| hot.contains(key));
        assert!((share - 0.9).abs() < 0.005, "share {share}");
    }

    #[test]
    fn a_loop_visits_its_keys_in_turn() {
        let looping = Popularity { distribution: Distribution::Loop { keys: 7 }, ..PLAIN };
        let draws = draws(1000, looping, 30);
        assert!(draws.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 7), "{draws:?}");
    }

    #[test]
    fn one_hit_keys_come_once_and_as_often_as_wanted() {
        let draws = draws(1000, Popularity { one_hit: 0.3, ..PLAIN }, 20_000);
        let mut once: Vec<u64> = draws.iter().copied().filter(|key| *key >= 1000).collect();
        let share = once.len() as f64 / draws.len() as f64;
        assert!((share - 0.3).abs() < 0.01, "share {share}");
        let drawn = once.len();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), drawn);
        let short = Keys::new(1000, 4).unwrap();
        assert!(Sampler::new(&short, Popularity { one_hit: 0.3, ..PLAIN }).is_err());
    }

    #[test]
    fn many_keys_drawn_at_once_are_those_that_their_number_stands_for() {
        let keys = Keys::new(1000, 12).unwrap();
        let looping = Popularity { distribution: Distribution::Loop { keys: 10 }, ..PLAIN };
        let mut sampler = Sampler::new(&keys, looping).unwrap();
        let fresh = sampler.clone();
        let (mut random, mut drawn) = (Random::seed_from_u64(3), Vec::new());
        for _ in 0..3 {
            let number = sampler.draw_many(&mut random, 7);
            fresh.expand(number, 7, &mut drawn);
        }
        assert_eq!(drawn.len(), 21);
        assert!(drawn.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 10), "{drawn:?}");
        let zipf = Distribution::Zipf { skew: 1.0 };
        let sampler = Sampler::new(&keys, Popularity { distribution: zipf, ..PLAIN }).unwrap();
        let (mut once, mut again) = (Vec::new(), Vec::new());
        let number = sampler.clone().draw_many(&mut random, 50_000);
        sampler.expand(number, 50_000, &mut once);
        sampler.expand(number, 50_000, &mut again);
        assert_eq!(once, again);
        // The harmonic number H(1000) is 7.48547.
        let popular = share(&once, |key| *key == 0);
        assert!((popular - 1.0 / 7.485_47).abs() < 0.01, "share {popular}");
    }

    #[test]
    fn drift_hands_popularity_on() {
        let zipf = Distribution::Zipf { skew: 1.2 };
        let drifting = Popularity { distribution: zipf, drift_every: Some(10_000), ..PLAIN };
        let draws = draws(100, drifting, 20_000);
        let most =
            |draws: &[u64]| (0..100).max_by_key(|key| draws.iter().filter(|k| *k == key).count());
        assert_eq!(most(&draws[..10_000]), Some(0));
        assert_eq!(most(&draws[10_000..]), Some(scatter_step(100) % 100));
    }
}
