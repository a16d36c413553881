//! Nagle's algorithm: all but the first write of a request wait for its acknowledgement, which the
//! other side delays, and so do those of an answer.

use super::super::facts::{Facts, SEVERAL};
use super::worth::Cause;

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

/// What delayed acknowledgements take of a call.
struct Delayed {
    count: f64,
    takes_ns: f64,
    /// The time of a call, or the part of it.
    words: String,
}

impl Facts {
    pub(super) fn nagle(&self) -> Option<Cause> {
        self.delayed_request().or_else(|| self.delayed_answer())
    }

    /// What delayed acknowledgements take of a call that may wait for `most` of them.
    fn delayed(&self, counted: Option<f64>, most: f64) -> Option<Delayed> {
        let room_ns = self.room_ns()?;
        match counted {
            Some(counted) => self.delayed_by_count(counted, most, room_ns),
            None => self.delayed_by_time(room_ns),
        }
    }

    /// The time for which a call can have waited: all but both sides' work.
    fn room_ns(&self) -> Option<f64> {
        self.here?;
        let room_ns = self.mean_ns - self.work_ns().iter().sum::<f64>();
        Some(room_ns.clamp(0.0, self.median_ns))
    }

    /// As many as were counted, and as there is room for.
    fn delayed_by_count(&self, counted: f64, most: f64, room_ns: f64) -> Option<Delayed> {
        let possible = most.min((room_ns / LEAST_DELAYED_NS).floor());
        let count = (counted / LEAST_COUNTED).floor().min(possible);
        let (part_ns, ms) = (count * DELAYED_NS, self.median_ns / 1e6);
        let (takes_ns, words) = match self.median_ns <= count * MOST_DELAYED_NS {
            true => (self.median_ns, format!("{ms:.0} ms")),
            // The rest is something else.
            false => (part_ns, format!("{:.0} of {ms:.0} ms", part_ns / 1e6)),
        };
        (count >= 1.0).then_some(Delayed { count, takes_ns, words })
    }

    /// Where they aren't counted, a call that takes about as long may wait for them.
    fn delayed_by_time(&self, room_ns: f64) -> Option<Delayed> {
        let takes_ns = self.median_ns;
        let is_about = (LEAST_DELAYED_NS..MOST_UNCOUNTED_NS).contains(&takes_ns);
        let words = format!("{:.0} ms", takes_ns / 1e6);
        let is_possible = is_about && room_ns > 0.8 * takes_ns;
        is_possible.then_some(Delayed { count: 1.0, takes_ns, words })
    }

    /// Those of the server, and where it sends its answer by several writes this side's, too.
    fn delayed_request(&self) -> Option<Cause> {
        let writes = self.writes.filter(|writes| self.has_nagle && *writes >= SEVERAL)?;
        let theirs = self.server_did.map(|did| did.writes).filter(|writes| *writes >= SEVERAL);
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
        Some(Cause::part(self.of_median(takes_ns), words))
    }

    /// This side's alone.
    fn delayed_answer(&self) -> Option<Cause> {
        let reads = self.reads.filter(|reads| *reads >= SEVERAL)?;
        let Delayed { takes_ns, words, .. } = self.delayed(self.delayed_acks, 1.0)?;
        let words = format!(
            "{words}, and {reads:.0} reads per answer: the server's writes may wait for a delayed \
             acknowledgement. If --quickack ends it, that is the cause: the server should write \
             each answer at once, or set TCP_NODELAY."
        );
        Some(Cause::part(self.of_median(takes_ns), words))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::facts::{Cores, Idle, ServerCounts, Side};
    use super::super::tests::first;
    use super::*;

    #[test]
    fn nagle_is_named_where_calls_wait_for_as_many_as_were_counted() {
        let acks =
            |acks, median| Facts { delayed_acks: Some(acks), ..Facts::of_test(median, 2.0, 10e3) };
        let planted = acks(1.0, 44e6);
        let words = "44 ms = Nagle + delayed acknowledgement: 2 writes per request.";
        assert!(first(planted).starts_with(words), "{}", first(planted));
        let did = Some(ServerCounts { reads: 2.0, writes: 2.0, system_calls: 4.0 });
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
        for other in [acks(0.1, 44e6), acks(0.8, 44e6), acks(9.0, 30e6), acks(1.0, 500e6)] {
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
    }

    #[test]
    fn a_side_that_waits_on_its_cpu_waits_for_acknowledgements_too() {
        // Recorded beside other programs: --writes struct --nagle --wait spin.
        let spun = Facts {
            here: Some(Side { cpu_ns: 30.316e6, ready_ns: 18.222e6, switches: 7.58 }),
            server: Some(Side { cpu_ns: 485e3, ready_ns: 3.445e6, switches: 2.0 }),
            server_did: Some(ServerCounts { reads: 1.96, writes: 1.0, system_calls: 4.93 }),
            idle: Idle { here: Some(0.995), server: Some(0.004) },
            mean_ns: 48.556e6,
            system_calls: Some(28_037.0),
            delayed_acks: Some(1.0),
            cores: Some(Cores::One(1)),
            futex_ns: 6_643.0,
            ..Facts::of_test(48.083e6, 2.0, 0.0)
        };
        let words = "48 ms = Nagle + delayed acknowledgement: 2 writes per request.";
        assert!(first(spun).starts_with(words), "{:?}", spun.causes());
        assert!(!spun.causes().iter().any(|cause| cause.contains("one core")), "what it waits for");
        // One that sleeps, and works for as long.
        let works = Facts { idle: Idle { here: Some(0.01), server: None }, ..spun };
        assert!(!first(works).contains("Nagle"), "{}", first(works));
        // A server that works for 45 ms, for which this side waits on its CPU.
        let server = Some(Side { cpu_ns: 45e6, ready_ns: 0.0, switches: 1.0 });
        let served = first(Facts { server, ..spun });
        assert!(!served.contains("Nagle"), "{served}");
    }
}
