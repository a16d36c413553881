//! The load's dialect: right answers are right in any pieces, and wrong ones are found.

use std::sync::Arc;

use crate::common::Session;
use cache::load::{ASIDE, DELETE, GET, MG, MGET, Memcached, SET};
use cache::server::Options;
use load::kv::{Keys, Oracle, Values};
use load::{Dialect, Done, Events, Op};
use proptest::prelude::*;
use wire::{Input, Output, ProtocolError};

const KEYS: u64 = 50;

struct Client {
    dialect: Memcached,
    events: Events,
    requests: Output,
    input: Input,
}

fn oracle(misses_allowed: bool, value_bytes: usize) -> Arc<Oracle> {
    let keys = Keys::new(KEYS, 8).expect("keys");
    Arc::new(Oracle::new(keys, Values::new(7, value_bytes)).begin(true, misses_allowed))
}

impl Client {
    fn new(oracle: &Arc<Oracle>) -> Self {
        Self {
            dialect: Memcached::new(oracle),
            events: Events::default(),
            requests: Output::new(1 << 20),
            input: Input::new(),
        }
    }

    fn ask(&mut self, tag: u32, operation: usize, keys: &[u64]) -> Vec<u8> {
        match operation {
            MGET => self.dialect.get(tag, MGET, keys, &mut self.requests),
            _ => self.dialect.request(0, tag, Op { operation, what: keys[0] }, &mut self.requests),
        }
        self.requests.take()
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.input.append(bytes);
        self.dialect.receive(0, &mut self.input, &mut self.events, &mut self.requests)
    }
}

fn done(tag: u32, answers: u32, misses: u32, wrong: u32) -> Done {
    Done { tag, answers, misses, wrong, refused: 0 }
}

fn value(oracle: &Oracle, key: u64) -> Vec<u8> {
    let mut value = Vec::new();
    oracle.values.put(key, 1, &mut value);
    value
}

/// What a right server answers for `keys`.
fn values(oracle: &Oracle, keys: &[u64]) -> Vec<u8> {
    let mut answer = Vec::new();
    for key in keys {
        answer.extend_from_slice(b"VALUE ");
        oracle.keys.put(*key, &mut answer);
        answer.extend_from_slice(format!(" 0 {}\r\n", oracle.values.len(*key)).as_bytes());
        answer.extend(value(oracle, *key));
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"END\r\n");
    answer
}

/// Asks for everything of a real server and gives what was found, with the answers cut at `parts`.
fn converse(value_bytes: usize, asked: &[(usize, Vec<u64>)], parts: &[usize]) -> Events {
    let oracle = oracle(true, value_bytes);
    let mut session = Session::with(Options { memory_bytes: 8 << 20, ..Options::default() });
    let mut client = Client::new(&oracle);
    for key in 0..KEYS {
        client.dialect.prepare(0, 0, key, &mut client.requests);
    }
    let mut said = client.requests.take();
    for (tag, (operation, keys)) in asked.iter().enumerate() {
        said.extend(client.ask(tag as u32, *operation, keys));
    }
    session.hear(&said);
    let answers = session.out.take();
    let mut rest = &answers[..];
    for part in parts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*part).min(rest.len()));
        client.hear(now).expect("no fault");
        rest = later;
    }
    assert!(client.input.is_empty());
    client.events.done.drain(..KEYS as usize);
    client.events
}

fn operation() -> impl Strategy<Value = (usize, Vec<u64>)> {
    prop_oneof![
        (prop_oneof![Just(GET), Just(MG), Just(SET), Just(DELETE)], 0..KEYS)
            .prop_map(|(operation, key)| (operation, vec![key])),
        prop::collection::vec(0..KEYS, 1..20).prop_map(|keys| (MGET, keys)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_right_server_is_never_wrong_in_any_pieces(
        asked in prop::collection::vec(operation(), 1..40),
        parts in prop::collection::vec(1..200_usize, 1..8),
        value_bytes in 1..100_usize,
    ) {
        let events = converse(value_bytes, &asked, &parts);
        prop_assert_eq!(events.done.len(), asked.len());
        for (tag, (done, (_, keys))) in events.done.iter().zip(&asked).enumerate() {
            prop_assert_eq!((done.tag, done.answers), (tag as u32, keys.len() as u32));
            prop_assert_eq!(done.wrong, 0, "{:?}", events.findings.first());
        }
    }

    #[test]
    fn no_bytes_do_harm(
        asked in prop::collection::vec(operation(), 0..5),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        part in 1..50_usize,
    ) {
        let oracle = oracle(true, 30);
        let mut client = Client::new(&oracle);
        for (tag, (operation, keys)) in asked.iter().enumerate() {
            client.ask(tag as u32, *operation, keys);
        }
        for part in bytes.chunks(part) {
            if client.hear(part).is_err() { break; }
        }
        prop_assert!(client.events.done.len() <= asked.len());
    }

    /// Any byte of an answer that is another than it should be is found.
    #[test]
    fn every_single_flipped_byte_is_found(
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
        keys in prop::collection::vec(0..KEYS, 1..5),
    ) {
        let oracle = oracle(false, 30);
        let mut client = Client::new(&oracle);
        client.ask(9, MGET, &keys);
        let mut answer = values(&oracle, &keys);
        let at = at.index(answer.len());
        answer[at] ^= 1 << bit;
        let heard = client.hear(&answer);
        let wrong = client.events.done.iter().any(|done| done.wrong > 0);
        // A broken length or line end may leave the answer unfinished: the engine's time-out.
        let unfinished = client.events.done.is_empty();
        prop_assert!(wrong || heard.is_err() || unfinished, "{:?} at {}", client.events, at);
    }
}

#[test]
fn answers_split_at_every_byte_are_understood() {
    let asked = [
        (GET, vec![1]),
        (MGET, vec![3, 1, 2, 3]),
        (MG, vec![4]),
        (SET, vec![1]),
        (DELETE, vec![2]),
        (DELETE, vec![2]),
        (MGET, vec![2, 1]),
        (MG, vec![2]),
    ];
    let whole = converse(20, &asked, &[usize::MAX]);
    let expected = [
        done(0, 1, 0, 0),
        done(1, 4, 0, 0),
        done(2, 1, 0, 0),
        done(3, 1, 0, 0),
        done(4, 1, 0, 0),
        done(5, 1, 1, 0),
        done(6, 2, 1, 0),
        done(7, 1, 1, 0),
    ];
    assert_eq!(whole.done, expected);
    for at in 1..400 {
        assert_eq!(converse(20, &asked, &[at, usize::MAX]).done, expected, "split at {at}");
    }
    assert_eq!(converse(20, &asked, &[1]).done, expected);
}

#[test]
fn a_wrong_value_is_shown_and_the_next_answer_is_still_understood() {
    let oracle = oracle(false, 30);
    let mut client = Client::new(&oracle);
    client.ask(1, GET, &[5]);
    client.ask(2, GET, &[6]);
    let mut answer = values(&oracle, &[5]);
    answer[25] ^= 1;
    client.hear(&answer).unwrap();
    client.hear(&values(&oracle, &[6])).unwrap();
    assert_eq!(client.events.done, [done(1, 1, 0, 1), done(2, 1, 0, 0)]);
    let finding = &client.events.findings[0];
    assert_eq!((&finding.operation[..], &finding.key[..]), ("get", &b"k0000005"[..]));
    assert_eq!(finding.expected, value(&oracle, 5));
    assert_eq!(finding.received.len(), 30);
}

#[test]
fn another_keys_value_or_another_length_is_wrong_and_skipped() {
    let oracle = oracle(false, 30);
    let mut client = Client::new(&oracle);
    client.ask(1, GET, &[5]);
    client.ask(2, MGET, &[6, 7]);
    client.ask(3, GET, &[8]);
    client.hear(&values(&oracle, &[4])).unwrap();
    client.hear(b"VALUE k0000006 0 3\r\nabc\r\nVALUE k0000007 1 2\r\nxx\r\nEND\r\n").unwrap();
    client.hear(&values(&oracle, &[8])).unwrap();
    assert_eq!(client.events.done, [done(1, 1, 0, 1), done(2, 2, 0, 2), done(3, 1, 0, 0)]);
    assert!(client.events.findings[1].received.starts_with(b"VALUE k0000006 0 3\r\nabc"));
}

#[test]
fn a_miss_is_wrong_unless_it_is_allowed() {
    for allowed in [false, true] {
        let oracle = oracle(allowed, 30);
        let mut client = Client::new(&oracle);
        client.ask(1, GET, &[5]);
        client.ask(2, MGET, &[1, 2, 3, 4]);
        client.ask(3, MG, &[5]);
        client.hear(b"END\r\n").unwrap();
        client.hear(&values(&oracle, &[1, 3])).unwrap();
        client.hear(b"EN\r\n").unwrap();
        let wrong = u32::from(!allowed);
        let expected = [done(1, 1, 1, wrong), done(2, 4, 2, 2 * wrong), done(3, 1, 1, wrong)];
        assert_eq!(client.events.done, expected);
    }
}

#[test]
fn no_room_is_a_refusal_and_an_error_of_the_client_a_wrong_answer_each_with_its_words() {
    let oracle = oracle(true, 30);
    let mut client = Client::new(&oracle);
    client.ask(1, SET, &[5]);
    client.ask(2, MGET, &[1, 2]);
    client.ask(3, MG, &[5]);
    client.hear(b"SERVER_ERROR out of memory storing object\r\n").unwrap();
    client.hear(b"CLIENT_ERROR bad command line format\r\nERROR\r\n").unwrap();
    let refused = Done { refused: 1, ..Done::right(1) };
    assert_eq!(client.events.done, [refused, done(2, 2, 0, 2), done(3, 1, 0, 1)]);
    assert!(client.events.findings[0].received.starts_with(b"SERVER_ERROR out of memory"));
}

#[test]
fn what_is_no_answer_ends_the_connection_with_what_came() {
    let oracle = oracle(true, 30);
    for (operation, answer) in [
        (GET, &b"STORED\r\n"[..]),
        (SET, b"END\r\n"),
        (DELETE, b"STORED\r\n"),
        (MG, b"END\r\n"),
        (GET, b"VALUE k0000005 0 30 extra words\r\n"),
        (GET, &[b'x'; 3000]),
    ] {
        let mut client = Client::new(&oracle);
        client.ask(1, operation, &[5]);
        assert!(client.hear(answer).is_err(), "{operation}");
        assert_eq!(client.events.done, [done(1, 1, 0, 1)]);
        assert_eq!(client.events.findings.len(), 1);
    }
    let mut client = Client::new(&oracle);
    assert!(client.hear(b"VALUE").is_err(), "nobody asked");
    assert!(client.events.done.is_empty());
}

#[test]
fn a_late_answer_is_swallowed_even_when_its_tag_is_used_again() {
    let oracle = oracle(false, 30);
    let mut client = Client::new(&oracle);
    client.ask(1, GET, &[5]);
    client.dialect.expire(1);
    client.ask(1, GET, &[6]);
    client.hear(&values(&oracle, &[5])).unwrap();
    assert!(client.events.done.is_empty());
    client.hear(&values(&oracle, &[6])).unwrap();
    assert_eq!(client.events.done, [done(1, 1, 0, 0)]);
}

#[test]
fn a_stale_value_is_wrong_after_its_write_was_acknowledged() {
    let oracle = oracle(false, 30);
    let mut client = Client::new(&oracle);
    client.ask(1, SET, &[5]);
    client.hear(b"STORED\r\n").unwrap();
    client.ask(2, GET, &[5]);
    client.hear(&values(&oracle, &[5])).unwrap();
    assert_eq!(client.events.done, [done(1, 1, 0, 0), done(2, 1, 0, 1)]);
    assert!(client.events.findings[0].note.contains("replaced"));
}

#[test]
fn a_value_that_comes_back_after_it_was_removed_is_wrong() {
    let oracle = oracle(true, 30);
    let mut client = Client::new(&oracle);
    client.ask(1, DELETE, &[5]);
    client.hear(b"DELETED\r\n").unwrap();
    client.ask(2, GET, &[5]);
    client.hear(&values(&oracle, &[5])).unwrap();
    assert_eq!(client.events.done, [done(1, 1, 0, 0), done(2, 1, 0, 1)]);
    // Another write makes it right again, and so does a removal of what wasn't there.
    client.ask(3, DELETE, &[6]);
    client.hear(b"NOT_FOUND\r\n").unwrap();
    client.ask(4, GET, &[6]);
    client.hear(&values(&oracle, &[6])).unwrap();
    assert_eq!(client.events.done[3], done(4, 1, 0, 1));
    client.ask(5, GET, &[6]);
    client.hear(b"END\r\n").unwrap();
    assert_eq!(client.events.done[4], done(5, 1, 1, 0));
}

#[test]
fn what_is_expected_is_shown_in_the_form_of_what_is_received() {
    let oracle = oracle(false, 30);
    let shown = |operation, answer: &[u8]| {
        let mut client = Client::new(&oracle);
        client.ask(1, operation, &[5]);
        let _ = client.hear(answer);
        client.events.findings[0].expected.clone()
    };
    let right = values(&oracle, &[5]);
    assert_eq!(shown(GET, b"END\r\n"), right[..right.len() - "END\r\n".len()]);
    assert_eq!(shown(MG, b"EN\r\n"), [b"VA 30\r\n", &value(&oracle, 5)[..], b"\r\n"].concat());
    assert_eq!(shown(DELETE, b"NOT_FOUND\r\n"), b"DELETED\r\n");
    assert_eq!(shown(SET, b"ERROR\r\n"), b"STORED\r\n");
}

#[test]
fn what_is_not_there_is_stored_aside_and_is_there_the_next_time() {
    let oracle = oracle(true, 16);
    let mut client = Client::new(&oracle);
    let mut server = Session::new();
    let asked = client.ask(1, ASIDE, &[3]);
    client.hear(server.say(&asked).as_bytes()).expect("no fault");
    let stores = client.requests.take();
    assert!(stores.starts_with(b"set "), "{:?}", stores.escape_ascii().to_string());
    assert_eq!(server.say(&stores), "");
    let asked = client.ask(2, ASIDE, &[3]);
    client.hear(server.say(&asked).as_bytes()).expect("no fault");
    assert_eq!(client.requests.take(), b"", "it is there now");
    assert_eq!(client.events.done, [done(1, 1, 1, 0), done(2, 1, 0, 0)]);
}
