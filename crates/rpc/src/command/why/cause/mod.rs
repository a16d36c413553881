//! What takes the time of a call, in words. Each cause has a basis of its own:
//!
//! - Nagle ([`nagle`]): the delayed acknowledgements of a call, a mean, and the median.
//! - The future: its median, of the median of a call. Allocations: what one takes by itself, of
//!   the median. Two cores: a futex, of the median, but no more than the work of both sides and the
//!   turns of others on their cores leave of a call.
//! - Several writes or reads: mean counts. One core: both sides' mean work, or the longest time
//!   that a side was ready without a core, of the median.
//! - Few slow calls: a share of the time of all. Others run: a share of the mean.
//! - A busy wait: a share of a core, while one call sleeps. An empty decode: elements.
//!
//! `cargo xtask credibility rpc-why` plants each, but none of the words that say "may wait".

mod nagle;
mod worth;

use super::super::ping::show::time;
use super::facts::{Cores, Facts, SEVERAL, Side, SlowCalls};
use worth::{Cause, named};

/// Slow calls are few up to this share of all.
const FEW: f64 = 0.1;

impl Facts {
    /// What takes the time, as far as the figures show it, in lines.
    pub(super) fn causes(&self) -> Vec<String> {
        let found = [
            self.empty_decode(),
            self.nagle(),
            self.busy_wait(),
            self.future(),
            self.allocation(),
            self.several_writes(),
            self.several_reads(),
            self.slow_ones(),
            self.others(),
            self.placement(),
        ];
        named(found.into_iter().flatten().collect(), &self.where_time_is())
    }

    /// A decoder that returns too little is fast, whatever its figure is.
    fn empty_decode(&self) -> Option<Cause> {
        let (came, right) = self.elements;
        let words = format!(
            "empty decode: decode returned {came} of {right} elements, and its {} are not what \
             decoding takes. Decode from the whole message each time, and compare the result.",
            time(self.decode_ns)
        );
        (came < right).then(|| Cause::fault(None, words))
    }

    /// A busy wait costs CPU time, and no latency: it has no share of a call.
    fn busy_wait(&self) -> Option<Cause> {
        let sides = [("this side", self.idle.here), ("the server", self.idle.server)];
        let busy = sides.into_iter().filter_map(|(side, share)| {
            let percent = share.filter(|share| *share >= 0.5)? * 100.0;
            Some(format!("{percent:.0} % of a core while idle ({side})"))
        });
        let busy = busy.collect::<Vec<_>>().join(", ");
        let words = format!(
            "busy wait: {busy}. --wait hybrid waits on the CPU for some microseconds only."
        );
        (!busy.is_empty()).then(|| Cause::fault(None, words))
    }

    fn future(&self) -> Option<Cause> {
        let took_ns = self.future_median_ns?;
        let words = format!(
            "the future: {} of {}, from the thread that reads an answer to the one that waits for \
             it. A caller that reads its answer itself (--future caller) has no such way.",
            time(took_ns),
            time(self.median_ns)
        );
        Some(Cause::fault(Some(self.of_median(took_ns)), words))
    }

    fn allocation(&self) -> Option<Cause> {
        let took_ns = self.allocations * self.allocation_ns;
        let words = format!(
            "allocations: {:.0} per call, about {} of {}. Use buffers again.",
            self.allocations,
            time(took_ns),
            time(self.median_ns)
        );
        Some(Cause::part(self.of_median(took_ns), words))
    }

    fn several_writes(&self) -> Option<Cause> {
        let writes = self.writes.filter(|writes| *writes >= SEVERAL)?;
        let each = if self.are_system_calls(writes) { "is a system call, and " } else { "" };
        let words = format!(
            "{writes:.0} writes per request: each {each}may wake the server. Write each request at \
             once."
        );
        let took_ns = self.further_writes_ns(self.here, self.server, writes, self.system_calls);
        Some(Cause::fault(took_ns.map(|took_ns| self.of_median(took_ns)), words))
    }

    /// Whether this many reads or writes can be system calls: over shared memory few are.
    fn are_system_calls(&self, count: f64) -> bool {
        self.system_calls.is_none_or(|calls| calls >= count)
    }

    fn several_reads(&self) -> Option<Cause> {
        let reads = self.reads?;
        if let Some(did) = self.server_did.filter(|did| did.writes >= SEVERAL) {
            let words = format!(
                "the server sends an answer by {:.0} writes, which this side takes by {reads:.1} \
                 reads: it should write each answer at once.",
                did.writes
            );
            let calls = Some(did.system_calls);
            let took_ns = self.further_writes_ns(self.server, self.here, did.writes, calls);
            return Some(Cause::fault(took_ns.map(|took_ns| self.of_median(took_ns)), words));
        }
        let each = if self.are_system_calls(reads) { ": each is a system call" } else { "" };
        let words = format!("{reads:.0} reads per answer{each}. Read all that has come at once.");
        let took_ns = calls_ns(self.here, reads - 1.0, self.system_calls);
        let share = took_ns.map(|took_ns| self.of_median(took_ns));
        (reads >= SEVERAL).then(|| Cause::fault(share, words))
    }

    /// What all but the first write of a side take at most: as system calls, and where the other
    /// side was woken more than once.
    fn further_writes_ns(
        &self,
        side: Option<Side>,
        other: Option<Side>,
        writes: f64,
        system_calls: Option<f64>,
    ) -> Option<f64> {
        let further = writes - 1.0;
        let woken = (other?.switches - 1.0).clamp(0.0, further);
        Some(calls_ns(side, further, system_calls)? + woken * self.futex_ns / 2.0)
    }

    fn slow_ones(&self) -> Option<Cause> {
        let SlowCalls { share, of_time, max_ns, .. } = self.slow;
        let slow = if share <= FEW { "few slow" } else { "slow" };
        let words = format!(
            "{slow} calls: {:.1} % of them take {:.0} % of the time, up to {}; the others take \
             {} in the median. The figures above are means of all.",
            share * 100.0,
            of_time * 100.0,
            time(max_ns),
            time(self.median_ns)
        );
        Some(Cause::part(of_time, words))
    }

    /// That of the side that waited longer. A server that isn't seen may have this side's core.
    fn others(&self) -> Option<Cause> {
        let share = self.behind_others_ns().into_iter().fold(0.0, f64::max) / self.mean_ns.max(1.0);
        let words = format!(
            "others run: for {:.0} % of the time a side was ready, and something else had its CPU \
             (a busy host).",
            share * 100.0
        );
        self.is_whole.then(|| Cause::part(share, words))
    }

    fn placement(&self) -> Option<Cause> {
        match self.cores? {
            Cores::One(core) if self.is_of_cores() => {
                let words = format!(
                    "both ends on one core ({core}): a call is two switches between them, and \
                     neither works while the other does."
                );
                Some(Cause::fault(None, words))
            }
            Cores::Two => self.wake_ups(),
            Cores::One(_) | Cores::Changing => None,
        }
    }

    /// Whether a call is mostly work, or a side that could work and has no core: what one waits for
    /// by itself is no matter of its core.
    fn is_of_cores(&self) -> bool {
        let ready_ns = [self.here, self.server].into_iter().flatten().map(|side| side.ready_ns);
        let longest_ns = ready_ns.fold(self.work_ns().iter().sum(), f64::max);
        longest_ns >= 0.5 * self.median_ns
    }

    /// What waking another core takes, by what it takes between two threads, one on each of the
    /// ends' cores.
    fn wake_ups(&self) -> Option<Cause> {
        let is_woken = |side: Option<Side>| side.is_some_and(|side| side.switches >= 0.5);
        // Ends that wait on the CPU aren't.
        let (who, ways) = match (is_woken(self.here), is_woken(self.server)) {
            (true, true) => ("both sides", 1.0),
            (true, false) => ("this side", 0.5),
            (false, true) => ("the server", 0.5),
            (false, false) => return None,
        };
        let (floor_ns, cpu_ns) = (ways * self.futex_ns, ways * self.futex_cpu_ns);
        // It is at most what both sides' work, and others on their cores, leave of a call, beside
        // the part of their work that is to wake: where the futex took longer, calls have met cores
        // in another state. Means may be more than a median.
        let work_ns = self.work_ns().iter().sum::<f64>();
        let others_ns = self.behind_others_ns().iter().sum::<f64>();
        let call_ns = self.median_ns.min(self.mean_ns);
        let left_ns = (call_ns - work_ns - others_ns).max(0.0) + cpu_ns.min(work_ns);
        let (took_ns, at_most) = match floor_ns <= left_ns {
            true => (floor_ns, ""),
            false => (left_ns, "at most "),
        };
        let words = format!(
            "two cores: waking {who} takes {at_most}{} here (futex), of {}. Ends that wait on the \
             CPU (--wait) or share a core have less of it.",
            time(took_ns),
            time(self.median_ns)
        );
        Some(Cause::part(self.of_median(took_ns), words))
    }

    fn of_median(&self, ns: f64) -> f64 {
        ns / self.median_ns.max(1.0)
    }

    fn where_time_is(&self) -> String {
        let Some(off_cpu_ns) = self.off_cpu_ns() else {
            return "Where the time goes isn't known: this host's kernel doesn't say how long this \
                    side was on a CPU (/proc/PID/task/TID/schedstat)."
                .to_owned();
        };
        let off = off_cpu_ns / self.mean_ns.max(1.0);
        if !self.is_whole {
            return format!(
                "{:.0} % of the time is not on this side's CPU: the server's work, wake-ups and \
                 waiting, which can't be told apart without the server's figures.",
                off * 100.0
            );
        }
        let share = format!("{:.0} % of the time is on no CPU", off * 100.0);
        let is_busy_wait = self.busy_wait().is_some();
        match off > 0.5 {
            true => format!("{share}: wake-ups of the other side, and waiting."),
            false if is_busy_wait => format!("{share}: the rest is work, or waits on the CPU."),
            false => format!("{share}: the rest is work of both sides."),
        }
    }
}

/// What this many writes or reads behind a first one take of a side's time on a CPU, at most: their
/// share of its system calls, as if it did nothing else. `None` where those aren't counted, or are
/// too few for each to be one, as over shared memory.
fn calls_ns(side: Option<Side>, further: f64, all: Option<f64>) -> Option<f64> {
    let all = all.filter(|all| *all >= further + 1.0)?;
    Some(side?.cpu_ns * further / all)
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Idle, ServerCounts};
    use super::*;

    /// The first cause that is named, after a line that says how little they explain.
    pub(super) fn first(facts: Facts) -> String {
        named(facts).swap_remove(0)
    }

    /// The causes that are named; without any the line that says so.
    pub(super) fn named(facts: Facts) -> Vec<String> {
        let mut causes = facts.causes();
        let is_unexplained = ["Nothing that takes", "What was found takes"];
        if causes.len() > 1 && is_unexplained.iter().any(|words| causes[0].starts_with(words)) {
            causes.remove(0);
        }
        causes
    }

    #[test]
    fn a_host_is_busy_where_others_than_both_sides_have_their_cores() {
        let ready = |ready_ns| Some(Side { cpu_ns: 4e3, ready_ns, switches: 1.0 });
        let busy = |cores, ready_ns| {
            let facts = Facts { here: ready(ready_ns), cores, ..Facts::of_test(15e3, 1.0, 4e3) };
            (facts, first(facts))
        };
        let (apart, words) = busy(Some(Cores::Two), 5e3);
        assert!(words.starts_with("others run: for 33 % of the time"), "{words}");
        // The other side had the core, for all that is known.
        for cores in [Some(Cores::One(0)), Some(Cores::Changing), None] {
            let (_, words) = busy(cores, 5e3);
            assert!(!words.contains("others run"), "{cores:?}: {words}");
            let (_, words) = busy(cores, 10e3);
            assert!(words.starts_with("others run: for 40 % of the time"), "{cores:?}: {words}");
        }
        let unseen = Facts { server: None, is_whole: false, cores: None, ..apart };
        assert!(!first(unseen).contains("others run"), "{}", first(unseen));
        // The thread that reads an answer waits for the one that spins for it.
        let spun = Facts { future_ns: Some(1e3), ..apart };
        assert!(!first(spun).contains("others run"), "{}", first(spun));
        let within = Facts { server: None, cores: None, ..apart };
        assert!(first(within).starts_with("others run: for 33 % of"), "{}", first(within));
    }

    #[test]
    fn each_part_of_a_call_is_a_cause_from_a_tenth_of_its_time_on() {
        let plain = Facts::of_test(15e3, 1.0, 2e3);
        let reads = Facts { reads: Some(4.0), system_calls: Some(5.0), ..plain };
        assert!(first(reads).starts_with("4 reads per answer: each is"), "{}", first(reads));
        let did = Some(ServerCounts { reads: 1.0, writes: 3.0, system_calls: 4.0 });
        let sent = first(Facts { server_did: did, ..reads });
        assert!(sent.contains("by 3 writes, which this side takes by 4.0 reads"), "{sent}");
        let future = |ns| first(Facts { future_median_ns: Some(ns), ..plain });
        assert!(future(5e3).starts_with("the future: 5.000 μs of 15.000 μs"), "{}", future(5e3));
        assert!(future(2e3).starts_with("the future: 2.000 μs of 15.000 μs"), "{}", future(2e3));
        assert!(future(500.0).ends_with("It takes 3.3 % of a call."), "{}", future(500.0));
        let allocations = |count| first(Facts { allocations: count, ..plain });
        assert!(allocations(500.0).starts_with("allocations: 500 per call, about 10.000 μs of"));
        assert!(!allocations(50.0).contains("allocations"));
        let idle = |here, server| {
            first(Facts { idle: Idle { here: Some(here), server: Some(server) }, ..plain })
        };
        assert!(idle(1.0, 0.0).starts_with("busy wait: 100 % of a core while idle (this side)"));
        assert!(idle(0.1, 0.9).starts_with("busy wait: 90 % of a core while idle (the server)"));
        let both =
            "busy wait: 60 % of a core while idle (this side), 100 % of a core while idle (the";
        assert!(idle(0.6, 1.0).starts_with(both), "{}", idle(0.6, 1.0));
        assert!(!idle(0.1, 0.1).contains("busy"));
        let worked = Facts::of_test(15e3, 1.0, 4e3);
        let cores = |cores| first(Facts { cores: Some(cores), ..worked });
        assert!(cores(Cores::One(1)).starts_with("both ends on one core (1)"));
        let woken = Facts { cores: Some(Cores::Two), futex_ns: 9e3, ..plain };
        assert!(first(woken).starts_with("two cores: waking both sides takes 9.000 μs here"));
        assert!(cores(Cores::Two).contains("on no CPU"), "waking takes 1 μs here");
        assert!(cores(Cores::Changing).contains("on no CPU"));
        let one_spins = Some(Side { cpu_ns: 9e3, ready_ns: 0.0, switches: 0.1 });
        let spun = Idle { here: Some(0.5), server: None };
        let one_spins = first(Facts { here: one_spins, idle: spun, ..woken });
        assert!(one_spins.starts_with("two cores: waking the server takes 4.500 μs here"));
        let spins = Some(Side { cpu_ns: 2e3, ready_ns: 9e3, switches: 0.0 });
        let spinning = Facts { here: spins, server: spins, ..woken };
        assert_eq!(spinning.causes().len(), 1, "none is woken: {:?}", spinning.causes());
        assert!(first(spinning).starts_with("others run: for 60 % of"), "{}", first(spinning));
        let slowed = Facts { mean_ns: 200e3, ..woken };
        assert!(first(slowed).starts_with("two cores: waking both"), "{}", first(slowed));
        let shared = Facts { reads: Some(4.0), system_calls: Some(1.0), ..plain };
        assert_eq!(first(shared), "4 reads per answer. Read all that has come at once.");
        let unseen = Facts { server: None, is_whole: false, ..plain };
        assert!(first(unseen).contains("is not on this side's CPU: the server's work"));
        let unknown = first(Facts { here: None, ..unseen });
        assert!(unknown.contains("Where the time goes isn't known"), "{unknown}");
        let mut samples = vec![10e3; 98];
        samples.extend([200e6; 2]);
        let stalled = Facts { slow: SlowCalls::of(&samples), ..plain };
        let words = "few slow calls: 2.0 % of them take 100 % of the time, up to 200.000 ms";
        assert!(first(stalled).starts_with(words), "{}", first(stalled));
    }

    #[test]
    fn what_takes_most_of_a_call_comes_first_and_what_has_no_time_last() {
        let are_named = |facts: Facts, right: &[&str]| {
            let causes = named(facts);
            assert_eq!(causes.len(), right.len(), "{causes:?}");
            for (cause, right) in causes.iter().zip(right) {
                assert!(cause.starts_with(right), "{right}: {causes:?}");
            }
        };
        let quick = Facts { future_median_ns: Some(1e3), ..Facts::of_test(20e3, 1.0, 9e3) };
        // Seven of nine system calls of 9 μs.
        let written = Facts { writes: Some(8.0), system_calls: Some(9.0), ..quick };
        are_named(written, &["8 writes per request", "the future: 1.000 μs of 20"]);
        let slower = Facts { future_median_ns: Some(8e3), ..written };
        are_named(slower, &["the future: 8.000 μs of 20", "8 writes per request"]);
        let did = Some(ServerCounts { reads: 1.0, writes: 2.0, system_calls: 4.0 });
        let answered = Facts { server_did: did, ..slower };
        let right = ["the future", "8 writes", "the server sends an answer by 2 writes"];
        are_named(answered, &right);
        let here = Some(Side { cpu_ns: 2e3, ready_ns: 6e3, switches: 1.0 });
        let busy = Facts { here, cores: Some(Cores::Two), futex_ns: 5e3, ..quick };
        let right = ["others run: for 30 %", "two cores: waking both sides takes at most 3", "the"];
        are_named(busy, &right);
        let slow = SlowCalls { share: 0.01, of_time: 0.9, p99_ns: 20e3, max_ns: 9e6 };
        are_named(Facts { slow, ..quick }, &["few slow calls", "the future"]);
        let idle = Idle { here: Some(1.0), server: None };
        let cores = Some(Cores::One(0));
        let server = Some(Side { cpu_ns: 11e3, ready_ns: 0.0, switches: 1.0 });
        let of_cores = Facts { idle, cores, server, ..quick };
        let rest = Facts { elements: (0, 8), allocations: 500.0, ..of_cores };
        are_named(
            rest,
            &["allocations", "the future", "empty decode", "busy wait", "both ends on one"],
        );
        let ring = Facts { system_calls: Some(1.0), ..written };
        are_named(ring, &["the future", "8 writes per request: each may"]);
    }

    #[test]
    fn causes_that_explain_little_of_a_call_are_named_after_a_line_that_says_so() {
        // A call over a long way whose server isn't seen: two writes are not what takes 80 ms.
        let here = Some(Side { cpu_ns: 60e3, ready_ns: 5e3, switches: 1.0 });
        let far = Facts {
            has_nagle: false,
            is_whole: false,
            server: None,
            here,
            system_calls: Some(4.0),
            ..Facts::of_test(80e6, 2.0, 0.0)
        };
        let causes = far.causes();
        assert_eq!(causes.len(), 2, "{causes:?}");
        let words = "Nothing that takes a tenth of a call was found. 100 % of the time is not on";
        assert!(causes[0].starts_with(words), "{causes:?}");
        assert!(causes[1].starts_with("2 writes per request: each is"), "{causes:?}");
        // Recorded: a future on one core of a busy host, and what waits for that core.
        let side = |cpu_ns, ready_ns, switches| Some(Side { cpu_ns, ready_ns, switches });
        let future = Facts {
            here: side(60_845.0, 45_732.0, 2.81),
            server: side(57_269.0, 39_716.0, 1.25),
            future_ns: Some(12_500.0),
            future_median_ns: Some(8_263.0),
            mean_ns: 120_277.0,
            futex_ns: 5_019.0,
            ..Facts::of_test(111_515.0, 1.0, 0.0)
        };
        let causes = Facts { cores: Some(Cores::One(0)), ..future }.causes();
        let right = [
            "Nothing that takes a tenth of a call was found. 2 % of the time is on no CPU: the \
             rest",
            "the future: 8.263 μs of 111.515 μs",
            "both ends on one core (0)",
        ];
        assert!(causes.len() == 3, "{causes:?}");
        for (cause, right) in causes.iter().zip(right) {
            assert!(cause.starts_with(right), "{right}: {causes:?}");
        }
        assert!(causes[1].ends_with("It takes 7.4 % of a call."), "{causes:?}");
        let more = Facts { future_median_ns: Some(33_454.0), ..future }.causes();
        let words = "What was found takes 30 % of a call, the smaller part of it. 2 % of the time";
        assert!(more.len() == 2 && more[0].starts_with(words), "{more:?}");
        assert!(more[1].ends_with("no such way."), "a large one says it itself: {more:?}");
        let most = Facts { future_median_ns: Some(66_909.0), ..future }.causes();
        assert!(most.len() == 1 && most[0].starts_with("the future"), "{most:?}");
        // What takes nothing of a call doesn't explain it either.
        let idle = Idle { here: Some(1.0), server: None };
        let spun = Facts { idle, ..Facts::of_test(15e3, 1.0, 6e3) }.causes();
        assert!(
            spun[0]
                .ends_with("20 % of the time is on no CPU: the rest is work, or waits on the CPU.")
        );
        assert!(spun[1].starts_with("busy wait"), "{spun:?}");
    }

    #[test]
    fn further_writes_take_their_system_calls_and_the_wake_ups_that_they_cause() {
        let written = Facts { system_calls: Some(4.0), ..Facts::of_test(60e3, 2.0, 20e3) };
        let once = Facts { futex_ns: 40e3, ..written };
        assert!(first(once).contains("It takes 8.3 % of a call."), "{}", first(once));
        // Over shared memory two writes aren't two system calls.
        let shared = Facts { system_calls: Some(1.02), ..once }.causes();
        assert!(shared.iter().any(|cause| cause.ends_with("at once.")), "{shared:?}");
        // The server has read the first, slept, and was woken by the second: 20 of 60 μs more.
        let server = Some(Side { cpu_ns: 20e3, ready_ns: 0.0, switches: 2.0 });
        let again = Facts { server, ..once }.causes();
        assert!(again[0].starts_with("What was found takes 42 % of a call"), "{again:?}");
    }

    #[test]
    fn waking_two_cores_takes_no_more_than_their_work_leaves_of_a_call() {
        let asleep =
            Facts { cores: Some(Cores::Two), futex_ns: 59e3, ..Facts::of_test(57e3, 1.0, 16e3) };
        let words =
            "two cores: waking both sides takes at most 25.000 μs here (futex), of 57.000 μs";
        assert!(first(asleep).starts_with(words), "{}", first(asleep));
        // Recorded on a virtual machine, where who wakes a core is on a CPU meanwhile.
        let side = |cpu_ns, ready_ns| Some(Side { cpu_ns, ready_ns, switches: 1.0 });
        let sent = Facts {
            here: side(25e3, 0.0),
            server: side(25e3, 0.0),
            futex_ns: 32_800.0,
            futex_cpu_ns: 24e3,
            ..Facts { median_ns: 55e3, mean_ns: 55e3, ..asleep }
        };
        let words = "two cores: waking both sides takes at most 29.000 μs here (futex), of 55.000";
        assert!(first(sent).starts_with(words), "{}", first(sent));
        // Cores that were awake.
        let awake = Facts { median_ns: 12e3, mean_ns: 12e3, ..asleep };
        let causes = named(awake);
        assert!(!causes.iter().any(|cause| cause.contains("two cores")), "{causes:?}");
        // Recorded: a busy host, where others have the cores for all that work leaves of a call.
        let busy = Facts {
            here: side(14e3, 12e3),
            server: side(12e3, 9_685.0),
            mean_ns: 47_685.0,
            futex_ns: 22_835.0,
            ..Facts { median_ns: 42_924.0, ..asleep }
        };
        assert_eq!(busy.off().expect("known").wake_up_ns, 0.0);
        let causes = named(busy);
        assert!(!causes.iter().any(|cause| cause.contains("two cores")), "{causes:?}");
        assert!(causes[0].starts_with("others run: for 25 %"), "{causes:?}");
        // With less of others', what is left.
        let causes = named(Facts { server: side(12e3, 0.0), ..busy });
        let words = "two cores: waking both sides takes at most 4.924 μs here (futex), of 42.924";
        assert!(causes.iter().any(|cause| cause.starts_with(words)), "{causes:?}");
    }
}
