//! The client's session of own frames, and its clock.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rpc::protocol::native::frame::{Header, Kind};
use rpc::protocol::native::greeting::{ClientGreeting, Method, ServerGreeting};
use rpc::protocol::native::{Begin, ClientSession, Event, What};
use rpc::protocol::status::Code;

/// A session whose server has greeted.
fn greeted() -> ClientSession {
    let mut session =
        ClientSession::new(&ClientGreeting { max_message: 1 << 20, token: Bytes::new() });
    let method = Method { name: "/a".into(), client_streams: false, server_streams: false };
    let mut bytes = BytesMut::new();
    ServerGreeting { max_message: 1 << 20, max_calls: 3, methods: vec![method] }.encode(&mut bytes);
    session.receive(&bytes).expect("a greeting");
    session
}

#[test]
fn the_first_deadline_is_that_of_a_call_that_is_outstanding_once_it_has_been_looked_at() {
    let mut session = greeted();
    let now = Instant::now();
    let in_s = |seconds| Some(Duration::from_secs(seconds));
    let begin = |timeout| Begin { timeout, now: Some(now), metadata: None };
    let ids = [3, 1, 2]
        .map(|seconds| session.call(0, &Bytes::new(), &begin(in_s(seconds))).expect("a call").id);
    assert_eq!(session.deadline(), now.checked_add(Duration::from_secs(1)));
    session.receive(&Header::of(Kind::Answer, ids[1]).encode()).expect("an answer");
    assert_eq!(session.next_event().map(|event| event.id), Some(ids[1]));
    session.expire(now + Duration::from_secs(1));
    assert_eq!(session.next_event(), None, "it has ended in time");
    assert_eq!(session.deadline(), now.checked_add(Duration::from_secs(2)));
    session.expire(now + Duration::from_secs(2));
    let Some(Event { id, what: What::Ended(ended) }) = session.next_event() else {
        panic!("no end")
    };
    assert_eq!((id, ended.status.code), (ids[2], Code::DeadlineExceeded));
    assert_eq!(session.deadline(), now.checked_add(Duration::from_secs(3)));
    for id in [ids[0], ids[2]] {
        session.receive(&Header::of(Kind::Answer, id).encode()).expect("an answer");
    }
    assert_eq!(session.deadline(), None);
    let later = Begin { now: Some(now + Duration::from_secs(9)), ..begin(in_s(9)) };
    session.call(0, &Bytes::new(), &later).expect("a call");
    assert_eq!(session.deadline(), now.checked_add(Duration::from_secs(18)));
}
