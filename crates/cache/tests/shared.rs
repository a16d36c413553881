//! The cells that threads share without a lock, under every order of steps that the memory model
//! allows: the store's own file, with loom's atomics in the place of the standard library's.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
}

#[path = "../src/model/shared.rs"]
mod shared;

use loom::sync::Arc;
use loom::thread;
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
