//! Wakes that are made together: each loop is woken once, after all its messages are there.

use std::cell::RefCell;

type Ring = Box<dyn FnOnce()>;

thread_local! {
    /// The loops to be woken, while [`wake_together`] runs.
    static RINGS: RefCell<Option<Vec<Ring>>> = const { RefCell::new(None) };
}

/// Runs `work`. A loop that it wakes, however often, is woken once, when `work` is done: otherwise
/// a loop that shares a CPU with this thread may run in between, for one connection at a time.
pub fn wake_together<R>(work: impl FnOnce() -> R) -> R {
    let is_outermost = RINGS.with_borrow_mut(|rings| {
        let is_outermost = rings.is_none();
        rings.get_or_insert_default();
        is_outermost
    });
    // Also when `work` panics: those that wait elsewhere must not wait for ever.
    let _all = is_outermost.then_some(All);
    work()
}

/// Wakes a loop, now or when all are woken.
pub(crate) fn ring(ring: impl FnOnce() + 'static) {
    let left = RINGS.with_borrow_mut(|rings| match rings {
        Some(rings) => {
            rings.push(Box::new(ring));
            None
        }
        None => Some(ring),
    });
    if let Some(ring) = left {
        ring();
    }
}

struct All;

impl Drop for All {
    fn drop(&mut self) {
        let rings = RINGS.with_borrow_mut(Option::take);
        rings.into_iter().flatten().for_each(|ring| ring());
    }
}
