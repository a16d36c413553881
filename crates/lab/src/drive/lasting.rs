//! How many requests waited for a slot for long, and not only while a burst was worked off. Pure,
//! and on the data plane.

use wire::Ns;

use super::arrivals::Schedule;

/// The stretches of a trace, in which any rate may come and go.
const TRACE_PARTS: u64 = 10;

/// The fewest requests that waited at once in the second half of a stretch: of each rate of a
/// schedule that has several, of each tenth of a trace, else of the whole run. It is zero where the
/// target worked off what came at once before more came, as of bursts of which two fit into the
/// stretch; and half of what a constant rate that is too high has left at the stretch's end.
#[derive(Clone, Debug)]
pub(super) struct Lasting {
    /// When the stretches after the current one end.
    ends: std::vec::IntoIter<Ns>,
    half: Ns,
    end: Ns,
    /// The fewest in the second half of the current stretch so far.
    fewest: Option<u64>,
    /// The most of those of the stretches that are over.
    most: u64,
}

impl Lasting {
    pub(super) fn new(start: Ns, until: Ns, schedule: &Schedule) -> Self {
        let mut end = start;
        let lengths = schedule.stretches.iter().map(|stretch| stretch.length);
        let of_rates = lengths.map(|length| {
            end = length.map_or(until, |length| end.saturating_add(length.ns).min(until));
            end
        });
        let mut ends: Vec<Ns> = of_rates.collect();
        if ends.is_empty() {
            let part_ns = until.saturating_sub(start) / TRACE_PARTS;
            ends.extend((1..=TRACE_PARTS).map(|part| start + part_ns * part));
        }
        let mut lasting =
            Self { ends: ends.into_iter(), half: start, end: start, fewest: None, most: 0 };
        lasting.next_stretch();
        lasting
    }

    /// This many wait at `now`, which never goes back, and no fewer did since the last time.
    #[inline]
    pub(super) fn note(&mut self, now: Ns, waiting: u64) {
        while now >= self.half {
            self.fewest = Some(self.fewest.map_or(waiting, |fewest| fewest.min(waiting)));
            if now < self.end {
                return;
            }
            self.next_stretch();
        }
    }

    /// Of the stretch in which it was most.
    pub(super) fn so_far(&self) -> u64 {
        self.most.max(self.fewest.unwrap_or(0))
    }

    fn next_stretch(&mut self) {
        self.most = self.so_far();
        self.fewest = None;
        let began = self.end;
        (self.half, self.end) = match self.ends.next() {
            Some(end) => (began + (end - began) / 2, end),
            // Nothing is due any more.
            None => (Ns::MAX, Ns::MAX),
        };
    }
}
