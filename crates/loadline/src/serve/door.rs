//! What every service does around its server: its log, the one line that says where it is, and its
//! end by signals.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Map, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long connections may finish what is in flight after the first signal.
pub(super) const DRAIN: Duration = Duration::from_secs(5);

/// What to do where the system has no threads left.
pub(super) const FEWER_THREADS: &str = "use fewer --threads, or raise the limits of this user";

/// What to do where an address can't be had; `otherwise` unless another server has it.
pub(super) fn listen_advice(error: &io::Error, otherwise: &'static str) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse {
        return "another server has it: stop that one, or choose another with --listen (port 0 \
                takes any that is free)";
    }
    otherwise
}

/// Addresses as they are written.
pub(super) fn texts(addresses: &[impl ToString]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

/// Logs to standard error from here on.
pub(super) fn start_log(level: tracing::Level, json: bool) {
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    let log = log.with_ansi(io::stderr().is_terminal());
    // A log that has been started already stays as it is.
    let _ = if json { log.json().try_init() } else { log.with_target(false).try_init() };
}

/// Room for so many connections beside what the threads have open; how many there is room for,
/// which is said where it is less.
pub(super) fn make_room(connections: u32, threads: u16) -> u32 {
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

/// Warns of more memory than there is: the system gives it as long as it is not used, and ends
/// whoever uses it.
pub(super) fn warn_of_memory(wanted: u64) {
    let Some((has, whose)) = memory() else { return };
    if wanted > has {
        let [wanted, has] = [wanted, has].map(|bytes| report::bytes(bytes as f64));
        tracing::warn!(
            "{wanted} of memory are more than {whose} has, {has}: the system may end this process \
             before they are full. Take less with --memory (or -m)"
        );
    }
}

/// The memory that this process can have at most, and whose that is: the host's, or that of a
/// control group (Linux, Documentation/admin-guide/cgroup-v2.rst, `memory.max`).
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

/// Where a service is, as its ready line says it.
pub(super) struct Ready<'a> {
    /// The room.
    pub(super) service: &'a str,
    /// What its connections speak: the name of the first address, and of the others with a number.
    pub(super) speaks: &'a str,
    /// Where it accepts connections.
    pub(super) addresses: &'a [String],
    /// Where it receives datagrams, and what that is called.
    pub(super) datagrams: Option<(&'a str, String)>,
    /// Where it shows its counters.
    pub(super) metrics: Option<String>,
}

impl Ready<'_> {
    /// Prints the line, once everything is ready.
    pub(super) fn print(self) -> anyhow::Result<()> {
        let datagrams = self.datagrams.as_ref().map(|(_, address)| address);
        let Some(first) = self.addresses.first().or(datagrams).cloned() else {
            bail!("there is nowhere to listen");
        };
        let mut named = Map::new();
        for (number, address) in (1..).zip(self.addresses) {
            let number = if number == 1 { String::new() } else { number.to_string() };
            named.insert(format!("{}{number}", self.speaks), json!(address));
        }
        let metrics = self.metrics.map(|address| ("metrics", address));
        for (name, address) in self.datagrams.into_iter().chain(metrics) {
            named.insert(name.to_owned(), json!(address));
        }
        let ready = json!({
            "ready": true,
            "service": self.service,
            "pid": std::process::id(),
            "address": first,
            "addresses": named,
            "data": null,
        });
        let mut out = io::stdout().lock();
        writeln!(out, "{ready}")?;
        out.flush()?;
        Ok(())
    }
}

/// The signals that end a service, caught before anything is ready, so that none is missed.
pub(super) struct End(Signals);

impl End {
    pub(super) fn catch() -> anyhow::Result<Self> {
        Ok(Self(Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?))
    }

    /// Waits for the first. A second one quits: whatever is still in flight is lost.
    pub(super) fn wait(mut self) {
        if let Some(signal) = self.0.forever().next() {
            tracing::info!(signal, drain_s = DRAIN.as_secs(), "stopping");
        }
        std::thread::spawn(move || {
            if self.0.forever().next().is_some() {
                let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
            }
        });
    }
}

/// Says what a server has carried in its life.
pub(super) fn stopped(counters: &wire::Counters) {
    tracing::info!(
        connections = counters.total_connections,
        bytes_read = counters.bytes_read,
        bytes_written = counters.bytes_written,
        "stopped"
    );
}
