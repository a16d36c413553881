//! Streams under load, on a toy service: it is told a number, and then counts up for it, with
//! habits that real services have.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::units::Span;
use lab::drive::{Figure, LoadResult};
use lab::plan::{Arrivals, Clients};
use load::{
    Dialect, DialectRow, Done, Events, Finding, Kind, Op, Operation, Reach, Service, Tag, Update,
};
use wire::{Connection, Flow, Input, Ns, Output, ProtocolError, Wake, clock};

use super::common::{self, Client, SHORT};

/// `+ID` begins a stream and `-ID` ends it; `=ID VALUE LEFT_OUT MADE` is an update and `!ID` the
/// end of all updates.
#[derive(Default)]
struct Toy {
    next: u64,
    streams: BTreeMap<u64, (Tag, Option<u64>)>,
    cancelled: BTreeSet<Tag>,
}

impl Dialect for Toy {
    fn request(&mut self, _: Ns, tag: Tag, _: Op, out: &mut Output) {
        self.next += 1;
        self.cancelled.remove(&tag);
        self.streams.insert(self.next, (tag, None));
        out.put(format!("+{}\n", self.next).as_bytes());
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        events: &mut Events,
        _: &mut Output,
    ) -> Result<(), ProtocolError> {
        while let Some(end) = input.bytes().iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&input.bytes()[..end]).into_owned();
            input.consume(end + 1);
            let (kind, rest) = line.split_at(1);
            let mut words = rest.split(' ').filter_map(|word| word.parse::<u64>().ok());
            let mut word = || words.next().unwrap_or(0);
            let Some((tag, last)) = self.streams.get_mut(&word()) else { continue };
            if kind == "!" {
                let tag = *tag;
                events.done.push(Done { tag, ..Done::default() });
                self.streams.retain(|_, (known, _)| *known != tag);
                continue;
            }
            // Late updates of a cancelled stream belong to nobody.
            if self.cancelled.contains(tag) {
                continue;
            }
            let (value, left_out, made) = (word(), word(), word());
            let before = last.replace(value);
            let wrong = before.is_some_and(|before| value <= before);
            let missed = before.map_or(0, |before| value.saturating_sub(before + 1));
            if wrong {
                events.found(|| Finding {
                    operation: "count".into(),
                    key: Vec::new(),
                    expected: b"more".to_vec(),
                    received: line.into_bytes(),
                    note: "the value does not advance".into(),
                });
            }
            events.elements += 1;
            events.payload_bytes += 8;
            let merged = missed.min(left_out);
            let made_unix_ns = Some(made);
            events.updates.push(Update { stream: *tag, missed, merged, wrong, made_unix_ns });
        }
        Ok(())
    }

    fn cancel(&mut self, tag: Tag, out: &mut Output) {
        let found = self.streams.iter().find(|(_, (known, _))| *known == tag);
        let id = *found.expect("a stream of this name").0;
        self.cancelled.insert(tag);
        out.put(format!("-{id}\n").as_bytes());
    }

    fn expire(&mut self, _: Tag) {}
}

static DIALECT: DialectRow = DialectRow::new("toy", "", Reach::Stream);

static OPERATIONS: [Operation; 1] = [Operation::new("count", Kind::Stream, "")];

static SERVICE: Service = Service {
    name: "toy",
    doc: "",
    read: |part| common::read(part, &OPERATIONS, 0, |_| Client::Dialect(Box::new(Toy::default()))),
    dialects: &[],
};

/// What the toy server does differently.
#[derive(Clone, Copy, Default)]
struct Habit {
    /// It leaves out two values before every tenth, and says it of the second.
    skips: bool,
    /// It says the value of this update again.
    repeats: Option<u64>,
    /// It ends a stream after so many updates.
    ends: Option<u64>,
    /// It says nothing to streams of an even number.
    deaf: bool,
    /// Updates are so long.
    padding: usize,
}

struct Counting {
    habit: Habit,
    next_at: Option<Ns>,
    /// The updates and the value of each stream.
    streams: BTreeMap<u64, (u64, u64)>,
}

const EVERY_NS: u64 = 1_000_000;

impl Counting {
    fn push(&mut self, out: &mut Output) {
        for (id, (updates, value)) in &mut self.streams {
            if out.is_full() || (self.habit.deaf && id % 2 == 0) {
                continue;
            }
            *updates += 1;
            let skips = self.habit.skips && updates.is_multiple_of(10);
            let repeats = self.habit.repeats == Some(*updates);
            *value += if skips { 3 } else { u64::from(!repeats) };
            let (left_out, made) = (u64::from(skips), clock::unix_now());
            let padding = " ".repeat(self.habit.padding);
            out.put(format!("={id} {value} {left_out} {made}{padding}\n").as_bytes());
            if self.habit.ends == Some(*updates) {
                out.put(format!("!{id}\n").as_bytes());
            }
        }
    }
}

impl Connection for Counting {
    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        while let Some(end) = input.bytes().iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&input.bytes()[..end]).into_owned();
            input.consume(end + 1);
            let id = line[1..].parse().map_err(|_| ProtocolError::new("no number"))?;
            match &line[..1] {
                "+" => drop(self.streams.insert(id, (0, 0))),
                _ => {
                    self.streams.remove(&id);
                    out.put(format!("!{id}\n").as_bytes());
                }
            }
            self.next_at.get_or_insert(now + EVERY_NS);
        }
        Ok(Flow::Continue)
    }

    fn resume(&mut self, now: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        if why == Wake::Timer {
            self.next_at = Some(now + EVERY_NS);
            self.push(out);
        }
        Ok(Flow::Continue)
    }

    fn deadline(&self) -> Option<Ns> {
        self.next_at
    }
}

/// Three connections with so many streams each; the pieces that `lengths` ask for.
fn run(habit: Habit, streams: usize, pause: Span, lengths: &[Duration]) -> Vec<LoadResult> {
    let make = move || Counting { habit, next_at: None, streams: BTreeMap::new() };
    let workload = common::scenario(&SERVICE, "operation = 'count'");
    let clients = Clients {
        pipeline: streams,
        arrivals: Arrivals::Subscribe { pause },
        timeout: Span::from_ms(20),
        ..common::clients()
    };
    common::load(common::serve(make), &DIALECT, &workload, clients, |session| {
        assert_eq!(session.prepare(&mut |_, _| {}).expect("nothing to write").counts.operations, 0);
        let results = lengths.iter().map(|length| session.run(length.as_nanos() as u64));
        results.map(|result| result.expect("a result")).collect()
    })
}

const NO_PAUSE: Span = Span::from_ms(0);

#[test]
fn every_stream_is_counted_and_ends_with_its_piece() {
    for result in run(Habit::default(), 4, NO_PAUSE, &[SHORT * 2, SHORT * 2]) {
        assert_eq!(result.trouble, None);
        let counts = result.counts;
        assert_eq!((counts.wrong, counts.missing), (0, 0), "{:?}", result.wrong_answers);
        let [streams] = &result.streams[..] else { panic!("one group: {:?}", result.streams) };
        assert_eq!((streams.each.len(), streams.missed, streams.merged), (12, 0, 0));
        assert!(streams.each.iter().all(|updates| *updates > 0));
        assert_eq!((streams.updates(), counts.operations), (counts.updates, counts.updates));
        assert_eq!((counts.elements, counts.payload_bytes), (counts.updates, counts.updates * 8));
        assert!(counts.received_bytes > counts.payload_bytes && counts.sent_bytes > 0);
        let stale = result.intervals.iter().filter(|one| one.figure == Figure::Staleness);
        assert_eq!(stale.map(|one| one.histogram.len()).sum::<u64>(), counts.updates);
        assert!(result.intervals.iter().all(|one| one.figure != Figure::Latency));
    }
}

#[test]
fn what_is_left_out_is_counted_beside_what_the_target_says_of_it() {
    let results = run(Habit { skips: true, ..Habit::default() }, 1, NO_PAUSE, &[SHORT * 2]);
    let (counts, streams) = (results[0].counts, &results[0].streams[0]);
    assert_eq!(counts.wrong, 0);
    let skips: u64 = streams.each.iter().map(|updates| updates / 10).sum();
    assert_eq!((streams.missed, streams.merged), (2 * skips, skips));
}

#[test]
fn a_value_that_does_not_advance_is_wrong() {
    let results = run(Habit { repeats: Some(3), ..Habit::default() }, 2, NO_PAUSE, &[SHORT * 2]);
    assert_eq!(results[0].counts.wrong, 6, "the third of each stream");
    assert_eq!(results[0].wrong_answers[0].finding.note, "the value does not advance");
}

#[test]
fn a_stream_that_ends_by_itself_is_said() {
    let results = run(Habit { ends: Some(3), ..Habit::default() }, 1, NO_PAUSE, &[SHORT]);
    assert!(results[0].trouble.as_deref().unwrap().contains("ended a stream"));
}

#[test]
fn a_stream_that_brings_nothing_is_missing() {
    let results = run(Habit { deaf: true, ..Habit::default() }, 2, NO_PAUSE, &[SHORT]);
    assert_eq!(results[0].counts.missing, 3, "one of two streams of each connection");
    assert_eq!(results[0].streams[0].each.iter().filter(|updates| **updates == 0).count(), 3);
}

#[test]
fn a_slow_reader_takes_one_update_and_pauses() {
    // Longer than what is read at once, so that no read brings two.
    let habit = Habit { padding: 100_000, ..Habit::default() };
    let results = run(habit, 1, Span::from_ms(50), &[SHORT * 2]);
    assert_eq!((&results[0].trouble, results[0].counts.wrong), (&None, 0));
    for updates in &results[0].streams[0].each {
        // A read may end one update and bring the next, at most.
        assert!((1..=18).contains(updates), "{updates} updates in eight pauses");
    }
}
