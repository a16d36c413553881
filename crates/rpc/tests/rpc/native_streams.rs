//! Streams, credit, cancellation, metadata and details over own frames, over every carrier.

use std::time::Duration;

use bytes::Bytes;
use rpc::client::native::{NativeClient, NativeOptions};
use rpc::protocol::metadata::Metadata;
use rpc::protocol::native::frame::WINDOW_BYTES;
use rpc::protocol::native::{Begin, Event, What};
use rpc::protocol::status::{Code, Ended};

use crate::native::{ADD, SLEEP, connect, connect_with, field, over_every_carrier, pause};
use crate::served::Served;

const DUPLEX: &str = "/grpc.testing.TestService/FullDuplexCall";
const OUTPUT: &str = "/grpc.testing.TestService/StreamingOutputCall";
const INPUT: &str = "/grpc.testing.TestService/StreamingInputCall";
const CONFORM: &str = "/connectrpc.conformance.v1.ConformanceService/Unary";

/// A field of bytes.
fn nested(key: u8, bytes: &[u8]) -> Vec<u8> {
    [&field(key, bytes.len() as u64)[..], bytes].concat()
}

/// `StreamingOutputCallRequest` for an answer of this size, which comes after a time.
fn asks(size: usize, interval: Duration) -> Vec<u8> {
    let interval = field(16, interval.as_micros() as u64);
    nested(0x12, &[&field(8, size as u64)[..], &interval].concat())
}

/// `StreamingInputCallRequest` with a payload of this size.
fn input(size: usize) -> Bytes {
    nested(0x0a, &nested(0x12, &vec![0; size])).into()
}

/// What happens until a call has ended: metadata, sizes of messages, the end.
fn all(client: &mut NativeClient, id: u64) -> (Metadata, Vec<usize>, Ended) {
    let (mut head, mut sizes) = (Metadata::default(), Vec::new());
    loop {
        let event = client.next_event().expect("a connection").expect("an event");
        assert_eq!(event.id, id);
        match event.what {
            What::Head(metadata) => head = metadata,
            What::Message(message) => sizes.push(message.len()),
            What::Ended(ended) => return (head, sizes, ended),
            What::Answer(message, trailers) => {
                sizes.push(message.len());
                let status = rpc::protocol::status::Status::ok();
                return (head, sizes, Ended { status, trailers });
            }
        }
    }
}

#[test]
fn messages_go_both_ways_with_metadata_before_and_behind_them() {
    over_every_carrier(|address, mut client| {
        let mut metadata = Metadata::default();
        metadata.add("x-grpc-test-echo-initial", "first");
        metadata.add("x-grpc-test-echo-trailing-bin", vec![0, 255]);
        let how = Begin { metadata: Some(&metadata), ..Begin::default() };
        let duplex = client.any_method(DUPLEX).expect("a method");
        let id = client.open(duplex, &how).expect("a call");
        for size in [10, 0, 300_000] {
            client.send(id, &asks(size, Duration::ZERO).into()).expect("sent");
            loop {
                let Event { what, .. } = client.next_event().expect("a connection").expect("one");
                match what {
                    What::Head(head) => {
                        let value = head.get("x-grpc-test-echo-initial").expect("the header");
                        assert_eq!((&value[..], size), (&b"first"[..], 10), "{address}");
                    }
                    What::Message(message) => break assert!(message.len() >= size, "{address}"),
                    other => panic!("{address}: {other:?}"),
                }
            }
        }
        client.end(id).expect("sent");
        let (_, sizes, ended) = all(&mut client, id);
        assert_eq!((sizes, ended.status.code), (vec![], Code::Ok), "{address}");
        let value = ended.trailers.get("x-grpc-test-echo-trailing-bin").expect("the trailer");
        assert_eq!(value[..], [0, 255], "{address}");
        // Many messages for one.
        let method = client.any_method(INPUT).expect("a method");
        let id = client.open(method, &Begin::default()).expect("a call");
        (0..300).for_each(|_| client.send(id, &input(1_000)).expect("sent"));
        client.end(id).expect("sent");
        let (_, sizes, ended) = all(&mut client, id);
        // 300,000 takes three bytes, and a key.
        assert_eq!((sizes, ended.status.code), (vec![4], Code::Ok), "{address}");
        assert_eq!(client.outstanding(), 0, "{address}");
    });
}

#[test]
fn a_reader_that_takes_nothing_is_sent_no_more_than_its_credit_and_others_go_on() {
    over_every_carrier(|address, mut client| {
        let output = client.any_method(OUTPUT).expect("a method");
        let request: Vec<u8> = (0..100).flat_map(|_| asks(40_000, Duration::ZERO)).collect();
        let id = client.start(output, &request.into(), None).expect("a call");
        let add = client.method(ADD).expect("add");
        for _ in 0..20 {
            client.call(add, &Bytes::from_static(&[8, 1]), None).expect("an answer");
        }
        let came = client.traffic().read_bytes;
        assert!(came < u64::from(WINDOW_BYTES) + 80_000, "{address}: {came} bytes");
        let (_, sizes, ended) = all(&mut client, id);
        assert_eq!((sizes.len(), ended.status.code), (100, Code::Ok), "{address}");
    });
}

#[test]
fn a_function_that_takes_nothing_is_sent_no_more_than_its_credit() {
    over_every_carrier(|address, mut client| {
        let duplex = client.any_method(DUPLEX).expect("a method");
        let timeout = Some(Duration::from_millis(300));
        let how = Begin::within(timeout, std::time::Instant::now);
        let id = client.open(duplex, &how).expect("a call");
        // It answers the first in a minute, and takes no other before.
        let minute = asks(1, Duration::from_secs(60));
        let rest = nested(0x1a, &nested(0x12, &vec![0; 10_000]));
        let message: Bytes = [minute, rest].concat().into();
        // Those that the deadline ends are without effect.
        (0..200).for_each(|_| client.send(id, &message).expect("sent"));
        let sent = client.traffic().written_bytes;
        assert!(sent < u64::from(WINDOW_BYTES) + 30_000, "{address}: {sent} bytes");
        let (_, _, ended) = all(&mut client, id);
        assert_eq!(ended.status.code, Code::DeadlineExceeded, "{address}");
        assert_eq!(client.next_event(), Ok(None), "{address}");
        assert_eq!(client.outstanding(), 0, "{address}");
    });
}

#[test]
fn a_call_that_is_given_up_frees_its_place_at_the_server() {
    let server = Served::start(&["--max-streams", "1"]);
    let address = format!("tcp:{}", server.address());
    let mut client = connect(&address);
    let sleep = client.method(SLEEP).expect("sleep");
    let add = client.method(ADD).expect("add");
    for _ in 0..50 {
        let id = client.start(sleep, &pause(Duration::from_secs(60)), None).expect("a place");
        client.flush().expect("sent");
        client.cancel(id).expect("sent");
        let reply = client.next_reply().expect("a connection").expect("a reply");
        let status = reply.result.expect_err("it is given up");
        assert_eq!((reply.id, status.code), (id, Code::Cancelled), "{status}");
        // The server's own end of it.
        assert_eq!(client.next_reply(), Ok(None));
        assert_eq!(client.outstanding(), 0);
    }
    assert!(client.call(add, &Bytes::from_static(&[8, 1]), None).is_ok());
}

#[test]
fn a_status_has_its_details_and_metadata_over_the_limit_fail_their_call_alone() {
    let server = Served::start(&["--max-metadata", "1KiB"]);
    let mut client = connect_with(&format!("tcp:{}", server.address()), &NativeOptions::default())
        .expect("a greeting");
    let method = client.method(CONFORM).expect("a method");
    // An error with the code 9, and the message "no".
    let error = [&field(8, 9)[..], &nested(0x12, b"no")].concat();
    let definition = nested(0x0a, &nested(0x1a, &error));
    let refused = client.call(method, &definition.clone().into(), None).expect_err("an error");
    assert_eq!((refused.code, &refused.message[..]), (Code::FailedPrecondition, "no"));
    assert!(!refused.details.is_empty(), "{refused:?}");
    let mut metadata = Metadata::default();
    metadata.add("x-much", vec![b'a'; 2_000]);
    let how = Begin { metadata: Some(&metadata), ..Begin::default() };
    let refused = client.call_with(method, &definition.into(), &how).expect_err("too much");
    assert_eq!(refused.code, Code::ResourceExhausted);
    assert!(refused.message.contains("--max-metadata"), "{refused}");
    metadata.add("x-more", vec![b'a'; 70_000]);
    let how = Begin { metadata: Some(&metadata), ..Begin::default() };
    let refused = client.call_with(method, &Bytes::new(), &how).expect_err("too much");
    assert!(refused.message.contains("64 KiB"), "{refused}");
    let add = client.method(ADD).expect("add");
    assert!(client.call(add, &Bytes::from_static(&[8, 1]), None).is_ok(), "it goes on");
}
