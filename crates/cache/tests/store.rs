//! The store: what it holds, what it lets go, and how much memory it takes.

use std::collections::HashMap;

use cache::model::{Entry, FIRST_SECOND, Limits, MakeError, Policy, Rules, Sharing, Store};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

const NOW_S: u32 = FIRST_SECOND;

fn store(memory_bytes: usize, item_bytes: usize) -> Store {
    store_with(memory_bytes, item_bytes, Policy::default())
}

fn store_with(memory_bytes: usize, item_bytes: usize, policy: Policy) -> Store {
    store_by(memory_bytes, item_bytes, Rules { policy, ..Rules::default() })
}

fn store_by(memory_bytes: usize, item_bytes: usize, rules: Rules) -> Store {
    Store::new(Limits { memory_bytes, item_bytes, threads: 1, rules }).expect("a store")
}

/// Every policy.
fn any_rules() -> impl Strategy<Value = Rules> {
    prop::sample::select(
        Policy::ALL.map(|(_, policy)| Rules { policy, ..Rules::default() }).to_vec(),
    )
}

fn set(store: &Store, key: &[u8], value: &[u8]) {
    let entry = Entry { key, value, flags: 0, expires_s: 0 };
    store.set(NOW_S, &entry).expect("stored");
}

fn get(store: &Store, key: &[u8]) -> Option<Vec<u8>> {
    store.get(NOW_S, key, |item| item.value.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// While everything fits, the store is a map, through any order of growing and shrinking.
    #[test]
    fn what_fits_is_never_lost(
        rules in any_rules(),
        steps in prop::collection::vec((0..5_u8, 0..400_u16, 0..300_usize), 1..3000),
    ) {
        let store = store_by(8 << 20, 1 << 18, rules);
        let mut map: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        for (step, (action, key, length)) in steps.into_iter().enumerate() {
            let key = format!("key-{key}").into_bytes();
            match action {
                0 => prop_assert_eq!(store.delete(NOW_S, &key), map.remove(&key).is_some()),
                1 => prop_assert_eq!(get(&store, &key), map.get(&key).cloned()),
                _ => {
                    let value = vec![step as u8; length];
                    set(&store, &key, &value);
                    map.insert(key, value);
                }
            }
        }
        prop_assert_eq!(store.holdings().items, map.len() as u64);
        for (key, value) in &map {
            prop_assert_eq!(get(&store, key), Some(value.clone()));
        }
    }

    /// Whatever sizes come, every item that may be stored is stored and can be read at once, and
    /// memory stays within its bound: there is no "out of memory" while anything can be let go.
    #[test]
    fn storing_never_fails_and_memory_stays_bounded(
        seed: u64,
        rules in any_rules(),
        phases in prop::collection::vec((1..9_usize, 1..5_usize), 1..6),
    ) {
        let memory_bytes = 4 << 20;
        let store = store_by(memory_bytes, 256 << 10, rules);
        let mut random = SmallRng::seed_from_u64(seed);
        for (scale, spread) in phases {
            for _ in 0..1500 {
                let key = format!("{}", random.random_range(0..5000_u32));
                let most = (4_usize << (scale * 2)).min(250_000);
                let length = random.random_range(0..=most) / spread;
                let value = vec![length as u8; length];
                set(&store, key.as_bytes(), &value);
                prop_assert_eq!(get(&store, key.as_bytes()), Some(value));
            }
            let touched = store.holdings().touched_bytes as usize;
            prop_assert!(touched <= memory_bytes + memory_bytes / 8, "{} bytes", touched);
        }
    }
}

#[test]
fn items_of_half_the_memory_are_stored_beside_small_ones_under_every_policy() {
    let (memory_bytes, half) = (4 << 20, 2 << 20);
    for (name, policy) in Policy::ALL {
        let store = store_with(memory_bytes, half, policy);
        let mut random = SmallRng::seed_from_u64(7);
        for step in 0..2000_usize {
            let key = format!("{}", random.random_range(0..500_u32));
            let most = if step % 20 == 0 { half - 300 } else { 5000 };
            let value = vec![step as u8; random.random_range(0..=most)];
            set(&store, key.as_bytes(), &value);
            assert_eq!(get(&store, key.as_bytes()), Some(value), "{name}, step {step}");
        }
        set(&store, b"largest", &vec![1; half - 300]);
        let touched = store.holdings().touched_bytes as usize;
        assert!(touched <= memory_bytes + memory_bytes / 8, "{name}: {touched} bytes");
    }
}

#[test]
fn replaced_values_make_room_before_anything_is_let_go() {
    let store = store(8 << 20, 1 << 18);
    // Half of the memory is read by nobody, while one key is written over and over in changing
    // sizes: twenty times the memory.
    let quiet: Vec<_> = (0..20_000).map(|number| format!("quiet-{number}")).collect();
    quiet.iter().for_each(|key| set(&store, key.as_bytes(), &[1; 100]));
    for round in 0..160_000_usize {
        set(&store, b"busy", &vec![2; 900 + round % 200]);
    }
    let lost = quiet.iter().filter(|key| get(&store, key.as_bytes()).is_none()).count();
    assert_eq!((lost, store.counts().evictions), (0, 0));
}

#[test]
fn what_is_read_outlives_what_is_not() {
    let store = store(4 << 20, 1 << 18);
    let hot: Vec<_> = (0..1000).map(|number| format!("hot-{number}")).collect();
    hot.iter().for_each(|key| set(&store, key.as_bytes(), &[1; 100]));
    let mut lost = 0;
    for number in 0..200_000 {
        set(&store, format!("cold-{number}").as_bytes(), &[2; 100]);
        if number % 10 == 0 {
            let key = hot[number / 10 % hot.len()].as_bytes();
            if get(&store, key).is_none() {
                lost += 1;
                set(&store, key, &[1; 100]);
            }
        }
    }
    // Where the log turns back to its start, an item or two can't be moved on.
    let laps = store.counts().evictions / 20_000;
    assert!(laps > 5 && lost <= 2 * laps, "{lost} of 20,000 reads in {laps} laps");
}

#[test]
fn a_small_item_takes_at_most_55_bytes_all_in_all() {
    let store = store(256 << 20, 1 << 20);
    for count in [100_000_u32, 300_000, 500_000, 700_000, 1_000_000] {
        for number in store.holdings().items as u32..count {
            set(&store, format!("k{number:07}").as_bytes(), &[7; 16]);
        }
        let holdings = store.holdings();
        assert_eq!(holdings.items, u64::from(count));
        // Memory is touched in steps, of which each shard may have one unfinished.
        let steps = (store.shards() as u64) << 18;
        let per_item = (holdings.touched_bytes - steps) as f64 / f64::from(count);
        assert!(per_item <= 55.0, "{per_item} bytes at {count}");
    }
}

#[test]
fn limits_that_make_no_sense_are_refused_with_what_would() {
    let make = |memory_bytes, item_bytes| {
        Store::new(Limits { memory_bytes, item_bytes, threads: 4, rules: Rules::default() })
            .map(|_| ())
            .unwrap_err()
    };
    assert_eq!(make(1000, 10), MakeError::LittleMemory);
    assert_eq!(make(1 << 20, 1 << 20), MakeError::LargeItem { most_bytes: 1 << 19 });
    assert!(matches!(make(1 << 60, 1 << 20), MakeError::OutOfMemory { .. }));
}

#[test]
fn a_store_is_shared_as_it_is_asked_to_be() {
    let make = |sharing, threads, memory_bytes| {
        let rules = Rules { sharing, ..Rules::default() };
        Store::new(Limits { memory_bytes, item_bytes: 1000, threads, rules })
            .map(|store| store.shards())
    };
    assert_eq!(make(Sharing::Sharded, 2, 64 << 20), Ok(8));
    assert_eq!(make(Sharing::GlobalLock, 8, 64 << 20), Ok(1));
    assert_eq!(make(Sharing::Single, 1, 64 << 20), Ok(1));
    assert_eq!(make(Sharing::Single, 2, 64 << 20), Err(MakeError::ManyThreads));
    let large = make(Sharing::GlobalLock, 1, 64 << 30);
    assert_eq!(large, Err(MakeError::OnePart { most_bytes: 8 << 30 }));
    for (name, sharing) in Sharing::ALL {
        assert_eq!((name.parse(), sharing.name()), (Ok(sharing), name));
    }
    assert!("rcu".parse::<Sharing>().unwrap_err().contains("global-lock"));
}

#[test]
fn a_full_store_uses_its_memory_and_little_more_while_items_become_smaller_and_more() {
    for policy in [Policy::Lru, Policy::S3Fifo, Policy::Adaptive] {
        let memory_bytes = 8 << 20;
        let store = store_with(memory_bytes, 1 << 18, policy);
        let mut number = 0_u64;
        for value_bytes in [2000, 300, 60, 8] {
            let value = vec![7; value_bytes];
            // Two laps, in which the index grows to what so many items need.
            for _ in 0..2 * memory_bytes / (value_bytes + 34) {
                number += 1;
                set(&store, &number.to_be_bytes(), &value);
                if number.is_multiple_of(256) {
                    let most = memory_bytes as u64 * 105 / 100;
                    let held = store.holdings();
                    assert!(held.touched_bytes <= most, "{policy:?} {value_bytes}: {held:?}");
                }
            }
            let held = store.holdings();
            let least = memory_bytes as u64 * 95 / 100;
            assert!(held.item_bytes + held.index_bytes >= least * 93 / 95, "{policy:?} {held:?}");
            assert!(held.touched_bytes >= least, "{policy:?} {value_bytes}: {held:?}");
        }
    }
}

/// Values of one repeated byte are written over, removed and pushed out while they are read.
#[test]
fn readers_see_whole_values_however_many_write() {
    for (_, sharing) in Sharing::ALL.into_iter().filter(|(_, one)| *one != Sharing::Single) {
        let rules = Rules { sharing, policy: Policy::Clock, ..Rules::default() };
        let limits = Limits { memory_bytes: 1 << 20, item_bytes: 8000, threads: 4, rules };
        let store = Store::new(limits).expect("a store");
        let key = |number: u32| format!("key-{number}").into_bytes();
        std::thread::scope(|scope| {
            let store = &store;
            for writer in 0..2_u64 {
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(writer);
                    for round in 0..5_000_u32 {
                        let number = random.random_range(0..600);
                        let value = vec![round as u8; random.random_range(1..5000)];
                        match round % 50 {
                            0 => _ = store.delete(NOW_S, &key(number)),
                            _ => set(store, &key(number), &value),
                        }
                    }
                });
            }
            for reader in 2..4_u64 {
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(reader);
                    for _ in 0..10_000 {
                        let key = key(random.random_range(0..600));
                        let whole = store.get(NOW_S, &key, |item| {
                            let first = item.value[0];
                            item.key == key && item.value.iter().all(|byte| *byte == first)
                        });
                        assert_ne!(whole, Some(false), "{sharing:?}");
                    }
                });
            }
        });
        let counts = store.counts();
        assert_eq!(counts.get_hits + counts.get_misses, 20_000, "{sharing:?}");
    }
}

#[test]
fn what_is_replaced_is_there_at_every_moment() {
    for (_, sharing) in Sharing::ALL.into_iter().filter(|(_, one)| *one != Sharing::Single) {
        let rules = Rules { sharing, policy: Policy::Clock, ..Rules::default() };
        let limits = Limits { memory_bytes: 8 << 20, item_bytes: 8000, threads: 2, rules };
        let store = Store::new(limits).expect("a store");
        set(&store, b"key", b"value");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                // Each value has another length than the one before, so that it goes elsewhere.
                (0..4_000).for_each(|round| set(&store, b"key", &vec![7; 1 + round * 97 % 300]));
            });
            while !writer.is_finished() {
                let length = store.get(NOW_S, b"key", |item| item.value.len());
                assert!(length.is_some(), "{sharing:?}");
            }
        });
    }
}
