//! The whole store under many orders of its threads' steps: the store's own files, with the locks
//! of shuttle in the place of the standard library's. What fails prints the order that it needs.
#![allow(clippy::enum_variant_names, reason = "names that stand in another module there")]
#![allow(dead_code, unreachable_pub, unused_imports, reason = "the library's files, used in part")]

mod sync {
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use std::sync::{PoisonError, TryLockError};
}

#[path = "../src/model/mod.rs"]
mod model;

use std::sync::Arc;

use model::{Access, Entry, FIRST_SECOND, Limits, Policy, Rules, Sharing, Store, Sum, Summed};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

const NOW_S: u32 = FIRST_SECOND;

/// So many orders of steps are tried.
const ORDERS: usize = 300;

fn store(sharing: Sharing, threads: usize) -> Arc<Store> {
    let rules = Rules { sharing, policy: Policy::Clock, seed: Some(1), ..Rules::default() };
    let limits = Limits { memory_bytes: 1 << 20, item_bytes: 1000, threads, rules };
    Arc::new(Store::new(limits).expect("a store"))
}

fn set(store: &Store, key: &[u8], value: &[u8]) {
    let entry = Entry { key, value, flags: 0, expires_s: 0 };
    store.set(NOW_S, &entry).expect("stored");
}

/// A store's calls go deeper than the stack that threads have otherwise.
const STACK_BYTES: usize = 1 << 20;

/// Tries orders at random, and such as have few changes between threads.
fn try_orders(act: impl Fn() + Clone + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(RandomScheduler::new(ORDERS), config.clone()).run(act.clone());
    Runner::new(PctScheduler::new(3, ORDERS), config).run(act);
}

/// Under each way to share a store that several threads may use.
fn check(act: fn(&Arc<Store>)) {
    for sharing in [Sharing::GlobalLock, Sharing::Sharded] {
        try_orders(move || act(&store(sharing, 2)));
    }
}

#[test]
fn nothing_is_lost_of_what_two_threads_count() {
    check(|store| {
        set(store, b"count", b"0");
        let add = |store: Arc<Store>| {
            let sum = Sum {
                increment: true,
                delta: 1,
                compare: None,
                cas: None,
                create: None,
                expires_s: None,
                binary_key: false,
            };
            thread::spawn(move || {
                (0..3).for_each(|_| {
                    assert!(matches!(store.sum(NOW_S, b"count", &sum), Summed::Done(_)));
                });
            })
        };
        let threads = [add(Arc::clone(store)), add(Arc::clone(store))];
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(store.get(NOW_S, b"count", |item| item.value.to_vec()), Some(b"6".to_vec()));
    });
}

#[test]
fn a_stale_item_is_won_by_one_of_those_who_read_it() {
    check(|store| {
        set(store, b"key", b"old");
        let mark = model::Mark { stale: true, ..model::Mark::default() };
        store.mark(NOW_S, b"key", None, &mark);
        let read = |store: Arc<Store>| {
            thread::spawn(move || {
                let won = store.get_or_win(NOW_S, b"key", |item| item.stale && !item.won);
                u32::from(won == Some(true))
            })
        };
        let threads = [read(Arc::clone(store)), read(Arc::clone(store))];
        let won: u32 = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
        assert_eq!(won, 1);
    });
}

#[test]
fn a_value_is_one_that_was_stored_while_it_is_replaced_and_moved_to_another_place() {
    check(|store| {
        set(store, b"key", &[1; 40]);
        let writer = {
            let store = Arc::clone(store);
            thread::spawn(move || {
                for (byte, length) in [(2, 40), (3, 80), (4, 10)] {
                    set(&store, b"key", &vec![byte; length]);
                    set(&store, b"other", &vec![9; length]);
                }
            })
        };
        for _ in 0..3 {
            let value = store.get(NOW_S, b"key", |item| item.value.to_vec()).expect("always there");
            let expected = [(1, 40), (2, 40), (3, 80), (4, 10)];
            assert!(expected.contains(&(value[0], value.len())), "{value:?}");
            assert!(value.iter().all(|byte| *byte == value[0]), "{value:?}");
        }
        writer.join().expect("no panic");
    });
}

/// Batches of reads keep locks where a store is for one thread. Should two use it all the same,
/// they must not wait for each other for ever.
#[test]
fn batches_of_reads_that_keep_their_locks_never_wait_in_a_circle() {
    let act = || {
        let store = store(Sharing::Sharded, 1);
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        keys.iter().for_each(|key| set(&store, key.as_bytes(), b"value"));
        let read = |store: Arc<Store>, turned: bool| {
            thread::spawn(move || {
                let mut reads = store.reads(NOW_S);
                let mut keys = keys;
                if turned {
                    keys.reverse();
                }
                let there = |key: &&str| reads.get::<false, _>(key.as_bytes(), |_| ()).is_some();
                assert!(keys.iter().all(there));
            })
        };
        let threads = [read(Arc::clone(&store), false), read(Arc::clone(&store), true)];
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    };
    try_orders(act);
}
