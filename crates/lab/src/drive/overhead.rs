//! What the engine itself costs: all that it does for an operation but the system calls, with
//! every answer checked and every latency recorded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use load::{Scenario, Speaks, null};
use wire::clock;

use super::arrivals::Arrivals;
use super::config::{Command, WorkerConfig};
use super::result::LoadResult;
use super::slot::SlotConfig;
use super::transport::Mirror;
use super::worker::Worker;

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
) -> io::Result<LoadResult> {
    let text = format!("service = '{}'\noperation = 'ask'", null::SERVICE.name);
    let scenario = Scenario::parse(&text, &null::SERVICE).map_err(io::Error::other)?;
    let workload = scenario.begin();
    let config = WorkerConfig {
        group: 0,
        scenario,
        workload: workload.clone(),
        arrivals: Arrivals::Closed,
        spin: false,
        slots: 0..connections,
        thread: (0, 1),
        timeout_ns: 1_000_000_000,
        cpu,
        round: 1,
        clock_zero: clock::now(),
        stop: Arc::new(AtomicBool::new(false)),
        live: None,
    };
    let speaks = Speaks::plainly(&null::DIALECT);
    let (datagrams, depth, reconnect_every) = (false, pipeline, None);
    let slot_config = SlotConfig { workload, speaks, datagrams, depth, reconnect_every };
    let mut worker = Worker::open(config, slot_config, Mirror::default())?;
    worker.execute(Command::Run(length_ns / 10));
    Ok(worker.execute(Command::Run(length_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_by_itself_is_counted_and_right() {
        let result = overhead(3, 4, 20_000_000, None).unwrap();
        assert_eq!((result.counts.wrong, result.counts.missing), (0, 0));
        assert!(result.counts.operations > 100, "{:?}", result.counts);
        let recorded: u64 = result.intervals.iter().map(|one| one.histogram.len()).sum();
        assert_eq!(recorded, result.counts.operations);
        assert_eq!(result.trouble, None);
    }
}
