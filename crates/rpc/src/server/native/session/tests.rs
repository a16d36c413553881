//! A connection of own frames byte by byte: what it sends when memory or the client fails it.

use bytes::BufMut as _;
use proptest::prelude::*;

use super::*;
use crate::protocol::native::frame::HEADER_BYTES;
use crate::server::settings::Settings;

const ADD: &str = "/loadline.rpc.v1.Table/Add";
const ECHO: &str = "/loadline.rpc.v1.Table/Echo";
const SLEEP: &str = "/loadline.rpc.v1.Table/Sleep";
#[cfg(feature = "grpc")]
const OUTPUT: &str = "/grpc.testing.TestService/StreamingOutputCall";
#[cfg(feature = "grpc")]
const SERVER_STREAM: &str = "/connectrpc.conformance.v1.ConformanceService/ServerStream";
#[cfg(feature = "grpc")]
const BIDI: &str = "/connectrpc.conformance.v1.ConformanceService/BidiStream";
#[cfg(feature = "grpc")]
const UNARY: &str = "/connectrpc.conformance.v1.ConformanceService/Unary";

/// Asks [`OUTPUT`] for an answer of one byte in a minute.
#[cfg(feature = "grpc")]
const LATER: [u8; 9] = [18, 7, 8, 1, 16, 0x80, 0x8e, 0xce, 0x1c];

/// Ten seconds, as `Pause`.
const PAUSE: [u8; 6] = [8, 0x80, 0xc8, 0xaf, 0xa0, 0x25];

fn shared(max_memory_bytes: usize) -> Arc<Shared> {
    Arc::new(Shared::new(Settings { max_memory_bytes, ..Settings::default() }))
}

/// A connection that has greeted, of a client that takes 1 MiB.
fn greeted(shared: &Arc<Shared>) -> Session {
    let mut session = Session::new(Arc::clone(shared), "test", Instant::now());
    send(&mut session, b"\x9blrf\x01\0\0\0\0\0\x10\0");
    session.out = Outbox::default();
    session.count_memory();
    session
}

fn send(session: &mut Session, bytes: &[u8]) {
    session.space().extend_from_slice(bytes);
    session.receive(&When::default());
}

fn call(session: &Session, id: u64, method: &str, payload: &[u8]) -> Vec<u8> {
    frame(Header { method: number(session, method), ..Header::of(Kind::Call, id) }, payload)
}

fn number(session: &Session, method: &str) -> u32 {
    let methods = session.shared.methods.list();
    methods.iter().position(|one| one.name == method).expect("a method") as u32
}

fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    let header = Header { length: payload.len() as u32, ..header };
    [&header.encode(), payload].concat()
}

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_key(
        number.into(),
        prost::encoding::WireType::LengthDelimited,
        &mut out,
    );
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.put_slice(bytes);
    out
}

/// Begins a frame, of which this many bytes come.
fn hold(session: &mut Session, bytes: usize) {
    let mut begun = call(session, 1, ECHO, &[]);
    begun[..4].copy_from_slice(&(4_u32 << 20).to_le_bytes());
    begun.resize(HEADER_BYTES + bytes, 0);
    send(session, &begun);
}

/// What was sent: kind, number of the call, code or method, and the payload as text.
fn sent(session: &mut Session) -> Vec<(Kind, u64, u32, String)> {
    let mut decoder = Decoder::new(usize::MAX);
    decoder.space().extend_from_slice(&std::mem::take(&mut session.out).to_vec());
    let mut all = Vec::new();
    while let Some(item) = decoder.next_item().expect("frames") {
        let Item::Frame(header, payload) = item else { panic!("{item:?}") };
        let text = String::from_utf8_lossy(&payload).into_owned();
        all.push((header.kind, header.id, header.method, text));
    }
    all
}

#[test]
fn answers_of_calls_that_were_carried_out_come_before_a_goodbye_for_want_of_memory() {
    let shared = shared(1 << 20);
    let (mut other, mut session) = (greeted(&shared), greeted(&shared));
    hold(&mut other, 1_042_000);
    let calls: Vec<_> = (1..=600).flat_map(|id| call(&session, id, ADD, &[8, 1])).collect();
    send(&mut session, &calls);
    let all = sent(&mut session);
    let (goodbye, answers) = all.split_last().expect("frames");
    assert!(answers.iter().all(|(kind, ..)| *kind == Kind::Answer) && answers.len() == 600);
    assert_eq!((goodbye.0, goodbye.2), (Kind::Goodbye, Code::ResourceExhausted as u32));
    assert!(session.is_over());
}

#[test]
fn calls_that_have_begun_are_unknown_when_a_fault_ends_the_connection() {
    let mut session = greeted(&shared(1 << 20));
    let mut bytes = call(&session, 7, SLEEP, &PAUSE);
    bytes.extend([0; HEADER_BYTES]);
    send(&mut session, &bytes);
    let all = sent(&mut session);
    assert_eq!((all[0].0, all[0].1, all[0].2), (Kind::Failure, 7, Code::Unknown as u32));
    assert!(all[0].3.contains("unknown"), "{all:?}");
    assert_eq!((all[1].0, all.len()), (Kind::Goodbye, 2));
}

#[test]
fn an_answer_without_room_fails_its_call_alone_and_says_that_it_was_carried_out() {
    let shared = shared(1 << 20);
    let (mut other, mut session) = (greeted(&shared), greeted(&shared));
    hold(&mut other, 900_000);
    let echo = call(&session, 1, ECHO, &field(100, &[0; 200_000]));
    let pieces = echo.len() - 1;
    session.space().extend_from_slice(&echo[..pieces]);
    send(&mut session, &echo[pieces..]);
    let all = sent(&mut session);
    assert_eq!((all[0].0, all[0].2), (Kind::Failure, Code::ResourceExhausted as u32));
    assert!(all[0].3.contains("was carried out") && all.len() == 1, "{all:?}");
    assert!(!session.is_over());
}

#[test]
#[cfg(feature = "grpc")]
fn what_a_function_keeps_of_its_request_counts_as_memory() {
    let shared = shared(8 << 20);
    let mut session = greeted(&shared);
    let header = [field(1, b"a"), field(2, b"").repeat(30_000)].concat();
    // A delay of 20 s.
    let definition = [field(1, &header), field(2, b"x"), vec![0x30, 0xa0, 0x9c, 1]].concat();
    for id in 1..=4 {
        let bytes = call(&session, id, UNARY, &field(1, &definition));
        send(&mut session, &bytes);
    }
    assert_eq!(session.outstanding(), 2, "4 MB each");
    let all = sent(&mut session);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|(kind, _, code, _)| {
        (*kind, *code) == (Kind::Failure, Code::ResourceExhausted as u32)
    }));
}

#[test]
fn a_function_that_waits_without_its_request_takes_no_memory_for_it() {
    let mut session = greeted(&shared(1 << 20));
    let asks = [&PAUSE[..], &field(15, &[0; 900_000])].concat();
    for id in 1..=8 {
        let bytes = call(&session, id, SLEEP, &asks);
        send(&mut session, &bytes);
    }
    assert_eq!((session.outstanding(), session.held), (8, 0));
}

#[test]
#[cfg(feature = "grpc")]
fn a_request_that_a_function_holds_while_it_waits_counts_until_the_call_ends() {
    // An answer of one byte in a minute before many others; messages that follow 20 s later.
    let later = [&LATER[..], &field(2, b"").repeat(100_000)].concat();
    let data = [field(2, b"").repeat(4_000), field(2, &[0; 400_000])].concat();
    let delayed = field(1, &[data, vec![0x18, 0xa0, 0x9c, 1]].concat());
    for (method, asks) in [(OUTPUT, later), (SERVER_STREAM, delayed)] {
        let shared = shared(3 << 20);
        let mut session = greeted(&shared);
        for id in 1..=5 {
            let bytes = call(&session, id, method, &asks);
            send(&mut session, &bytes);
        }
        let outstanding = session.outstanding();
        assert!((1..=3).contains(&outstanding), "{method}: {outstanding}");
        assert!(session.held >= outstanding * 900_000, "{method}: {}", session.held);
        let all = sent(&mut session);
        let refused = |(kind, _, code, _): &&(Kind, u64, u32, String)| {
            (*kind, *code) == (Kind::Failure, Code::ResourceExhausted as u32)
        };
        assert_eq!(all.iter().filter(refused).count(), 5 - outstanding, "{method}: {all:?}");
        session.stage_is(Stage::Forced, Instant::now());
        session.out = Outbox::default();
        session.count_memory();
        assert!(Taken::none(&shared.memory).set(3 << 20).is_ok(), "all memory is there again");
    }
}

#[test]
#[cfg(feature = "grpc")]
fn a_payload_that_a_function_has_dropped_counts_no_more() {
    let mut session = greeted(&shared(1 << 20));
    let asks = [&LATER[..], &field(3, &field(2, &[0; 900_000]))].concat();
    for id in 1..=8 {
        let bytes = call(&session, id, OUTPUT, &asks);
        send(&mut session, &bytes);
    }
    assert_eq!(session.outstanding(), 8);
    assert!(session.held < 8 * 1_000, "{}", session.held);
}

#[test]
#[cfg(feature = "grpc")]
fn a_message_of_a_stream_without_room_fails_its_call_and_is_not_queued() {
    let shared = shared(1 << 20);
    let (mut other, mut session) = (greeted(&shared), greeted(&shared));
    hold(&mut other, 900_000);
    // Two answers of 400,000 bytes.
    let bytes = call(&session, 1, OUTPUT, &[18, 4, 8, 0x80, 0xb5, 0x18].repeat(2));
    send(&mut session, &bytes);
    assert!(session.out.bytes() < 1_000, "{}", session.out.bytes());
    let all = sent(&mut session);
    assert_eq!((all[0].0, all[0].2), (Kind::Failure, Code::ResourceExhausted as u32));
    assert!(all[0].3.contains("--max-memory") && all.len() == 1, "{all:?}");
    assert!(!session.is_over());
}

#[test]
#[cfg(feature = "grpc")]
fn a_message_is_sent_beside_what_its_call_keeps_or_not_at_all() {
    let shared = shared(1 << 20);
    let mut session = greeted(&shared);
    // Two answers of 400,000 bytes, and others: the list of them takes 768 KiB.
    let asks = [[18, 4, 8, 0x80, 0xb5, 0x18].repeat(2), [18, 0].repeat((64 << 10) - 2)].concat();
    let bytes = call(&session, 1, OUTPUT, &asks);
    send(&mut session, &bytes);
    let all = sent(&mut session);
    assert_eq!((all[0].0, all[0].2), (Kind::Failure, Code::ResourceExhausted as u32));
    assert!(all[0].3.contains("a message of 400") && all.len() == 1, "{all:?}");
}

#[test]
#[cfg(feature = "grpc")]
fn requests_that_an_answer_has_named_count_no_more() {
    let mut session = greeted(&shared(200_000));
    let open = Header { flags: OPEN, ..Header::of(Kind::Call, 1) };
    let open = Header { method: number(&session, BIDI), ..open };
    send(&mut session, &frame(open, &[]));
    // 20 answers of full duplex, each of which names the request before it.
    let mut request = [field(1, &field(2, b"x").repeat(20)), vec![0x10, 1]].concat();
    for number in 1..=20 {
        request.extend(field(3, &[0; 20_000]));
        send(&mut session, &frame(Header::of(Kind::Message, 1), &request));
        request.clear();
        let answers: Vec<_> =
            sent(&mut session).into_iter().filter(|(kind, ..)| *kind == Kind::Message).collect();
        assert!(answers.len() == 1 && answers[0].3.len() > 20_000, "{number}");
        let method = 20_000;
        send(&mut session, &frame(Header { method, ..Header::of(Kind::Credit, 1) }, &[]));
    }
    assert_eq!(session.outstanding(), 1);
}

#[test]
#[cfg(feature = "grpc")]
fn a_small_call_that_waits_keeps_nothing_of_what_came_with_it() {
    let mut session = greeted(&shared(8 << 20));
    let large = call(&session, 1, ECHO, &field(100, &[0; 240 << 10]));
    send(&mut session, &large[..HEADER_BYTES]);
    let small = call(&session, 2, UNARY, &field(1, &[0x12, 1, b'x', 0x30, 0xa0, 0x9c, 1]));
    send(&mut session, &[&large[HEADER_BYTES..], &small].concat());
    assert_eq!(session.outstanding(), 1);
    assert_eq!(sent(&mut session)[0].1, 1);
    assert!(session.decoder.buffer().try_reclaim(240 << 10), "the room of the large one is free");
}

#[test]
fn a_part_of_a_frame_gives_way_once_others_find_no_memory() {
    let shared = shared(1 << 20);
    let now = Instant::now();
    let limit = shared.settings.take_timeout;
    let mut session = greeted(&shared);
    hold(&mut session, 1_000_000);
    session.expire(now + 2 * limit);
    assert!(!session.is_over(), "no one else needs it");
    let mut other = greeted(&shared);
    hold(&mut other, 100_000);
    assert!(other.is_over());
    let due = session.due().expect("a time");
    session.expire(due);
    assert!(session.is_over());
    let all = sent(&mut session);
    assert_eq!((all[0].0, all[0].2), (Kind::Goodbye, Code::ResourceExhausted as u32));
    assert!(all[0].3.contains("send frames whole"), "{all:?}");
    let mut other = greeted(&shared);
    hold(&mut other, 1_000_000);
    assert!(!other.is_over(), "the memory is there again");
}

/// What a client may send: frames of all kinds, for few calls.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        Just(Vec::new()),
        Just(vec![8, 1]),
        Just(PAUSE.to_vec()),
        // An answer of 1,000 bytes is asked for.
        Just(vec![0x12, 3, 8, 0xe8, 7]),
        proptest::collection::vec(any::<u8>(), 0..60),
    ];
    let kind = prop_oneof![Just(1_u8), Just(5), Just(6), Just(7), Just(8), 1..11_u8];
    let one = (kind, 1..5_u64, 0..4_u16, 0..40_u32, payload);
    let one = one.prop_map(|(kind, id, flags, method, payload)| {
        let header = Header {
            length: payload.len() as u32,
            method,
            flags,
            timeout_us: method,
            ..Header::of(Kind::Call, id)
        };
        let mut bytes = header.encode().to_vec();
        bytes[4] = kind;
        bytes.extend(payload);
        bytes
    });
    proptest::collection::vec(one, 0..30).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn any_frames_are_answered_or_end_the_connection_and_leave_nothing(
        bytes in frames(), size in 1..200_usize
    ) {
        let shared = shared(8 << 20);
        let mut session = greeted(&shared);
        for piece in bytes.chunks(size) {
            send(&mut session, piece);
            while session.is_paused() {
                session.out = Outbox::default();
                session.receive(&When::default());
            }
            if session.is_over() {
                break;
            }
        }
        session.expire(Instant::now() + std::time::Duration::from_secs(100));
        session.closed();
        prop_assert!(session.is_over());
        let last = sent(&mut session);
        prop_assert!(last.iter().all(|(kind, ..)| *kind != Kind::Call && *kind != Kind::Cancel));
        session.stage_is(Stage::Forced, Instant::now());
        prop_assert_eq!((session.outstanding(), session.held, session.senders), (0, 0, 0));
        drop(session);
        let mut all = Taken::none(&shared.memory);
        prop_assert!(all.set(8 << 20).is_ok(), "all memory is there again");
    }
}
