//! How many descriptors a process may have open: a connection takes one. Control plane.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit of open descriptors to `wanted`, as far as it may, and says what it
/// is then. It is never lowered.
///
/// Shells give programs a soft limit of 1,024, for the sake of those that use `select`, and let
/// them raise it up to the hard limit.
pub fn allow_descriptors(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    let raised = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    }
}
