//! Prefetch of memory into the cache.

/// Prefetches the cache line of `place` without waiting. Reading it instead would hold up
/// the instructions behind, and so how many lines can be on their way at once.
#[inline]
#[allow(unsafe_code)]
pub(super) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads and changes nothing that a program can see, and can't fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(place);
}
