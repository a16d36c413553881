//! Requests that are due at a time: think time and open-loop schedules. Pure: `now` is handed in.
//!
//! A request that is due while no slot is free waits in the backlog, and its waiting counts in its
//! latency; that is what a user of a stalled service sees (Tene, "How NOT to measure latency").

use std::collections::VecDeque;

use wire::Ns;

use super::lasting::{Lasting, Waited, stretch_ends};
use super::schedule::ArrivalTimes;

/// The most requests that wait for a slot: with more the target is overloaded by far, and further
/// ones are missing.
const MAX_BACKLOG: usize = 1 << 20;

/// A free place of a slot.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: usize,
    since: Ns,
}

/// A request to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// On which slot.
    pub(super) slot: usize,
    /// When it was due: latency counts from here.
    pub(super) scheduled: Ns,
    /// When both the request was due and the slot free: send lag counts from here.
    pub(super) possible: Ns,
}

/// Decides what is due when.
#[derive(Debug)]
pub(super) struct Timed {
    until: Ns,
    idle: VecDeque<Place>,
    source: Source,
    /// Requests due with no free slot.
    backlog: VecDeque<Ns>,
    /// Requests that found no room in the backlog.
    dropped: usize,
    /// When the last of those was due.
    dropped_last: Ns,
    is_given_up: bool,
    /// Places of all slots, those of requests under way included.
    places: usize,
    /// How many requests were taken back since sending was last begun.
    taken_back: usize,
    pressure: Pressure,
}

#[derive(Debug)]
enum Source {
    /// Each free place becomes due a pause after it was freed.
    Think { pause_ns: u64 },
    /// Arrivals come whether places are free or not.
    Open { start: Ns, arrivals: Box<ArrivalTimes>, next: Option<Ns>, lasting: Box<Lasting> },
}

/// How much of a schedule had to wait for free slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Requests that became due.
    pub offered: u64,
    /// The most that waited for a slot at once.
    pub backlog_most: u64,
    /// How many waited when the last became due; of slices the sum.
    pub backlog_end: u64,
    /// The time in which requests could become due: without that in which the last are answered.
    pub schedule_ns: u64,
}

impl Pressure {
    /// Adds that of another thread at the same time.
    pub(super) fn add(&mut self, other: Self) {
        self.offered += other.offered;
        self.backlog_most += other.backlog_most;
        self.backlog_end += other.backlog_end;
        self.schedule_ns = self.schedule_ns.max(other.schedule_ns);
    }

    /// Adds that of the next slice, of all threads.
    pub(crate) fn add_slice(&mut self, next: Self) {
        self.offered += next.offered;
        self.backlog_most = self.backlog_most.max(next.backlog_most);
        self.backlog_end += next.backlog_end;
        self.schedule_ns += next.schedule_ns;
    }
}

impl Timed {
    /// Think time: `places` (a slot each) become due spread over the first pause, so that they do
    /// not move in step.
    pub(super) fn think(start: Ns, until: Ns, pause_ns: u64, places: &[usize]) -> Self {
        let count = places.len().max(1) as u64;
        let place = |(index, slot): (usize, &usize)| {
            let early = pause_ns - pause_ns * index as u64 / count;
            Place { slot: *slot, since: start.saturating_sub(early) }
        };
        let idle = places.iter().enumerate().map(place).collect();
        Self::new(start, until, idle, Source::Think { pause_ns })
    }

    /// An open schedule.
    pub(super) fn open(start: Ns, until: Ns, arrivals: ArrivalTimes, places: &[usize]) -> Self {
        let idle = places.iter().map(|slot| Place { slot: *slot, since: start }).collect();
        let mut arrivals = Box::new(arrivals);
        let next = arrivals.next().map(|at_ns| start + at_ns).filter(|at| *at < until);
        let lasting = Box::new(Lasting::new(start, until, arrivals.schedule()));
        Self::new(start, until, idle, Source::Open { start, arrivals, next, lasting })
    }

    fn new(start: Ns, until: Ns, idle: VecDeque<Place>, source: Source) -> Self {
        let schedule_ns = until.saturating_sub(start);
        let pressure = Pressure { schedule_ns, ..Pressure::default() };
        let (backlog, places) = (VecDeque::new(), idle.len());
        let (dropped, dropped_last, is_given_up, taken_back) = (0, 0, false, 0);
        Self {
            until,
            idle,
            source,
            backlog,
            dropped,
            dropped_last,
            is_given_up,
            places,
            taken_back,
            pressure,
        }
    }

    /// A place of `slot` is free again.
    pub(super) fn free(&mut self, slot: usize, now: Ns) {
        self.idle.push_back(Place { slot, since: now });
    }

    /// When the next request becomes due, if any does.
    pub(super) fn wake(&self) -> Option<Ns> {
        match &self.source {
            Source::Think { pause_ns } => {
                let due = self.idle.front()?.since + pause_ns;
                (due < self.until && !self.is_given_up).then_some(due)
            }
            Source::Open { next, .. } => *next,
        }
    }

    /// Whether a request is due, or becomes due within a time from `now`, that could then be sent
    /// at once.
    #[inline]
    pub(super) fn is_imminent(&self, now: Ns, within_ns: u64) -> bool {
        let soon = |wake| wake <= now + within_ns;
        !self.idle.is_empty() && (!self.backlog.is_empty() || self.wake().is_some_and(soon))
    }

    /// The next request to send at `now`, if there is one and a slot for it. Slots take turns, the
    /// one that has been idle longest first.
    pub(super) fn due(&mut self, now: Ns) -> Option<Due> {
        self.arrive(now);
        if let Source::Think { pause_ns } = self.source {
            let due = self.wake().filter(|due| *due <= now)?;
            let place = self.idle.pop_front()?;
            debug_assert_eq!(due, place.since + pause_ns);
            self.pressure.offered += 1;
            return Some(Due { slot: place.slot, scheduled: due, possible: due });
        }
        if self.backlog.is_empty() {
            return None;
        }
        let place = self.idle.pop_front()?;
        let scheduled = self.backlog.pop_front()?;
        let (waiting, busy) = (self.waiting(), self.busy());
        if let Source::Open { lasting, .. } = &mut self.source {
            lasting.note(now, waiting, busy + self.backlog.len() as u64);
        }
        Some(Due { slot: place.slot, scheduled, possible: scheduled.max(place.since) })
    }

    /// Moves what has become due into the backlog.
    fn arrive(&mut self, now: Ns) {
        let (mut waiting, busy) = (self.waiting(), self.busy());
        let Source::Open { start, arrivals, next, lasting } = &mut self.source else { return };
        while let Some(at) = next.filter(|at| *at <= now) {
            lasting.due(at, waiting, busy + self.backlog.len() as u64);
            self.pressure.offered += 1;
            if self.backlog.len() < MAX_BACKLOG {
                self.backlog.push_back(at);
            } else {
                (self.dropped, self.dropped_last) = (self.dropped + 1, at);
            }
            *next = arrivals.next().map(|at_ns| *start + at_ns).filter(|at| *at < self.until);
            waiting = waiting_of(&self.backlog, &self.idle, self.dropped);
            self.pressure.backlog_most = self.pressure.backlog_most.max(waiting);
            self.pressure.backlog_end = waiting;
        }
    }

    /// How many requests have a slot, and no answer yet.
    fn busy(&self) -> u64 {
        self.places.saturating_sub(self.idle.len()) as u64
    }

    /// See [`waiting_of`].
    fn waiting(&self) -> u64 {
        waiting_of(&self.backlog, &self.idle, self.dropped)
    }

    /// How much has had to wait so far.
    pub(super) fn pressure(&self) -> Pressure {
        self.pressure
    }

    /// When the stretches of its schedule begin, and when each ends; without a schedule none.
    pub(super) fn stretch_ends(&self) -> Option<(Ns, Vec<Ns>)> {
        match &self.source {
            Source::Think { .. } => None,
            Source::Open { start, arrivals, .. } => {
                Some((*start, stretch_ends(*start, self.until, arrivals.schedule())))
            }
        }
    }

    /// What waited in each of them so far.
    pub(super) fn waited(&self) -> Vec<Waited> {
        match &self.source {
            Source::Think { .. } => Vec::new(),
            Source::Open { lasting, .. } => lasting.stretches(),
        }
    }

    /// Until when it lasts, whether its last requests are answered sooner or not. After a pause
    /// nothing need be due.
    pub(super) fn ends(&self) -> Ns {
        match self.source {
            Source::Think { .. } => 0,
            Source::Open { .. } => self.until,
        }
    }

    /// When the last request may become due.
    pub(super) fn until(&self) -> Ns {
        self.until
    }

    /// What is due is about to be sent: every free slot may be usable.
    pub(super) fn begin_sending(&mut self) {
        self.taken_back = 0;
    }

    /// Takes back a request whose slot turned out not to be usable yet; the slot goes to the end
    /// of the queue, and after think time its request becomes due anew.
    pub(super) fn put_back(&mut self, due: Due, now: Ns) {
        self.free(due.slot, now);
        self.taken_back += 1;
        match self.source {
            Source::Think { .. } => self.pressure.offered -= 1,
            Source::Open { .. } => self.backlog.push_front(due.scheduled),
        }
    }

    /// Takes back a request whose slot is gone for good: it waits for another one.
    pub(super) fn lose_place(&mut self, due: Due) {
        self.places -= 1;
        match self.source {
            Source::Think { .. } => self.pressure.offered -= 1,
            Source::Open { .. } => self.backlog.push_front(due.scheduled),
        }
    }

    /// Whether each free slot was tried since sending began and none is usable, as where the only
    /// connection is being made again. What becomes due can't be sent either, until a socket has
    /// something to say.
    pub(super) fn is_stuck(&self) -> bool {
        self.taken_back > 0 && self.taken_back >= self.idle.len()
    }

    /// How long a thread may wait for its sockets: until the next request is due, and `early_ns`
    /// less, or for `most_ns`. A schedule that is stuck waits for sockets alone.
    pub(super) fn may_wait(&self, now: Ns, early_ns: u64, most_ns: u64) -> u64 {
        let due = match (self.is_stuck(), &self.source) {
            (true, Source::Open { .. }) => None,
            _ => self.wake(),
        };
        let early_ns = if self.is_stuck() { 0 } else { early_ns };
        let wait_ns = |due: Ns| due.saturating_sub(now).saturating_sub(early_ns).min(most_ns);
        due.map_or(most_ns, wait_ns)
    }

    /// Whether nothing more will become due and nothing waits.
    pub(super) fn is_over(&self, now: Ns) -> bool {
        let is_due = match &self.source {
            Source::Think { .. } => false,
            Source::Open { next, .. } => next.is_some(),
        };
        let is_waiting = !self.backlog.is_empty() || self.dropped > 0;
        !is_waiting && !is_due && (now >= self.until || self.is_given_up)
    }

    /// Gives up what waits at the end of its time. Returns the times at which it was due; of what
    /// there was no room for that of the last.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = Ns> {
        if let Source::Open { next, .. } = &mut self.source {
            *next = None;
        }
        self.is_given_up = true;
        let dropped = std::mem::take(&mut self.dropped);
        self.backlog.drain(..).chain(std::iter::repeat_n(self.dropped_last, dropped))
    }
}

/// How many requests wait: those for which slots are free are sent next, and are no backlog; what
/// there was no room for is.
fn waiting_of(backlog: &VecDeque<Ns>, idle: &VecDeque<Place>, dropped: usize) -> u64 {
    (backlog.len().saturating_sub(idle.len()) + dropped) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::schedule::Seed;
    use crate::drive::tally::empty_histogram;
    use crate::plan::{Arrivals, arrivals_of};

    fn arrivals(text: &str) -> ArrivalTimes {
        match arrivals_of(text) {
            Arrivals::Open(schedule) => {
                ArrivalTimes::new(&schedule, Seed { of_group: 1, run: 0 }, (0, 1)).at_once()
            }
            other => panic!("{other} is no schedule"),
        }
    }

    /// A service that answers at once, except that it is stopped for 200 ms every 2 s. With a
    /// thousand requests a second, a tenth of them meet a stop and wait from 0 to 200 ms, evenly:
    /// the 95th percentile is 100 ms and the 99th 180 ms, whatever the number of slots. A
    /// closed-loop tool would see one slow request per slot and stop.
    #[test]
    fn a_stopped_target_costs_every_request_that_was_due() {
        const MS: u64 = 1_000_000;
        for slots in [1, 4, 512] {
            let places: Vec<usize> = (0..slots).collect();
            let until = 20_000 * MS;
            let mut timed = Timed::open(0, until, arrivals("{ rate = '1k/s' }"), &places);
            let mut latency = empty_histogram();
            let answered_at = |now: Ns| {
                let phase = now % (2_000 * MS);
                if phase < 200 * MS { now - phase + 200 * MS } else { now }
            };
            let mut under_way: VecDeque<(Ns, Due)> = VecDeque::new();
            let mut now = 0;
            while !(timed.is_over(now) && under_way.is_empty()) {
                while let Some((answered, due)) = under_way.front().copied()
                    && answered <= now
                {
                    under_way.pop_front();
                    latency.record((answered - due.scheduled).max(1)).unwrap();
                    timed.free(due.slot, now);
                }
                while let Some(due) = timed.due(now) {
                    assert!(due.possible <= now);
                    under_way.push_back((answered_at(now), due));
                }
                let answered = under_way.front().map(|(at, _)| *at);
                now = [answered, timed.wake(), Some(until)].into_iter().flatten().min().unwrap();
            }
            assert_eq!(latency.len(), 20_000);
            let quantile = |q| latency.value_at_quantile(q) as f64 / MS as f64;
            assert!((quantile(0.95) - 100.0).abs() < 0.5, "{} with {slots}", quantile(0.95));
            assert!((quantile(0.99) - 180.0).abs() < 0.5, "{} with {slots}", quantile(0.99));
        }
    }

    #[test]
    fn a_backlog_grows_when_the_target_is_too_slow() {
        let mut timed = Timed::open(0, 1_000_000_000, arrivals("{ rate = '1k/s' }"), &[0]);
        let mut now = 0;
        while now <= 1_000_000_000 {
            // Every answer takes two arrivals' time.
            if timed.due(now).is_some() {
                timed.free(0, now + 2_000_000);
            }
            now += 2_000_000;
        }
        let Pressure { offered, backlog_end, schedule_ns, .. } = timed.pressure();
        let [waited] = timed.waited()[..] else { panic!("one rate is one stretch") };
        assert_eq!((offered, waited.offered, schedule_ns), (1000, 1000, 1_000_000_000));
        assert!(backlog_end > waited.fewest && waited.fewest > 200, "{waited:?}, {backlog_end}");
        assert!(timed.give_up().count() > 400);
        assert!(timed.is_over(now));
        assert_eq!(timed.ends(), 1_000_000_000, "it lasts as long, whatever is given up");
    }

    #[test]
    fn what_there_was_no_room_for_is_given_up_with_the_rest() {
        let until = 1_000_000_000;
        let mut timed = Timed::open(0, until, arrivals("{ rate = '1.5M/s' }"), &[]);
        assert_eq!(timed.due(until), None);
        assert_eq!((timed.pressure().offered, timed.backlog.len()), (1_500_000, MAX_BACKLOG));
        assert!(!timed.is_over(until));
        assert_eq!(timed.give_up().filter(|due| *due < until).count(), 1_500_000);
        assert!(timed.is_over(until) && timed.give_up().count() == 0);
    }

    #[test]
    fn a_request_whose_slot_is_gone_is_sent_by_another_one_or_missing() {
        let mut timed = Timed::open(0, 1_000_000_000, arrivals("{ rate = '10/s' }"), &[0, 1]);
        let lost = timed.due(200_000_000).expect("one is due");
        timed.lose_place(lost);
        let again = timed.due(200_000_000).expect("it waits");
        assert_eq!((again.slot, again.scheduled), (1, lost.scheduled));
        timed.lose_place(again);
        assert_eq!(timed.due(1_000_000_000), None);
        assert_eq!((timed.busy(), timed.give_up().count()), (0, 10));
    }

    #[test]
    fn threads_offer_at_the_same_time_and_slices_one_after_another() {
        let one = Pressure { offered: 100, backlog_most: 7, backlog_end: 12, schedule_ns: 1_000 };
        let mut threads = one;
        threads.add(one);
        let both = Pressure { offered: 200, backlog_most: 14, backlog_end: 24, schedule_ns: 1_000 };
        assert_eq!(threads, both);
        let mut slices = Pressure::default();
        slices.add_slice(one);
        slices.add_slice(threads);
        assert_eq!((slices.offered, slices.backlog_most, slices.schedule_ns), (300, 14, 2_000));
    }

    #[test]
    fn a_request_is_imminent_while_it_could_be_sent_at_once() {
        let mut timed = Timed::open(0, 1_000_000_000, arrivals("{ rate = '1k/s' }"), &[0]);
        assert!(timed.is_imminent(0, 0) && timed.due(0).is_some());
        assert!(!timed.is_imminent(2_000_000, 0), "no place is free");
        assert_eq!(timed.due(2_000_000), None);
        timed.free(0, 2_500_000);
        assert!(timed.is_imminent(2_500_000, 0), "what waits for a place has one now");
        assert!(timed.due(2_500_000).is_some());
        timed.free(0, 2_600_000);
        assert!(timed.due(2_600_000).is_some());
        timed.free(0, 2_700_000);
        assert!(!timed.is_imminent(2_700_000, 299_999) && timed.is_imminent(2_700_000, 300_000));
    }

    #[test]
    fn a_schedule_without_a_usable_connection_waits_for_its_sockets_alone() {
        let (ms, look_ns) = (1_000_000, 5_000_000);
        let mut timed = Timed::open(0, 1_000 * ms, arrivals("{ rate = '100k/s' }"), &[0, 1]);
        timed.begin_sending();
        let due = timed.due(0).unwrap();
        timed.put_back(due, 0);
        assert!(!timed.is_stuck(), "another slot may be usable");
        assert_eq!(timed.may_wait(0, 0, look_ns), 10_000, "the next request is due");
        let due = timed.due(0).unwrap();
        assert_eq!((due.slot, due.scheduled), (1, 0), "each is tried once");
        timed.put_back(due, 0);
        assert!(timed.is_stuck());
        assert_eq!(timed.may_wait(0, 60_000, look_ns), look_ns);
        // One is ready again: what became due meanwhile is sent, and waiting ends before the next.
        timed.begin_sending();
        assert_eq!(timed.due(25_000).map(|due| due.scheduled), Some(0));
        assert_eq!(timed.due(25_000).map(|due| due.scheduled), Some(10_000));
        assert_eq!(timed.due(25_000), None);
        assert_eq!(timed.may_wait(25_000, 2_000, look_ns), 3_000);
    }

    #[test]
    fn think_time_passes_between_an_answer_and_the_next_request() {
        let mut timed = Timed::think(1_000, 10_000, 100, &[0, 1]);
        assert_eq!(timed.due(999), None);
        assert_eq!(timed.due(1_000).map(|due| due.slot), Some(0));
        assert_eq!(timed.due(1_000), None);
        assert_eq!(timed.wake(), Some(1_050));
        assert_eq!(timed.due(1_060).map(|due| due.scheduled), Some(1_050));
        timed.free(0, 2_000);
        assert_eq!(timed.wake(), Some(2_100));
        timed.free(1, 9_950);
        assert_eq!(timed.due(2_100).map(|due| due.slot), Some(0));
        assert_eq!(timed.wake(), None, "the run ends before the pause does");
    }

    #[test]
    fn a_request_after_think_time_that_was_taken_back_counts_once() {
        let mut timed = Timed::think(1_000, 10_000, 100, &[0]);
        timed.begin_sending();
        let due = timed.due(1_000).unwrap();
        timed.put_back(due, 1_000);
        assert_eq!((timed.is_stuck(), timed.pressure().offered), (true, 0));
        timed.begin_sending();
        assert_eq!(timed.due(1_100).map(|due| due.scheduled), Some(1_100));
        assert_eq!(timed.pressure().offered, 1);
    }
}
