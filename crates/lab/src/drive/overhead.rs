//! The engine's own cost: all that it does for an operation but the system calls, with every answer
//! checked and every latency recorded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use load::{Scenario, Speaks, null};
use wire::clock;

use super::arrivals::Arrivals;
use super::config::{Command, WorkerConfig};
use super::result::LoadResult;
use super::slot::SlotConfig;
use super::transport::{Mirror, Transport};
use super::worker::Worker;

/// Loads a mirror for `length_ns` nanoseconds, with `pipeline` requests under way on each of the
/// connections: their cost is the result's CPU time. Runs on the calling thread, which is pinned
/// to `cpu` if one is named.
///
/// # Errors
/// When the thread can't be pinned.
pub fn overhead(
    connections: usize,
    pipeline: usize,
    length_ns: u64,
    cpu: Option<usize>,
) -> io::Result<LoadResult> {
    let mut worker = worker(connections, pipeline, cpu, Mirror::default())?;
    worker.execute(Command::Run(length_ns / 10));
    Ok(worker.execute(Command::Run(length_ns)))
}

/// A worker of a closed loop of eight bytes there and back.
fn worker<T: Transport>(
    connections: usize,
    pipeline: usize,
    cpu: Option<usize>,
    transport: T,
) -> io::Result<Worker<T>> {
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
    Worker::open(config, slot_config, transport)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use rustix::io::Errno;
    use wire::stream::{FlushOutcome, ReadOutcome};
    use wire::{Input, Interest, Outcome, Output};

    use super::*;

    #[test]
    fn what_comes_back_by_itself_is_counted_and_right() {
        let result = overhead(3, 4, 200_000_000, None).unwrap();
        assert_eq!((result.counts.wrong, result.counts.missing), (0, 0));
        assert!(result.counts.operations > 100, "{:?}", result.counts);
        let recorded: u64 = result.intervals.iter().map(|one| one.histogram.len()).sum();
        assert_eq!(recorded, result.counts.operations);
        assert_eq!(result.trouble, None);
    }

    /// A mirror of whose submissions the kernel takes, fills and sends only parts.
    struct Faulty {
        mirror: Mirror,
        random: SmallRng,
        outcomes: Vec<Outcome>,
        /// How many calls of submissions were refused, found nothing, and were short.
        faults: [u64; 3],
    }

    impl Faulty {
        /// The error of the next call, or how many of its bytes it moves.
        fn next(&mut self, bytes: usize) -> Outcome {
            let (fault, outcome) = match self.random.random_range(0..8) {
                0 => (0, Err(Errno::CANCELED)),
                1 => (1, Err(Errno::AGAIN)),
                2 if bytes > 1 => (2, Ok(self.random.random_range(1..bytes))),
                _ => return Ok(bytes),
            };
            self.faults[fault] += 1;
            outcome
        }
    }

    impl Transport for Faulty {
        fn connect(&mut self, index: usize) -> io::Result<()> {
            self.mirror.connect(index)
        }

        fn connected(&self, index: usize) -> io::Result<()> {
            self.mirror.connected(index)
        }

        fn watch(&self, index: usize, interest: Interest) -> io::Result<()> {
            self.mirror.watch(index, interest)
        }

        fn leave(&mut self, index: usize) {
            self.mirror.leave(index);
        }

        fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
            self.mirror.wait(timeout_ns)
        }

        fn ready(&self, event: usize) -> usize {
            self.mirror.ready(event)
        }

        fn read(&mut self, index: usize, input: &mut Input, limit: usize) -> ReadOutcome {
            self.mirror.read(index, input, limit)
        }

        fn flush(&mut self, index: usize, output: &mut Output, most: usize) -> FlushOutcome {
            self.mirror.flush(index, output, most)
        }

        fn max_submission(&self) -> usize {
            self.mirror.max_submission()
        }

        fn submit_reads<'a>(
            &mut self,
            jobs: impl Iterator<Item = (usize, &'a mut [u8])>,
        ) -> &[Outcome] {
            self.outcomes.clear();
            for (index, space) in jobs {
                let outcome = self.next(space.len().min(9)).and_then(|most| {
                    let most = if most == 9 { space.len() } else { most };
                    self.mirror.submit_reads(std::iter::once((index, &mut space[..most])))[0]
                });
                if outcome.is_err() {
                    self.mirror.queue(index);
                }
                self.outcomes.push(outcome);
            }
            &self.outcomes
        }

        fn submit_sends<'a>(
            &mut self,
            jobs: impl Iterator<Item = (usize, &'a [u8])>,
        ) -> &[Outcome] {
            self.outcomes.clear();
            for (index, bytes) in jobs {
                let outcome = self.next(bytes.len()).and_then(|most| {
                    self.mirror.submit_sends(std::iter::once((index, &bytes[..most])))[0]
                });
                self.outcomes.push(outcome);
            }
            &self.outcomes
        }
    }

    #[test]
    fn submissions_that_are_refused_blocked_or_cut_short_lose_nothing() {
        let (mirror, random) = (Mirror::default(), SmallRng::seed_from_u64(5));
        let transport = Faulty { mirror, random, outcomes: Vec::new(), faults: [0; 3] };
        let mut worker = worker(70, 3, None, transport).unwrap();
        let result = worker.execute(Command::Run(50_000_000));
        assert_eq!((result.counts.wrong, result.counts.missing, result.trouble), (0, 0, None));
        assert!(result.counts.operations >= 210, "{:?}", result.counts);
        assert!(worker.transport.faults.iter().all(|count| *count > 0));
        assert_eq!(result.counts.sent_bytes, 8 * result.counts.operations);
        assert_eq!(result.counts.received_bytes, result.counts.sent_bytes);
    }
}
