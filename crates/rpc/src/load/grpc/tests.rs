//! The dialect against answers written by hand.

use load::{Done, Scenario, Speaks};

use super::super::call::number_message;
use super::super::operations::{ADD, CLIENT_STREAM, SERVER_STREAM, UNARY};
use super::*;
use crate::load::SERVICE;
use crate::protocol::http2::frame::{HEAD_BYTES, Head, flag, kind, setting};

const PREFACE_BYTES: usize = 24;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = Head { len: payload.len(), kind, flags, stream };
    [&head.bytes()[..], payload].concat()
}

/// `:status: 200`, `content-type: application/grpc`; and `grpc-status: 0`.
const BEGUN: &[u8] = b"\x88\x0f\x10\x10application/grpc";
const OVER: &[u8] = b"\x00\x0bgrpc-status\x010";

/// A whole answer on a stream.
fn answer(stream: u32, message: &[u8]) -> Vec<u8> {
    let data = match message.len() {
        0 => Vec::new(),
        _ => frame(kind::DATA, 0, stream, message),
    };
    let end = flag::END_HEADERS | flag::END_STREAM;
    let begun = frame(kind::HEADERS, flag::END_HEADERS, stream, BEGUN);
    [begun, data, frame(kind::HEADERS, end, stream, OVER)].concat()
}

/// A connection, and what its server has taken of each stream.
struct Talk {
    dialect: Box<dyn Dialect>,
    out: Output,
    events: Events,
    heard: std::collections::BTreeMap<u32, (Vec<u8>, bool)>,
}

impl Talk {
    fn begin(workload: &str, settings: &[(u16, u32)]) -> Self {
        let mut talk = Self::unopened(workload);
        talk.open(settings).expect("no fault");
        talk
    }

    fn unopened(workload: &str) -> Self {
        let text = format!("service = 'rpc'\n{workload}");
        let scenario = Scenario::parse(&text, &SERVICE).expect("a workload");
        let dialect = scenario.begin().dialect(&Speaks::plainly(&SERVICE.dialects[0]));
        let dialect = dialect.expect("a dialect");
        let (out, events) = (Output::new(1 << 20), Events::default());
        Self { dialect, out, events, heard: Default::default() }
    }

    fn open(&mut self, settings: &[(u16, u32)]) -> Result<(), ProtocolError> {
        self.dialect.opened(0, &mut self.events, &mut self.out).expect("opened");
        assert!(!self.events.ready);
        self.out.advance(PREFACE_BYTES);
        let one =
            |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let settings = settings.iter().flat_map(one).collect::<Vec<u8>>();
        self.try_hear(&frame(kind::SETTINGS, 0, 0, &settings))
    }

    fn ask(&mut self, tag: Tag, operation: usize) {
        self.dialect.request(0, tag, Op { operation, what: 6 }, &mut self.out);
        self.take();
    }

    /// The client hears these bytes, and what it says is taken.
    fn hear(&mut self, bytes: &[u8]) {
        self.try_hear(bytes).expect("no fault");
    }

    fn try_hear(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let mut input = Input::of(bytes);
        let (events, out) = (&mut self.events, &mut self.out);
        self.dialect.receive(0, &mut input, events, out)?;
        self.take();
        Ok(())
    }

    fn take(&mut self) {
        let said = self.out.take();
        let mut at = 0;
        while at < said.len() {
            let head = Head::read(*said[at..].first_chunk().expect("a whole head"));
            let payload = &said[at + HEAD_BYTES..at + HEAD_BYTES + head.len];
            at += HEAD_BYTES + head.len;
            if head.kind == kind::DATA {
                let (bytes, ended) = self.heard.entry(head.stream).or_default();
                bytes.extend_from_slice(payload);
                *ended |= head.has(flag::END_STREAM);
            }
        }
    }

    fn done(&mut self) -> Vec<Done> {
        let done = self.events.done.clone();
        self.events.done.clear();
        done
    }
}

#[test]
fn an_echo_is_right_in_one_way_only() {
    let mut talk = Talk::begin("operation = 'unary'\nbytes = 40", &[]);
    assert!(talk.events.ready);
    talk.ask(3, UNARY);
    talk.ask(4, UNARY);
    let (said, ended) = talk.heard[&1].clone();
    assert!(ended && said.len() == 47);
    let mut other = said.clone();
    other[30] ^= 1;
    // In any order.
    talk.hear(&[answer(3, &other), answer(1, &said)].concat());
    assert_eq!(talk.done(), [Done::wrong(4), Done::right(3)]);
    assert_eq!(talk.events.findings[0].note, "another message");
    for (stream, bytes, note) in [
        (5, &said[..46], "the answer ends early"),
        (7, &[&said[..], b"x"].concat(), "more than the answer"),
        (9, &[], "the answer ends early"),
    ] {
        talk.events.clear();
        talk.ask(0, UNARY);
        talk.hear(&answer(stream, bytes));
        assert_eq!((talk.done(), &talk.events.findings[0].note[..]), (vec![Done::wrong(0)], note));
    }
    talk.events.clear();
    talk.ask(0, UNARY);
    let refusal = [BEGUN, b"\x00\x0bgrpc-status\x018\x00\x0cgrpc-message\x04full"].concat();
    talk.hear(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 11, &refusal));
    assert_eq!(talk.done(), [Done { refused: 1, ..Done::right(0) }]);
    assert_eq!(talk.events.findings[0].note, "RESOURCE_EXHAUSTED (8): full");
}

#[test]
fn a_call_that_is_done_twice_is_found_and_so_is_one_that_is_not_done() {
    for (second, is_right) in [(114, true), (121, false), (107, false)] {
        let mut talk = Talk::begin("operation = 'add'", &[]);
        assert!(!talk.events.ready, "the total before is asked for");
        assert_eq!(talk.heard[&1], (vec![0; 5], true));
        talk.hear(&answer(1, &number_message(100)));
        assert!(talk.events.ready && talk.done().is_empty());
        talk.ask(0, ADD);
        talk.ask(1, ADD);
        assert_eq!(talk.heard[&3], (number_message(7), true));
        talk.hear(&answer(5, &number_message(107)));
        assert_eq!(talk.done(), [Done::right(1)]);
        talk.hear(&answer(3, &number_message(second)));
        let right = if is_right { Done::right(0) } else { Done::wrong(0) };
        assert_eq!(talk.done(), [right], "{second}");
    }
}

#[test]
fn a_call_that_is_not_done_is_found_after_one_whose_answer_was_wrong() {
    let mut talk = Talk::begin("operation = 'add'", &[]);
    talk.hear(&answer(1, &number_message(100)));
    talk.ask(0, ADD);
    let right = frame(kind::DATA, 0, 3, &number_message(107));
    talk.hear(&[frame(kind::HEADERS, flag::END_HEADERS, 3, BEGUN), right].concat());
    talk.hear(&frame(kind::DATA, 0, 3, &[b'x'; 40]));
    talk.hear(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, OVER));
    assert_eq!(talk.done(), [Done::wrong(0)]);
    talk.ask(0, ADD);
    talk.ask(1, ADD);
    // Either may be in it, and not both.
    talk.hear(&answer(5, &number_message(107)));
    assert_eq!(talk.done(), [Done::right(0)]);
    talk.hear(&answer(7, &number_message(107)));
    assert_eq!(talk.done(), [Done::wrong(1)]);
}

#[test]
fn what_has_no_room_is_sent_as_room_is_granted() {
    let small = [(setting::INITIAL_WINDOW_SIZE, 10), (setting::MAX_CONCURRENT_STREAMS, 1)];
    let mut talk = Talk::begin("operation = 'unary'\nbytes = 40", &small);
    talk.ask(0, UNARY);
    talk.ask(1, UNARY);
    assert_eq!(talk.heard[&1].0.len(), 10);
    for _ in 0..37 {
        assert!(!talk.heard[&1].1);
        talk.hear(&frame(kind::WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes()));
    }
    let (said, ended) = talk.heard[&1].clone();
    assert!(ended && !talk.heard.contains_key(&3), "one at a time");
    talk.hear(&answer(1, &said));
    assert_eq!(talk.done(), [Done::right(0)]);
    assert_eq!(talk.heard[&3].0, said[..10]);
    talk.dialect.expire(1);
    talk.ask(1, UNARY);
    talk.hear(&answer(3, &said));
    assert_eq!(talk.done(), [], "it was given up");
    assert_eq!(talk.heard[&5].0, said[..10]);
}

#[test]
fn a_server_that_goes_is_asked_again_for_what_it_has_not_begun() {
    let mut talk = Talk::begin("operation = 'unary'\nbytes = 4", &[]);
    talk.ask(0, UNARY);
    talk.ask(1, UNARY);
    let said = talk.heard[&1].0.clone();
    talk.hear(&frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]));
    assert!(!talk.events.close && talk.dialect.may_repeat(1) && !talk.dialect.may_repeat(0));
    talk.hear(&answer(1, &said));
    assert_eq!(talk.done(), [Done::right(0)]);
    assert!(talk.events.close);
    talk.dialect.repeat(&mut talk.out);
    talk.events.clear();
    talk.heard.clear();
    talk.open(&[]).expect("no fault");
    assert!(talk.events.ready);
    talk.hear(&answer(1, &talk.heard[&1].0.clone()));
    assert_eq!(talk.done(), [Done::right(1)]);
}

/// Schemas are learned by builds with gRPC only.
#[cfg(feature = "grpc")]
#[test]
fn a_server_that_takes_no_question_of_its_schema_is_named() {
    let workload = "operation = 'call'\nmethod = 'a.B/C'";
    for (settings, why) in [
        ((setting::MAX_CONCURRENT_STREAMS, 0), "the server takes no call"),
        ((setting::INITIAL_WINDOW_SIZE, 9), "the server has no room"),
    ] {
        let fault = Talk::unopened(workload).open(&[settings]).expect_err("nothing can be asked");
        assert!(fault.to_string().contains(why), "{fault}");
    }
    let refused = frame(kind::RST_STREAM, 0, 1, &7_u32.to_be_bytes());
    let leaves = frame(kind::GOAWAY, 0, 0, &[0; 8]);
    for bytes in [refused, leaves] {
        let mut talk = Talk::begin(workload, &[]);
        assert!(talk.heard[&1].1, "it is asked");
        let fault = talk.try_hear(&bytes).expect_err("there is no answer");
        assert!(fault.to_string().contains("REFUSED_STREAM"), "{fault}");
    }
    // Version v1 is unknown there, and another stream isn't begun any more.
    let mut talk = Talk::begin(workload, &[]);
    let unknown = [BEGUN, b"\x00\x0bgrpc-status\x0212"].concat();
    let unknown = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &unknown);
    let leaves = frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    let fault = talk.try_hear(&[leaves, unknown].concat()).expect_err("nothing can be asked");
    assert!(fault.to_string().contains("the server takes no call"), "{fault}");
}

#[test]
fn streams_are_counted_by_their_messages_and_a_conversation_takes_turns() {
    let workload = "mix = { server-stream = 1, bidi = 1, client-stream = 1 }\nbytes = 3\n\
                    messages = 2";
    let mut talk = Talk::begin(workload, &[]);
    let one = [0, 0, 0, 0, 7, 0x0a, 5, 0x12, 3, 0, 0, 0];
    talk.ask(0, SERVER_STREAM);
    talk.hear(&answer(1, &one.repeat(2)));
    assert_eq!(talk.done(), [Done::right(0)]);
    assert_eq!((talk.events.elements, talk.events.payload_bytes), (2, 6));
    talk.ask(0, BIDI);
    let first = talk.heard[&3].0.clone();
    talk.hear(&frame(kind::HEADERS, flag::END_HEADERS, 3, BEGUN));
    talk.hear(&frame(kind::DATA, 0, 3, &one));
    assert_eq!(talk.heard[&3], (first.repeat(2), true));
    talk.hear(&frame(kind::DATA, 0, 3, &one));
    let end = flag::END_HEADERS | flag::END_STREAM;
    talk.hear(&frame(kind::HEADERS, end, 3, OVER));
    assert_eq!(talk.done(), [Done::right(0)]);
    talk.ask(0, CLIENT_STREAM);
    assert!(talk.heard[&5].1);
    talk.hear(&answer(5, &number_message(6)));
    assert_eq!(talk.done(), [Done::right(0)]);
    talk.ask(0, CLIENT_STREAM);
    talk.hear(&answer(7, &number_message(5)));
    assert_eq!(talk.done(), [Done::wrong(0)]);
}

#[test]
fn nothing_is_allocated_per_call_after_the_first_ones() {
    let mut talk = Talk::begin("mix = { unary = 1, add = 1 }\nbytes = 500", &[]);
    talk.hear(&answer(1, &number_message(0)));
    talk.ask(0, UNARY);
    let said = talk.heard[&3].0.clone();
    talk.hear(&answer(3, &said));
    assert_eq!(talk.done(), [Done::right(0)]);
    let answers = (1..100_u32).map(|number| {
        let (stream, total) = (number * 2 + 3, i64::from(number / 2 * 7));
        let adds = number.is_multiple_of(2);
        let message = if adds { number_message(total) } else { said.clone() };
        (if adds { ADD } else { UNARY }, answer(stream, &message))
    });
    let answers: Vec<_> = answers.collect();
    let Talk { dialect, out, events, .. } = &mut talk;
    let mut input = Input::new();
    let mut call = |(operation, bytes): &(usize, Vec<u8>)| {
        dialect.request(0, 0, Op { operation: *operation, what: 6 }, out);
        out.advance(out.len());
        input.append(bytes);
        dialect.receive(0, &mut input, events, out).expect("no fault");
        assert_eq!(events.done, [Done::right(0)], "{:?}", events.findings);
        events.clear();
    };
    answers[..9].iter().for_each(&mut call);
    let counted = base::allocations::measure(|| answers[9..].iter().for_each(&mut call));
    assert_eq!(counted.count, 0);
}

#[test]
fn what_is_asked_before_the_load_has_a_time_of_its_own() {
    let made = std::sync::Arc::new(crate::load::made::Made::new(1, 1, 1));
    let target = Target { made, totals: Default::default(), operations: [ADD].into() };
    let all = paths(&target, Some("5m"));
    let times: Vec<_> = all.iter().map(|path| path.timeout).collect();
    assert_eq!(times, [[Some("5m"); 5].as_slice(), &[Some("10S")]].concat());
    assert_eq!((all[5].name, all[ADD].name), (PATHS[ADD], PATHS[ADD]));
    assert!(paths(&target, None)[..5].iter().all(|path| path.timeout.is_none()));
}
