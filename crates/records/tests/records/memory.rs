//! The memory of arrays that clients are sent, however slowly they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use records::model::{Record, Time, declare};
use records::protocol::messages::{RequestHead, ResponseHead, subcommand};
use records::protocol::{Command, Request, Scalar, Status, Value};
use records::server::{Limits, Service};

use super::session::Session;

/// An array's bytes.
const ARRAY_BYTES: usize = 1 << 20;

/// How many arrays may be sent at a time.
const MAX_ARRAYS: usize = 4;

/// The queue of each monitor.
const QUEUE: usize = 2;

/// The memory of an array, which counts how many there are.
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Relaxed);
    }
}

/// A service with an array, and how many arrays there are.
struct Arrays {
    service: Arc<Service>,
    record: Arc<Record>,
    count: Arc<AtomicUsize>,
}

impl Arrays {
    fn new() -> Self {
        let in_flight_bytes = MAX_ARRAYS * ARRAY_BYTES;
        let service = Service::new(Limits { in_flight_bytes, ..Limits::default() });
        let declared = "[[record]]\nname = \"array\"\ntype = \"ubyte[]\"\n";
        service.declare(declare(declared).unwrap()).unwrap();
        let record = service.find("array").unwrap();
        let arrays = Self { service, record, count: Arc::default() };
        arrays.post(0);
        arrays
    }

    /// Gives the record an array of this byte.
    fn post(&self, byte: u8) {
        self.count.fetch_add(1, Relaxed);
        let memory = Counted(vec![byte; ARRAY_BYTES], Arc::clone(&self.count));
        let bytes = wire::Bytes::from_owner(memory);
        let array = Value::array(Scalar::UByte, bytes);
        self.record.update(Time::default(), |draft| draft.set(1, array));
    }

    fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// A client that has begun an operation.
    fn client(&self, command: Command) -> (Session, RequestHead) {
        let mut session = Session::introduced(&self.service);
        let channel = session.channel("array");
        let head = RequestHead { channel, request: 7, subcommand: subcommand::INIT };
        let request = Request::parse(&format!("record[queueSize={QUEUE}]field(value)")).unwrap();
        let answers = session.say(command, |writer| {
            head.write(writer);
            writer.item(Some(&request.item()));
        });
        let mut reader = answers[0].reader();
        ResponseHead::read(&mut reader);
        assert_eq!(Status::read(&mut reader), Status::ok());
        (session, head)
    }

    /// A client that has started a monitor, and doesn't read.
    fn stopped(&self) -> Session {
        let (mut session, head) = self.client(Command::Monitor);
        let start = RequestHead { subcommand: 0x44, ..head };
        session.put(Command::Monitor, |writer| start.write(writer));
        session
    }
}

#[test]
fn stopped_monitors_keep_no_more_arrays_than_are_allowed() {
    let arrays = Arrays::new();
    let mut stopped = Vec::new();
    for byte in 1..=30 {
        stopped.push(arrays.stopped());
        arrays.post(byte);
        assert!(arrays.count() <= MAX_ARRAYS + QUEUE, "{} arrays", arrays.count());
    }
    assert_eq!(arrays.service.in_flight_bytes(), MAX_ARRAYS * ARRAY_BYTES);
    let begun = stopped.iter().filter(|session| session.out.len() > ARRAY_BYTES).count();
    assert_eq!(begun, MAX_ARRAYS, "each has another version");
    stopped.into_iter().for_each(Session::close);
    assert_eq!((arrays.count(), arrays.service.in_flight_bytes()), (1, 0));
}

#[test]
fn monitors_of_one_version_share_it_and_need_no_room() {
    let arrays = Arrays::new();
    let all: Vec<_> = (0..30).map(|_| arrays.stopped()).collect();
    assert!(all.iter().all(|session| session.out.len() > ARRAY_BYTES));
    assert_eq!((arrays.count(), arrays.service.in_flight_bytes()), (1, ARRAY_BYTES));
}

#[test]
fn who_reads_gets_updates_once_clients_that_do_not_read_are_closed() {
    let arrays = Arrays::new();
    let mut stopped: Vec<_> = (1..=MAX_ARRAYS as u8)
        .map(|byte| {
            let session = arrays.stopped();
            arrays.post(byte);
            session
        })
        .collect();
    let mut reading = arrays.stopped();
    assert_eq!(reading.waits_ns(), Some(500_000_000), "it is deferred");
    assert_eq!(reading.resume_now().len(), 0);
    // Each second there is a check, which wakes those that are sent arrays.
    for _ in 0..4 {
        assert_eq!(reading.resume().len(), 0);
        for session in &mut stopped {
            session.pass(1_000_000_000);
        }
        stopped.retain_mut(|session| {
            let wakes = session.wakes();
            assert!(wakes > 0, "it is checked");
            session.resume_unread().is_ok()
        });
        if stopped.is_empty() {
            break;
        }
    }
    assert!(stopped.is_empty(), "{} are still open", stopped.len());
    assert_eq!(reading.resume().len(), 1);
    let counters = arrays.service.counters();
    let closed = counters.iter().find(|(name, _)| *name == "stalled_closed");
    assert_eq!(closed, Some(&("stalled_closed", MAX_ARRAYS as u64)));
}

/// The link carries the same number of bytes for each client in a round, and a version comes with
/// every round: so there are more versions than may be sent at a time.
#[test]
fn monitors_that_share_a_full_link_get_the_same() {
    for clients in [2, 4, 16] {
        let arrays = Arrays::new();
        let mut all: Vec<_> = (0..clients).map(|_| arrays.stopped()).collect();
        let mut read = vec![0_usize; clients];
        for round in 0..500 {
            arrays.post(round as u8);
            for (session, read) in all.iter_mut().zip(&mut read) {
                let part = session.out.len().min(ARRAY_BYTES / 8);
                session.out.advance(part);
                *read += part;
                session.resume_unread().expect("it goes on reading");
            }
            assert!(arrays.count() <= MAX_ARRAYS + QUEUE, "{} arrays", arrays.count());
        }
        let fair = read.iter().sum::<usize>() / clients;
        assert!(fair > 20 * ARRAY_BYTES, "the link is not used: {read:?}");
        assert!(read.iter().all(|read| *read * 10 >= fair * 8), "{read:?}");
    }
}

#[test]
fn stopped_gets_are_counted_and_closed_when_they_keep_too_much() {
    let arrays = Arrays::new();
    let mut stopped = Vec::new();
    for byte in 1..=2 * MAX_ARRAYS as u8 {
        let (mut session, head) = arrays.client(Command::Get);
        let get = RequestHead { subcommand: 0, ..head };
        session.put(Command::Get, |writer| get.write(writer));
        stopped.push(session);
        arrays.post(byte);
    }
    assert_eq!(arrays.service.in_flight_bytes(), 2 * MAX_ARRAYS * ARRAY_BYTES);
    for _ in 0..4 {
        let (mut session, head) = arrays.client(Command::Get);
        let get = RequestHead { subcommand: 0, ..head };
        assert_eq!(session.say(Command::Get, |writer| get.write(writer)).len(), 1);
        session.resume();
        for session in &mut stopped {
            session.pass(1_000_000_000);
        }
        stopped.retain_mut(|session| session.resume_unread().is_ok());
    }
    assert!(stopped.is_empty(), "{} are still open", stopped.len());
    assert_eq!((arrays.count(), arrays.service.in_flight_bytes()), (1, 0));
}
