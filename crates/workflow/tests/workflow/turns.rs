//! Turns of an owner under the orders in which threads may take their steps: the server's own file,
//! with loom's locks in the place of the standard library's.

mod locks {
    pub(super) use loom::sync::atomic::AtomicBool;
    pub(super) use loom::sync::{Mutex, MutexGuard};
}

#[path = "../../src/server/turns.rs"]
#[allow(dead_code, reason = "the server's file, used in part")]
mod file;

use std::sync::{Arc, Mutex};

use file::{Owned, Turns};
use loom::thread;

/// What came of messages: how often each was taken, and whether all of them are kept.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<(Vec<u32>, usize)>>);

struct Owner(Seen);

impl Owned for Owner {
    type Message = u32;

    fn take(&mut self, message: u32) {
        let (taken, _) = &mut *self.0.0.lock().expect("no panic");
        taken.push(message);
    }

    fn finish(&mut self) {
        let (taken, kept) = &mut *self.0.0.lock().expect("no panic");
        *kept = taken.len();
    }

    fn give_up(self) {
        panic!("no one has panicked");
    }
}

/// Runs three threads with an owner in many orders, and checks what came of it each time.
fn try_orders(acts: [fn(&Turns<Owner>); 3], check: fn(Vec<u32>, usize)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let seen = Seen::default();
        let turns = loom::sync::Arc::new(Turns::new(|_| panic!("the owner is there")));
        turns.begin(Owner(seen.clone()));
        let start = |act: fn(&Turns<Owner>)| {
            let turns = loom::sync::Arc::clone(&turns);
            thread::spawn(move || act(&turns))
        };
        let all = acts.map(start);
        all.into_iter().for_each(|thread| thread.join().expect("it ends"));
        let (mut taken, kept) = std::mem::take(&mut *seen.0.lock().expect("no panic"));
        taken.sort_unstable();
        check(taken, kept);
    });
}

fn ask(turns: &Turns<Owner>, message: u32) {
    turns.add(message, 9).expect("there is room");
    turns.work_off();
}

#[test]
fn in_no_order_is_a_message_left_taken_twice_or_not_kept() {
    let of_a_connection = |turns: &Turns<Owner>| {
        ask(turns, 1);
        turns.finish();
    };
    let of_another = |turns: &Turns<Owner>| {
        ask(turns, 2);
        turns.finish();
    };
    let of_the_journal = |turns: &Turns<Owner>| {
        turns.add(3, 9).expect("there is room");
        turns.settle();
    };
    let of_the_owner = |turns: &Turns<Owner>| {
        turns.take(3);
        turns.settle();
    };
    for third in [of_the_journal as fn(&Turns<Owner>), of_the_owner] {
        try_orders([of_a_connection, of_another, third], |taken, kept| {
            assert_eq!((taken, kept), (vec![1, 2, 3], 3));
        });
    }
}
