//! How often the CPU quota of the run's control group stopped its threads.
//!
//! Version 2: `cpu.max` and `cpu.stat` (Documentation/admin-guide/cgroup-v2.rst); version 1:
//! `cpu.cfs_quota_us`, `cpu.cfs_period_us` and `cpu.stat` (Documentation/scheduler/sched-bwc.rst).
//! Any group above has its quota, too: the smallest counts.

use std::path::{Path, PathBuf};

use super::super::sensor::{Line, Probe, Reader, Scope, Sensor};
use super::super::source::{Scratch, Source, value_of};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "quota",
    doc: "periods of the control group's CPU quota, those in which threads were stopped because \
          it was used up, and for how long they were; nothing without a quota",
    source: "cpu.stat of the control group",
    unseen: "where control groups for CPU time aren't mounted under /sys/fs/cgroup",
    every: 1,
    series: &[
        Line::rate("periods"),
        Line::rate("throttled_periods"),
        Line::share("throttled", "cores"),
    ],
    of: Reader::Host(|_: &Scope| Box::new(QuotaReader::open())),
};

/// Where control groups are mounted.
const MOUNTS: &str = "/sys/fs/cgroup";

/// The quota of the group that this process is in.
#[derive(Debug, PartialEq)]
pub(in super::super) enum Quota {
    Unseen,
    Unlimited,
    /// The folder of the group with the smallest quota, in cores.
    Limited(PathBuf, f64),
}

impl Quota {
    pub(in super::super) fn here() -> Self {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::find(&groups, Path::new(MOUNTS))
    }

    fn find(groups: &str, mounts: &Path) -> Self {
        let mut found = Self::Unseen;
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let folders = match controllers {
                "" => vec![mounts.to_owned(), mounts.join("unified")],
                _ if controllers.split(',').any(|one| one == "cpu") => {
                    vec![mounts.join(controllers), mounts.join("cpu")]
                }
                _ => continue,
            };
            let is_root = |folder: &&PathBuf| {
                let file = if controllers.is_empty() { "cgroup.controllers" } else { "cpu.stat" };
                folder.join(file).exists()
            };
            let Some(root) = folders.iter().find(is_root) else { continue };
            // A path outside of a container's view begins with `/..`; its own root is seen.
            let inner = path.trim_start_matches('/');
            let own = if inner.contains("..") { root.clone() } else { root.join(inner) };
            for folder in own.ancestors().take_while(|folder| folder.starts_with(root)) {
                let least = match &found {
                    Self::Limited(_, least) => *least,
                    _ => f64::INFINITY,
                };
                match quota_cores(folder).filter(|cores| *cores < least) {
                    Some(cores) => found = Self::Limited(folder.to_owned(), cores),
                    None if found == Self::Unseen => found = Self::Unlimited,
                    None => {}
                }
            }
        }
        found
    }
}

/// A group's own quota in cores; `None` without one.
fn quota_cores(group: &Path) -> Option<f64> {
    let read = |file| std::fs::read_to_string(group.join(file)).ok();
    let numbers = |text: &str| -> Option<(f64, f64)> {
        let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
        Some((words.next()??, words.next()??))
    };
    let text = read("cpu.max")
        .or_else(|| Some(read("cpu.cfs_quota_us")? + " " + &read("cpu.cfs_period_us")?))?;
    let (quota, period) = numbers(&text)?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Reads the counters of the quota.
#[derive(Debug)]
pub(in super::super) struct QuotaReader {
    source: Option<Source>,
    is_seen: bool,
}

impl QuotaReader {
    pub(in super::super) fn open() -> Self {
        match Quota::here() {
            Quota::Limited(group, _) => {
                let source = group.join("cpu.stat").to_str().map(Source::open);
                Self { source, is_seen: true }
            }
            other => Self { source: None, is_seen: other == Quota::Unlimited },
        }
    }

    /// Periods so far and those in which threads were stopped; `None` without a quota.
    pub(in super::super) fn periods(&self, scratch: &mut Scratch) -> Option<[u64; 2]> {
        let [periods, throttled, _] = parse(self.source.as_ref()?.read(scratch)?)?;
        Some([periods, throttled])
    }
}

impl Probe for QuotaReader {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let seen = match &self.source {
            Some(source) => source.read(scratch).and_then(parse),
            None => self.is_seen.then_some([0; 3]),
        };
        readings.copy_from_slice(&seen.map_or([None; 3], |seen| seen.map(Some)));
    }
}

/// Periods, those throttled, and for how many nanoseconds, of all cores together.
fn parse(text: &[u8]) -> Option<[u64; 3]> {
    let in_us = value_of(text, b"throttled_usec ").map(|us| us * 1_000);
    let throttled_ns = in_us.or_else(|| value_of(text, b"throttled_time "))?;
    Some([value_of(text, b"nr_periods ")?, value_of(text, b"nr_throttled ")?, throttled_ns])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_both_versions_are_read_as_they_were_recorded() {
        let first = b"nr_periods 220\nnr_throttled 22\nthrottled_time 1234567890\nnr_bursts 0\n";
        assert_eq!(parse(first), Some([220, 22, 1_234_567_890]));
        let second = b"usage_usec 800\nuser_usec 600\nsystem_usec 200\nnr_periods 220\n\
            nr_throttled 22\nthrottled_usec 1234567\n";
        assert_eq!(parse(second), Some([220, 22, 1_234_567_000]));
        assert_eq!(parse(b"usage_usec 800\n"), None, "the root group counts no periods");
    }

    fn write(folder: &Path, files: &[(&str, &str)]) {
        std::fs::create_dir_all(folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
    }

    #[test]
    fn the_smallest_quota_of_the_group_and_those_above_it_counts() {
        let mounts = tempfile::tempdir().unwrap();
        let root = mounts.path();
        assert_eq!(Quota::find("0::/a/b\n", root), Quota::Unseen);
        write(root, &[("cgroup.controllers", "cpu io\n")]);
        write(&root.join("a/b"), &[("cpu.max", "max 100000\n")]);
        assert_eq!(Quota::find("0::/a/b\n", root), Quota::Unlimited);
        write(&root.join("a"), &[("cpu.max", "50000 100000\n")]);
        write(&root.join("a/b"), &[("cpu.max", "150000 100000\n")]);
        let limited = Quota::Limited(root.join("a"), 0.5);
        assert_eq!(Quota::find("0::/a/b\n", root), limited);
        // In a container its own group is the root of what it sees.
        write(root, &[("cpu.max", "20000 100000\n")]);
        let limited = Quota::Limited(root.to_owned(), 0.2);
        assert_eq!(Quota::find("0::/../../other\n", root), limited);
    }

    #[test]
    fn version_1_has_a_folder_for_its_controllers_and_quotas_in_two_files() {
        let mounts = tempfile::tempdir().unwrap();
        let root = mounts.path().join("cpu,cpuacct");
        write(&root, &[("cpu.stat", ""), ("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "7")]);
        let groups = "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n0::/\n";
        assert_eq!(Quota::find(groups, mounts.path()), Quota::Unlimited);
        let files = [("cpu.cfs_quota_us", "150000\n"), ("cpu.cfs_period_us", "100000\n")];
        write(&root.join("docker/x"), &files);
        let limited = Quota::Limited(root.join("docker/x"), 1.5);
        assert_eq!(Quota::find(groups, mounts.path()), limited);
    }
}
