//! Targets: started in process groups of their own, pinned, awaited, and stopped. Control plane.

mod guard;
mod kept;
mod process;
mod ready;

use std::path::PathBuf;

pub(crate) use guard::Guard;
pub use guard::{enter_main, guard_main, run_guarded};
pub use process::{DeployError, Deployed, Deployer};

/// The CPUs that this process may use.
pub fn cpus_here() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect(),
        Err(_) => Vec::new(),
    }
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

/// Where `program` lies.
pub(crate) fn program_file(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Why `program` can't be started, when it can't be found.
pub(crate) fn missing_program(program: &str) -> Option<String> {
    program_file(program).is_none().then(|| format!("{program} is not installed"))
}
