//! Checks of a service's limits against the host's: descriptors and memory.

use std::path::Path;

use base::units::ByteCount;

/// What to do where the system has no threads left.
pub const FEWER_THREADS: &str = "use fewer --threads, or raise the limits of this user";

/// Raises the limit of open descriptors for `connections` beside what the threads have open.
/// Returns the number of connections that fit, and warns where they are fewer.
pub fn raise_descriptor_limit(connections: u32, threads: u16) -> u32 {
    let own = 64 + 8 * u64::from(threads);
    let allowed = wire::allow_descriptors(own + u64::from(connections));
    let room = allowed.saturating_sub(own).clamp(1, u64::from(connections));
    if room < u64::from(connections) {
        tracing::warn!(
            "there is room for {room} connections, not {connections}: this process may have \
             {allowed} descriptors open. Raise the hard limit (ulimit -Hn), or say \
             --max-connections {room}"
        );
    }
    room as u32
}

/// Warns where `wanted` bytes are more than the host or the control group has: memory is granted
/// until it is used, and then the kernel ends the process. `option` is what sets them.
pub fn warn_of_memory(wanted: u64, option: &str) {
    let Some((has, whose)) = memory() else { return };
    if wanted > has {
        let [wanted, has] = [wanted, has].map(|bytes| ByteCount { bytes });
        tracing::warn!(
            "{wanted} of memory are more than {whose} has, {has}: the system may end this process \
             before they are full. Take less with {option}"
        );
    }
}

/// The memory that this process can have at most, and whose limit that is: the host's or a control
/// group's (Linux, Documentation/admin-guide/cgroup-v2.rst, `memory.max`).
fn memory() -> Option<(u64, &'static str)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    let host = (kibibytes.saturating_mul(1024), "this host");
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let folder = group.map(|group| Path::new("/sys/fs/cgroup").join(group));
    let limits = folder.iter().flat_map(|folder| folder.ancestors()).filter_map(|folder| {
        let text = std::fs::read_to_string(folder.join("memory.max")).ok()?;
        Some((text.trim().parse().ok()?, "this control group"))
    });
    limits.chain([host]).min()
}
