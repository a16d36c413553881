//! Which items stay: hit ratios of seeded traces, beside LRU with as many items. Nothing here is
//! timed and nothing is left to chance.

use crate::traces::{SHAPES, Shape, drive, lru, trace};
use cache::model::Policy;

/// Half a point.
const TOLERANCE: f64 = 0.005;

const MEMORY_BYTES: usize = 2 << 20;

#[test]
fn the_default_is_never_half_a_point_worse_than_lru_with_as_many_items() {
    for shape in SHAPES {
        let requests = trace(shape, 40_000, 120_000, 42);
        let made = drive(&requests, MEMORY_BYTES, 200, Policy::default());
        let of_lru = lru(&requests, made.items);
        assert!(made.items > 7_500, "{shape:?}: {made:?}");
        assert!(made.hits >= of_lru - TOLERANCE, "{shape:?}: {made:?}, LRU {of_lru}");
    }
}

#[test]
fn the_default_leaves_lru_behind_where_most_keys_come_once_and_follows_it_where_they_drift() {
    for (shape, better_by, in_force) in [
        (Shape::Zipf, 0.01, Policy::S3Fifo),
        (Shape::OneHit, 0.015, Policy::S3Fifo),
        (Shape::Drift, -TOLERANCE, Policy::Lru),
    ] {
        let requests = trace(shape, 400_000, 400_000, 42);
        let made = drive(&requests, MEMORY_BYTES, 200, Policy::default());
        let of_lru = lru(&requests, made.items);
        assert!(made.hits >= of_lru + better_by, "{shape:?}: {made:?}, LRU {of_lru}");
        assert_eq!(made.in_force, in_force, "{shape:?}: {made:?}");
    }
}

#[test]
fn each_policy_does_what_its_name_says() {
    let hits = |requests: &[u64], policy| {
        (drive(requests, MEMORY_BYTES, 200, policy).hits * requests.len() as f64).round()
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
