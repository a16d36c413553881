//! Resource usage of both sides and of the host, summed over a trial's slices.

use std::collections::BTreeMap;

use crate::observe::{Disturbance, Mark, Totals};

/// Readings around one slice.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) before: Mark,
    pub(super) after: Mark,
    /// The host's counters between the two.
    pub(super) totals: Totals,
}

impl Window {
    pub(super) fn length_ns(&self) -> u64 {
        self.after.at.saturating_sub(self.before.at)
    }
}

/// Readings of the target's processes around one slice. `None` is unseen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessReadings {
    pub(super) busiest_thread_ns: Option<u64>,
    pub(super) runnable_threads: Option<usize>,
    pub(super) written_bytes: Option<u64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) descriptors: Option<u64>,
    /// Connections lost at the target's own listening sockets.
    pub(super) listen_drops: Option<u64>,
}

/// The least part of all that disks were given to write by which it is the target's: a file system
/// with a journal writes an fsync of one block as up to four.
const WRITTEN_PART: f64 = 0.25;

impl ProcessReadings {
    /// Whether the target wrote so much of it that the work of the kernel's threads for disks is
    /// its own.
    pub(super) fn makes_disks_work(&self, totals: &Totals) -> bool {
        let to_disks = totals.figures.iter().find(|(name, _)| *name == "disk_written_bytes");
        let (Some(own), Some((_, all))) = (self.written_bytes, to_disks) else { return false };
        own > 0 && own as f64 >= WRITTEN_PART * all
    }
}

/// Sums over a trial's slices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    pub(super) watched_ns: u64,
    /// Whether the target is on another host.
    pub(super) is_elsewhere: bool,
    /// The cores that it may use, empty being all; `None` where its processes are unseen.
    pub(super) server_cpus: Option<Vec<usize>>,
    pub(super) totals: BTreeMap<&'static str, f64>,
    pub(super) softirq_s: BTreeMap<usize, f64>,
    pub(super) idle_ns: BTreeMap<usize, u64>,
    pub(super) stolen_ns: BTreeMap<usize, u64>,
    pub(super) foreign_ns: Option<u64>,
    pub(super) disk_work_ns: u64,
    pub(super) core_time_ns: u64,
    pub(super) longest_pause_ns: Option<u64>,
    pub(super) paused_ns: Option<u64>,
    pub(super) busiest_thread_ns: Option<u64>,
    pub(super) runnable_threads: Option<usize>,
    pub(super) written_bytes: Option<u64>,
    /// Connections lost at the target's own listening sockets; `None` unless seen in each slice.
    pub(super) listen_drops: Option<u64>,
    /// Time between the target's own slices, in which others were measured.
    pub(super) outside_ns: u64,
    /// CPU time that the target used then.
    pub(super) outside_cpu_ns: u64,
    /// Measured time so far with resident bytes and open files then.
    pub(super) resident: Vec<(f64, f64)>,
    pub(super) descriptors: Vec<(f64, f64)>,
}

impl Usage {
    /// Adds the time between two slices of the target.
    pub(super) fn add_outside(&mut self, time_ns: u64, cpu_ns: u64) {
        self.outside_ns += time_ns;
        self.outside_cpu_ns += cpu_ns;
    }

    /// Adds a slice that counts.
    pub(super) fn add(&mut self, window: &Window, seen: &Disturbance, processes: &ProcessReadings) {
        let earlier = if self.watched_ns == 0 { Some(0) } else { self.listen_drops };
        self.listen_drops = earlier.zip(processes.listen_drops).map(|(sum, more)| sum + more);
        self.watched_ns += seen.length_ns;
        for (figure, grown) in &window.totals.figures {
            *self.totals.entry(figure).or_insert(0.0) += grown;
        }
        for (cpu, seconds) in &window.totals.softirq_s {
            *self.softirq_s.entry(*cpu).or_insert(0.0) += seconds;
        }
        for after in &window.after.cores {
            let before = window.before.cores.iter().find(|before| before.cpu == after.cpu);
            let Some(before) = before else { continue };
            let idle_ns = after.idle_ns.saturating_sub(before.idle_ns);
            *self.idle_ns.entry(after.cpu).or_insert(0) += idle_ns;
            let stolen_ns = after.steal_ns.saturating_sub(before.steal_ns);
            *self.stolen_ns.entry(after.cpu).or_insert(0) += stolen_ns;
        }
        add(&mut self.foreign_ns, seen.foreign_ns);
        self.disk_work_ns += seen.disk_work_ns;
        self.core_time_ns += seen.core_time_ns;
        self.longest_pause_ns = self.longest_pause_ns.max(seen.longest_pause_ns);
        add(&mut self.paused_ns, seen.lost_ns);
        add(&mut self.busiest_thread_ns, processes.busiest_thread_ns);
        self.runnable_threads = self.runnable_threads.max(processes.runnable_threads);
        add(&mut self.written_bytes, processes.written_bytes);
        let at_s = self.watched_ns as f64 / 1e9;
        self.resident.extend(processes.resident_bytes.map(|bytes| (at_s, bytes as f64)));
        self.descriptors.extend(processes.descriptors.map(|count| (at_s, count as f64)));
    }
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0) + more);
    }
}
