//! What the host and this program are: recorded with every run, because a figure without its host
//! can't be compared with anything. What can't be read is left out, which means unseen.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Reads the host and the program `exe`.
pub fn fingerprint(exe: &Path) -> Value {
    let mut seen = Map::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            seen.insert(name.to_owned(), Value::String(value));
        }
    };
    for (name, path) in FILES {
        add(name, first_line(path));
    }
    for (name, path, key) in FIELDS {
        add(name, field(path, key));
    }
    add("cpus", Some(crate::deploy::cpus_here().len().to_string()));
    add("program_version", Some(env!("CARGO_PKG_VERSION").to_owned()));
    add("program_sha256", fs::read(exe).ok().map(|bytes| sha256(&bytes)));
    Value::Object(seen)
}

/// The SHA-256 of `bytes` in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One line each: what it is called, and the file that says it.
const FILES: &[(&str, &str)] = &[
    ("kernel", "/proc/sys/kernel/osrelease"),
    ("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("queue_discipline", "/proc/sys/net/core/default_qdisc"),
    ("listen_backlog_limit", "/proc/sys/net/core/somaxconn"),
    ("hypervisor", "/sys/hypervisor/type"),
    ("machine", "/sys/class/dmi/id/product_name"),
];

/// One line each: what it is called, the file, and the field in it.
const FIELDS: &[(&str, &str, &str)] = &[
    ("cpu", "/proc/cpuinfo", "model name"),
    ("cpu_microcode", "/proc/cpuinfo", "microcode"),
    ("memory", "/proc/meminfo", "MemTotal"),
    ("open_files_limit", "/proc/self/limits", "Max open files"),
];

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

fn field(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let value = line[key.len()..].trim().trim_start_matches(':').trim();
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}
