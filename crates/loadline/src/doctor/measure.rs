//! Short measurements of the host: its clock, timers, pauses, loopback and memory.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use lab::deploy::pin_this_thread;
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

/// A request and its answer over loopback, one at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
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

/// What one reading of the clock costs.
pub(super) fn clock_read_ns() -> f64 {
    const READINGS: u32 = 1_000_000;
    let start = now();
    for _ in 0..READINGS {
        std::hint::black_box(now());
    }
    (now() - start) as f64 / f64::from(READINGS)
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

/// Sixteen bytes there and back between two threads, on two cores where there are two.
pub(super) fn round_trip(cpus: &[usize]) -> std::io::Result<RoundTrip> {
    const TIMES: usize = 20_000;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = pin_this_thread(&cpus[..cpus.len().min(1)]);
            let mut message = [0; 16];
            while server.read_exact(&mut message).is_ok() && server.write_all(&message).is_ok() {}
        });
        let client_side = scope.spawn(move || {
            let _ = pin_this_thread(&cpus[cpus.len().saturating_sub(1)..]);
            let mut times_ns = Vec::with_capacity(TIMES);
            let mut message = [7; 16];
            for _ in 0..TIMES {
                let start = now();
                client.write_all(&message)?;
                client.read_exact(&mut message)?;
                times_ns.push(now() - start);
            }
            let (p50_ns, p99_ns) = quantiles(&mut times_ns);
            Ok(RoundTrip { p50_ns, p99_ns })
        });
        client_side.join().unwrap_or_else(|_| Err(std::io::Error::other("the client ended")))
    })
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
