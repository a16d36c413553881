//! The client's side byte by byte: credit, and frames of any server.

use proptest::prelude::*;

use super::super::frame::PROTOBUF;
use super::*;

/// A session whose server has greeted.
fn greeted() -> ClientSession {
    let mut session =
        ClientSession::new(&ClientGreeting { max_message: 1 << 20, token: Bytes::new() });
    let method = Method { name: "/a".into(), client_streams: true, server_streams: true };
    let methods = vec![method];
    let mut bytes = bytes::BytesMut::new();
    ServerGreeting { max_message: 1 << 20, max_calls: 3, methods }.encode(&mut bytes);
    session.receive(&bytes).expect("a greeting");
    session.out = Outbox::default();
    session
}

fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    let header = Header { length: payload.len() as u32, codec: PROTOBUF, ..header };
    [&header.encode(), payload].concat()
}

#[test]
fn credit_limits_what_is_sent_and_comes_back_as_messages_are_taken() {
    let mut session = greeted();
    let id = session.open(0, &Begin::default()).expect("a call");
    let message = Bytes::from(vec![0; 50_000]);
    let sent = (0..9).take_while(|_| session.send(id, &message) == Ok(true)).count();
    assert_eq!(sent, 3, "as long as there is any");
    let credit = Header { method: 100_000, ..Header::of(Kind::Credit, id) };
    session.receive(&frame(credit, &[])).expect("credit");
    assert_eq!(session.send(id, &message), Ok(true));
    session.out = Outbox::default();
    let come = frame(Header::of(Kind::Message, id), &message);
    for _ in 0..2 {
        session.receive(&come).expect("a message");
    }
    assert!(session.next_event().is_some() && session.out.is_empty());
    assert!(session.next_event().is_some());
    let given = Header { method: 100_048, ..Header::of(Kind::Credit, id) };
    assert_eq!(session.out.to_vec(), given.encode(), "for both");
    for _ in 0..3 {
        session.receive(&come).expect("a message");
    }
    let status = session.receive(&come).expect_err("too much");
    assert!(status.message.contains("than its credit"), "{status}");
    assert_eq!(session.outstanding(), 0);
}

#[test]
fn a_timeout_is_in_whole_microseconds_and_one_at_least() {
    let cases = [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (2_500_000_000, 2_500_000)];
    for (ns, us) in cases {
        assert_eq!(in_us(Duration::from_nanos(ns)), us, "{ns} ns");
    }
    assert_eq!(in_us(Duration::from_secs(4_294)), 4_294_000_000);
    for long in [Duration::from_secs(4_295), Duration::MAX] {
        assert_eq!(in_us(long), 0, "without end for the server");
    }
}

#[test]
fn a_call_that_is_given_up_is_over_once_the_server_has_ended_it() {
    let mut session = greeted();
    let id = session.open(0, &Begin::default()).expect("a call");
    session.receive(&frame(Header::of(Kind::Message, id), &[7])).expect("a message");
    session.cancel(id);
    session.cancel(id);
    let Some(Event { what: What::Ended(ended), .. }) = session.next_event() else {
        panic!("no end")
    };
    assert_eq!(ended.status.code, Code::Cancelled);
    assert!(session.out.to_vec().ends_with(&Header::of(Kind::Cancel, id).encode()));
    session.receive(&frame(Header::of(Kind::Message, id), &[7])).expect("on its way");
    assert_eq!((session.next_event(), session.outstanding()), (None, 1));
    session.receive(&frame(Header::of(Kind::End, id), &[])).expect("on its way");
    assert_eq!((session.next_event(), session.outstanding()), (None, 0));
}

proptest! {
    #[test]
    fn any_frames_of_a_server_leave_a_session_whole_or_broken(
        frames in proptest::collection::vec(
            (1..11_u8, 1..4_u64, 0..8_u16, any::<u32>(),
                proptest::collection::vec(0..5_u8, 0..40)), 0..40),
        size in 1..200_usize
    ) {
        let mut session = greeted();
        let first = session.open(0, &Begin::default()).expect("a call");
        session.call(0, &Bytes::new(), &Begin::default()).expect("a call");
        let mut bytes = Vec::new();
        for (kind, id, flags, method, payload) in frames {
            let header = Header { method, flags, ..Header::of(Kind::Call, id) };
            let mut one = frame(header, &payload);
            one[4] = kind;
            bytes.extend(one);
        }
        for piece in bytes.chunks(size) {
            if session.receive(piece).is_err() {
                break;
            }
            let _ = session.send(first, &Bytes::new());
            while session.next_event().is_some() {}
        }
        let most = if session.broken().is_some() { 0 } else { 2 };
        prop_assert!(session.outstanding() <= most);
    }
}
