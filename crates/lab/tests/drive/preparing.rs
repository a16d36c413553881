//! Preparing over datagrams, which get lost: what is not answered is said again, until it is, or
//! preparing fails and says so.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use base::units::Span;
use lab::drive::LoadResult;
use lab::plan::Clients;
use load::{Dialect, DialectRow, Done, Events, Kind, Op, Operation, Reach, Service, Tag};
use wire::{
    Address, Batch, Config, Connection, DatagramListener, Datagrams, Flow, Input, ListenOptions,
    Listener, Ns, Output, ProtocolError, Replies, ServerBuilder,
};

use super::common::{self, Client, any_port};

/// The toy protocol: a datagram is "NUMBER KEY", and its answer is the same.
#[derive(Default)]
struct Toy {
    next: u64,
    awaited: Vec<(u64, Tag)>,
}

impl Dialect for Toy {
    fn request(&mut self, now: Ns, tag: Tag, op: Op, out: &mut Output) {
        self.prepare(now, tag, op.what, out);
    }

    fn prepare(&mut self, _: Ns, tag: Tag, key: u64, out: &mut Output) {
        self.awaited.push((self.next, tag));
        out.put(format!("{} {key}", self.next).as_bytes());
        self.next += 1;
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        events: &mut Events,
        _: &mut Output,
    ) -> Result<(), ProtocolError> {
        let text = String::from_utf8_lossy(input.bytes()).into_owned();
        input.consume(input.len());
        let number = text.split(' ').next().and_then(|number| number.parse::<u64>().ok());
        let place = self.awaited.iter().position(|(asked, _)| Some(*asked) == number);
        if let Some(place) = place {
            let (_, tag) = self.awaited.swap_remove(place);
            events.done.push(Done::right(tag));
        }
        Ok(())
    }

    fn expire(&mut self, tag: Tag) {
        self.awaited.retain(|(_, awaited)| *awaited != tag);
    }
}

static TOY: DialectRow = DialectRow::new("toy", "", Reach::Datagrams);

static OPERATIONS: [Operation; 1] = [Operation::new("say", Kind::Read, "")];

static SERVICE: Service = Service {
    name: "toy",
    doc: "",
    read: |part| {
        common::read(part, &OPERATIONS, 100, |_| Client::Dialect(Box::new(Toy::default())))
    },
    dialects: &[],
};

/// What the service has heard, in order: whom from, of which key, and whether it answered.
type Heard = Arc<Mutex<Vec<(Address, u64, bool)>>>;

/// Answers what `keeps` says yes to, of the datagrams counted from 0.
struct Lossy {
    keeps: fn(usize) -> bool,
    heard: Heard,
}

impl Datagrams for Lossy {
    fn datagrams(&mut self, _: Ns, batch: &Batch, replies: &mut Replies) {
        let mut heard = self.heard.lock().expect("no panic");
        for (from, bytes) in batch.iter() {
            let text = String::from_utf8_lossy(bytes);
            let key = text.split(' ').nth(1).and_then(|key| key.parse().ok()).expect("a key");
            let keeps = (self.keeps)(heard.len());
            heard.push((from.clone(), key, keeps));
            if keeps {
                replies.push(from.clone(), bytes);
            }
        }
    }
}

/// Of the stream side of the same server nothing is wanted.
struct Unused;

impl Connection for Unused {
    fn receive(&mut self, _: Ns, _: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(Flow::Close)
    }
}

/// Prepares 100 keys from three sockets on two threads.
fn prepare(keeps: fn(usize) -> bool) -> (LoadResult, Vec<(Address, u64, bool)>) {
    let heard = Heard::default();
    let noted = Arc::clone(&heard);
    let listener = Listener::bind(&any_port(), &ListenOptions::default()).expect("a free port");
    let sockets = vec![DatagramListener::bind(&any_port(), 1).expect("a free port")];
    let lossy = move |_| Lossy { keeps, heard: Arc::clone(&noted) };
    let builder = ServerBuilder::new(Config::default()).listen(listener, |_| Unused);
    let server = builder.datagrams(sockets, lossy).start();
    let server = server.expect("a server");
    let address = server.datagram_addresses()[0].clone();
    // Shorter than what it takes to say something again: it is for what is measured.
    let clients = Clients { timeout: Span::from_ms(20), ..common::clients() };
    let workload = common::scenario(&SERVICE, "operation = 'say'");
    let result = common::load((server, address), &TOY, &workload, clients, |session| {
        session.prepare(&mut |_, _| {}).expect("a result")
    });
    let heard = std::mem::take(&mut *heard.lock().expect("no panic"));
    (result, heard)
}

#[test]
fn every_key_is_prepared_though_every_third_datagram_is_lost() {
    let (result, heard) = prepare(|number| number % 3 != 2);
    assert_eq!(result.trouble, None);
    assert_eq!((result.counts.operations, result.counts.missing, result.counts.wrong), (100, 0, 0));
    let kept: BTreeSet<u64> = heard.iter().filter(|one| one.2).map(|one| one.1).collect();
    assert_eq!(kept, (0..100).collect(), "every key was answered");
    assert!(heard.len() >= 149, "100 answers are two of every three: {}", heard.len());
}

#[test]
fn one_socket_prepares_so_that_no_write_can_overtake_another() {
    let (result, heard) = prepare(|_| true);
    assert_eq!((result.trouble, result.counts.operations), (None, 100));
    let sockets: BTreeSet<String> = heard.iter().map(|one| one.0.to_string()).collect();
    assert_eq!(sockets.len(), 1, "{sockets:?}");
}

#[test]
fn no_more_is_under_way_than_a_receive_buffer_holds_and_silence_is_an_error() {
    let (result, heard) = prepare(|_| false);
    let trouble = result.trouble.expect("nothing was answered");
    assert!(trouble.contains("preparing key 0: none of 10 datagrams within 3500 ms"), "{trouble}");
    let keys: BTreeSet<u64> = heard.iter().map(|one| one.1).collect();
    assert_eq!(keys, (0..64).collect(), "the others wait for service");
    assert_eq!(result.counts.operations, 0);
}
