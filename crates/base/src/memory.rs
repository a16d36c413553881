//! Memory that goes back to the system.

/// Has the C library give freed memory back as it comes. By default it keeps more the larger what
/// was freed: a server that had loaded and deleted 320,830 nodes kept 45 MB at the ends of its
/// threads' heaps, of which [`give_back`] returns none.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn keep_little() {
    const TRIM_THRESHOLD: i32 = -1;
    const MMAP_THRESHOLD: i32 = -3;
    /// Of one heap's end.
    const KEPT_BYTES: i32 = 512 << 10;
    /// What is larger is no part of a heap.
    const LARGE_BYTES: i32 = 1 << 20;
    unsafe extern "C" {
        fn mallopt(option: i32, value: i32) -> i32;
    }
    // SAFETY: it takes no pointer, and these options may be set at any time.
    unsafe {
        mallopt(TRIM_THRESHOLD, KEPT_BYTES);
        mallopt(MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Has the C library give back what it keeps of freed memory: after a tree of 320,830 nodes is
/// deleted that is 250 MB, as none of it lies at the end of a heap, and after 1,400,000 objects of
/// conditions are sealed 300 MB. It takes milliseconds, during which other threads may wait for
/// memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn give_back() {
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
pub fn keep_little() {}

/// Other C libraries give freed memory back on their own.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
