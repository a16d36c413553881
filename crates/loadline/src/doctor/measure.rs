//! Short measurements of the host: its clock, timers, pauses, loopback and memory.

use std::time::Duration;

use lab::observe::{process_cpu_ns, thread_cpu};
use wire::clock::{MILLISECOND_NS, SECOND_NS, now};

/// How late a sleep ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) asked_ns: u64,
    pub(super) p50_late_ns: u64,
    pub(super) p99_late_ns: u64,
}

/// The pauses of a thread that does nothing but read the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floor {
    pub(super) watched_ns: u64,
    pub(super) longest_ns: u64,
    /// The sum of pauses over [`GAP_NS`].
    pub(super) lost_ns: u64,
    pub(super) count: u64,
    /// How long it waited for a core, which is other programs' doing.
    pub(super) waited_ns: u64,
}

/// Two readings of the clock that are further apart had a pause between them.
pub(super) const GAP_NS: u64 = 10_000;

/// The share of a core that this process uses while its main thread sleeps: what watching costs.
pub(super) fn watching() -> f64 {
    let (zero, before_ns) = (now(), process_cpu_ns());
    std::thread::sleep(Duration::from_secs(1));
    let used_ns = process_cpu_ns() - before_ns;
    used_ns as f64 / (now() - zero).max(1) as f64
}

/// Sleeps of two lengths.
pub(super) fn timers() -> Vec<Timer> {
    [(50_000, 2_000), (MILLISECOND_NS, 400)].map(|(asked_ns, times)| timer(asked_ns, times)).into()
}

fn timer(asked_ns: u64, times: usize) -> Timer {
    let mut late_ns: Vec<u64> = Vec::with_capacity(times);
    for _ in 0..times {
        let start = now();
        std::thread::sleep(Duration::from_nanos(asked_ns));
        late_ns.push((now() - start).saturating_sub(asked_ns));
    }
    let (p50_late_ns, p99_late_ns) = quantiles(&mut late_ns);
    Timer { asked_ns, p50_late_ns, p99_late_ns }
}

/// Reads the clock for two seconds and notes the gaps.
pub(super) fn floor() -> Floor {
    let waited_ns = thread_cpu().waited_ns;
    let mut floor = Floor::default();
    let start = now();
    let mut last = start;
    while last - start < 2 * SECOND_NS {
        let at = now();
        let gap_ns = at - last;
        if gap_ns > GAP_NS {
            floor.longest_ns = floor.longest_ns.max(gap_ns);
            floor.lost_ns += gap_ns;
            floor.count += 1;
        }
        last = at;
    }
    floor.watched_ns = last - start;
    floor.waited_ns = thread_cpu().waited_ns - waited_ns;
    floor
}

/// The median and the 99th percentile.
fn quantiles(values: &mut [u64]) -> (u64, u64) {
    values.sort_unstable();
    let at = |q: f64| values.get((values.len() as f64 * q) as usize).copied().unwrap_or(0);
    (at(0.5), at(0.99))
}

#[test]
fn quantiles_are_of_the_sorted_values() {
    let mut values: Vec<u64> = (0..1000).rev().collect();
    assert_eq!(quantiles(&mut values), (500, 990));
    assert_eq!(quantiles(&mut []), (0, 0));
}
