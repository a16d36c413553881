//! A service of your own in the lab: values that are valid from one time to another, of which the
//! newest that covers a time is found. Thousands of them are written before the load
//! (docs/adding-a-service.md).

mod shared;

use std::sync::{Arc, PoisonError, RwLock};

use load::{
    Caller, DialectRow, Draw, Finding, Kind, Op, Operation, Outcome, Preparation, Reach, Service,
    Speaks, UniformDraw, Workload, scramble,
};
use wire::{Address, ProtocolError as Error};

pub(crate) static SERVICE: Service = Service {
    name: "intervals",
    doc: "Values with intervals of validity.",
    read: |part| Ok(Arc::new(Intervals { spec: part.read()?, store: Arc::default() })),
    dialects: &[DialectRow::new("library", "Calls of a library.", Reach::Calls)],
};

static OPERATIONS: [Operation; 2] = [
    Operation::new("insert", Kind::Write, "Adds a value that is valid for some time."),
    Operation::new("find", Kind::Read, "Finds the newest value that is valid at a time."),
];

/// The library that is measured: what was inserted, in order.
#[derive(Debug, Default)]
struct Store(RwLock<Vec<Interval>>);

/// `value` is valid from `since` to before `until`.
#[derive(Clone, Copy, Debug)]
struct Interval {
    channel: u64,
    since: u64,
    until: u64,
    value: u64,
}

impl Interval {
    fn covers(&self, channel: u64, at: u64) -> bool {
        self.channel == channel && (self.since..self.until).contains(&at)
    }
}

impl Store {
    fn insert(&self, all: &[Interval]) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).extend_from_slice(all);
    }

    fn find(&self, channel: u64, at: u64) -> Option<u64> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().find(|one| one.covers(channel, at)).map(|one| one.value)
    }
}

/// `[workload]`: values begin and end at times below `times`; `prepared` exist from the start.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    times: u64,
    prepared: u64,
}

#[derive(Debug)]
struct Intervals {
    spec: Spec,
    store: Arc<Store>,
}

/// Values that are written with one request of the preparation.
const PER_PART: u64 = 1_000;

/// The channel that preparation writes; each slot has one of its own beside it.
const PREPARED: u64 = 0;

impl Spec {
    /// The interval that `drawn` stands for.
    fn interval(&self, channel: u64, drawn: u64) -> Interval {
        let (since, length) = (drawn % self.times, scramble(drawn) % self.times);
        Interval { channel, since, until: since + 1 + length, value: drawn }
    }

    fn part(&self, part: u64) -> Vec<Interval> {
        let last = self.prepared.min((part + 1) * PER_PART);
        (part * PER_PART..last).map(|n| self.interval(PREPARED, scramble(n))).collect()
    }
}

impl Workload for Intervals {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn preparation(&self) -> Preparation {
        let parts = self.spec.prepared.div_ceil(PER_PART);
        // The newest is what is found, so their order matters.
        Preparation { parts, is_in_order: true, ..Preparation::default() }
    }

    fn begin(self: Arc<Self>, _: &[usize]) -> Arc<dyn Workload> {
        Arc::new(Self { spec: self.spec, store: Arc::default() })
    }

    fn draw(&self, _: u64) -> Box<dyn Draw> {
        Box::new(UniformDraw { below: u64::MAX })
    }

    fn caller(self: Arc<Self>, _: &Speaks, _: &Address) -> Result<Box<dyn Caller>, Error> {
        let parts = 0..self.preparation().parts;
        let prepared = parts.flat_map(|part| self.spec.part(part)).collect();
        // As many callers as there are references to the store: a channel for each.
        let channel = Arc::strong_count(&self.store) as u64;
        let (spec, store) = (self.spec, self.store.clone());
        Ok(Box::new(Slot { spec, store, channel, prepared, inserted: Vec::new() }))
    }
}

/// One slot's client, and what it should find.
struct Slot {
    spec: Spec,
    store: Arc<Store>,
    channel: u64,
    prepared: Vec<Interval>,
    inserted: Vec<Interval>,
}

impl Caller for Slot {
    fn prepare(&mut self, part: u64) -> Result<Outcome, Error> {
        self.store.insert(&self.spec.part(part));
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, Error> {
        if op.operation == 0 {
            let interval = self.spec.interval(self.channel, op.what);
            self.store.insert(&[interval]);
            self.inserted.push(interval);
            return Ok(Outcome::right());
        }
        let at = op.what % (2 * self.spec.times);
        let (channel, known) = match op.what >> 63 {
            0 => (PREPARED, &self.prepared),
            _ => (self.channel, &self.inserted),
        };
        let newest = known.iter().rev().find(|one| one.covers(channel, at));
        let (expected, received) = (newest.map(|one| one.value), self.store.find(channel, at));
        if expected != received {
            return Ok(Outcome::wrong(Finding {
                operation: OPERATIONS[op.operation].name.clone(),
                key: at.to_string().into_bytes(),
                expected: format!("{expected:?}").into_bytes(),
                received: format!("{received:?}").into_bytes(),
                note: "not the newest value that covers the time".to_owned(),
            }));
        }
        Ok(if received.is_some() { Outcome::right() } else { Outcome::miss() })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    shared::main(&SERVICE, include_str!("intervals.toml"))
}
