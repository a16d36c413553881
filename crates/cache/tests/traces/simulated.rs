//! Caches simulated exactly, to compare a store with: keys and sizes without values.

use std::collections::{BTreeSet, HashMap};

use super::{Hits, Ratios, Request};

/// Which item goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simulated {
    /// The one whose last request is the longest ago.
    Lru,
    /// The one with the lowest age + frequency ÷ size (Greedy-Dual-Size-Frequency).
    Gdsf,
}

/// A cache of `capacity`, of which each request's item takes its `weight`.
pub(crate) fn simulate(
    policy: Simulated,
    requests: &[Request],
    capacity: usize,
    weight: impl Fn(&Request) -> usize,
) -> Ratios {
    let mut held: HashMap<u64, (f64, usize, f64)> = HashMap::new();
    let mut order: BTreeSet<(u64, u64, u64)> = BTreeSet::new();
    let (mut hits, mut used, mut age) = (Hits::default(), 0, 0.0);
    let mut of: HashMap<u64, u64> = HashMap::new();
    for (number, request) in requests.iter().enumerate() {
        let Request { key, .. } = *request;
        let size = weight(request);
        let found = held.get(&key).copied();
        hits.add(request, found.is_some());
        if let Some((priority, size, _)) = found {
            order.remove(&(priority.to_bits(), of[&key], key));
            used -= size;
        } else if size > capacity {
            continue;
        }
        while used + size > capacity
            && let Some((priority, _, oldest)) = order.pop_first()
        {
            age = f64::from_bits(priority);
            used -= held.remove(&oldest).map_or(0, |(_, size, _)| size);
        }
        let frequency = found.map_or(1.0, |(_, _, frequency)| frequency + 1.0);
        let priority = match policy {
            Simulated::Lru => number as f64,
            Simulated::Gdsf => age + frequency * 1e6 / size as f64,
        };
        used += size;
        held.insert(key, (priority, size, frequency));
        of.insert(key, number as u64);
        order.insert((priority.to_bits(), number as u64, key));
    }
    hits.ratios()
}

/// LRU with as many items as a store held.
pub(crate) fn lru_of_items(requests: &[Request], most: usize) -> f64 {
    simulate(Simulated::Lru, requests, most, |_| 1).items
}
