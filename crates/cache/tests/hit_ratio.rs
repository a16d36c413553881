//! Which items stay: hit ratios of seeded traces, beside LRU with as many items. Nothing here is
//! timed and nothing is left to chance.

use crate::beside::peer::{Peer, program};
use crate::traces::simulated::{Simulated, lru_of_items, simulate};
use crate::traces::{Request, SHAPES, Shape, Sizes, Workload, drive, memcached};
use cache::model::Policy;

/// Half a point.
const TOLERANCE: f64 = 0.005;

const MEMORY_BYTES: usize = 2 << 20;

#[test]
fn the_default_is_never_half_a_point_worse_than_lru_with_as_many_items() {
    for shape in SHAPES {
        let requests = Workload::fixed(shape, 40_000, 120_000).requests();
        let made = drive(&requests, MEMORY_BYTES, Policy::default());
        let of_lru = lru_of_items(&requests, made.items);
        assert!(made.items > 7_500, "{shape:?}: {made:?}");
        assert!(made.ratios.items >= of_lru - TOLERANCE, "{shape:?}: {made:?}, LRU {of_lru}");
    }
}

#[test]
fn the_default_leaves_lru_behind_where_most_keys_come_once_and_follows_it_where_they_drift() {
    for (shape, better_by, in_force) in [
        (Shape::Zipf, 0.01, Policy::S3Fifo),
        (Shape::OneHit, 0.015, Policy::S3Fifo),
        (Shape::Drift, -TOLERANCE, Policy::Lru),
    ] {
        let requests = Workload::fixed(shape, 400_000, 400_000).requests();
        let made = drive(&requests, MEMORY_BYTES, Policy::default());
        let of_lru = lru_of_items(&requests, made.items);
        assert!(made.ratios.items >= of_lru + better_by, "{shape:?}: {made:?}, LRU {of_lru}");
        assert_eq!(made.in_force, in_force, "{shape:?}: {made:?}");
    }
}

#[test]
fn each_policy_does_what_its_name_says() {
    let hits = |keys: &[u64], policy| {
        let request = |key: &u64| Request { key: *key, value_bytes: 200 };
        let requests: Vec<Request> = keys.iter().map(request).collect();
        (drive(&requests, MEMORY_BYTES, policy).ratios.items * keys.len() as f64).round()
    };
    // Two thousand keys are read in turn, each between four that come once: all of that fits, so
    // only who doesn't look at reads loses any of the keys.
    let once = |number: u64| 1 << 40 | number;
    let busy =
        |number: u64| if number.is_multiple_of(3) { number / 3 % 2_000 } else { once(number) };
    let requests: Vec<u64> = (0..90_000).map(busy).collect();
    for (policy, least, most) in [
        (Policy::Fifo, 10_000.0, 20_000.0),
        (Policy::Clock, 27_900.0, 28_000.0),
        (Policy::Lru, 27_900.0, 28_000.0),
    ] {
        let found = hits(&requests, policy);
        assert!((least..=most).contains(&found), "{policy:?}: {found}");
    }
    // A long scan displaces all that was read before it, but not from S3-FIFO's main ring.
    let before: Vec<u64> = (0..20_000).map(|number| number % 4_000).collect();
    let scan: Vec<u64> = before.iter().copied().chain((0..40_000).map(once)).collect();
    let all: Vec<u64> = scan.iter().copied().chain(0..4_000).collect();
    for (policy, least, most) in
        [(Policy::Lru, 0.0, 0.0), (Policy::Clock, 0.0, 4_000.0), (Policy::S3Fifo, 3_900.0, 4_000.0)]
    {
        let found = hits(&all, policy) - hits(&scan, policy);
        assert!((least..=most).contains(&found), "{policy:?}: {found}");
    }
}

/// Where memcached is installed: hit ratios by items and by bytes are at least its own when the
/// memory is a fraction of all values, however popularity is spread. `examples/hit_ratio.rs` has
/// more rows.
#[test]
fn mixed_sizes_have_at_least_the_hit_ratios_of_memcached() {
    for (sizes, skew) in [(Sizes::Equal, 0.9), (Sizes::Equal, 1.1), (Sizes::FewLarge, 0.9)] {
        let workload = Workload { length: 200_000, ..Workload::mixed(Shape::Zipf, sizes, skew, 1) };
        let requests = workload.requests();
        let made = drive(&requests, 12 << 20, Policy::default());
        assert_eq!(made.in_force, Policy::Density);
        let weight = |request: &Request| request.value_bytes + 36;
        let lru = simulate(Simulated::Lru, &requests, 12 << 20, weight);
        assert!(made.ratios.items > lru.items, "{workload:?}: {made:?}, LRU {lru:?}");
        assert!(made.ratios.bytes > lru.bytes, "{workload:?}: {made:?}, LRU {lru:?}");
        let Some(program) = program("memcached") else { return };
        let peer = Peer::start(&program, &memcached::arguments("12"));
        let peer = memcached::drive(peer.address, &requests);
        let (items, bytes) = (made.ratios.items / peer.items, made.ratios.bytes / peer.bytes);
        // Half a point for chance: when memcached moves its slabs depends on its clock.
        assert!(items > 0.995 && bytes > 0.995, "{workload:?}: {made:?}, memcached {peer:?}");
    }
}

/// Whatever was in demand before, what is in demand now is found again within as many requests.
#[test]
fn another_set_of_keys_of_other_sizes_is_found_soon() {
    for (before, after) in [(100, 20_000), (20_000, 100)] {
        let mixed = Workload::mixed(Shape::Zipf, Sizes::Equal, 0.9, 1);
        let request = |key: u64, bytes: usize, number: u64| Request {
            key,
            value_bytes: if number.is_multiple_of(4) { 2 * bytes } else { bytes },
        };
        let mut requests = Workload { length: 20_000, ..mixed }.requests();
        requests.extend(
            (0..60_000).map(|number| request((1 << 50) | (number % 300), before, number % 300)),
        );
        let start = requests.len();
        requests.extend(
            (0..60_000).map(|number| request((1 << 51) | (number % 300), after, number % 300)),
        );
        let all =
            drive(&requests, 12 << 20, Policy::default()).ratios.items * requests.len() as f64;
        let first =
            drive(&requests[..start], 12 << 20, Policy::default()).ratios.items * start as f64;
        let found = (all - first) / 60_000.0;
        assert!(found > 0.9, "{before} to {after} bytes: {found}");
    }
}

/// A small store into which mixed sizes are only written keeps the small ones, which are most.
#[test]
fn a_small_store_of_mixed_sizes_keeps_many_items() {
    let all = Workload { length: 1, ..Workload::mixed(Shape::Loop, Sizes::Equal, 0.9, 1) };
    let requests: Vec<_> = Workload { keys: 12_000, length: 6_000, ..all }.requests();
    let made = drive(&requests, 4 << 20, Policy::default());
    assert!(made.held.items > 2_500, "{made:?}");
}
