//! How a side parks without losing a wake-up. It announces that it parks, and looks again; the
//! other side publishes, and looks whether it has. Between each one's write and its look is a fence
//! of the total order, so that one of them at least sees the other's write.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// A word that both sides see, and the fence between.
pub(super) trait Flag {
    fn load(&self) -> u32;
    fn store(&self, value: u32);
    fn swap(&self, value: u32) -> u32;
    fn fence();
}

impl Flag for AtomicU32 {
    fn load(&self) -> u32 {
        AtomicU32::load(self, Ordering::Relaxed)
    }

    fn store(&self, value: u32) {
        AtomicU32::store(self, value, Ordering::Relaxed);
    }

    fn swap(&self, value: u32) -> u32 {
        AtomicU32::swap(self, value, Ordering::Relaxed)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Announces that this side parks; it then has to look again, and may wait while the flag is 1.
pub(super) fn announce<F: Flag>(flag: &F) {
    flag.store(1);
    F::fence();
}

/// Whether the other side has to be woken, after something was published; it is once.
pub(super) fn is_parked<F: Flag>(flag: &F) -> bool {
    F::fence();
    flag.load() != 0 && flag.swap(0) != 0
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering, fence};
    use loom::thread;

    use super::*;

    impl Flag for AtomicU32 {
        fn load(&self) -> u32 {
            AtomicU32::load(self, Ordering::Relaxed)
        }

        fn store(&self, value: u32) {
            AtomicU32::store(self, value, Ordering::Relaxed);
        }

        fn swap(&self, value: u32) -> u32 {
            AtomicU32::swap(self, value, Ordering::Relaxed)
        }

        fn fence() {
            fence(Ordering::SeqCst);
        }
    }

    #[test]
    fn in_no_order_of_events_does_a_side_sleep_that_is_not_woken() {
        loom::model(|| {
            let (flag, data) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            let (theirs, published) = (Arc::clone(&flag), Arc::clone(&data));
            let producer = thread::spawn(move || {
                published.store(1, Ordering::Release);
                is_parked(&*theirs)
            });
            announce(&*flag);
            let sleeps = data.load(Ordering::Acquire) == 0;
            let woken = producer.join().expect("it ends");
            // One that sleeps waits while the flag is 1.
            assert!(!sleeps || woken, "asleep for ever");
        });
    }
}
