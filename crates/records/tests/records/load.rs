//! The load's dialect against answers written by hand: right ones are right in any pieces, and
//! values that are stale, mixed, lost without a word or somebody else's are found.

use std::sync::Arc;
use std::time::Duration;

use load::kv::Keys;
use load::{Dialect, Events, Op};
use proptest::prelude::*;
use records::load::{CONNECT, GET, MONITOR, Oracle, PUT, PvAccess, Updates};
use records::protocol::messages::{
    ChannelCreated, CreateChannels, DestroyChannel, Offer, RequestHead, ResponseHead, subcommand,
};
use records::protocol::{
    Command, Field, HEADER_BYTES, Header, Order, Reader, Scalar, Sender, Status, Structure, Type,
    Writer, control, message,
};
use records::server::{Limits, Producer, Production, RecordsConnection, Service};
use wire::{Connection, Input, Output, Peer, ProtocolError, Wake, Waker, deliver};

/// A server that says what it is told, and a client that hears it in pieces.
struct Talk {
    dialect: PvAccess,
    events: Events,
    requests: Output,
    pieces: Vec<usize>,
    order: Order,
    size: Option<u64>,
    /// Operations that were made, in their order.
    made: Vec<u32>,
}

/// Who writes all records.
#[derive(Clone, Copy, PartialEq)]
enum WrittenBy {
    Clients,
    Target,
}

fn oracle(size: Option<u64>, written_by: WrittenBy) -> Arc<Oracle> {
    let keys = Keys::new(9, 8).expect("keys");
    let by_target = if written_by == WrittenBy::Target { 9 } else { 0 };
    Arc::new(Oracle::new(keys, size, by_target).begin(written_by == WrittenBy::Clients))
}

impl Talk {
    fn begin(oracle: &Arc<Oracle>, order: Order, pieces: &[usize]) -> Self {
        let mut talk = Self {
            dialect: PvAccess::new(oracle, Updates::default()),
            events: Events::default(),
            requests: Output::new(1 << 20),
            pieces: pieces.to_vec(),
            order,
            size: oracle.size,
            made: Vec::new(),
        };
        talk.dialect.opened(0, &mut talk.events, &mut talk.requests).expect("opened");
        let mut greeting =
            Header::control(Sender::Server, order, control::SET_ORDER, 0).bytes().to_vec();
        let methods = vec![Arc::from("anonymous")];
        let offer = Offer { buffer_bytes: 1, registry_size: 1, methods };
        message(&mut greeting, Sender::Server, order, Command::Validation, |w| offer.write(w));
        let ok = Status::ok();
        message(&mut greeting, Sender::Server, order, Command::Validated, |w| ok.write(w));
        talk.hear(&greeting).expect("a greeting");
        assert!(talk.events.ready);
        talk
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let (mut at, mut input) = (0, Input::new());
        let mut sizes = self.pieces.clone().into_iter().cycle();
        while at < bytes.len() {
            let end = bytes.len().min(at + sizes.next().unwrap_or(bytes.len()));
            input.append(&bytes[at..end]);
            self.dialect.receive(0, &mut input, &mut self.events, &mut self.requests)?;
            at = end;
        }
        Ok(())
    }

    fn say(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Writer<'_, Vec<u8>>),
    ) -> Result<(), ProtocolError> {
        let mut bytes = Vec::new();
        message(&mut bytes, Sender::Server, self.order, command, body);
        self.hear(&bytes)
    }

    fn ask(&mut self, tag: u32, operation: usize, key: u64) {
        self.dialect.request(0, tag, Op { operation, what: key }, &mut self.requests);
        self.serve();
    }

    /// Makes what the client wants made: channels and operations.
    fn serve(&mut self) {
        let asked = self.requests.take();
        let mut at = 0;
        while at < asked.len() {
            let header = Header::read(asked[at..].first_chunk().expect("a header")).expect("one");
            let body = &asked[at + HEADER_BYTES..at + HEADER_BYTES + header.size as usize];
            at += HEADER_BYTES + body.len();
            let mut reader = Reader::new(body, header.order);
            let status = Status::ok();
            if header.command() == Command::CreateChannel {
                let (client_id, _) = CreateChannels::read(&mut reader).0[0].clone();
                let created = ChannelCreated { client_id, server_id: client_id + 7, status };
                self.say(Command::CreateChannel, |w| created.write(w)).expect("a channel");
                self.serve();
            } else if header.command() == Command::DestroyChannel {
                let destroyed = DestroyChannel::read(&mut reader);
                self.say(Command::DestroyChannel, |w| destroyed.write(w)).expect("its end");
            } else if [Command::Get, Command::Put, Command::Monitor].contains(&header.command()) {
                let operation = RequestHead::read(&mut reader);
                if operation.has(subcommand::INIT) {
                    self.made.push(operation.request);
                    let answer =
                        ResponseHead { request: operation.request, subcommand: subcommand::INIT };
                    let kind = record(self.size.is_some());
                    self.say(header.command(), |w| {
                        answer.write(w);
                        status.write(w);
                        w.kind(Some(&kind));
                    })
                    .expect("an operation");
                    self.serve();
                }
            }
        }
    }

    /// A value, as an answer to a get or an update.
    fn value(
        &mut self,
        command: Command,
        number: i64,
        others: i64,
        overrun: bool,
    ) -> Result<(), ProtocolError> {
        let request = *self.made.last().expect("an operation");
        let size = self.size;
        self.say(command, |w| {
            ResponseHead { request, subcommand: 0 }.write(w);
            if command == Command::Get {
                Status::ok().write(w);
            }
            // The value, and the whole of its time.
            w.raw(&[1, 0b110]);
            match size {
                None => w.i64(number),
                Some(size) => {
                    w.size(size as usize);
                    (0..size).for_each(|at| w.i64(if at == size / 2 { others } else { number }));
                }
            }
            w.i64(1_700_000_000);
            w.i32(5);
            w.i32(0);
            if command == Command::Monitor {
                w.raw(if overrun { &[1, 0b10] } else { &[0] });
            }
        })
    }
}

fn record(array: bool) -> Type {
    let time = [
        Field::new("secondsPastEpoch", Scalar::Long),
        Field::new("nanoseconds", Scalar::Int),
        Field::new("userTag", Scalar::Int),
    ];
    let value = if array { Type::array(Scalar::Long) } else { Scalar::Long.into() };
    let fields = [
        Field::new("value", value),
        Field::new("timeStamp", Type::Structure(Structure::new("time_t", time))),
    ];
    Type::Structure(Structure::new("", fields))
}

proptest! {
    #[test]
    fn right_values_are_right_in_any_pieces(
        size in prop::option::of(1_u64..9_000),
        pieces in prop::collection::vec(1_usize..30_000, 1..6),
        is_big: bool,
    ) {
        let order = if is_big { Order::Big } else { Order::Little };
        let oracle = oracle(size, WrittenBy::Clients);
        let mut talk = Talk::begin(&oracle, order, &pieces);
        let number = oracle.number(3, oracle.prepared_version());
        for tag in [0, 1] {
            talk.ask(tag, GET, 3);
            talk.value(Command::Get, number, number, false).unwrap();
        }
        prop_assert_eq!(talk.made.len(), 1, "a get is made once and executed again");
        let wrong: u32 = talk.events.done.iter().map(|done| done.wrong).sum();
        prop_assert_eq!((talk.events.done.len(), wrong), (2, 0));
        prop_assert_eq!(talk.events.elements, 2 * size.unwrap_or(1));
        prop_assert_eq!(talk.events.payload_bytes, 16 * size.unwrap_or(1));
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1_usize..40,
    ) {
        let mut talk = Talk::begin(&oracle(Some(4), WrittenBy::Target), Order::Little, &[piece]);
        talk.ask(0, MONITOR, 1);
        let _ = talk.hear(&bytes);
    }
}

#[test]
fn values_that_are_stale_mixed_or_another_records_are_wrong() {
    let oracle = oracle(Some(3_000), WrittenBy::Clients);
    let mut talk = Talk::begin(&oracle, Order::Little, &[1_000]);
    let wrong = |talk: &mut Talk, number: i64, others: i64| {
        talk.ask(0, GET, 3);
        talk.value(Command::Get, number, others, false).unwrap();
        let note = talk.events.findings.first().map(|finding| finding.note.clone());
        talk.events.clear();
        note.unwrap_or_default()
    };
    let prepared = oracle.number(3, 1);
    assert_eq!(wrong(&mut talk, prepared, prepared), "");
    assert_eq!(wrong(&mut talk, prepared, prepared + 1), "the elements of one value differ");
    assert!(wrong(&mut talk, prepared + 1, prepared + 1).contains("was never written"));
    assert!(wrong(&mut talk, oracle.number(4, 1), oracle.number(4, 1)).contains("no version"));
    talk.ask(0, PUT, 3);
    let request = *talk.made.last().unwrap();
    let answer = ResponseHead { request, subcommand: 0 };
    talk.say(Command::Put, |w| {
        answer.write(w);
        Status::ok().write(w);
    })
    .unwrap();
    assert_eq!((talk.events.done.len(), talk.events.findings.len()), (1, 0));
    talk.made.truncate(1);
    talk.events.clear();
    assert!(wrong(&mut talk, prepared, prepared).contains("had been replaced"));
    assert_eq!(wrong(&mut talk, prepared + 1, prepared + 1), "");
}

#[test]
fn updates_have_to_advance_and_overruns_to_be_true() {
    for size in [None, Some(5_000)] {
        let oracle = oracle(size, WrittenBy::Target);
        let mut talk = Talk::begin(&oracle, Order::Little, &[4_096]);
        talk.ask(0, MONITOR, 3);
        for (number, overrun) in
            [(7, false), (8, false), (11, true), (14, false), (14, false), (15, true)]
        {
            talk.value(Command::Monitor, number, number, overrun).unwrap();
        }
        let updates: Vec<_> = talk.events.updates.iter().collect();
        let told: Vec<_> = updates.iter().map(|one| (one.missed, one.merged, one.wrong)).collect();
        let expected = [
            (0, 0, false),
            (0, 0, false),
            (2, 2, false),
            (2, 0, false),
            (0, 0, true),
            (0, 0, true),
        ];
        assert_eq!(told, expected);
        assert_eq!(updates[0].made_unix_ns, Some(1_700_000_000_000_000_005));
        let notes: Vec<_> = talk.events.findings.iter().map(|finding| &finding.note[..]).collect();
        assert_eq!(notes[0], "the value does not advance");
        assert!(notes[1].starts_with("a value is said to be left out"));
    }
}

#[test]
fn arrays_in_shared_memory_count_as_elements_that_no_socket_carried() {
    let service = Service::new(Limits::default());
    let production = Production {
        name: "k0000003".to_owned(),
        size: 5_000,
        delay: Duration::from_millis(1),
        recycles: true,
        shares: true,
        queue: 4,
    };
    let _producer = Producer::start(&service, production).unwrap();
    let shared = Updates { shared: true, ..Updates::default() };
    let mut dialect = PvAccess::new(&oracle(Some(5_000), WrittenBy::Target), shared);
    let mut connection = RecordsConnection::new(service);
    let (mut requests, mut answers) = (Output::new(1 << 20), Output::new(1 << 20));
    let (mut to_server, mut to_client) = (Input::new(), Input::new());
    let mut events = Events::default();
    let peer = Peer { address: "127.0.0.1:9".parse().unwrap(), waker: Waker::new(|| ()) };
    connection.opened(0, &peer, &mut answers).unwrap();
    dialect.opened(0, &mut events, &mut requests).unwrap();
    let mut is_asked = false;
    while events.updates.len() < 5 {
        connection.resume(0, Wake::Posted, &mut answers).unwrap();
        to_client.append(&answers.take());
        dialect.receive(0, &mut to_client, &mut events, &mut requests).unwrap();
        if events.ready && !std::mem::replace(&mut is_asked, true) {
            let op = Op { operation: MONITOR, what: 3 };
            dialect.request(0, 0, op, &mut requests);
        }
        to_server.append(&requests.take());
        deliver(&mut connection, 0, &mut to_server, &mut answers).unwrap();
    }
    assert!(events.findings.is_empty(), "{:?}", events.findings);
    let updates = events.updates.len() as u64;
    assert_eq!((events.elements, events.payload_bytes), (5_000 * updates, 0));
}

#[test]
fn a_cancelled_stream_ends_when_the_echo_is_back() {
    let mut talk = Talk::begin(&oracle(None, WrittenBy::Target), Order::Little, &[7]);
    talk.ask(5, MONITOR, 0);
    talk.dialect.cancel(5, &mut talk.requests);
    let asked = talk.requests.take();
    talk.value(Command::Monitor, 1, 1, false).unwrap();
    assert!(talk.events.updates.is_empty() && talk.events.done.is_empty());
    // The last message is the echo; the server sends it back as it is.
    let at = asked.len() - HEADER_BYTES - 12;
    let header = Header::read(asked[at..].first_chunk().unwrap()).unwrap();
    assert_eq!(header.command(), Command::Echo);
    talk.say(Command::Echo, |w| w.raw(&asked[at + HEADER_BYTES..])).unwrap();
    assert_eq!(talk.events.done[0].tag, 5);
}

#[test]
fn a_channel_is_made_and_destroyed_again() {
    let mut talk = Talk::begin(&oracle(None, WrittenBy::Clients), Order::Little, &[50]);
    talk.ask(2, CONNECT, 4);
    assert_eq!((talk.events.done[0].tag, talk.events.done[0].wrong), (2, 0));
}

#[test]
fn a_record_of_another_shape_is_a_clear_fault() {
    let mut talk = Talk::begin(&oracle(Some(10), WrittenBy::Clients), Order::Little, &[500]);
    talk.size = None;
    talk.dialect.request(0, 0, Op { operation: GET, what: 1 }, &mut talk.requests);
    let asked = talk.requests.take();
    assert!(asked.len() > HEADER_BYTES);
    let created = ChannelCreated { client_id: 0, server_id: 1, status: Status::ok() };
    talk.say(Command::CreateChannel, |w| created.write(w)).unwrap();
    let fault = talk.say(Command::Get, |w| {
        ResponseHead { request: 0, subcommand: subcommand::INIT }.write(w);
        Status::ok().write(w);
        w.kind(Some(&record(false)));
    });
    assert!(fault.unwrap_err().to_string().contains("mind workload.size"));
}
