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
    /// The fewest that waited at once in its second half. Zero where the target worked off what
    /// came at once before more came, as of bursts of which two fit into it; of a rate that is too
    /// high half of what is left at its end.
    pub fewest: u64,
    /// Answers in its first half and in its second, where it has one rate and no bursts: else none.
    pub answered: [i64; 2],
    /// How many more were under way at its end than half-way, where that is known.
    pub grown: i64,
}

impl Waited {
    /// Adds that of another thread in the same stretch.
    pub(super) fn add(&mut self, other: Self) {
        self.offered += other.offered;
        self.fewest += other.fewest;
        self.answered = [0, 1].map(|half| self.answered[half] + other.answered[half]);
        self.grown += other.grown;
    }

    /// Whether more became due than was answered: what is left at the end is more than a hundredth,
    /// and than the square root of the requests. Where they come at random, or answers take various
    /// times, about the root waits for a while at a load of nearly 1: that is the spread of their
    /// number. What fills slots instead of waiting for them grows, too, as does what is under way to
    /// a target whose answers take about as long as the stretch: but of that more are answered in
    /// the second half than in the first.
    pub fn is_overloaded(self) -> bool {
        let (offered, root) = (self.offered as f64, (self.offered as f64).sqrt());
        let [first, second] = self.answered;
        let (waiting, growing) = (2.0 * self.fewest as f64, 2.0 * self.grown as f64);
        waiting > offered / 100.0 + root
            || (4 * second < 5 * first && growing > offered / 100.0 + 2.0 * root)
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
    end: Ns,
    /// Requests of the current stretch so far.
    offered: u64,
    /// The fewest in its second half so far.
    fewest: Option<u64>,
    /// Whether requests come as evenly in its first half as in its second.
    is_even: bool,
    /// How many were under way at its begin, and now.
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
        let is_even = !is_trace && !matches!(schedule.spacing, Spacing::Bursts { .. });
        let over = Vec::with_capacity(ends.len());
        let mut lasting = Self {
            ends,
            half: start,
            end: start,
            offered: 0,
            fewest: None,
            is_even,
            under_way: [0; 2],
            half_way: None,
            over,
        };
        lasting.begin_stretch();
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
            if now < self.end {
                return;
            }
            self.over.push(self.current());
            self.begin_stretch();
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
                ([began + due - half, half + offered.cast_signed() - due - ended], ended - half)
            }
            None => ([0; 2], 0),
        };
        Waited { offered, fewest: self.fewest.unwrap_or(0), answered, grown }
    }

    fn begin_stretch(&mut self) {
        (self.offered, self.fewest, self.half_way) = (0, None, None);
        self.under_way[0] = self.under_way[1];
        let began = self.end;
        (self.half, self.end) = match self.ends.get(self.over.len()) {
            Some(end) => (began + (end - began) / 2, *end),
            // Nothing is due any more.
            None => (Ns::MAX, Ns::MAX),
        };
    }
}
