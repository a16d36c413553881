//! What the simplest things cost on this host: the floors under what an operation costs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use wire::clock::now;

use crate::cpus::{cpus_here, pin_this_thread};

/// A request and its answer over loopback, one at a time.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
}

/// Every floor by name, in nanoseconds; what can't be measured is left out. Takes half a second.
pub fn floors() -> Vec<(&'static str, f64)> {
    let mut floors = vec![("clock_read", clock_read_ns()), ("system_call", system_call_ns())];
    if let Ok(trip) = round_trip(&cpus_here(), 10_000) {
        floors.push(("round_trip", trip.p50_ns as f64));
    }
    floors
}

/// What one reading of the clock costs.
pub fn clock_read_ns() -> f64 {
    each_ns(1_000_000, || {
        std::hint::black_box(now());
    })
}

/// What the shortest system call costs.
pub fn system_call_ns() -> f64 {
    each_ns(1_000_000, || {
        std::hint::black_box(rustix::process::getppid());
    })
}

fn each_ns(times: u32, mut what: impl FnMut()) -> f64 {
    let start = now();
    for _ in 0..times {
        what();
    }
    (now() - start) as f64 / f64::from(times)
}

/// Sixteen bytes there and back between two threads, on two cores where there are two.
///
/// # Errors
/// When loopback can't be used.
pub fn round_trip(cpus: &[usize], times: usize) -> std::io::Result<RoundTrip> {
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
            let mut times_ns = Vec::with_capacity(times);
            let mut message = [7; 16];
            for _ in 0..times {
                let start = now();
                client.write_all(&message)?;
                client.read_exact(&mut message)?;
                times_ns.push(now() - start);
            }
            times_ns.sort_unstable();
            let at = |q: f64| times_ns.get((times as f64 * q) as usize).copied().unwrap_or(0);
            Ok(RoundTrip { p50_ns: at(0.5), p99_ns: at(0.99) })
        });
        client_side.join().unwrap_or_else(|_| Err(std::io::Error::other("the client ended")))
    })
}
