//! The limit of open descriptors: each connection takes one. Control plane.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit of open descriptors to `wanted`, or as far as permitted, and
/// returns the new limit. Never lowers it.
///
/// Shells start programs with a soft limit of 1,024, for the sake of those that use `select`;
/// programs may raise it to the hard limit.
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
