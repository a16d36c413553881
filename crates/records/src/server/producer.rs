//! A thread that updates a record with a new array in a loop, as fast as it may: the source of
//! load of `arrayPerformanceMain` (epics-base/exampleCPP, `arrayPerformance`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wire::Bytes;

use super::service::{AddError, Service};
use super::shared_arrays::SharedArrays;
use crate::model::{Notify, Record, normative};
use crate::protocol::{Bits, Field, Item, Pool, Scalar, Structure, Type, Value};

/// What is produced.
#[derive(Clone, Debug, PartialEq)]
pub struct Production {
    /// The record's name.
    pub name: String,
    /// Elements of each array, 64-bit integers; at least 1.
    pub size: usize,
    /// How long to pause between two arrays.
    pub delay: Duration,
    /// Whether arrays are written into memory that earlier ones have left, and so is warm, or
    /// into new memory each time.
    pub recycles: bool,
    /// Whether they are written into memory that clients of this host may see, and that is warm,
    /// too.
    pub shares: bool,
    /// How many versions subscribers may have waiting, as far as is known: what the memory is
    /// reckoned with.
    pub queue: usize,
}

/// A production that can't be.
#[derive(Debug, thiserror::Error)]
pub enum ProduceError {
    /// The arrays would drive the host to swap.
    #[error(
        "{arrays} arrays of {size} elements take {needed} bytes, and the host has {available} \
         available: use a smaller size or queue"
    )]
    TooLarge {
        /// Elements of an array.
        size: usize,
        /// How many arrays are there at a time.
        arrays: usize,
        /// What they take together.
        needed: u64,
        /// What there is.
        available: u64,
    },
    /// An array doesn't fit into a message.
    #[error("an array of {size} elements takes {needed} bytes; a message has at most {most}")]
    NoMessage {
        /// Elements of an array.
        size: usize,
        /// What they take.
        needed: usize,
        /// What fits.
        most: usize,
    },
    /// The record can't be added.
    #[error(transparent)]
    Add(#[from] AddError),
    /// The system has no thread for it.
    #[error("cannot start the producing thread: {0}")]
    Thread(std::io::Error),
}

/// The niceness of the thread that makes arrays (nice(2), which Linux has for each thread): where
/// processors are few, sending arrays goes before making ones that could not be sent.
const NICENESS: i32 = 10;

/// From this size on the niceness is set. A thread that makes smaller arrays sleeps most of the
/// time, and would only be woken late.
const NICE_FROM_BYTES: usize = 1 << 20;

/// A generous bound of what surrounds an array in its message.
const AROUND_BYTES: usize = 4096;

/// A running production. Dropping it ends it.
#[derive(Debug)]
pub struct Producer {
    record: Arc<Record>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stops: AtomicBool,
    iterations: AtomicU64,
}

impl Producer {
    /// Adds the record, and begins.
    ///
    /// # Errors
    /// When the arrays are too large for the host or for a message, or there is such a record.
    pub fn start(service: &Service, production: Production) -> Result<Self, ProduceError> {
        let size = production.size.max(1);
        let needed = size.saturating_mul(8);
        let most = service.limits.message_bytes.saturating_sub(AROUND_BYTES);
        if needed > most {
            return Err(ProduceError::NoMessage { size, needed, most });
        }
        // One is being written, one is being sent, and the queue's wait.
        let arrays = 2 + production.queue;
        let needed = needed as u64 * arrays as u64;
        if let Some(available) = available_bytes().filter(|available| needed > *available) {
            return Err(ProduceError::TooLarge { size, arrays, needed, available });
        }
        let item = Item::new(kind());
        let record = Record::new(&production.name, item, true, most, Service::now());
        service.add(Arc::clone(&record))?;
        let shared = Arc::new(Shared::default());
        let memory = match production.shares {
            true => Memory::Shared(service.shared_arrays.clone()),
            false => Memory::Own(Pool::new(if production.recycles { arrays } else { 0 })),
        };
        let (into, state) = (Arc::clone(&record), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("records-produce".to_owned())
            .spawn(move || produce(&production, size, &memory, &into, &state))
            .map_err(ProduceError::Thread)?;
        Ok(Self { record, shared, thread: Some(thread) })
    }

    /// How many arrays it has made; each is filled with its number, counted from 0.
    pub fn iterations(&self) -> u64 {
        self.shared.iterations.load(Relaxed)
    }

    /// Makes no further arrays: the one that is being made is the last.
    pub fn stop(&self) {
        self.shared.stops.store(true, Relaxed);
    }

    /// The record.
    pub fn record(&self) -> &Arc<Record> {
        &self.record
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread has been reported when it happened.
            let _ = thread.join();
        }
    }
}

/// The type of the source's record: a scalar array whose time stamp comes before its alarm.
fn kind() -> Type {
    Type::Structure(Structure::new(
        "epics:nt/NTScalarArray:1.0",
        [
            Field::new("value", Type::array(Scalar::Long)),
            Field::new("timeStamp", normative::time()),
            Field::new("alarm", normative::alarm()),
        ],
    ))
}

/// Where arrays are made.
enum Memory {
    Own(Pool),
    Shared(SharedArrays),
}

impl Memory {
    /// An array of `size` elements that are all alike.
    fn filled(&self, size: usize, element: [u8; 8]) -> Bytes {
        let fill = |bytes: &mut [u8]| bytes.as_chunks_mut::<8>().0.fill(element);
        if let Self::Shared(segments) = self
            // Without such memory, clients get elements.
            && let Ok(mut slot) = segments.take(size * 8)
        {
            fill(slot.as_mut());
            return slot.freeze();
        }
        let fresh = Pool::new(0);
        let pool = if let Self::Own(pool) = self { pool } else { &fresh };
        let mut buffer = pool.take(size * 8);
        fill(buffer.as_mut());
        buffer.freeze()
    }
}

fn produce(
    production: &Production,
    size: usize,
    memory: &Memory,
    record: &Record,
    shared: &Shared,
) {
    if size * 8 >= NICE_FROM_BYTES {
        // A system that refuses has the thread run like any other.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
    }
    let mut number = 0_i64;
    while !shared.stops.load(Relaxed) {
        record.make_room();
        let value = Value::array(Scalar::Long, memory.filled(size, number.to_le_bytes()));
        record.update(Service::now(), |draft| draft.set(1, value));
        number += 1;
        shared.iterations.fetch_add(1, Relaxed);
        if !production.delay.is_zero() {
            std::thread::park_timeout(production.delay);
        }
    }
}

/// What the host can give without swapping, in bytes; unseen where `/proc` isn't.
pub fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// A subscriber in the producer's own process: what a monitor costs without a network.
#[derive(Debug)]
pub struct Watcher {
    counts: Arc<Watched>,
}

/// What a watcher has seen.
#[derive(Debug, Default)]
struct Watched {
    state: Mutex<Seen>,
}

/// Counts that start anew each time that they are taken.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Updates.
    pub updates: u64,
    /// Elements of their arrays.
    pub elements: u64,
    /// Versions that were lost.
    pub lost: u64,
    /// Arrays whose first element isn't their last, or that have none.
    pub torn: u64,
    /// What has changed.
    pub changed: Bits,
    /// What was overrun.
    pub overrun: Bits,
    /// The first and the last element of the last array.
    pub ends: Option<(i64, i64)>,
}

#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    rings: Condvar,
}

impl Notify for Bell {
    fn notify(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rings.notify_one();
    }
}

impl Watcher {
    /// Watches a record with a queue of `queue` versions, at least one, and waits for `wait` after
    /// each. It ends with the process.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(record: &Arc<Record>, queue: usize, wait: Duration) -> std::io::Result<Self> {
        let counts = Arc::new(Watched::default());
        let (record, into) = (Arc::clone(record), Arc::clone(&counts));
        std::thread::Builder::new()
            .name("records-watch".to_owned())
            .spawn(move || watch(&record, queue, wait, &into))?;
        Ok(Self { counts })
    }

    /// What was seen since the last time.
    pub fn take(&self) -> Seen {
        std::mem::take(&mut *self.counts.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn watch(record: &Arc<Record>, queue: usize, wait: Duration, into: &Watched) {
    let bell = Arc::new(Bell::default());
    let mut subscription = record.subscribe(queue, Arc::clone(&bell) as _);
    let wanted: Bits = (1..record.kind().width()).collect();
    let mut is_first = true;
    while !record.is_gone() {
        let next = subscription.next(&wanted, |update, nodes| (update.clone(), nodes[1].clone()));
        let Some((update, value)) = next else {
            let rung = bell.rung.lock().unwrap_or_else(PoisonError::into_inner);
            let rung = bell.rings.wait_while(rung, |rung| !*rung);
            *rung.unwrap_or_else(PoisonError::into_inner) = false;
            continue;
        };
        let array = value.as_array().map(|array| array.bytes().clone()).unwrap_or_default();
        // What the record held before it was given the first array is none.
        if std::mem::take(&mut is_first) && array.is_empty() {
            continue;
        }
        let mut seen = into.state.lock().unwrap_or_else(PoisonError::into_inner);
        seen.updates += 1;
        seen.elements += array.len() as u64 / 8;
        seen.lost += update.lost;
        seen.changed.union(&update.changed);
        seen.overrun.union(&update.overrun);
        seen.ends = ends(&array);
        seen.torn += u64::from(seen.ends.is_none_or(|(first, last)| first != last));
        drop(seen);
        // The array is held meanwhile, as a client's queue element would be.
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        drop(array);
    }
}

fn ends(array: &Bytes) -> Option<(i64, i64)> {
    let (first, last) = (array.first_chunk::<8>()?, array.last_chunk::<8>()?);
    Some((i64::from_le_bytes(*first), i64::from_le_bytes(*last)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Limits, Service};
    use super::*;

    fn production(size: usize) -> Production {
        let (name, delay) = ("array".to_owned(), Duration::ZERO);
        Production { name, size, delay, recycles: true, shares: false, queue: 2 }
    }

    #[test]
    fn arrays_that_the_host_or_a_message_cannot_hold_are_refused_at_once() {
        let service = Service::new(Limits::default());
        let error = Producer::start(&service, production(usize::MAX)).unwrap_err();
        assert!(matches!(error, ProduceError::NoMessage { .. }), "{error}");
        let large = Limits { message_bytes: usize::MAX, ..Limits::default() };
        let service = Service::new(large);
        let error = Producer::start(&service, production(1 << 50)).unwrap_err();
        assert!(matches!(error, ProduceError::TooLarge { .. }), "{error}");
        assert!(service.names().is_empty());
    }

    /// How many buffers a record's arrays are in while a subscriber takes one of every `every`.
    fn buffers(queue: usize, every: usize) -> usize {
        let record = Record::new("array", Item::new(kind()), true, 1 << 20, Service::now());
        let mut subscription = record.subscribe(queue, Arc::new(Bell::default()));
        let wanted: Bits = [1].into_iter().collect();
        let (pool, mut seen, mut told) = (Pool::new(8), BTreeSet::new(), None);
        for number in 0..100 {
            record.make_room();
            let buffer = pool.take(800);
            seen.insert(buffer.as_ref().as_ptr().addr());
            let value = Value::array(Scalar::Long, buffer.freeze());
            record.update(Service::now(), |draft| draft.set(1, value));
            if number % every == 0 {
                drop(told.take());
                told = subscription.next(&wanted, |_, nodes| nodes[1].clone());
            }
        }
        seen.len()
    }

    #[test]
    fn what_is_written_and_what_is_sent_take_places_of_the_queue() {
        assert_eq!((buffers(4, 7), buffers(6, 7)), (4, 6), "a slow subscriber");
        assert_eq!((buffers(1, 7), buffers(2, 7)), (3, 3), "the newest is always there");
        assert!(buffers(6, 1) <= 3, "what is seen isn't kept");
    }

    #[test]
    fn every_array_is_whole_and_a_watcher_is_told_what_it_missed() {
        let service = Service::new(Limits::default());
        let producer = Producer::start(&service, production(1000)).unwrap();
        let bell = Arc::new(Bell::default());
        let mut subscription = producer.record().subscribe(2, bell);
        let wanted: Bits = [1].into_iter().collect();
        let (mut last, mut lost, mut seen) = (-1, 0, 0);
        while seen < 500 {
            let next =
                subscription.next(&wanted, |update, nodes| (update.clone(), nodes[1].clone()));
            let Some((update, value)) = next else { continue };
            let array = value.as_array().unwrap();
            // The very first version is empty.
            let Some((first, end)) = ends(array.bytes()) else { continue };
            assert_eq!((first, array.len()), (end, 1000));
            if seen > 0 {
                assert_eq!(first, last + 1 + update.lost as i64);
                assert_eq!(update.overrun.contains(1), update.lost > 0);
                lost += update.lost;
            }
            (last, seen) = (first, seen + 1);
        }
        assert!(producer.iterations() as i64 >= last && lost < producer.iterations());
    }
}
