//! The limit on the size of files (`ulimit -f`, setrlimit(2)). The system ends a process that
//! passes it with SIGXFSZ, without a message; here the write fails, as on a full
//! disk.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGXFSZ;

/// Set once the limit was met.
static MET: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Has a write that would pass the limit fail (EFBIG). Programs that are started later have the
/// system's own way again, because they are not meant to inherit what this one wants.
pub fn turn_into_error() {
    let met = MET.get_or_init(Arc::default);
    // Where it can't be caught, the system's own way is left.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::clone(met));
}

/// What to do about the limit, once it was met.
pub fn advice() -> Option<String> {
    let met = MET.get().is_some_and(|met| met.load(Ordering::Relaxed));
    let most = getrlimit(Resource::Fsize).current.filter(|_| met)?;
    Some(format!(
        "no file that this process writes may be larger than {most} bytes (ulimit -f): raise that \
         limit, or write to another file"
    ))
}
