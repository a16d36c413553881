//! The most requested keys: a list of bounded size, from a sample of all requests.
//!
//! The method is Space-Saving (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and
//! Top-k Elements in Data Streams, ICDT 2005, section 3): a key that is not in the full list takes
//! the place of the rarest one and inherits its count, which is kept beside it as what it may have
//! been counted too often. Of N counted requests, no key with more than N / [`PLACES`] is missing.

use crate::model::Seconds;

/// The number of keys kept. The search is linear: it is only made for sampled requests.
const PLACES: usize = 64;

/// The interval after which counts are halved, so that the list shows what is hot now.
const HALF_LIFE_S: Seconds = 10;

/// One key and how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HotKey {
    /// The key.
    pub(super) key: Vec<u8>,
    /// How often it was counted.
    pub(super) count: u64,
    /// The maximum error of `count`.
    pub(super) over: u64,
}

/// The list of one thread.
#[derive(Debug, Default)]
pub(super) struct HotKeys {
    places: Vec<HotKey>,
    total: u64,
    halved_s: Seconds,
}

impl HotKeys {
    /// Counts one request.
    pub(super) fn add(&mut self, now_s: Seconds, key: &[u8]) {
        self.age(now_s);
        self.total += 1;
        if let Some(hot) = self.places.iter_mut().find(|hot| hot.key == key) {
            hot.count += 1;
            return;
        }
        if self.places.len() < PLACES {
            return self.places.push(HotKey { key: key.to_vec(), count: 1, over: 0 });
        }
        if let Some(rarest) = self.places.iter_mut().min_by_key(|hot| hot.count) {
            rarest.key.clear();
            rarest.key.extend_from_slice(key);
            rarest.over = rarest.count;
            rarest.count += 1;
        }
    }

    /// Halves the counts for every half-life that has passed.
    fn age(&mut self, now_s: Seconds) {
        let half_lives = now_s.saturating_sub(self.halved_s) / HALF_LIFE_S;
        if half_lives == 0 {
            return;
        }
        self.halved_s = now_s;
        let shift = half_lives.min(63);
        self.total >>= shift;
        for hot in &mut self.places {
            hot.count >>= shift;
            hot.over >>= shift;
        }
        self.places.retain(|hot| hot.count > 0);
    }

    /// Adds this list to one of all threads. Returns the number of requests it covers.
    pub(super) fn gather(&mut self, now_s: Seconds, into: &mut Vec<HotKey>) -> u64 {
        self.age(now_s);
        for hot in &self.places {
            match into.iter_mut().find(|known| known.key == hot.key) {
                Some(known) => {
                    known.count += hot.count;
                    known.over += hot.over;
                }
                None => into.push(hot.clone()),
            }
        }
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(keys: &mut HotKeys, now_s: Seconds) -> (Vec<HotKey>, u64) {
        let mut all = Vec::new();
        let total = keys.gather(now_s, &mut all);
        all.sort_by_key(|hot| std::cmp::Reverse(hot.count));
        (all, total)
    }

    #[test]
    fn every_key_with_more_than_its_share_is_there_and_counts_are_bounded_by_their_error() {
        let mut keys = HotKeys::default();
        let mut rare = 0_u32;
        for round in 0..10_000_u32 {
            keys.add(2, b"hottest");
            if round % 3 == 0 {
                keys.add(2, b"second");
            }
            for _ in 0..3 {
                rare += 1;
                keys.add(2, format!("rare-{rare}").as_bytes());
            }
        }
        let (all, total) = gathered(&mut keys, 2);
        assert_eq!(all.len(), PLACES);
        assert_eq!(total, 10_000 + 3334 + 30_000);
        assert_eq!((&all[0].key[..], &all[1].key[..]), (&b"hottest"[..], &b"second"[..]));
        for (hot, oracle) in all.iter().zip([10_000, 3334]) {
            assert!(hot.count >= oracle && hot.count - hot.over <= oracle, "{hot:?}");
            assert!(hot.over <= total / PLACES as u64, "{hot:?}");
        }
    }

    #[test]
    fn what_was_hot_is_forgotten() {
        let mut keys = HotKeys::default();
        (0..100).for_each(|_| keys.add(2, b"once"));
        assert_eq!(gathered(&mut keys, 2 + HALF_LIFE_S).0[0].count, 50);
        keys.add(2 + 20 * HALF_LIFE_S, b"now");
        let (all, total) = gathered(&mut keys, 2 + 20 * HALF_LIFE_S);
        assert_eq!((all.len(), total), (1, 1));
        assert_eq!(all[0].key, b"now");
    }
}
