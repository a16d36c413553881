//! What the figures of a call come to in words.

use super::super::ping::show::time;
use super::facts::{Cores, Facts, Side, Slow};

/// A delayed acknowledgement of Linux takes 40 ms at least.
const DELAYED_NS: f64 = 38e6;

/// Two of them, and what a busy host adds, where they aren't counted.
const MOST_DELAYED_NS: f64 = 120e6;

/// From this share of the time on, a part of a call is a cause.
const LEAST_SHARE: f64 = 0.2;

/// A smaller share for a future: its time is measured by itself, and a caller that reads its answer
/// has none of it.
const LEAST_FUTURE: f64 = 0.05;

impl Facts {
    /// What takes the time, as far as the figures show it: what matters most comes first.
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
        let named: Vec<_> = named.into_iter().flatten().collect();
        if named.is_empty() { vec![self.share_off()] } else { named }
    }

    /// A decoder that returns nothing is fast, whatever its figure is.
    fn empty_decode(&self) -> Option<String> {
        let (came, right) = self.elements;
        (came < right).then(|| {
            format!(
                "empty decode: decode returned {came} of {right} elements, and its {} are not what \
                 decoding takes. Decode from the whole message each time, and compare the result.",
                time(self.decode_ns)
            )
        })
    }

    /// Whether a call takes as long as delayed acknowledgements do: as many as were counted, where
    /// that is known, make up half of it.
    fn is_delayed(&self, acks: Option<f64>) -> bool {
        let is_long = match acks {
            Some(acks) => acks * DELAYED_NS >= 0.5 * self.median_ns,
            None => self.median_ns < MOST_DELAYED_NS,
        };
        self.median_ns >= DELAYED_NS && is_long && self.off_share().is_some_and(|off| off > 0.8)
    }

    fn nagle(&self) -> Option<String> {
        let writes = self.writes.unwrap_or(1.0);
        let ms = self.median_ns / 1e6;
        // The server's host delays them: it is this one where the server is seen.
        let acks = self.delayed_acks.filter(|_| self.is_whole);
        if self.has_nagle && writes >= 1.5 && self.is_delayed(acks) {
            if !self.is_whole {
                return Some(format!(
                    "{ms:.0} ms, with Nagle's algorithm and {writes:.0} writes per request: the \
                     last may wait for a delayed acknowledgement, or the way is long. If a call is \
                     quick without --nagle, write each request at once, or set TCP_NODELAY.",
                ));
            }
            let theirs = self.server_did.map_or(1.0, |did| did.writes);
            let theirs = match theirs >= 1.5 {
                true => format!(", and {theirs:.0} of the server per answer"),
                false => String::new(),
            };
            return Some(format!(
                "{ms:.0} ms = Nagle + delayed acknowledgement: {writes:.0} writes per \
                 request{theirs}. Write each request at once, or set TCP_NODELAY.",
            ));
        }
        // These are this side's.
        let is_delayed = self.is_delayed(self.delayed_acks);
        let reads = self.reads.filter(|reads| is_delayed && *reads >= 1.5)?;
        Some(format!(
            "{ms:.0} ms, and {reads:.0} reads per answer: the server's writes may wait for a \
             delayed acknowledgement. If --quickack ends it, that is the cause: the server should \
             write each answer at once, or set TCP_NODELAY.",
        ))
    }

    fn busy_wait(&self) -> Option<String> {
        let sides = [("this side", self.idle.here), ("the server", self.idle.server)];
        let busy = sides.into_iter().filter_map(|(side, share)| {
            let percent = share.filter(|share| *share >= 0.5)? * 100.0;
            Some(format!("{percent:.0} % of a core while idle ({side})"))
        });
        let busy = busy.collect::<Vec<_>>().join(", ");
        (!busy.is_empty()).then(|| {
            format!("busy wait: {busy}. --wait hybrid waits on the CPU for some microseconds only.")
        })
    }

    fn future(&self) -> Option<String> {
        let took = self.future_median_ns.filter(|took| *took >= LEAST_FUTURE * self.median_ns)?;
        Some(format!(
            "the future: {} of {}, from the thread that reads an answer to the one that waits for \
             it. A caller that reads its answer itself (--future caller) has no such way.",
            time(took),
            time(self.median_ns)
        ))
    }

    fn allocation(&self) -> Option<String> {
        let took = self.allocations * self.allocation_ns;
        (took >= LEAST_SHARE * self.median_ns).then(|| {
            format!(
                "allocations: {:.0} per call, about {} of {}. Use buffers again.",
                self.allocations,
                time(took),
                time(self.median_ns)
            )
        })
    }

    fn several_writes(&self) -> Option<String> {
        let writes = self.writes.filter(|writes| *writes >= 1.5)?;
        let each = if self.are_system_calls(writes) { "is a system call, and " } else { "" };
        Some(format!(
            "{writes:.0} writes per request: each {each}may wake the server. Write each request at \
             once."
        ))
    }

    /// Whether this many reads or writes can be system calls: over shared memory few are.
    fn are_system_calls(&self, count: f64) -> bool {
        self.system_calls.is_none_or(|calls| calls >= count)
    }

    fn several_reads(&self) -> Option<String> {
        let reads = self.reads?;
        let their_writes = self.server_did.map_or(1.0, |did| did.writes);
        if their_writes >= 1.5 {
            return Some(format!(
                "the server sends an answer by {their_writes:.0} writes, which this side takes by \
                 {reads:.1} reads: it should write each answer at once."
            ));
        }
        let each = if self.are_system_calls(reads) { ": each is a system call" } else { "" };
        (reads >= 1.5)
            .then(|| format!("{reads:.0} reads per answer{each}. Read all that has come at once."))
    }

    fn few_slow_ones(&self) -> Option<String> {
        let Slow { share, of_time, max_ns, .. } = self.slow;
        (of_time >= 0.5).then(|| {
            format!(
                "few slow calls: {:.1} % of them take {:.0} % of the time, up to {}; the others \
                 take {} in the median. The figures above are means of all.",
                share * 100.0,
                of_time * 100.0,
                time(max_ns),
                time(self.median_ns)
            )
        })
    }

    /// That of the side that waited longer. A server that isn't seen may have this side's core.
    fn others(&self) -> Option<String> {
        let kept_ns = self.kept_ns().into_iter().fold(0.0, f64::max);
        let share = kept_ns / self.mean_ns.max(1.0);
        (self.is_whole && share >= LEAST_SHARE).then(|| {
            format!(
                "others run: for {:.0} % of the time a side was ready, and something else had its \
                 CPU (a busy host).",
                share * 100.0
            )
        })
    }

    fn placement(&self) -> Option<String> {
        match self.cores? {
            Cores::One(core) if self.is_work() => Some(format!(
                "both ends on one core ({core}): a call is two switches between them, and neither \
                 works while the other does."
            )),
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
    fn wake_ups(&self) -> Option<String> {
        let is_woken = |side: Option<Side>| side.is_some_and(|side| side.switches >= 0.5);
        // Ends that wait on the CPU aren't.
        let (who, took) = match (is_woken(self.here), is_woken(self.server)) {
            (true, true) => ("both sides", self.futex_ns),
            (true, false) => ("this side", self.futex_ns / 2.0),
            (false, true) => ("the server", self.futex_ns / 2.0),
            (false, false) => return None,
        };
        let share = took / self.median_ns.max(1.0);
        // Where that took longer than a call does, calls have met cores in another state.
        (LEAST_SHARE..=1.0).contains(&share).then(|| {
            format!(
                "two cores: waking {who} takes {} here (futex), of {}. Ends that wait on the CPU \
                 (--wait) or share a core have less of it.",
                time(took),
                time(self.median_ns)
            )
        })
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
        let planted = Facts::of_test(44e6, 2.0, 10e3);
        let words = "44 ms = Nagle + delayed acknowledgement: 2 writes per request.";
        assert!(first(planted).starts_with(words), "{}", first(planted));
        let did = Some(Did { reads: 2.0, writes: 2.0, system_calls: 4.0 });
        let both = first(Facts { server_did: did, ..Facts::of_test(88e6, 2.0, 10e3) });
        assert!(both.contains("2 writes per request, and 2 of the server per answer"), "{both}");
        // One write has nothing to wait for, whatever else takes 44 ms.
        assert!(!first(Facts::of_test(44e6, 1.0, 10e3)).contains("Nagle"));
        // A server that works for 44 ms.
        assert!(!first(Facts::of_test(44e6, 2.0, 21e6)).contains("Nagle"));
        // A long way, not Nagle's algorithm.
        let far = Facts { has_nagle: false, ..planted };
        assert!(!first(far).contains("acknowledgement"), "{}", first(far));
        let answered = Facts { reads: Some(2.0), ..far };
        assert!(first(answered).contains("may wait"), "{}", first(answered));
        // They are counted: a busy host makes a call longer, and other waits have none.
        let acks =
            |acks, median| Facts { delayed_acks: Some(acks), ..Facts::of_test(median, 2.0, 10e3) };
        assert!(first(acks(1.0, 70e6)).contains("Nagle"), "{}", first(acks(1.0, 70e6)));
        assert!(first(acks(2.0, 130e6)).contains("Nagle"), "{}", first(acks(2.0, 130e6)));
        for other in [acks(0.1, 44e6), acks(1.0, 130e6)] {
            assert!(!first(other).contains("Nagle"), "{}", first(other));
        }
        // Those of another host are not this one's, and its work isn't seen.
        let unseen = Facts { is_whole: false, server: None, ..acks(0.0, 44e6) };
        assert!(first(unseen).starts_with("44 ms, with Nagle's"), "{}", first(unseen));
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
        let empty = Facts { elements: (0, 8), ..Facts::of_test(44e6, 2.0, 10e3) };
        let causes = empty.causes();
        assert!(causes[0].starts_with("empty decode: decode returned 0 of 8 elements"));
        assert!(causes[1].contains("Nagle"), "all causes are named: {causes:?}");
    }
}
