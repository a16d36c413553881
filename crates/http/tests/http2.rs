//! HTTP/2 without a socket, frame by frame: which streams are opened, which answers are right, and
//! what happens to requests when a server ends its connection.

use http::load::MAX_UNREAD_BYTES;
use load::{Op, Scenario};

use crate::common::{Bench, one, resolve};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status` 200 and 404, as HPACK's static table has them.
const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];

const VERSION_2: &str = "version = 2";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of an answer, with the body where there is one.
fn answer(stream: u32, head: &[u8], body: &str) -> Vec<u8> {
    if body.is_empty() {
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, head);
    }
    let head = frame(HEADERS, END_HEADERS, stream, head);
    [head, frame(DATA, END_STREAM, stream, body.as_bytes())].concat()
}

/// The client's frames behind its preface: kind, flags, stream and payload.
fn frames(bytes: &[u8]) -> Vec<(u8, u8, u32, &[u8])> {
    let mut rest = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(bytes);
    let mut all = Vec::new();
    while !rest.is_empty() {
        let length = usize::from(rest[0]) << 16 | usize::from(rest[1]) << 8 | usize::from(rest[2]);
        let stream = u32::from_be_bytes(rest[5..9].try_into().expect("four bytes"));
        let (payload, after) = rest[9..].split_at(length);
        all.push((rest[3], rest[4], stream, payload));
        rest = after;
    }
    all
}

/// The streams of the frames of this kind.
fn streams(bytes: &[u8], kind: u8) -> Vec<u32> {
    frames(bytes).iter().filter(|frame| frame.0 == kind).map(|frame| frame.2).collect()
}

/// A connection on which the server has said its settings.
fn greeted(workload: &Scenario, settings: &[u8]) -> Bench {
    let mut bench = Bench::with(workload, VERSION_2).expect("a connection");
    open(&mut bench, settings);
    bench.out.take();
    bench
}

fn open(bench: &mut Bench, settings: &[u8]) {
    bench.events.clear();
    bench.dialect.opened(0, &mut bench.events, &mut bench.out).expect("said");
    assert!(!bench.events.ready, "the server has not said its settings");
    bench.gets(&frame(SETTINGS, 0, 0, settings)).expect("understood");
    assert!(bench.events.ready);
}

#[test]
fn each_request_is_a_stream_and_answers_come_in_any_order() {
    let workload = one("path='/'\nexpect.body='hello'");
    for size in [1, 1000] {
        let mut bench = greeted(&workload, &[]);
        let asked = bench.asks(&[0, 0, 0]);
        assert_eq!(streams(&asked, HEADERS), [1, 3, 5]);
        let answers = [answer(5, OK, "hello"), answer(1, OK, "hullo"), answer(3, OK, "hello")];
        for piece in answers.iter().flat_map(|answer| answer.chunks(size)) {
            bench.gets(piece).expect("understood");
        }
        assert_eq!(bench.answered(), [(2, true), (0, false), (1, true)]);
        assert_eq!(bench.events.findings[0].received, b"hullo");
    }
}

#[test]
fn a_request_has_its_body_and_its_key_and_a_wrong_answer_is_shown() {
    let workload = resolve(
        "service='http'\noperation='a'\nkeys={count=100, bytes=4}\n\
         [[request]]\nname='a'\npath='/{key}'\nmethod='PUT'\nbody='value of {key}'\n\
         expect.headers={content-type='a'}",
    );
    let mut bench = greeted(&workload.expect("right"), &[]);
    let asked = bench.asks(&[0]);
    let sent = frames(&asked);
    let (kind, flags, ..) = sent[0];
    assert_eq!((kind, flags & END_STREAM), (HEADERS, 0));
    assert_eq!(sent[1], (DATA, END_STREAM, 1, &b"value of k007"[..]));
    // A literal without indexing: content-type is 31 in the static table.
    let typed = [OK, &[0x0f, 0x10, 1, b'b']].concat();
    bench.gets(&answer(1, &typed, "")).expect("understood");
    let finding = &bench.events.findings[0];
    assert_eq!((&finding.note[..], &finding.key[..]), ("content-type is \"b\"", &b"k007"[..]));
    assert_eq!(finding.received, b"HTTP/2 200\r\ncontent-type: b\r\n\r\n");
    assert_eq!(bench.answered(), [(0, false)]);
}

#[test]
fn a_status_is_right_or_wrong_and_a_miss_is_one() {
    let asks = |expected: &str| {
        let mut bench = greeted(&one(&format!("path='/'\n{expected}")), &[]);
        bench.asks(&[0]);
        bench.gets(&answer(1, NOT_FOUND, "gone")).expect("understood");
        (bench.events.done[0], bench.events.findings)
    };
    let (done, findings) = asks("expect.status=404");
    assert_eq!((done.misses, done.wrong, findings.len()), (1, 0, 0));
    let (done, findings) = asks("");
    assert_eq!((done.misses, done.wrong), (1, 1));
    assert_eq!(findings[0].note, "the status is 404, not 200");
    assert_eq!(findings[0].expected, b"HTTP/2 200");
    assert_eq!(findings[0].received, b"HTTP/2 404\r\n\r\ngone");
}

#[test]
fn a_request_waits_where_the_server_allows_no_more_streams() {
    // SETTINGS_MAX_CONCURRENT_STREAMS is 1.
    let mut bench = greeted(&one("path='/'"), &[0, 3, 0, 0, 0, 1]);
    let asked = bench.asks(&[0, 0]);
    assert_eq!(streams(&asked, HEADERS), [1]);
    bench.gets(&answer(1, OK, "")).expect("understood");
    assert_eq!(streams(&bench.out.take(), HEADERS), [3]);
    bench.gets(&answer(3, OK, "")).expect("understood");
    assert_eq!(bench.answered(), [(0, true), (1, true)]);
}

#[test]
fn requests_that_a_leaving_server_has_not_looked_at_are_sent_again() {
    let mut bench = greeted(&one("path='/'\nmethod='POST'"), &[]);
    assert_eq!(streams(&bench.asks(&[0, 0]), HEADERS), [1, 3]);
    // The last stream that it answers is 1, and nothing is wrong.
    let leaving = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    bench.gets(&leaving).expect("understood");
    assert!(!bench.events.close, "one answer is to come");
    bench.gets(&answer(1, OK, "")).expect("understood");
    assert!(bench.events.close);
    assert_eq!(bench.answered(), [(0, true)]);
    assert!(bench.dialect.may_repeat(1), "though it is a POST");

    bench.dialect.repeat(&mut bench.out);
    bench.out.take();
    open(&mut bench, &[]);
    assert_eq!(streams(&bench.out.take(), HEADERS), [1]);
    bench.gets(&answer(1, OK, "")).expect("understood");
    assert_eq!(bench.answered(), [(1, true)]);
}

#[test]
fn an_answer_that_is_reset_is_wrong_and_one_that_is_given_up_is_reset() {
    let mut bench = greeted(&one("path='/'"), &[]);
    bench.asks(&[0]);
    bench.gets(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 2])).expect("understood");
    assert_eq!(bench.answered(), [(0, false)]);
    let note = &bench.events.findings[0].note;
    assert_eq!(note, "HTTP/2: the server reset the request: INTERNAL_ERROR, an error of its own");

    bench.asks(&[0]);
    bench.dialect.expire(0);
    let asked = bench.asks(&[0]);
    assert_eq!(streams(&asked, RST_STREAM), [3]);
    assert_eq!(streams(&asked, HEADERS), [5]);
    bench.gets(&[answer(3, OK, "late"), answer(5, NOT_FOUND, "")].concat()).expect("understood");
    assert_eq!(bench.answered(), [(0, false)]);
}

#[test]
fn the_end_of_a_connection_is_a_fault_only_while_answers_are_awaited() {
    let workload = one("path='/'");
    let mut bench = greeted(&workload, &[]);
    bench.asks(&[0]);
    bench.gets(&answer(1, OK, "")).expect("understood");
    bench.dialect.closed(0, &mut bench.events).expect("nothing was asked");

    let mut bench = greeted(&workload, &[]);
    bench.asks(&[0]);
    bench.gets(&frame(HEADERS, END_HEADERS, 1, OK)).expect("understood");
    let fault = bench.dialect.closed(0, &mut bench.events).expect_err("cut off").to_string();
    assert!(fault.contains("closed the connection"), "{fault}");
}

#[test]
fn what_does_not_speak_http_2_is_named() {
    let workload = one("path='/'");
    let mut bench = Bench::with(&workload, VERSION_2).expect("a connection");
    bench.dialect.opened(0, &mut bench.events, &mut bench.out).expect("said");
    assert!(bench.out.take().starts_with(b"PRI * HTTP/2.0\r\n"));
    let fault = bench.gets(b"HTTP/1.1 400 Bad Request\r\n").expect_err("no frame").to_string();
    assert!(fault.contains("leave `version` out"), "{fault}");
    let of_connection = one("path='/'\nheaders={Connection='close'}");
    let Err(fault) = Bench::with(&of_connection, VERSION_2) else { panic!("refused") };
    assert!(fault.to_string().contains("HTTP/2 has no header connection"), "{fault}");
}

#[test]
fn a_fault_says_which_side_has_done_what() {
    let workload = one("path='/'");
    let fault = |frame: &[u8]| {
        let mut bench = greeted(&workload, &[]);
        bench.asks(&[0]);
        bench.gets(frame).expect_err("a fault").to_string()
    };
    // The last stream, the reason ENHANCE_YOUR_CALM, and the server's words.
    let go_away = frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\x0bslow down\x1b");
    let said = fault(&go_away);
    let who =
        "the server ended the connection (GOAWAY): ENHANCE_YOUR_CALM, more load than is taken";
    assert_eq!(said, format!("HTTP/2: {who} (b\"slow down\\x1b\")"));
    let said = fault(&frame(DATA, 0, 0, b"of no stream"));
    assert!(said.starts_with("HTTP/2: the server broke the protocol: PROTOCOL_ERROR, "), "{said}");
}

#[test]
fn a_server_that_floods_and_does_not_read_is_given_up_and_one_that_reads_is_not() {
    let workload = one("path='/'");
    let pings = frame(PING, 0, 0, b"12345678").repeat(1000);
    let settings = frame(SETTINGS, 0, 0, &[]).repeat(1000);
    for flood in [&pings, &settings] {
        let mut bench = greeted(&workload, &[]);
        bench.asks(&[0]);
        let floods = 2 * MAX_UNREAD_BYTES / flood.len();
        let fault = (0..floods).find_map(|_| bench.gets(flood).err()).expect("given up");
        assert!(fault.to_string().contains("more than 4 MiB of that wait"), "{fault}");
        assert!(bench.out.len() < MAX_UNREAD_BYTES + (1 << 20), "{}", bench.out.len());

        let mut bench = greeted(&workload, &[]);
        for _ in 0..floods {
            bench.gets(flood).expect("its answers are read");
            assert!(!bench.out.take().is_empty());
        }
    }
}

#[test]
fn the_bodies_of_requests_may_wait_however_large_they_are() {
    let body = "a".repeat(3 << 20);
    let workload = one(&format!("method='PUT'\npath='/'\nbody='{body}'"));
    // SETTINGS_INITIAL_WINDOW_SIZE, and a window of the connection as large.
    let mut bench = greeted(&workload, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    bench.dialect.request(0, 0, Op { operation: 0, what: 7 }, &mut bench.out);
    bench.dialect.request(0, 1, Op { operation: 0, what: 7 }, &mut bench.out);
    bench.gets(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0])).expect("what waits was asked for");
    assert!(bench.out.len() > 2 * body.len() && bench.out.len() > MAX_UNREAD_BYTES);
}
