//! The result of a run of load: counts, latencies by operation and second, wrong answers.

use load::{Cost, Done, Finding};
use wire::Ns;

use super::interval::Interval;
use super::slowest::Slowest;
use super::streams::StreamSum;
use super::stretches::{self, StretchSum};
use super::timed::Pressure;
use crate::observe::Cpu;

/// Operations by outcome. One operation is one answer or one update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations answered: rightly, wrongly, or with a refusal.
    pub operations: u64,
    /// Operations answered wrongly.
    pub wrong: u64,
    /// Operations that the target refused in good order.
    pub refused: u64,
    /// Reads answered with a value.
    pub hits: u64,
    /// Operations answered with "not there".
    pub misses: u64,
    /// Requests not answered in time, and streams that brought nothing.
    pub missing: u64,
    /// Updates that streams have brought; they are operations too.
    pub updates: u64,
    /// Elements of the values that came or were written, where values have elements.
    pub elements: u64,
    /// The bytes of these elements.
    pub payload_bytes: u64,
    /// Bytes received by the sockets.
    pub received_bytes: u64,
    /// Bytes sent by the sockets.
    pub sent_bytes: u64,
    /// Operations whose answers were not checked.
    pub unchecked: u64,
    /// Connections that broke under the load and were made again.
    pub broken: u64,
}

impl Counts {
    /// Adds the counts of another thread or run.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.wrong += other.wrong;
        self.refused += other.refused;
        self.hits += other.hits;
        self.misses += other.misses;
        self.missing += other.missing;
        self.updates += other.updates;
        self.elements += other.elements;
        self.payload_bytes += other.payload_bytes;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.unchecked += other.unchecked;
        self.broken += other.broken;
    }

    pub(super) fn done(&mut self, done: &Done, reads: bool) {
        self.operations += u64::from(done.answers);
        let found = done.answers.saturating_sub(done.misses).saturating_sub(done.refused);
        self.hits += if reads { u64::from(found) } else { 0 };
        self.wrong += u64::from(done.wrong);
        self.refused += u64::from(done.refused);
        self.misses += u64::from(done.misses);
    }
}

/// A wrong answer or a refusal, and when it came.
#[derive(Clone, Debug)]
pub struct WrongAnswer {
    /// On the run's clock.
    pub at: Ns,
    /// Whether it came with refusals and no wrong answer.
    pub is_refusal: bool,
    /// The answer.
    pub finding: Finding,
}

/// The result of a run of load or of the preparation, summed over its threads.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    /// From the first request to the last answer, in nanoseconds: of closed loops the mean of all
    /// slots, of a schedule to its end at least, of calls that time themselves the sum of these.
    pub duration_ns: u64,
    /// What the answers are divided by for their rate, where closed loops are connections of the
    /// lab's own: between the mean of all slots and the last answer of all, or the time of a
    /// schedule beside them where that is longer. Else zero, and that is `duration_ns`. The session
    /// sets it.
    pub loop_ns: u64,
    /// Operations by outcome.
    pub counts: Counts,
    /// CPU time of the generator's threads.
    pub generator: Cpu,
    /// How many of these there were.
    pub threads: usize,
    /// CPU time that they spent in a target that is a library; no part of `generator`.
    pub by_target_ns: Option<u64>,
    /// The most that one of these waited for a core.
    pub most_waited_ns: u64,
    /// CPU time of the programs that were run, to load or over and over, and of what watched them:
    /// it is not part of the lab's.
    pub program_ns: u64,
    /// The most memory of a generator that is a program of its own.
    pub generator_bytes: Option<u64>,
    /// The part of their time that the generator's busiest thread was not waiting.
    pub busy: f64,
    /// Latencies by group, operation and second.
    pub intervals: Vec<Interval>,
    /// The first wrong answers.
    pub wrong_answers: Vec<WrongAnswer>,
    /// The slowest requests.
    pub slowest: Slowest,
    /// Why the load could not go on, if it couldn't: as where a connection can't be made again.
    pub trouble: Option<String>,
    /// The first fault of a connection that broke and was made again.
    pub fault: Option<String>,
    /// How much of a schedule had to wait; zero without one.
    pub pressure: Pressure,
    /// The stretches of its schedules, by group and in their order.
    pub stretches: Vec<StretchSum>,
    /// Figures that calls measured themselves, in their order.
    pub figures: Vec<(String, f64)>,
    /// What the calls cost the target, where only they can tell.
    pub cost: Option<Cost>,
    /// What streams have brought, by group of clients.
    pub streams: Vec<StreamSum>,
}

impl LoadResult {
    /// What operations are divided by for their rate.
    pub(crate) fn rate_ns(&self) -> u64 {
        if self.loop_ns > 0 { self.loop_ns } else { self.duration_ns }
    }

    /// CPU time of the load's processes beside the lab's own, which has its threads: of programs
    /// that were run and of what watched them, all that isn't the target's.
    pub(crate) fn clients_ns(&self) -> u64 {
        let of_target_ns = self.cost.map_or(0, |cost| cost.user_ns + cost.system_ns);
        self.program_ns.saturating_sub(of_target_ns)
    }

    /// Adds what another thread has measured at the same time.
    pub(super) fn add(&mut self, other: Self) {
        self.duration_ns = self.duration_ns.max(other.duration_ns);
        self.counts.add(other.counts);
        self.generator = self.generator.plus(other.generator);
        self.threads += other.threads;
        if let Some(ns) = other.by_target_ns {
            *self.by_target_ns.get_or_insert_default() += ns;
        }
        self.most_waited_ns = self.most_waited_ns.max(other.most_waited_ns);
        self.program_ns += other.program_ns;
        self.busy = self.busy.max(other.busy);
        self.intervals.extend(other.intervals);
        self.wrong_answers.extend(other.wrong_answers);
        self.slowest.add(other.slowest);
        self.trouble = self.trouble.take().or(other.trouble);
        self.fault = self.fault.take().or(other.fault);
        self.pressure.add(other.pressure);
        stretches::add_thread(&mut self.stretches, other.stretches);
        self.figures.extend(other.figures);
        self.streams.extend(other.streams);
        if let Some(cost) = other.cost {
            self.cost.get_or_insert_default().add(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_of_many_threads_are_not_one_long_wait() {
        let thread = LoadResult { most_waited_ns: 2_000_000, ..LoadResult::default() };
        let mut all = thread.clone();
        (1..16).for_each(|_| all.add(thread.clone()));
        assert_eq!(all.most_waited_ns, 2_000_000);
    }

    #[test]
    fn what_watches_programs_is_load_and_what_they_use_themselves_is_the_targets() {
        let cost = Cost { user_ns: 500, system_ns: 124, watcher_ns: 3_000, peak_bytes: 0 };
        let batch = LoadResult { program_ns: 3_624, cost: Some(cost), ..LoadResult::default() };
        let mut both = batch.clone();
        both.add(batch);
        assert_eq!(both.clients_ns(), 6_000, "of two threads that run it at the same time");
        let client = LoadResult { program_ns: 3_624, ..LoadResult::default() };
        assert_eq!(client.clients_ns(), 3_624, "a program that loads is no target");
    }
}
