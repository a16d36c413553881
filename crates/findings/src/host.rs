//! What makes two runs comparable: the kind of host, and the facts that are a factor when they
//! differ.

use serde_json::{Map, Value};

/// Facts that make a kind of host, with the factor that a difference in them is.
const KIND: &[(&str, &str)] = &[
    ("cpu", "host"),
    ("cpus", "host"),
    ("cpus_allowed", "host"),
    ("caches", "host"),
    ("memory", "host"),
    ("machine", "host"),
    ("hypervisor", "host"),
    ("virtual_machine", "host"),
    ("governor", "host"),
    ("boost", "host"),
    ("smt", "host"),
    ("program_build", "flags"),
    ("program_target", "flags"),
];

/// Further facts that may move figures, with the factor that a difference in them is.
const FACTORS: &[(&str, &str)] = &[
    ("kernel", "kernel"),
    ("kernel_build", "kernel"),
    ("mitigations", "kernel"),
    ("huge_pages", "kernel"),
    ("congestion_control", "kernel"),
    ("compiler", "compiler"),
    ("compiler_flags", "flags"),
];

/// A fact that differs between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name in the fingerprint.
    pub name: &'static str,
    /// Its name as a factor: `host`, `kernel`, `compiler` or `flags`.
    pub factor: &'static str,
    /// Of the first run; empty is unseen.
    pub a: String,
    /// Of the second.
    pub b: String,
}

/// The facts in which two fingerprints differ and that may move figures.
pub fn differences(a: &Map<String, Value>, b: &Map<String, Value>) -> Vec<Difference> {
    let differs = |(name, factor): &(&'static str, &'static str)| {
        let (a, b) = (said(a, name), said(b, name));
        (a != b).then_some(Difference { name, factor, a, b })
    };
    KIND.iter().chain(FACTORS).filter_map(differs).collect()
}

/// The facts that make a kind of host, by name.
pub(crate) fn kind_of(fingerprint: &Map<String, Value>) -> Vec<(&'static str, String)> {
    KIND.iter().map(|(name, _)| (*name, said(fingerprint, name))).collect()
}

/// A kind of host in a few words.
pub(crate) fn kind_words(kind: &[(&'static str, String)]) -> String {
    let shown = ["cpu", "cpus", "memory", "program_build"];
    let said = kind.iter().filter(|(name, value)| shown.contains(name) && !value.is_empty());
    let words: Vec<String> = said
        .map(|(name, value)| match *name {
            "cpus" => format!("{value} CPUs"),
            _ => value.clone(),
        })
        .collect();
    if words.is_empty() { "unseen".to_owned() } else { words.join(" · ") }
}

/// A fact as text. Memory is rounded: a virtual machine's differs by a few pages from boot to boot.
fn said(fingerprint: &Map<String, Value>, name: &str) -> String {
    let text = fingerprint.get(name).and_then(Value::as_str).unwrap_or_default();
    let kib = || text.strip_suffix(" kB")?.parse::<f64>().ok();
    match (name, kib()) {
        ("memory", Some(kib)) => format!("{:.1} GiB", kib / f64::from(1 << 20)),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn differences_are_named_by_their_factor_and_small_ones_of_memory_are_none() {
        let a = map(&json!({"cpu": "X", "memory": "16384000 kB", "compiler": "rustc 1.94"}));
        let b = map(&json!({"cpu": "X", "memory": "16384124 kB", "compiler": "rustc 1.95"}));
        let found = differences(&a, &b);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name, found[0].factor), ("compiler", "compiler"));
        assert_eq!(kind_of(&a), kind_of(&b));
        assert_eq!(kind_words(&kind_of(&a)), "X · 15.6 GiB");
        assert_eq!(differences(&a, &Map::new()).len(), 3);
    }
}
