//! What the figures of a call come to in words. Each cause has its own basis:
//!
//! - Nagle: the delayed acknowledgements of a call, a mean, and the median.
//! - The future: its median, of the median of a call. Allocations and two cores: what one
//!   allocation takes by itself, or a futex, of the median, which others' turns don't reach.
//! - Several writes or reads: mean counts. One core: both sides' mean work, of the median.
//! - Few slow calls: a share of the time of all. Others run: a share of the mean.
//! - A busy wait: a share of a core, while one call sleeps. An empty decode: elements.
//!
//! `cargo xtask credibility rpc-why` plants each, but none of the words that say "may wait".

use super::super::ping::show::time;
use super::facts::{Cores, Facts, Side, Slow};

/// A delayed acknowledgement of Linux takes 40 ms at least (TCP_DELACK_MIN).
const DELAYED_NS: f64 = 40e6;

/// What one takes by the clock of a call: the kernel's timer counts in ticks of 1 to 10 ms, the
/// first of which may have begun before, and the last may be late.
const LEAST_DELAYED_NS: f64 = 38e6;
const MOST_DELAYED_NS: f64 = 50e6;

/// Two of them, and what a busy host adds, where they aren't counted.
const MOST_UNCOUNTED_NS: f64 = 120e6;

/// As many have to be counted per call for each that it can have waited for: a few calls may be
/// acknowledged at once.
const LEAST_COUNTED: f64 = 0.9;

/// From this share of the time on, a part of a call is a cause.
const LEAST_SHARE: f64 = 0.2;

/// A smaller share for a future: its time is measured by itself, and a caller that reads its answer
/// has none of it.
const LEAST_FUTURE: f64 = 0.05;

/// What takes the time of a call.
struct Cause {
    /// Nanoseconds of a call, as far as they are known; `None` where it has no time of its own.
    takes_ns: Option<f64>,
    words: String,
}

/// What delayed acknowledgements take of a call.
struct Delayed {
    count: f64,
    takes_ns: f64,
    /// The time of a call, or the part of it.
    words: String,
}

impl Facts {
    /// What takes the time, as far as the figures show it: what takes most of a call comes first,
    /// and last what has no time that is known.
    pub(super) fn causes(&self) -> Vec<String> {
        let named = [
            self.empty_decode(),
            self.nagle(),
            self.busy_wait(),
            self.future(),
            self.allocation(),
            self.several_writes(),
            self.several_reads(),
            self.few_slow_ones(),
            self.others(),
            self.placement(),
        ];
        let mut named: Vec<_> = named.into_iter().flatten().collect();
        let takes_ns = |cause: &Cause| cause.takes_ns.unwrap_or(-1.0);
        named.sort_by(|one, other| takes_ns(other).total_cmp(&takes_ns(one)));
        let named: Vec<_> = named.into_iter().map(|cause| cause.words).collect();
        if named.is_empty() { vec![self.share_off()] } else { named }
    }

    /// A decoder that returns nothing is fast, whatever its figure is.
    fn empty_decode(&self) -> Option<Cause> {
        let (came, right) = self.elements;
        let words = || {
            format!(
                "empty decode: decode returned {came} of {right} elements, and its {} are not what \
                 decoding takes. Decode from the whole message each time, and compare the result.",
                time(self.decode_ns)
            )
        };
        (came < right).then(|| Cause { takes_ns: None, words: words() })
    }

    /// What delayed acknowledgements take of a call that may wait for this many: as many of them as
    /// were counted, and as the time on no CPU has room for. Where they aren't counted, one that
    /// takes about as long may wait for them.
    fn delayed(&self, counted: Option<f64>, most: f64) -> Option<Delayed> {
        let (median_ns, ms) = (self.median_ns, self.median_ns / 1e6);
        let room_ns = self.off_cpu_ns()?.min(median_ns);
        let Some(counted) = counted else {
            let is_about = (LEAST_DELAYED_NS..MOST_UNCOUNTED_NS).contains(&median_ns)
                && room_ns > 0.8 * median_ns;
            let words = format!("{ms:.0} ms");
            return is_about.then_some(Delayed { count: 1.0, takes_ns: median_ns, words });
        };
        let possible = most.min((room_ns / LEAST_DELAYED_NS).floor());
        let count = (counted / LEAST_COUNTED).floor().min(possible);
        let part_ns = count * DELAYED_NS;
        let (takes_ns, words) = match median_ns <= count * MOST_DELAYED_NS {
            true => (median_ns, format!("{ms:.0} ms")),
            // The rest is something else.
            false => (part_ns, format!("{:.0} of {ms:.0} ms", part_ns / 1e6)),
        };
        let is_cause = count >= 1.0 && takes_ns >= LEAST_SHARE * median_ns;
        is_cause.then_some(Delayed { count, takes_ns, words })
    }

    fn nagle(&self) -> Option<Cause> {
        self.delayed_request().or_else(|| self.delayed_answer())
    }

    /// All but the first write of a request wait for its acknowledgement, and so do those of an
    /// answer.
    fn delayed_request(&self) -> Option<Cause> {
        let writes = self.writes.filter(|writes| self.has_nagle && *writes >= 1.5)?;
        let theirs = self.server_did.map(|did| did.writes).filter(|writes| *writes >= 1.5);
        // The server's host delays them: it is this one where the server is seen.
        let counted = self.delayed_acks.filter(|_| self.is_whole);
        let delayed = self.delayed(counted, if theirs.is_some() { 2.0 } else { 1.0 })?;
        let Delayed { count, takes_ns, words } = delayed;
        let words = if counted.is_none() {
            format!(
                "{words}, with Nagle's algorithm and {writes:.0} writes per request: the last may \
                 wait for a delayed acknowledgement, or the way or the server takes long. If a \
                 call is quick without --nagle, write each request at once, or set TCP_NODELAY."
            )
        } else {
            let theirs = theirs.filter(|_| count >= 2.0).map_or_else(String::new, |writes| {
                format!(", and {writes:.0} of the server per answer")
            });
            format!(
                "{words} = Nagle + delayed acknowledgement: {writes:.0} writes per \
                 request{theirs}. Write each request at once, or set TCP_NODELAY."
            )
        };
        Some(Cause { takes_ns: Some(takes_ns), words })
    }

    /// Those that this side delays.
    fn delayed_answer(&self) -> Option<Cause> {
        let reads = self.reads.filter(|reads| *reads >= 1.5)?;
        let Delayed { takes_ns, words, .. } = self.delayed(self.delayed_acks, 1.0)?;
        let words = format!(
            "{words}, and {reads:.0} reads per answer: the server's writes may wait for a delayed \
             acknowledgement. If --quickack ends it, that is the cause: the server should write \
             each answer at once, or set TCP_NODELAY."
        );
        Some(Cause { takes_ns: Some(takes_ns), words })
    }

    /// It takes CPU time while a call waits, and none of a call.
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
        (!busy.is_empty()).then_some(Cause { takes_ns: None, words })
    }

    fn future(&self) -> Option<Cause> {
        let took = self.future_median_ns.filter(|took| *took >= LEAST_FUTURE * self.median_ns)?;
        let words = format!(
            "the future: {} of {}, from the thread that reads an answer to the one that waits for \
             it. A caller that reads its answer itself (--future caller) has no such way.",
            time(took),
            time(self.median_ns)
        );
        Some(Cause { takes_ns: Some(took), words })
    }

    fn allocation(&self) -> Option<Cause> {
        let took = self.allocations * self.allocation_ns;
        let words = || {
            format!(
                "allocations: {:.0} per call, about {} of {}. Use buffers again.",
                self.allocations,
                time(took),
                time(self.median_ns)
            )
        };
        let is_much = took >= LEAST_SHARE * self.median_ns;
        is_much.then(|| Cause { takes_ns: Some(took), words: words() })
    }

    fn several_writes(&self) -> Option<Cause> {
        let writes = self.writes.filter(|writes| *writes >= 1.5)?;
        let each = if self.are_system_calls(writes) { "is a system call, and " } else { "" };
        let words = format!(
            "{writes:.0} writes per request: each {each}may wake the server. Write each request at \
             once."
        );
        Some(Cause { takes_ns: calls_ns(self.here, writes - 1.0, self.system_calls), words })
    }

    /// Whether this many reads or writes can be system calls: over shared memory few are.
    fn are_system_calls(&self, count: f64) -> bool {
        self.system_calls.is_none_or(|calls| calls >= count)
    }

    fn several_reads(&self) -> Option<Cause> {
        let reads = self.reads?;
        if let Some(did) = self.server_did.filter(|did| did.writes >= 1.5) {
            let words = format!(
                "the server sends an answer by {:.0} writes, which this side takes by {reads:.1} \
                 reads: it should write each answer at once.",
                did.writes
            );
            let takes_ns = calls_ns(self.server, did.writes - 1.0, Some(did.system_calls));
            return Some(Cause { takes_ns, words });
        }
        let each = if self.are_system_calls(reads) { ": each is a system call" } else { "" };
        let words = format!("{reads:.0} reads per answer{each}. Read all that has come at once.");
        let takes_ns = calls_ns(self.here, reads - 1.0, self.system_calls);
        (reads >= 1.5).then_some(Cause { takes_ns, words })
    }

    fn few_slow_ones(&self) -> Option<Cause> {
        let Slow { share, of_time, max_ns, .. } = self.slow;
        let words = || {
            format!(
                "few slow calls: {:.1} % of them take {:.0} % of the time, up to {}; the others \
                 take {} in the median. The figures above are means of all.",
                share * 100.0,
                of_time * 100.0,
                time(max_ns),
                time(self.median_ns)
            )
        };
        let takes_ns = Some(of_time * self.mean_ns);
        (of_time >= 0.5).then(|| Cause { takes_ns, words: words() })
    }

    /// That of the side that waited longer. A server that isn't seen may have this side's core.
    fn others(&self) -> Option<Cause> {
        let kept_ns = self.kept_ns().into_iter().fold(0.0, f64::max);
        let share = kept_ns / self.mean_ns.max(1.0);
        let words = || {
            format!(
                "others run: for {:.0} % of the time a side was ready, and something else had its \
                 CPU (a busy host).",
                share * 100.0
            )
        };
        let is_much = self.is_whole && share >= LEAST_SHARE;
        is_much.then(|| Cause { takes_ns: Some(kept_ns), words: words() })
    }

    fn placement(&self) -> Option<Cause> {
        match self.cores? {
            Cores::One(core) if self.is_work() => {
                let words = format!(
                    "both ends on one core ({core}): a call is two switches between them, and \
                     neither works while the other does."
                );
                Some(Cause { takes_ns: None, words })
            }
            Cores::Two => self.wake_ups(),
            Cores::One(_) | Cores::Changing => None,
        }
    }

    /// Whether a call is mostly work: what one waits for by itself is no matter of its core.
    fn is_work(&self) -> bool {
        let sides = [self.here, self.server].into_iter().flatten();
        sides.map(|side| side.cpu_ns).sum::<f64>() >= 0.5 * self.median_ns
    }

    /// What waking another core takes, by what it takes between two threads on the same cores.
    fn wake_ups(&self) -> Option<Cause> {
        let is_woken = |side: Option<Side>| side.is_some_and(|side| side.switches >= 0.5);
        // Ends that wait on the CPU aren't.
        let (who, took) = match (is_woken(self.here), is_woken(self.server)) {
            (true, true) => ("both sides", self.futex_ns),
            (true, false) => ("this side", self.futex_ns / 2.0),
            (false, true) => ("the server", self.futex_ns / 2.0),
            (false, false) => return None,
        };
        let share = took / self.median_ns.max(1.0);
        let words = || {
            format!(
                "two cores: waking {who} takes {} here (futex), of {}. Ends that wait on the CPU \
                 (--wait) or share a core have less of it.",
                time(took),
                time(self.median_ns)
            )
        };
        // Where that took longer than a call does, calls have met cores in another state.
        let is_part = (LEAST_SHARE..=1.0).contains(&share);
        is_part.then(|| Cause { takes_ns: Some(took), words: words() })
    }

    fn share_off(&self) -> String {
        let Some(off) = self.off_share() else {
            return "Where the time goes isn't known: this host's kernel doesn't say how long this \
                    side was on a CPU (/proc/PID/task/TID/schedstat)."
                .to_owned();
        };
        if !self.is_whole {
            return format!(
                "{:.0} % of the time is not on this side's CPU: the server's work, wake-ups and \
                 waiting, which can't be told apart without the server's figures.",
                off * 100.0
            );
        }
        let share = format!("{:.0} % of the time is on no CPU", off * 100.0);
        match off > 0.5 {
            true => format!("{share}: wake-ups of the other side, and waiting."),
            false => format!("{share}: the rest is work of both sides."),
        }
    }
}

/// What this many of a side's system calls take of its time on a CPU, at most: their share of all,
/// as if it did nothing else. `None` where they aren't counted, or most are none.
fn calls_ns(side: Option<Side>, count: f64, all: Option<f64>) -> Option<f64> {
    let all = all.filter(|all| *all > count)?;
    Some(side?.cpu_ns * count / all)
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Did, Idle};
    use super::*;

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

    fn first(facts: Facts) -> String {
        facts.causes().swap_remove(0)
    }

    #[test]
    fn the_cause_is_named_by_what_shows_it() {
        let acks =
            |acks, median| Facts { delayed_acks: Some(acks), ..Facts::of_test(median, 2.0, 10e3) };
        let planted = acks(1.0, 44e6);
        let words = "44 ms = Nagle + delayed acknowledgement: 2 writes per request.";
        assert!(first(planted).starts_with(words), "{}", first(planted));
        let did = Some(Did { reads: 2.0, writes: 2.0, system_calls: 4.0 });
        let both = first(Facts { server_did: did, ..acks(2.0, 88e6) });
        assert!(both.starts_with("88 ms = Nagle"), "{both}");
        assert!(both.contains("2 writes per request, and 2 of the server per answer"), "{both}");
        let one = first(Facts { server_did: did, ..planted });
        assert!(one.starts_with(words), "only one of them waits: {one}");
        // One write has nothing to wait for, whatever else takes 44 ms.
        assert!(!first(Facts { writes: Some(1.0), ..planted }).contains("Nagle"));
        // A server that works for 44 ms.
        let works = Some(Side { cpu_ns: 43e6, ready_ns: 0.0, switches: 1.0 });
        assert!(!first(Facts { server: works, ..planted }).contains("Nagle"));
        // And one that works, or waits, for 45 ms more.
        for (server, call) in [(works, acks(1.0, 85e6)), (planted.server, acks(2.0, 85e6))] {
            let part = first(Facts { server, ..call });
            assert!(part.starts_with("40 of 85 ms = Nagle"), "{part}");
        }
        // A long way, not Nagle's algorithm.
        let far = Facts { has_nagle: false, ..planted };
        assert!(!first(far).contains("acknowledgement"), "{}", first(far));
        let answered = Facts { reads: Some(2.0), ..far };
        assert!(first(answered).contains("may wait"), "{}", first(answered));
        // They are counted, those of other connections, too, and other waits have none.
        for other in [acks(0.1, 44e6), acks(0.8, 44e6), acks(9.0, 30e6), acks(1.0, 300e6)] {
            assert!(!first(other).contains("Nagle"), "{}", first(other));
        }
        // Where they aren't, or are those of another host, whose work isn't seen.
        let unseen = Facts { is_whole: false, server: None, ..acks(0.0, 44e6) };
        for unknown in [unseen, Facts { delayed_acks: None, ..planted }] {
            let words = first(unknown);
            assert!(words.starts_with("44 ms, with Nagle's") && words.contains("may"), "{words}");
        }
        // Whatever cores they are on, it isn't they that a call waits for.
        for cores in [Cores::One(0), Cores::Two] {
            let causes = Facts { cores: Some(cores), ..planted }.causes();
            assert!(!causes.iter().any(|cause| cause.contains("core")), "{causes:?}");
        }
        assert!(first(Facts::of_test(12e3, 8.0, 1e3)).contains("8 writes per request"));
        assert!(first(Facts::of_test(12e3, 1.0, 1e3)).contains("wake-ups"));
        assert_eq!(Facts::of_test(10.0, 1.0, 2.5).off_cpu_ns(), Some(5.0));
    }

    #[test]
    fn each_part_of_a_call_is_a_cause_from_a_fifth_of_its_time_on() {
        let plain = Facts::of_test(15e3, 1.0, 2e3);
        let reads = Facts { reads: Some(4.0), system_calls: Some(5.0), ..plain };
        assert!(first(reads).starts_with("4 reads per answer: each is"), "{}", first(reads));
        let did = Some(Did { reads: 1.0, writes: 3.0, system_calls: 4.0 });
        let sent = first(Facts { server_did: did, ..reads });
        assert!(sent.contains("by 3 writes, which this side takes by 4.0 reads"), "{sent}");
        let future = |ns| first(Facts { future_median_ns: Some(ns), ..plain });
        assert!(future(5e3).starts_with("the future: 5.000 μs of 15.000 μs"), "{}", future(5e3));
        assert!(future(2e3).starts_with("the future: 2.000 μs of 15.000 μs"), "{}", future(2e3));
        assert!(!future(500.0).contains("future"));
        let allocations = |count| first(Facts { allocations: count, ..plain });
        assert!(allocations(500.0).starts_with("allocations: 500 per call, about 10.000 μs of"));
        assert!(!allocations(100.0).contains("allocations"));
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
        let one_spins = first(Facts { here: one_spins, ..woken });
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
        assert!(unknown.starts_with("Where the time goes isn't known"), "{unknown}");
        let mut samples = vec![10e3; 98];
        samples.extend([200e6; 2]);
        let stalled = Facts { slow: Slow::of(&samples), ..plain };
        let words = "few slow calls: 2.0 % of them take 100 % of the time, up to 200.000 ms";
        assert!(first(stalled).starts_with(words), "{}", first(stalled));
    }

    #[test]
    fn what_takes_most_of_a_call_comes_first_and_what_has_no_time_last() {
        let named = |facts: Facts, right: &[&str]| {
            let causes = facts.causes();
            assert_eq!(causes.len(), right.len(), "{causes:?}");
            for (cause, right) in causes.iter().zip(right) {
                assert!(cause.starts_with(right), "{right}: {causes:?}");
            }
        };
        let quick = Facts { future_median_ns: Some(1e3), ..Facts::of_test(20e3, 1.0, 9e3) };
        // Seven of nine system calls of 9 μs.
        let written = Facts { writes: Some(8.0), system_calls: Some(9.0), ..quick };
        named(written, &["8 writes per request", "the future: 1.000 μs of 20"]);
        let slower = Facts { future_median_ns: Some(8e3), ..written };
        named(slower, &["the future: 8.000 μs of 20", "8 writes per request"]);
        let did = Some(Did { reads: 1.0, writes: 2.0, system_calls: 4.0 });
        let answered = Facts { server_did: did, ..slower };
        let right = ["the future", "8 writes", "the server sends an answer by 2 writes"];
        named(answered, &right);
        let here = Some(Side { cpu_ns: 2e3, ready_ns: 12e3, switches: 1.0 });
        let busy = Facts { here, cores: Some(Cores::Two), futex_ns: 5e3, ..quick };
        named(busy, &["others run: for 60 %", "two cores: waking both sides", "the future"]);
        let slow = Slow { share: 0.01, of_time: 0.9, p99_ns: 20e3, max_ns: 9e6 };
        named(Facts { slow, ..quick }, &["few slow calls", "the future"]);
        let idle = Idle { here: Some(1.0), server: None };
        let cores = Some(Cores::One(0));
        let rest = Facts { idle, cores, elements: (0, 8), allocations: 500.0, ..quick };
        named(
            rest,
            &["allocations", "the future", "empty decode", "busy wait", "both ends on one"],
        );
        let ring = Facts { system_calls: Some(1.0), ..written };
        named(ring, &["the future", "8 writes per request: each may"]);
    }
}
