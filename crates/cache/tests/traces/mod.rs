//! Seeded sequences of requests that caches meet, and what caches make of them.

#![allow(dead_code, reason = "each test and example uses its part")]

pub(crate) mod memcached;
pub(crate) mod simulated;

use std::collections::HashSet;

use cache::model::{Entry, FIRST_SECOND, Holdings, Limits, Policy, Rules, Store};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// Which keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Key of rank r comes in proportion to 1/r^skew.
    Zipf,
    /// The same, and three of ten requests are for keys that come once.
    OneHit,
    /// The same, and every tenth of the trace a scan of a fifth as many other keys.
    Scan,
    /// The same, and which key has which rank moves on fifty times.
    Drift,
    /// Half of the keys in turn.
    Loop,
    /// Zipf, with other keys in each third, and values of at most 1,000 bytes in the first and the
    /// last, and of at least 10,000 bytes in the second.
    SizeShift,
}

/// The shapes that are tried with values of one size.
pub(crate) const SHAPES: [Shape; 4] = [Shape::Zipf, Shape::OneHit, Shape::Scan, Shape::Drift];

/// How long values are, by their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// All alike.
    Fixed(usize),
    /// 100 bytes, 1, 10 and 100 kB, a quarter each.
    Equal,
    /// The same sizes, for 70, 20, 8 and 2 % of the keys.
    FewLarge,
}

/// A trace to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) shape: Shape,
    pub(crate) skew: f64,
    pub(crate) sizes: Sizes,
    pub(crate) keys: u64,
    pub(crate) length: usize,
    pub(crate) seed: u64,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) key: u64,
    pub(crate) value_bytes: usize,
}

/// Parts of all requests that found their key: by their number, and by their values' bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratios {
    pub(crate) items: f64,
    pub(crate) bytes: f64,
}

/// Counts hits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hits {
    hits: usize,
    requests: usize,
    hit_bytes: usize,
    bytes: usize,
}

impl Hits {
    pub(crate) fn add(&mut self, request: &Request, is_hit: bool) {
        self.requests += 1;
        self.bytes += request.value_bytes;
        self.hits += usize::from(is_hit);
        self.hit_bytes += if is_hit { request.value_bytes } else { 0 };
    }

    pub(crate) fn ratios(&self) -> Ratios {
        Ratios {
            items: self.hits as f64 / self.requests as f64,
            bytes: self.hit_bytes as f64 / self.bytes as f64,
        }
    }
}

/// The bytes of a request's key.
pub(crate) fn key_of(request: &Request) -> String {
    format!("key:{:016}", request.key)
}

/// A number's bits, mixed.
fn mixed(number: u64) -> u64 {
    let once = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

impl Workload {
    /// Values of one size, with the skew and seed that they have always had.
    pub(crate) fn fixed(shape: Shape, keys: u64, length: usize) -> Self {
        Self { shape, skew: 1.0, sizes: Sizes::Fixed(200), keys, length, seed: 42 }
    }

    /// Mixed values of 20,000 keys.
    pub(crate) fn mixed(shape: Shape, sizes: Sizes, skew: f64, seed: u64) -> Self {
        Self { shape, skew, sizes, keys: 20_000, length: 300_000, seed }
    }

    fn value_bytes(&self, key: u64) -> usize {
        let thousandth = mixed(key.wrapping_add(self.seed << 48).wrapping_mul(0x9e37_79b9)) % 1000;
        let upper = match self.sizes {
            Sizes::Fixed(bytes) => return bytes,
            Sizes::Equal => [250, 500, 750],
            Sizes::FewLarge => [700, 900, 980],
        };
        let power = upper.iter().filter(|upper| thousandth >= **upper).count();
        let bytes = 100 * 10_usize.pow(power as u32);
        match (self.shape, key / self.keys) {
            (Shape::SizeShift, 1) => bytes.max(10_000),
            (Shape::SizeShift, _) => bytes.min(1000),
            _ => bytes,
        }
    }

    /// The requests.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let keys = self.keys_in_order();
        keys.into_iter().map(|key| Request { key, value_bytes: self.value_bytes(key) }).collect()
    }

    fn keys_in_order(&self) -> Vec<u64> {
        let Self { shape, keys, length, .. } = *self;
        let mut random = SmallRng::seed_from_u64(self.seed);
        let mut shares: Vec<f64> =
            (1..=keys).map(|rank| 1.0 / (rank as f64).powf(self.skew)).collect();
        for rank in 1..shares.len() {
            shares[rank] += shares[rank - 1];
        }
        let all = shares[shares.len() - 1];
        let mut requests = Vec::with_capacity(length);
        let mut once = 1 << 40;
        while requests.len() < length {
            let drawn = random.random_range(0.0..all);
            let key = shares.partition_point(|share| *share <= drawn) as u64;
            let number = requests.len() as u64;
            match shape {
                Shape::OneHit if random.random_bool(0.3) => {
                    once += 1;
                    requests.push(once);
                }
                Shape::Drift => {
                    let moved = number / (length as u64 / 50) * (keys / 200);
                    requests.push((key + moved) % keys);
                }
                Shape::Loop => requests.push(number % (keys / 2)),
                Shape::SizeShift => requests.push(key + number * 3 / length as u64 * keys),
                _ => requests.push(key),
            }
            if shape == Shape::Scan && requests.len() % (length / 10) == 0 {
                requests.extend((0..keys / 5).map(|scanned| (1 << 41) + scanned));
            }
        }
        requests
    }
}

/// What a cache with all the memory that it wants makes of a trace: only first requests miss.
pub(crate) fn infinite(requests: &[Request]) -> Ratios {
    let (mut hits, mut seen) = (Hits::default(), HashSet::new());
    for request in requests {
        hits.add(request, !seen.insert(request.key));
    }
    hits.ratios()
}

/// What a store has made of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) ratios: Ratios,
    /// The most items that it held.
    pub(crate) items: usize,
    /// What it held at the end.
    pub(crate) held: Holdings,
    /// The policy in force at the end.
    pub(crate) in_force: Policy,
}

/// Reads each key, and stores it when it isn't there.
pub(crate) fn drive(requests: &[Request], memory_bytes: usize, policy: Policy) -> Made {
    let rules = Rules { policy, seed: Some(1), ..Rules::default() };
    let item_bytes = (1 << 20).min(memory_bytes / 8);
    let store = Store::new(Limits { memory_bytes, item_bytes, threads: 1, rules }).expect("store");
    let longest = requests.iter().map(|request| request.value_bytes).max().unwrap_or(0);
    let value = vec![b'x'; longest];
    let (mut hits, mut items) = (Hits::default(), 0);
    for (number, request) in requests.iter().enumerate() {
        let key = key_of(request);
        let value = &value[..request.value_bytes];
        let entry = Entry { key: key.as_bytes(), value, flags: 0, expires_s: 0 };
        let is_hit = store.get(FIRST_SECOND, entry.key, |_| ()).is_some();
        hits.add(request, is_hit);
        if !is_hit {
            store.set(FIRST_SECOND, &entry).expect("an item that may be stored is stored");
        }
        if number % 1024 == 0 {
            items = items.max(store.holdings().items as usize);
        }
    }
    let held = store.holdings();
    assert!(held.touched_bytes as usize <= memory_bytes + memory_bytes / 20, "{held:?}");
    Made { ratios: hits.ratios(), items, held, in_force: store.policy_in_force() }
}
