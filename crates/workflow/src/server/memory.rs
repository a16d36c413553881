//! Memory that goes back to the system. The only `unsafe` code of this crate.

/// Has the C library give back what it keeps of freed memory: after a tree of 320,830 nodes is
/// deleted that is 250 MB, as none of it lies at the end of a heap. It takes milliseconds, during
/// which other threads may wait for memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub(super) fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: it takes no pointer, may be called at any time on any thread, and only touches pages
    // that are free.
    unsafe {
        malloc_trim(0);
    }
}

/// Other C libraries give freed memory back on their own.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn give_back() {}
