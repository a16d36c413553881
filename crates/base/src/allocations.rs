//! What a closure allocates: the program's allocator is the system's, and counts for the threads
//! that [`measure`].
//!
//! It passes on that a block grows and that memory is wanted zeroed, which the system does without
//! touching what is large: as two copies a document of 60 MB that comes in pieces kept its thread
//! from all others for 16 ms.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What has been allocated by a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// How often; a block that grows is allocated anew.
    pub count: u64,
    /// Bytes of all of these.
    pub bytes: u64,
    /// The most bytes at once, beyond those before.
    pub most_bytes: u64,
    /// Bytes that are left; less than none where older ones were freed.
    pub left_bytes: i64,
}

impl Allocations {
    const NONE: Self = Self { count: 0, bytes: 0, most_bytes: 0, left_bytes: 0 };

    fn frees(&mut self, bytes: usize) {
        self.left_bytes -= bytes as i64;
    }

    fn takes(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes as u64;
        self.left_bytes += bytes as i64;
        self.most_bytes = self.most_bytes.max(self.left_bytes.max(0) as u64);
    }

    /// Adds those of a part.
    fn add(&mut self, part: Self) {
        self.count += part.count;
        self.bytes += part.bytes;
        let most = self.left_bytes.saturating_add_unsigned(part.most_bytes);
        self.most_bytes = self.most_bytes.max(most.max(0) as u64);
        self.left_bytes += part.left_bytes;
    }
}

thread_local! {
    /// How many measurements this thread is within.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static COUNTED: Cell<Allocations> = const { Cell::new(Allocations::NONE) };
}

/// Runs `work`, and returns what it has allocated on this thread.
pub fn measure(work: impl FnOnce()) -> Allocations {
    /// Ends the measurement, also where `work` panics.
    struct Within(Allocations);

    impl Within {
        fn end(self) -> Allocations {
            COUNTED.get()
        }
    }

    impl Drop for Within {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
            self.0.add(COUNTED.get());
            COUNTED.set(self.0);
        }
    }

    let within = Within(COUNTED.replace(Allocations::NONE));
    DEPTH.set(DEPTH.get() + 1);
    work();
    within.end()
}

#[cold]
fn count(change: impl FnOnce(&mut Allocations)) {
    let mut counted = COUNTED.get();
    change(&mut counted);
    COUNTED.set(counted);
}

/// The system's allocator, which counts where that is asked for.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all calls go to the system's allocator as they come. What counts allocates nothing and
// doesn't panic: the thread's values need no destructor, and so are there until its end.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if DEPTH.get() > 0 {
            count(|all| all.takes(layout.size()));
        }
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if DEPTH.get() > 0 {
            count(|all| all.takes(layout.size()));
        }
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if DEPTH.get() > 0 {
            count(|all| {
                all.frees(layout.size());
                all.takes(bytes);
            });
        }
        // SAFETY: the caller's.
        unsafe { System.realloc(block, layout, bytes) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if DEPTH.get() > 0 {
            count(|all| all.frees(layout.size()));
        }
        // SAFETY: the caller's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn what_is_allocated_is_counted_with_its_parts_and_nothing_outside() {
        let old = black_box(vec![0_u8; 10]);
        let mut part = Allocations::NONE;
        let whole = measure(|| {
            drop(old);
            let kept = black_box(Box::new([1_u8; 30]));
            part = measure(|| {
                let mut grows = black_box(Vec::<u8>::with_capacity(100));
                grows.reserve_exact(300);
                drop(black_box(grows));
            });
            std::mem::forget(kept);
        });
        assert_eq!(part, Allocations { count: 2, bytes: 400, most_bytes: 300, left_bytes: 0 });
        assert_eq!(whole, Allocations { count: 3, bytes: 430, most_bytes: 320, left_bytes: 20 });
        assert_eq!(measure(|| ()), Allocations::NONE);
        assert_eq!(DEPTH.get(), 0);
    }

    #[test]
    fn a_measurement_ends_where_what_it_is_of_panics() {
        let work = || measure(|| panic!("on purpose"));
        assert!(std::panic::catch_unwind(work).is_err());
        assert_eq!(DEPTH.get(), 0);
    }

    #[test]
    fn what_is_wanted_zeroed_is() {
        let zeroed = black_box(vec![0_u8; 1 << 22]);
        assert!(zeroed.iter().all(|byte| *byte == 0));
    }
}
