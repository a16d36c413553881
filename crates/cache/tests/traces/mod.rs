//! Seeded sequences of keys that caches meet, and what LRU makes of them.

use std::collections::HashMap;

use cache::model::{Entry, FIRST_SECOND, Limits, Policy, Rules, Store};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// What a trace is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Key of rank r comes in proportion to 1/r.
    Zipf,
    /// The same, and three of ten requests are for keys that come once.
    OneHit,
    /// The same, and every tenth of the trace a scan of a fifth as many other keys.
    Scan,
    /// The same, and which key has which rank moves on fifty times.
    Drift,
}

/// All shapes.
pub(crate) const SHAPES: [Shape; 4] = [Shape::Zipf, Shape::OneHit, Shape::Scan, Shape::Drift];

/// `length` requests among `keys` keys.
pub(crate) fn trace(shape: Shape, keys: u64, length: usize, seed: u64) -> Vec<u64> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut shares: Vec<f64> = (1..=keys).map(|rank| 1.0 / rank as f64).collect();
    for rank in 1..shares.len() {
        shares[rank] += shares[rank - 1];
    }
    let all = shares[shares.len() - 1];
    let mut requests = Vec::with_capacity(length);
    let mut once = 1 << 40;
    while requests.len() < length {
        let drawn = random.random_range(0.0..all);
        let key = shares.partition_point(|share| *share <= drawn) as u64;
        match shape {
            Shape::OneHit if random.random_bool(0.3) => {
                once += 1;
                requests.push(once);
            }
            Shape::Drift => {
                let moved = requests.len() as u64 / (length as u64 / 50) * (keys / 200);
                requests.push((key + moved) % keys);
            }
            _ => requests.push(key),
        }
        if shape == Shape::Scan && requests.len() % (length / 10) == 0 {
            requests.extend((0..keys / 5).map(|scanned| (1 << 41) + scanned));
        }
    }
    requests
}

/// How many of the requests find their key in a cache of `most` items of which the least recently
/// used goes, as a part of all.
pub(crate) fn lru(requests: &[u64], most: usize) -> f64 {
    // A ring of neighbours; place `most` is between the newest and the oldest.
    let mut places: HashMap<u64, usize> = HashMap::new();
    let (mut newer, mut older) = (vec![most; most + 1], vec![most; most + 1]);
    let mut keys = vec![0; most];
    let mut hits = 0;
    for key in requests {
        let place = match places.get(key) {
            None if places.len() < most => places.len(),
            found => {
                hits += usize::from(found.is_some());
                let place = found.copied().unwrap_or(newer[most]);
                let (before, after) = (older[place], newer[place]);
                newer[before] = after;
                older[after] = before;
                if found.is_none() {
                    places.remove(&keys[place]);
                }
                place
            }
        };
        places.insert(*key, place);
        keys[place] = *key;
        let newest = older[most];
        newer[newest] = place;
        older[place] = newest;
        newer[place] = most;
        older[most] = place;
    }
    hits as f64 / requests.len() as f64
}

/// What a store has made of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    /// Requests that found their key, as a part of all.
    pub(crate) hits: f64,
    /// The most items that it held.
    pub(crate) items: usize,
    /// The policy in force at the end.
    pub(crate) in_force: Policy,
}

/// Reads each key, and stores it when it isn't there.
pub(crate) fn drive(
    requests: &[u64],
    memory_bytes: usize,
    value_bytes: usize,
    policy: Policy,
) -> Made {
    let rules = Rules { policy, seed: Some(1), ..Rules::default() };
    let item_bytes = (1 << 20).min(memory_bytes / 8);
    let store = Store::new(Limits { memory_bytes, item_bytes, threads: 1, rules }).expect("store");
    let value = vec![b'x'; value_bytes];
    let (mut hits, mut items) = (0_usize, 0);
    for (number, request) in requests.iter().enumerate() {
        let key = format!("key:{request:016}");
        let entry = Entry { key: key.as_bytes(), value: &value, flags: 0, expires_s: 0 };
        match store.get(FIRST_SECOND, entry.key, |_| ()) {
            Some(()) => hits += 1,
            None => {
                store.set(FIRST_SECOND, &entry).expect("there is always service");
            }
        }
        if number % 1024 == 0 {
            items = items.max(store.holdings().items as usize);
        }
    }
    let held = store.holdings();
    assert!(held.touched_bytes as usize <= memory_bytes + memory_bytes / 20, "{held:?}");
    Made { hits: hits as f64 / requests.len() as f64, items, in_force: store.policy_in_force() }
}
