//! Whether requests wait for a slot for long, and not only while a burst is worked off. Pure, and
//! on the data plane.

use wire::Ns;

use super::arrivals::{Schedule, Spacing};

/// The stretches of a trace, in which any rate may come and go.
const TRACE_PARTS: u64 = 10;

/// What waited in a stretch of a schedule: one rate of several, a tenth of a trace, else the whole
/// run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Requests that became due in it.
    pub offered: u64,
    /// Requests that became due before it.
    pub before: u64,
    /// The fewest that waited at once in its second half. Zero where the target worked off what
    /// came at once before more came, as of bursts of which two fit into it; at a rate that is too
    /// high, half of what waits at its end.
    pub fewest: u64,
    /// How many waited when it began; none of bursts, which may begin with it.
    pub began_with: u64,
    /// Answers in its first half and in its second, where it has one rate and no bursts: else none.
    pub answered: [i64; 2],
    /// How many more were under way in its last quarter, at the fewest, than half-way; zero where
    /// that is unknown.
    pub grown: i64,
    /// By how many times the square root of the number of its requests chance may move it.
    pub roots: u32,
}

impl Waited {
    /// Adds that of another thread in the same stretch.
    pub(super) fn add(&mut self, other: Self) {
        self.offered += other.offered;
        self.before += other.before;
        self.fewest += other.fewest;
        self.began_with += other.began_with;
        self.answered = [0, 1].map(|half| self.answered[half] + other.answered[half]);
        self.grown += other.grown;
        self.roots = self.roots.max(other.roots);
    }

    /// Whether more became due than was answered, by any of these:
    /// 1. `fewest` less `began_with`, twice, is more than chance accounts for of its own requests;
    /// 2. `fewest`, twice, is more than that of all requests until its end;
    /// 3. what fills slots instead of waiting for them has grown: `grown`, four times, as at a rate
    ///    that is too high a quarter of what is left at the end is under way in the last quarter
    ///    beyond what was half-way. It grows, too, where answers take about as long as the stretch;
    ///    but then at least a quarter more are answered in the second half than in the first.
    ///
    /// Chance accounts for a hundredth of the requests and `roots` square roots of their number:
    /// where requests come at random, or answers take various times, about one root waits for a
    /// while at a load of nearly 1. Of several stretches in which they come at random it is three,
    /// and in the third rule one more: of a target with one slot and a load of 0.95 then one trace
    /// in a hundred is called overloaded, or one in six where answers take various times, with 100
    /// requests a tenth.
    pub fn is_overloaded(self) -> bool {
        let chance = |requests: u64, roots: u32| {
            let requests = requests as f64;
            requests / 100.0 + f64::from(roots) * requests.sqrt()
        };
        let added = self.fewest.saturating_sub(self.began_with);
        let [first, second] = self.answered;
        2.0 * added as f64 > chance(self.offered, self.roots)
            || 2.0 * self.fewest as f64 > chance(self.before + self.offered, self.roots)
            || (4 * second < 5 * first
                && 4.0 * self.grown as f64 > chance(self.offered, self.roots + 1))
    }
}

/// When the stretches of a schedule end that goes on from `start` until `until`.
pub(super) fn stretch_ends(start: Ns, until: Ns, schedule: &Schedule) -> Vec<Ns> {
    if schedule.stretches.is_empty() {
        let part_ns = until.saturating_sub(start) / TRACE_PARTS;
        let within = (1..TRACE_PARTS).map(|part| start + part_ns * part);
        return within.chain([until]).collect();
    }
    let mut end = start;
    let lengths = schedule.stretches.iter().map(|stretch| stretch.length);
    let of_rates = lengths.map(|length| {
        end = length.map_or(until, |length| end.saturating_add(length.ns).min(until));
        end
    });
    of_rates.collect()
}

/// Finds what waited for long in each stretch.
#[derive(Clone, Debug)]
pub(super) struct Lasting {
    /// When the stretches end.
    ends: Vec<Ns>,
    half: Ns,
    last_quarter: Ns,
    end: Ns,
    /// Requests of the current stretch so far.
    offered: u64,
    /// Requests before it.
    before: u64,
    /// How many waited when it began.
    began_with: u64,
    /// The fewest in its second half so far.
    fewest: Option<u64>,
    /// The fewest that were under way in its last quarter so far.
    least_late: Option<u64>,
    /// Whether requests come as evenly in its first half as in its second.
    is_even: bool,
    roots: u32,
    has_bursts: bool,
    /// How many were under way at its begin, and were last within it.
    under_way: [u64; 2],
    /// How many had become due half-way, and were under way.
    half_way: Option<[u64; 2]>,
    /// Those that are over.
    over: Vec<Waited>,
}

impl Lasting {
    pub(super) fn new(start: Ns, until: Ns, schedule: &Schedule) -> Self {
        let ends = stretch_ends(start, until, schedule);
        let is_trace = schedule.stretches.is_empty();
        let has_bursts = matches!(schedule.spacing, Spacing::Bursts { .. });
        let is_even = !is_trace && !has_bursts;
        let is_random = is_trace || matches!(schedule.spacing, Spacing::Poisson);
        // In each of several stretches chance has another try.
        let roots = if is_random && ends.len() > 1 { 3 } else { 1 };
        let over = Vec::with_capacity(ends.len());
        let mut lasting = Self {
            ends,
            half: start,
            last_quarter: start,
            end: start,
            offered: 0,
            before: 0,
            began_with: 0,
            fewest: None,
            least_late: None,
            is_even,
            roots,
            has_bursts,
            under_way: [0; 2],
            half_way: None,
            over,
        };
        lasting.begin_stretch(0);
        lasting
    }

    /// A request becomes due at `at`, before which this many wait and are under way.
    #[inline]
    pub(super) fn due(&mut self, at: Ns, waiting: u64, under_way: u64) {
        self.note(at, waiting, under_way);
        self.offered += 1;
    }

    /// This many wait at `now`, which never goes back, and no fewer did since the last time; this
    /// many, those included, are under way.
    #[inline]
    pub(super) fn note(&mut self, now: Ns, waiting: u64, under_way: u64) {
        if now < self.end {
            self.under_way[1] = under_way;
        }
        while now >= self.half {
            self.half_way.get_or_insert([self.offered, under_way]);
            self.fewest = Some(self.fewest.map_or(waiting, |fewest| fewest.min(waiting)));
            if now >= self.last_quarter {
                let least = self.least_late.map_or(under_way, |least| least.min(under_way));
                self.least_late = Some(least);
            }
            if now < self.end {
                return;
            }
            self.over.push(self.current());
            self.begin_stretch(waiting);
        }
    }

    /// What waited in each stretch so far, in their order.
    pub(super) fn stretches(&self) -> Vec<Waited> {
        let is_within = self.over.len() < self.ends.len();
        let now = is_within.then(|| self.current());
        let mut all: Vec<_> = self.over.iter().copied().chain(now).collect();
        all.resize(self.ends.len(), Waited::default());
        all
    }

    fn current(&self) -> Waited {
        let (offered, [began, ended]) = (self.offered, self.under_way.map(u64::cast_signed));
        let (answered, grown) = match self.half_way.filter(|_| self.is_even) {
            Some(half) => {
                let [due, half] = half.map(u64::cast_signed);
                let late = self.least_late.map_or(half, u64::cast_signed);
                ([began + due - half, half + offered.cast_signed() - due - ended], late - half)
            }
            None => ([0; 2], 0),
        };
        let (fewest, before, began_with) = (self.fewest.unwrap_or(0), self.before, self.began_with);
        let roots = self.roots;
        Waited { offered, before, fewest, began_with, answered, grown, roots }
    }

    /// Begins the next stretch, with this many that wait.
    fn begin_stretch(&mut self, waiting: u64) {
        self.before += self.offered;
        (self.offered, self.began_with) = (0, if self.has_bursts { 0 } else { waiting });
        (self.fewest, self.least_late, self.half_way) = (None, None, None);
        self.under_way[0] = self.under_way[1];
        let began = self.end;
        (self.half, self.last_quarter, self.end) = match self.ends.get(self.over.len()) {
            Some(end) => {
                let length = end - began;
                (began + length / 2, began + length * 3 / 4, *end)
            }
            // Nothing is due any more.
            None => (Ns::MAX, Ns::MAX, Ns::MAX),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::schedule::{ArrivalTimes, Seed};
    use crate::drive::stretches::{StretchSum, Stretches, add_slice};
    use crate::drive::timed::Timed;
    use crate::plan::{Arrivals, arrivals_of};

    /// What one server shows in slices, that takes this long at a time for each request, one after
    /// another.
    fn pressure_on(
        arrivals: &Arrivals,
        (slices, slice_ns): (u64, Ns),
        seed: u64,
        service_ns: impl Fn(u64, Ns) -> Ns,
    ) -> Vec<StretchSum> {
        let Arrivals::Open(schedule) = arrivals else { panic!("{arrivals} is no schedule") };
        let mut all = Vec::new();
        for run in 0..slices {
            let times = ArrivalTimes::new(schedule, Seed { of_group: seed, run }, (0, 1));
            let mut timed = Timed::open(0, slice_ns, times, &[0]);
            let mut now = 0;
            while !timed.is_over(now) {
                let due = timed.due(now);
                let after = due.map(|due| {
                    let free = now + service_ns(run, now);
                    timed.free(due.slot, free);
                    free
                });
                now = after.or(timed.wake()).unwrap_or(slice_ns).max(now);
            }
            add_slice(&mut all, stretches_of(&timed));
        }
        all
    }

    /// What waited in the stretches of a slice.
    fn stretches_of(timed: &Timed) -> Vec<StretchSum> {
        let (start, ends) = timed.stretch_ends().unwrap();
        Stretches::new(start, ends).sums(0, &timed.waited())
    }

    fn is_overloaded(all: &[StretchSum]) -> bool {
        all.iter().any(StretchSum::is_overloaded)
    }

    #[test]
    fn a_target_is_overloaded_where_requests_wait_that_no_burst_accounts_for() {
        let bursts = "rate = '1k/s', bursts = { on = '10ms', off = '90ms' }";
        let steps = |rates: [&str; 3]| {
            let each = rates.map(|rate| format!("{{ rate = '{rate}/s', for = '500ms' }}"));
            format!("steps = [{}]", each.join(", "))
        };
        let bursts_in_steps =
            format!("{}, bursts = {{ on = '10ms', off = '90ms' }}", steps(["500", "1k", "500"]));
        // What a thousand requests a second leave to each is 1 ms.
        let rates = [
            ("rate = '1k/s'".to_owned(), 990, 1060),
            ("rate = '1k/s', spacing = 'poisson'".to_owned(), 950, 1200),
            (bursts.to_owned(), 950, 1100),
            (steps(["100", "500", "1k"]), 990, 1100),
            (steps(["100", "1k", "100"]), 990, 1100),
            (steps(["1k", "500", "100"]), 990, 1100),
            (bursts_in_steps, 950, 1150),
        ];
        let rates = rates.map(|(schedule, carried_us, overloading_us)| {
            (arrivals_of(&format!("{{ {schedule} }}")), carried_us, overloading_us)
        });
        let late = Arrivals::traced((750..1500).map(|ms| ms * 1_000_000).collect());
        for (arrivals, carried_us, overloading_us) in rates.into_iter().chain([(late, 990, 1100)]) {
            for seed in 1..=20 {
                let once = (1, 1_500_000_000);
                let on =
                    |service_us: u64| pressure_on(&arrivals, once, seed, |_, _| service_us * 1000);
                let (carried, overloaded) = (on(carried_us), on(overloading_us));
                assert!(!is_overloaded(&carried), "{arrivals}, seed {seed}: {carried:?}");
                assert!(is_overloaded(&overloaded), "{arrivals}, seed {seed}: {overloaded:?}");
            }
        }
    }

    #[test]
    fn chance_and_a_stall_in_a_slice_overload_no_target_and_too_high_a_rate_does() {
        const MS: Ns = 1_000_000;
        let ten = (10, 500 * MS);
        let poisson = |rate| arrivals_of(&format!("{{ rate = '{rate}', spacing = 'poisson' }}"));
        for seed in 1..=100 {
            // Loads of 0.9, and of 2 and 1.3: of few in a slice chance takes up more.
            let on = |rate, service_ns| pressure_on(&poisson(rate), ten, seed, |_, _| service_ns);
            assert!(!is_overloaded(&on("100/s", 9 * MS)), "seed {seed}");
            assert!(!is_overloaded(&on("2k/s", MS * 9 / 20)), "seed {seed}");
            assert!(is_overloaded(&on("100/s", 20 * MS)), "seed {seed}");
            assert!(is_overloaded(&on("2k/s", MS * 13 / 20)), "seed {seed}");
        }
        let stalls = |slice, now| match (slice, now) {
            (3, ..200_000_000) => MS / 2,
            (3, ..550_000_000) => 550 * MS - now,
            _ => MS / 2,
        };
        let stalled = pressure_on(&arrivals_of("{ rate = '1k/s' }"), ten, 1, stalls);
        assert!(stalled[0].overloaded_slices == 1 && !is_overloaded(&stalled), "{stalled:?}");
    }

    #[test]
    fn of_several_rates_chance_overloads_few_and_too_high_a_rate_in_one_of_them_all() {
        const MS: Ns = 1_000_000;
        let overloaded = |third: u32| {
            let each = [1_000, 1_000, third, 1_000, 1_000]
                .map(|rate| format!("{{ rate = '{rate}/s', for = '500ms' }}"));
            let steps = format!("{{ steps = [{}], spacing = 'poisson' }}", each.join(", "));
            let steps = arrivals_of(&steps);
            // A load of 0.95.
            let on = |seed| pressure_on(&steps, (1, 2_500 * MS), seed, |_, _| MS * 19 / 20);
            (1..=100).filter(|seed| is_overloaded(&on(*seed))).count()
        };
        let (by_chance, by_rate) = (overloaded(1_000), overloaded(1_500));
        assert!(by_chance <= 5 && by_rate == 100, "{by_chance} {by_rate}");
    }

    /// Whether slices of half a second overload a target with this many slots; `answered` says when
    /// it answers what is sent at a time, after the answer before.
    fn is_overloaded_with(
        slots: usize,
        arrivals: &Arrivals,
        seed: u64,
        mut answered: impl FnMut(Ns, Ns) -> Ns,
    ) -> bool {
        let Arrivals::Open(schedule) = arrivals else { panic!("{arrivals} is no schedule") };
        let (mut all, until) = (Vec::new(), 500_000_000);
        for run in 0..10 {
            let times = ArrivalTimes::new(schedule, Seed { of_group: seed, run }, (0, 1));
            let places: Vec<usize> = (0..slots).collect();
            let mut timed = Timed::open(0, until, times, &places);
            let mut under_way = std::collections::BTreeSet::new();
            let (mut now, mut last, mut number) = (0, 0, 0);
            while !(timed.is_over(now) && under_way.is_empty()) {
                while let Some((at, _, slot)) = under_way.first().copied()
                    && at <= now
                {
                    under_way.pop_first();
                    timed.free(slot, at);
                }
                while let Some(due) = timed.due(now) {
                    last = answered(now, last);
                    number += 1;
                    under_way.insert((last, number, due.slot));
                }
                let next = under_way.first().map(|(at, ..)| *at);
                now = next.into_iter().chain(timed.wake()).min().unwrap_or(until).max(now);
            }
            add_slice(&mut all, stretches_of(&timed));
        }
        is_overloaded(&all)
    }

    #[test]
    fn an_excess_that_fills_slots_overloads_a_target_and_answers_that_take_long_do_not() {
        const MS: Ns = 1_000_000;
        for spacing in ["constant", "poisson"] {
            let rate = |rate| arrivals_of(&format!("{{ rate = '{rate}', spacing = '{spacing}' }}"));
            for seed in 1..=4 {
                // One after another: a thousand a second.
                let in_turn = |now: Ns, last: Ns| last.max(now) + MS;
                for (slots, per_second, is_too_much) in [
                    (64, "800/s", false),
                    (512, "800/s", false),
                    (64, "1.5k/s", true),
                    (4096, "1.5k/s", true),
                    (4096, "12k/s", true),
                ] {
                    let is_it = is_overloaded_with(slots, &rate(per_second), seed, in_turn);
                    assert_eq!(is_it, is_too_much, "{spacing} {per_second}, {slots}, {seed}");
                }
                // All at once, each for as long.
                for long in [10, 100, 200, 300, 450, 900] {
                    let at_once = |now: Ns, _: Ns| now + long * MS;
                    let is_it = is_overloaded_with(4096, &rate("1k/s"), seed, at_once);
                    assert!(!is_it, "{spacing}, {long} ms, {seed}");
                }
            }
        }
    }

    #[test]
    fn each_rate_knows_what_waited_in_it() {
        let steps = "{ steps = [{ rate = '500/s', for = '500ms' }, \
                     { rate = '1.5k/s', for = '500ms' }, { rate = '100/s', for = '1s' }] }";
        let all = pressure_on(&arrivals_of(steps), (1, 2_000_000_000), 1, |_, _| 1_000_000);
        let seen: Vec<_> =
            all.iter().map(|one| (one.waited.offered, one.is_overloaded())).collect();
        assert_eq!(seen, [(250, false), (750, true), (100, false)]);
        assert!((100..200).contains(&all[1].waited.fewest), "{:?}", all[1]);
        let lengths: Vec<_> = all.iter().map(|one| one.length_ns / 1_000_000).collect();
        assert_eq!(lengths, [500, 500, 1_000]);
    }
}
