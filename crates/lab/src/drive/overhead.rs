//! What the engine itself costs: all that it does for an operation but the system calls, with
//! every answer checked and every latency recorded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use load::{Client, WorkloadSpec, null};
use wire::clock;

use super::record::Piece;
use super::slot::Origin;
use super::transport::Mirror;
use super::worker::{Duty, Order, Worker};
use crate::plan::Arrivals;

/// Loads nothing at all for `length_ns` nanoseconds, with so many requests under way on each of so
/// many connections: what they cost is in the piece's CPU time. Runs on the calling thread, which
/// is pinned to `cpu` if one is named.
///
/// # Errors
/// When the thread can't be pinned.
pub fn overhead(
    connections: usize,
    pipeline: usize,
    length_ns: u64,
    cpu: Option<usize>,
) -> io::Result<Piece> {
    let text = format!("service = '{}'\noperation = 'ask'", null::SERVICE.name);
    let spec: WorkloadSpec = toml::from_str(&text).map_err(io::Error::other)?;
    let workload = spec.resolve(&null::SERVICE).map_err(io::Error::other)?;
    let Client::Stream(make) = null::DIALECT.client else {
        return Err(io::Error::other("the null service has no stream"));
    };
    let oracle = workload.oracle();
    let duty = Duty {
        group: 0,
        workload,
        arrivals: Arrivals::Closed,
        spin: false,
        slots: 0..connections,
        thread: (0, 1),
        timeout_ns: 1_000_000_000,
        cpu,
        round: 1,
        clock_zero: clock::now(),
        stop: Arc::new(AtomicBool::new(false)),
        onlooker: None,
    };
    let origin = Origin { make, datagrams: false, oracle, depth: pipeline, reconnect_every: None };
    let mut worker = Worker::open(duty, origin, Mirror::default())?;
    worker.obey(Order::Run(length_ns / 10));
    Ok(worker.obey(Order::Run(length_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_by_itself_is_counted_and_right() {
        let piece = overhead(3, 4, 20_000_000, None).unwrap();
        assert_eq!((piece.counts.wrong, piece.counts.missing), (0, 0));
        assert!(piece.counts.operations > 100, "{:?}", piece.counts);
        let recorded: u64 = piece.intervals.iter().map(|one| one.histogram.len()).sum();
        assert_eq!(recorded, piece.counts.operations);
        assert_eq!(piece.trouble, None);
    }
}
