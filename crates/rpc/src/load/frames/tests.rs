//! The dialect against answers written by hand.

use load::{Done, Scenario, Speaks};

use super::super::call::number_message;
use super::super::operations::{ADD, PATHS, UNARY};
use super::*;
use crate::load::SERVICE;
use crate::protocol::native::Outbox;

/// The bytes of the client's greeting.
const GREETING_BYTES: usize = 12;

fn frame(kind: Kind, id: u64, method: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header { length: payload.len() as u32, method, ..Header::of(kind, id) };
    let mut out = Outbox::default();
    out.push(&header, &Bytes::copy_from_slice(payload));
    out.to_vec()
}

fn greeting(methods: &[&str], max_calls: u32) -> Vec<u8> {
    let unary = |name: &&str| Method {
        name: (*name).to_owned(),
        client_streams: false,
        server_streams: false,
    };
    let methods = methods.iter().map(unary).collect();
    let mut out = BytesMut::new();
    ServerGreeting { max_message: 1_000, max_calls, methods }.encode(&mut out);
    out.to_vec()
}

/// A connection, and the calls that it has made.
struct Talk {
    dialect: Box<dyn Dialect>,
    out: Output,
    events: Events,
    input: Input,
    heard: Vec<(Header, Vec<u8>)>,
}

fn dialect(workload: &str) -> Result<Box<dyn Dialect>, ProtocolError> {
    let text = format!("service = 'rpc'\n{workload}");
    let scenario = Scenario::parse(&text, &SERVICE).expect("a workload");
    scenario.begin().dialect(&Speaks::plainly(SERVICE.dialect("frames").expect("a row")))
}

impl Talk {
    fn begin(workload: &str, max_calls: u32) -> Self {
        let dialect = dialect(workload).expect("a dialect");
        let (out, events, input) = (Output::new(1 << 20), Events::default(), Input::new());
        let mut talk = Self { dialect, out, events, input, heard: Vec::new() };
        talk.dialect.opened(0, &mut talk.events, &mut talk.out).expect("opened");
        assert_eq!(talk.out.take().len(), GREETING_BYTES);
        talk.hear(&greeting(&["/other", PATHS[UNARY], PATHS[ADD]], max_calls)).expect("greeted");
        talk
    }

    fn ask(&mut self, tag: Tag, operation: usize) -> u64 {
        self.dialect.request(0, tag, Op { operation, what: 6 }, &mut self.out);
        self.take();
        self.heard.last().map_or(0, |(header, _)| header.id)
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.input.append(bytes);
        let Self { dialect, input, events, out, .. } = self;
        let outcome = dialect.receive(0, input, events, out);
        self.take();
        outcome
    }

    fn take(&mut self) {
        let said = self.out.take();
        let mut rest = &said[..];
        while let Some((head, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = Header::decode(head).expect("a header");
            let (payload, next) = after.split_at(header.length as usize);
            self.heard.push((header, payload.to_vec()));
            rest = next;
        }
    }

    fn done(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.events.done)
    }
}

#[test]
fn an_echo_in_any_pieces_is_right_in_one_way_only() {
    for size in [1, 23, 24, 25, 1_000] {
        let mut talk = Talk::begin("operation = 'unary'\nbytes = 40", 8);
        assert!(talk.events.ready);
        let (one, two) = (talk.ask(3, UNARY), talk.ask(4, UNARY));
        let (header, said) = talk.heard[0].clone();
        assert_eq!((header.method, said.len()), (1, 42));
        let mut other = said.clone();
        other[30] ^= 1;
        // In any order.
        let both = [frame(Kind::Answer, two, 0, &other), frame(Kind::Answer, one, 0, &said)];
        both.concat().chunks(size).for_each(|piece| talk.hear(piece).expect("no fault"));
        assert_eq!(talk.done(), [Done::wrong(4), Done::right(3)], "{size}");
        assert_eq!(talk.events.findings[0].note, "another message");
        let three = talk.ask(3, UNARY);
        talk.hear(&frame(Kind::Answer, three, 0, &said[..41])).expect("no fault");
        assert_eq!(talk.done(), [Done::wrong(3)]);
        let four = talk.ask(3, UNARY);
        talk.hear(&frame(Kind::Failure, four, 8, b"full")).expect("no fault");
        assert_eq!(talk.done(), [Done { refused: 1, ..Done::right(3) }]);
    }
}

#[test]
fn totals_are_checked_and_the_one_before_is_asked_for() {
    let mut talk = Talk::begin("operation = 'add'", 8);
    assert!(!talk.events.ready);
    let (header, said) = talk.heard[0].clone();
    assert_eq!((header.method, said.len()), (2, 0));
    talk.hear(&frame(Kind::Answer, header.id, 0, &number_message(100)[5..])).expect("no fault");
    assert!(talk.events.ready && talk.done().is_empty());
    for (total, right) in [(107, Done::right(0)), (115, Done::wrong(0))] {
        let id = talk.ask(0, ADD);
        talk.hear(&frame(Kind::Answer, id, 0, &number_message(total)[5..])).expect("no fault");
        assert_eq!(talk.done(), [right]);
    }
}

#[test]
fn calls_wait_for_their_turn_and_late_answers_are_swallowed() {
    let mut talk = Talk::begin("operation = 'unary'", 1);
    let one = talk.ask(0, UNARY);
    talk.ask(1, UNARY);
    assert_eq!(talk.heard.len(), 1, "the server takes one at a time");
    talk.dialect.expire(0);
    talk.hear(&frame(Kind::Answer, one, 0, &[])).expect("it was made");
    assert_eq!((talk.done(), talk.heard.len()), (vec![], 2));
    let two = talk.heard[1].0.id;
    talk.hear(&frame(Kind::Answer, two, 0, &[])).expect("no fault");
    assert_eq!(talk.done(), [Done::right(1)]);
    let error = talk.hear(&frame(Kind::Answer, two, 0, &[])).expect_err("twice");
    assert!(error.to_string().contains("which was not made"), "{error}");
}

#[test]
fn what_a_server_lacks_is_said_when_it_greets() {
    let fails = |workload: &str, greeting: &[u8]| {
        let mut dialect = dialect(workload).expect("a dialect");
        let (mut out, mut events) = (Output::new(1 << 20), Events::default());
        let mut input = Input::of(greeting);
        let error = dialect.receive(0, &mut input, &mut events, &mut out);
        error.expect_err("refused").to_string()
    };
    let without = fails("operation = 'unary'", &greeting(&["/other"], 8));
    assert_eq!(without, "own frames: the server has no unary method /loadline.rpc.v1.Table/Echo");
    let large = fails("operation = 'unary'\nbytes = 1000", &greeting(&[PATHS[UNARY]], 8));
    assert!(large.contains("1003 bytes is over the server's limit, 1000"), "{large}");
    let other = fails("operation = 'unary'", b"HTTP/1.1 400");
    assert!(other.contains("doesn't speak own frames"), "{other}");
    let stream = dialect("operation = 'server-stream'\nbytes = 8").err().expect("no stream");
    assert!(stream.to_string().contains("server-stream is one"), "{stream}");
    let mut talk = Talk::begin("operation = 'unary'", 8);
    let goodbye = talk.hear(&frame(Kind::Goodbye, 0, 14, b"the server stops"));
    let goodbye = goodbye.expect_err("the end").to_string();
    assert_eq!(goodbye, "own frames: the server ends the connection: the server stops");
}

#[test]
fn nothing_is_allocated_per_call_after_the_first_ones() {
    let mut talk = Talk::begin("operation = 'unary'\nbytes = 500", 8);
    talk.ask(0, UNARY);
    let (first, said) = talk.heard[0].clone();
    talk.hear(&frame(Kind::Answer, first.id, 0, &said)).expect("no fault");
    assert_eq!(talk.done(), [Done::right(0)]);
    let answers: Vec<_> =
        (2..100).map(|number| frame(Kind::Answer, number << 32, 0, &said)).collect();
    let Talk { dialect, out, events, input, .. } = &mut talk;
    let mut call = |bytes: &Vec<u8>| {
        dialect.request(0, 0, Op { operation: UNARY, what: 6 }, out);
        out.advance(out.len());
        input.append(bytes);
        dialect.receive(0, input, events, out).expect("no fault");
        assert_eq!(events.done, [Done::right(0)], "{:?}", events.findings);
        events.clear();
    };
    answers[..9].iter().for_each(&mut call);
    let counted = base::allocations::measure(|| answers[9..].iter().for_each(&mut call));
    assert_eq!(counted.count, 0);
}
