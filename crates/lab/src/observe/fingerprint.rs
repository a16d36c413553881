//! What the host and this program are: recorded with every run, because a figure without its host
//! can't be compared with anything. What can't be read is left out, which means unseen.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::sensors::quota::Quota;

/// Reads the host and the program `exe`.
pub fn fingerprint(exe: &Path) -> Value {
    fingerprint_with(exe, &[])
}

/// Reads the host and the program `exe`; `extra` are facts that only the caller knows, such as the
/// commit and the compiler. They stand beside the others by their names.
pub fn fingerprint_with(exe: &Path, extra: &[(&str, String)]) -> Value {
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
    for (name, read) in FACTS {
        add(name, read());
    }
    let program = fs::read(exe).ok();
    add("program_version", Some(env!("CARGO_PKG_VERSION").to_owned()));
    add("program_sha256", program.as_deref().map(sha256));
    add("program_bytes", program.map(|bytes| bytes.len().to_string()));
    for (name, value) in extra {
        add(name, Some(value.clone()));
    }
    Value::Object(seen)
}

/// The SHA-256 of `bytes` in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One line each: what it is called, and the file whose first line says it.
const FILES: &[(&str, &str)] = &[
    ("kernel", "/proc/sys/kernel/osrelease"),
    ("kernel_build", "/proc/sys/kernel/version"),
    ("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("frequency_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
    ("boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("isolated_cpus", "/sys/devices/system/cpu/isolated"),
    ("numa_nodes", "/sys/devices/system/node/online"),
    ("huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("huge_pages_defrag", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ("huge_pages_reserved", "/proc/sys/vm/nr_hugepages"),
    ("swappiness", "/proc/sys/vm/swappiness"),
    ("address_randomisation", "/proc/sys/kernel/randomize_va_space"),
    ("congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ("queue_discipline", "/proc/sys/net/core/default_qdisc"),
    ("listen_backlog_limit", "/proc/sys/net/core/somaxconn"),
    ("receive_buffer_limit_bytes", "/proc/sys/net/core/rmem_max"),
    ("local_ports", "/proc/sys/net/ipv4/ip_local_port_range"),
    ("hypervisor", "/sys/hypervisor/type"),
    ("machine", "/sys/class/dmi/id/product_name"),
];

/// One line each: what it is called, the file, and the field in it.
const FIELDS: &[(&str, &str, &str)] = &[
    ("cpu", "/proc/cpuinfo", "model name"),
    ("cpu_microcode", "/proc/cpuinfo", "microcode"),
    ("memory", "/proc/meminfo", "MemTotal"),
    ("swap", "/proc/meminfo", "SwapTotal"),
    ("open_files_limit", "/proc/self/limits", "Max open files"),
    ("processes_limit", "/proc/self/limits", "Max processes"),
    ("locked_memory_limit", "/proc/self/limits", "Max locked memory"),
    ("priority_limit", "/proc/self/limits", "Max realtime priority"),
    ("cpus_allowed", "/proc/self/status", "Cpus_allowed_list"),
];

/// What it is called, and how it is found out.
type Fact = (&'static str, fn() -> Option<String>);

/// What takes more than a line of a file to say.
const FACTS: &[Fact] = &[
    ("cpus", || Some(crate::cpus::cpus_here().len().to_string())),
    ("cpu_quota", cpu_quota),
    ("caches", || caches(Path::new("/sys/devices/system/cpu/cpu0/cache"))),
    ("mitigations", || mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities"))),
    ("mitigations_asked", || mitigations_asked(&fs::read_to_string("/proc/cmdline").ok()?)),
    ("virtual_machine", || Some(is_virtual(&fs::read_to_string("/proc/cpuinfo").ok()?))),
    ("timer_frequency_hz", timer_frequency),
    ("timer_slack_ns", || first_line("/proc/self/timerslack_ns")),
    ("program_build", || Some(if cfg!(debug_assertions) { "debug" } else { "release" }.into())),
    ("program_target", || Some(format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))),
];

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn field(path: &str, key: &str) -> Option<String> {
    field_of(&fs::read_to_string(path).ok()?, key)
}

fn field_of(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    let value = value.trim().trim_start_matches(':').trim();
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// `1.50 cores`, or `none`.
fn cpu_quota() -> Option<String> {
    match Quota::here() {
        Quota::Unseen => None,
        Quota::Unlimited => Some("none".to_owned()),
        Quota::Limited(_, cores) => Some(format!("{cores:.2} cores")),
    }
}

/// `L1d 32K, L1i 32K, L2 1024K, L3 36608K`, of the first core.
fn caches(folder: &Path) -> Option<String> {
    let mut caches = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let read = |file| Some(fs::read_to_string(entry.path().join(file)).ok()?.trim().to_owned());
        let (Some(level), Some(size)) = (read("level"), read("size")) else { continue };
        let kind = match read("type").as_deref() {
            Some("Data") => "d",
            Some("Instruction") => "i",
            _ => "",
        };
        caches.push(format!("L{level}{kind} {size}"));
    }
    caches.sort();
    Some(caches.join(", "))
}

/// What the kernel does against each fault of this CPU: only those that it has.
fn mitigations(folder: &Path) -> Option<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let Ok(text) = fs::read_to_string(entry.path()) else { continue };
        if text.trim() != "Not affected" {
            all.push(format!("{}: {}", entry.file_name().display(), text.trim()));
        }
    }
    all.sort();
    Some(all.join("; "))
}

/// The whole command line of the kernel may name hosts and disks; only this word of it counts.
fn mitigations_asked(command_line: &str) -> Option<String> {
    let found = command_line.split_whitespace().find(|word| word.starts_with("mitigations="));
    found.map(str::to_owned)
}

/// Every x86 hypervisor shows itself by this flag of the CPU.
fn is_virtual(cpuinfo: &str) -> String {
    let flags = field_of(cpuinfo, "flags").unwrap_or_default();
    let found = flags.split_whitespace().any(|flag| flag == "hypervisor");
    if found { "yes" } else { "not that it shows" }.to_owned()
}

/// From the kernel's own configuration, where it is kept beside the kernel.
fn timer_frequency() -> Option<String> {
    let release = first_line("/proc/sys/kernel/osrelease")?;
    let configuration = fs::read_to_string(format!("/boot/config-{release}")).ok()?;
    timer_frequency_in(&configuration)
}

fn timer_frequency_in(configuration: &str) -> Option<String> {
    configuration.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names_and_read_as_recorded() {
        let limits = "Limit                     Soft Limit           Hard Limit      Units\n\
            Max open files            1024                 1048576              files     \n";
        assert_eq!(field_of(limits, "Max open files").unwrap(), "1024 1048576 files");
        let cpuinfo = "model name\t: Intel(R) Xeon(R) CPU\nflags\t\t: fpu tsc hypervisor\n";
        assert_eq!(field_of(cpuinfo, "model name").unwrap(), "Intel(R) Xeon(R) CPU");
        assert_eq!(field_of(cpuinfo, "microcode"), None);
        assert_eq!(is_virtual(cpuinfo), "yes");
        assert_eq!(is_virtual("flags : fpu tsc"), "not that it shows");
        let configuration = "# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n";
        assert_eq!(timer_frequency_in(configuration).unwrap(), "250");
        let command_line = "root=/dev/sda1 mitigations=off quiet";
        assert_eq!(mitigations_asked(command_line).unwrap(), "mitigations=off");
        assert_eq!(mitigations_asked("quiet"), None);
    }

    #[test]
    fn caches_and_mitigations_are_read_from_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        for (index, level, kind, size) in [(3, "3", "Unified", "36608K"), (0, "1", "Data", "32K")] {
            let cache = folder.path().join(format!("index{index}"));
            fs::create_dir(&cache).unwrap();
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(cache.join(file), format!("{text}\n")).unwrap();
            }
        }
        assert_eq!(caches(folder.path()).unwrap(), "L1d 32K, L3 36608K");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("meltdown"), "Not affected\n").unwrap();
        fs::write(folder.path().join("spectre_v1"), "Mitigation: barriers\n").unwrap();
        assert_eq!(mitigations(folder.path()).unwrap(), "spectre_v1: Mitigation: barriers");
        assert_eq!(caches(&folder.path().join("none")), None);
    }

    #[test]
    fn what_only_the_caller_knows_stands_beside_the_rest() {
        let exe = tempfile::NamedTempFile::new().unwrap();
        fs::write(exe.path(), "program").unwrap();
        let seen = fingerprint_with(exe.path(), &[("commit", "abc".into()), ("flags", "".into())]);
        assert_eq!(seen["commit"], "abc");
        assert_eq!(seen.get("flags"), None, "what is empty is unseen");
        assert_eq!(seen["program_bytes"], "7");
        assert!(seen["program_sha256"].as_str().is_some_and(|hash| hash.len() == 64));
        assert!(fingerprint(exe.path()).get("commit").is_none());
    }
}
