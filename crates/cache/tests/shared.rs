//! The cells that threads share without a lock, under every order of steps that the memory model
//! allows: the store's own file, with loom's atomics in the place of the standard library's.

mod atomic {
    pub(super) use loom::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence,
    };
}

#[path = "../src/model/free/sequence.rs"]
mod sequence;

#[path = "../src/model/shared.rs"]
mod shared;

use atomic::AtomicU64;
use atomic::Ordering::Relaxed;
use loom::sync::Arc;
use loom::thread;
use sequence::Sequence;
use shared::Shared;

#[test]
fn of_several_threads_one_forgets_everything_and_once() {
    loom::model(|| {
        let shared = Arc::new(Shared::new(0));
        shared.flush_at(5);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || u32::from(shared.is_due(5)) + u32::from(shared.is_due(6)))
        };
        let mine = u32::from(shared.is_due(4)) + u32::from(shared.is_due(5));
        assert_eq!(mine + other.join().expect("no panic"), 1);
    });
}

#[test]
fn a_policy_is_one_of_those_put_in_force() {
    loom::model(|| {
        let shared = Arc::new(Shared::new(2));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.set_policy(3);
                shared.become_large();
            })
        };
        assert!(matches!(shared.policy(), 2 | 3));
        other.join().expect("no panic");
        assert!(shared.policy() == 3 && shared.is_large());
    });
}

#[test]
fn a_reader_sees_all_of_one_write_or_finds_out_that_it_does_not() {
    loom::model(|| {
        let words = || [AtomicU64::new(0), AtomicU64::new(0)];
        let shared = Arc::new((Sequence::new(), words()));
        let load = |words: &[AtomicU64; 2]| [0, 1].map(|at| words[at].load(Relaxed));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (sequence, words) = &*shared;
                for number in 1..=2 {
                    sequence.write(|| words.iter().for_each(|word| word.store(number, Relaxed)));
                }
            })
        };
        let (sequence, words) = &*shared;
        if let Some(begun) = sequence.begin() {
            let [one, other] = load(words);
            assert!(one == other || !sequence.is_same(begun), "{one} and {other}");
        }
        writer.join().expect("no panic");
        let begun = sequence.begin().expect("nobody writes");
        assert_eq!(load(words), [2, 2]);
        assert!(sequence.is_same(begun));
    });
}
