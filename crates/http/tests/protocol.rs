//! HTTP/1.1 answers, byte by byte: what a client has to understand of them, and what it must not.

use http::protocol::{Ending, MAX_HEAD_BYTES, MAX_INTERIM, MAX_LINE_BYTES, Part, Responses};
use proptest::prelude::*;
use wire::ProtocolError;

/// What a stream of answers has come to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// Status, headers and body of each whole answer.
    answers: Vec<(u16, usize, Vec<u8>)>,
    /// Whether the last whole answer closes the connection.
    closes: bool,
    /// The answer under way.
    begun: Option<(u16, usize, Vec<u8>)>,
    fault: Option<ProtocolError>,
}

/// Reads `stream` in pieces of these sizes, again and again, as a loop would hand them in.
fn read(stream: &[u8], sizes: &[usize], is_bodiless: bool) -> (Seen, Responses) {
    let (mut seen, mut responses) = (Seen::default(), Responses::new());
    let mut waiting: Vec<u8> = Vec::new();
    let mut rest = stream;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).clamp(1, rest.len()));
        rest = after;
        waiting.extend_from_slice(piece);
        loop {
            let (used, part) = match responses.read(&waiting, is_bodiless) {
                Ok(read) => read,
                Err(fault) => {
                    seen.fault = Some(fault);
                    return (seen, responses);
                }
            };
            let over = part == Part::More;
            match part {
                Part::Head(head) => {
                    seen.begun = Some((head.status, head.fields().count(), Vec::new()));
                }
                Part::Body(piece) => {
                    let begun = seen.begun.as_mut().expect("a head came first");
                    begun.2.extend_from_slice(piece);
                }
                Part::End { closes } => {
                    seen.answers.push(seen.begun.take().expect("a head came first"));
                    seen.closes = closes;
                }
                Part::More => {}
            }
            waiting.drain(..used);
            if over {
                break;
            }
        }
    }
    (seen, responses)
}

fn whole(stream: &[u8]) -> Seen {
    read(stream, &[usize::MAX], false).0
}

const PIPELINED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
    HTTP/1.1 204 No Content\r\n\r\n\
    HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n\
    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
    4\r\nWiki\r\n6;a=b\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nexpires: never\r\n\r\n\
    HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n\
    HTTP/1.1 404 Not Found\nContent-Length: 0\nConnection: close\n\n";

#[test]
fn pipelined_answers_of_every_framing_come_apart() {
    let seen = whole(PIPELINED);
    assert_eq!(seen.fault, None);
    let expected: [(u16, usize, &[u8]); 5] = [
        (200, 1, b"hello"),
        (204, 0, b""),
        (200, 1, b"Wikipedia in \r\n\r\nchunks."),
        (304, 1, b""),
        (404, 2, b""),
    ];
    let answers: Vec<_> = seen.answers.iter().map(|(s, n, body)| (*s, *n, &body[..])).collect();
    assert_eq!(answers, expected);
    assert!(seen.closes);
}

#[test]
fn an_answer_to_head_has_no_body_whatever_it_says() {
    let stream = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    let (seen, _) = read(&stream.repeat(2), &[7], true);
    assert_eq!(seen.answers, [(200, 1, vec![]), (200, 1, vec![])]);
    assert!(!seen.closes);
}

#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let stream = b"HTTP/1.0 200 OK\r\nServer: old\r\n\r\nall of it";
    let (seen, mut responses) = read(stream, &[3], false);
    assert_eq!(seen.begun, Some((200, 1, b"all of it".to_vec())));
    assert_eq!(responses.closed(), Ending::Whole);
    assert_eq!(responses.closed(), Ending::Between);
}

#[test]
fn the_end_of_the_connection_cuts_every_other_answer_off() {
    let (first, _) = PIPELINED.split_at(44);
    for length in 0..first.len() {
        let (_, mut responses) = read(&first[..length], &[1], false);
        let expected = if length == 0 || length == 43 { Ending::Between } else { Ending::Cut };
        assert_eq!(responses.closed(), expected, "after {length} bytes");
    }
}

#[test]
fn limits_are_faults_at_the_byte_that_passes_them() {
    let head = |bytes: usize| {
        let fixed = b"HTTP/1.1 204 x\r\na: \r\n\r\n".len();
        format!("HTTP/1.1 204 x\r\na: {}\r\n\r\n", "b".repeat(bytes - fixed)).into_bytes()
    };
    assert_eq!(whole(&head(MAX_HEAD_BYTES)).answers.len(), 1);
    assert!(whole(&head(MAX_HEAD_BYTES + 1)).fault.unwrap().to_string().contains("64 KiB"));
    let endless = [&b"HTTP/1.1 200 OK\r\n"[..], &b"a: b\r\n".repeat(11_000)].concat();
    assert!(whole(&endless).fault.is_some());

    let chunk = |bytes: usize| {
        let head = "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n";
        format!("{head}0;{}\r\n\r\n", "x".repeat(bytes - 4)).into_bytes()
    };
    assert_eq!(whole(&chunk(MAX_LINE_BYTES)).answers.len(), 1);
    assert!(whole(&chunk(MAX_LINE_BYTES + 1)).fault.is_some());

    let interim = b"HTTP/1.1 100 x\r\n\r\n".repeat(MAX_INTERIM as usize);
    assert_eq!(whole(&interim).fault, None);
    assert!(whole(&[&interim[..], b"HTTP/1.1 100 x\r\n\r\n"].concat()).fault.is_some());
}

#[test]
fn what_is_no_answer_is_refused_without_waiting_for_its_end() {
    for stream in [&b"\r\n"[..], b"<html>", b"HTTP/2", b"SSH-2.0-x", b"HTTP/1.1 101 x\r\n\r\n"] {
        assert!(whole(stream).fault.is_some(), "{}", String::from_utf8_lossy(stream));
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["g\r\n", "\r\n", "-1\r\n", "1\r\nabc", "ffffffffffffffff1\r\n"] {
        assert!(whole(format!("{chunked}{body}").as_bytes()).fault.is_some(), "{body:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_split_of_the_bytes_gives_the_same_answers(
        sizes in prop::collection::vec(1_usize..40, 1..30),
        flip in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cut: prop::sample::Index,
    ) {
        let mut stream = PIPELINED.to_vec();
        if let Some((at, byte)) = flip {
            *at.get_mut(&mut stream) = byte;
        }
        stream.truncate(cut.index(stream.len()) + 1);
        let (expected, mut one) = read(&stream, &[usize::MAX], false);
        let (seen, mut other) = read(&stream, &sizes, false);
        prop_assert_eq!(&seen.answers, &expected.answers);
        prop_assert_eq!(&seen.fault, &expected.fault);
        if seen.fault.is_none() {
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(one.closed(), other.closed());
        }
    }
}
