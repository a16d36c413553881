//! The cores that this process may use.

/// The CPUs that this process may use.
pub fn cpus_here() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

/// The CPUs that these processes may use, all together; empty where none of them can be asked.
pub fn cpus_of(pids: &[u32]) -> Vec<usize> {
    let pid = |pid: &u32| rustix::process::Pid::from_raw(i32::try_from(*pid).ok()?);
    let set = |pid| rustix::thread::sched_getaffinity(Some(pid)).ok();
    let sets: Vec<_> = pids.iter().filter_map(pid).filter_map(set).collect();
    let may_use = |cpu: &usize| sets.iter().any(|set| set.is_set(*cpu));
    (0..rustix::thread::CpuSet::MAX_CPU).filter(may_use).collect()
}

/// Pins the calling thread, and every process it starts from now on, to `cpus`; empty leaves it.
///
/// # Errors
/// What the kernel says.
pub fn pin_this_thread(cpus: &[usize]) -> std::io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}
