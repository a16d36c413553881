//! How soon threads that answer, or wait for answers, get a core for which others compete.

use std::cell::Cell;

thread_local! {
    static IS_SHORT: Cell<bool> = const { Cell::new(false) };
}

/// Has this thread ask for its core in slices of 0.1 ms, the least that Linux grants. It gets no
/// more of the core than before, but its share sooner: when it is woken it runs before those that
/// have longer slices, where it would wait for one of each. Linux before 6.12 passes over it.
pub(crate) fn shorten() {
    if !IS_SHORT.replace(true) {
        ask();
    }
}

/// Asks. Where it is refused, the thread competes as before.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn ask() {
    use nix::libc::{SYS_sched_getattr, SYS_sched_setattr, sched_attr, syscall};
    const SLICE_NS: u64 = 100_000;
    const SIZE: u32 = size_of::<sched_attr>() as u32;
    // SAFETY: all of it are numbers.
    let mut own: sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: of this thread (0), the kernel writes at most SIZE bytes, which are there.
    let has = unsafe { syscall(SYS_sched_getattr, 0, &raw mut own, SIZE, 0) };
    if has == 0 {
        own.sched_runtime = SLICE_NS;
        // SAFETY: for this thread (0), the kernel reads what it has just written.
        unsafe { syscall(SYS_sched_setattr, 0, &raw const own, 0) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask() {}
