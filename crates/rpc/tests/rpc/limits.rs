//! Limits, and the sum of them over connections: a client that stops reading costs neither memory
//! nor others' time.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rpc::server::{BoundRpc, Settings};
use wire::Address;

use crate::raw::*;
use crate::served::{self, Served, lines};

const ADD: &str = "/loadline.rpc.v1.Table/Add";
const ECHO: &str = "/loadline.rpc.v1.Table/Echo";
const UNARY: &str = "/grpc.testing.TestService/UnaryCall";
const OUTPUT: &str = "/grpc.testing.TestService/StreamingOutputCall";

/// A number of protobuf.
fn varint(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 128 {
        out.push((value % 128 + 128) as u8);
        value /= 128;
    }
    out.push(value as u8);
    out
}

/// Resident memory of a process in KiB.
pub(crate) fn resident(server: &Served) -> u64 {
    let path = format!("/proc/{}/status", server.child.id());
    let text = std::fs::read_to_string(path).expect("a process");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_message_at_the_limit_passes_and_one_byte_more_does_not() {
    let server = Served::start(&["--max-message", "2000"]);
    let send = |bytes: usize| {
        let mut raw = Raw::connect(server.socket(), &[]);
        let body = [&[0x12][..], &varint(bytes - 3), &vec![b'x'; bytes - 3]].concat();
        assert_eq!(body.len(), bytes);
        raw.call(1, ECHO, &body);
        raw.ended(1).status
    };
    assert_eq!((&send(2_000)[..], &send(2_001)[..]), ("0", "8"));
}

#[test]
fn too_many_calls_are_refused_so_that_they_may_be_repeated() {
    let server = Served::start(&["--max-streams", "2"]);
    let mut raw = Raw::connect(server.socket(), &[]);
    for stream in [1, 3, 5] {
        raw.head(stream, 0, &headers(ADD, &[]));
    }
    assert_eq!(raw.ended(5).reset, Some(7), "REFUSED_STREAM");
    raw.send(&frame(DATA, END_STREAM, 1, &message(&[8, 1])));
    assert_eq!(raw.ended(1).status, "0");
}

#[test]
fn a_client_that_reads_nothing_costs_no_memory_and_no_time_of_others() {
    let server = Served::start(&[]);
    let mut lazy = Raw::connect(server.socket(), &[(4, 0x7fff_ffff)]);
    lazy.send(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]));
    let mut other = Raw::connect(server.socket(), &[]);
    // The server makes what payloads are parts of with the first one.
    other.call(1, UNARY, &[16, 1]);
    assert_eq!(other.ended(1).status, "0");
    // 100 answers of 1 MB, of which nothing is read.
    let parameters = [&[0x12][..], &[4, 8], &varint(1_000_000)].concat();
    let before = resident(&server);
    let more = || resident(&server).saturating_sub(before);
    lazy.call(1, OUTPUT, &parameters.repeat(100));
    // They have begun to come.
    while lazy.socket.peek(&mut [0; 20_000]).expect("bytes") < 20_000 {
        std::thread::yield_now();
    }
    // Others have their answers meanwhile.
    let mut calls = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            other.call(2 * number + 1, ADD, &[8, 1]);
            assert_eq!(other.ended(2 * number + 1).status, "0");
        }
    };
    calls(1..100);
    assert!(more() < 8 << 10, "{} KiB", more());
    // Ten calls of 4 MB each beside it wait within the limit of memory.
    for number in 1..=10 {
        lazy.call(2 * number + 1, UNARY, &[&[16][..], &varint(4_000_000)].concat());
    }
    calls(100..200);
    assert!(more() < 64 << 10, "{} KiB", more());
    // All of it comes once it is read.
    let mut bytes = 0;
    loop {
        let frame = lazy.next().expect("more");
        if frame.stream == 1 && frame.kind == DATA {
            bytes += frame.payload.len();
        }
        if frame.stream == 1 && frame.kind == HEADERS && frame.flags & END_STREAM != 0 {
            break;
        }
    }
    assert!(bytes > 100_000_000, "{bytes}");
}

#[test]
fn the_memory_of_all_connections_has_a_limit() {
    let server = Served::start(&["--max-memory", "3MB"]);
    // The windows are shut: the answers wait.
    let mut raws: Vec<_> = (0..4).map(|_| Raw::connect(server.socket(), &[(4, 0)])).collect();
    let asks = [&[16][..], &varint(900_000)].concat();
    let (last, held) = raws.split_last_mut().expect("four");
    for raw in held {
        raw.call(1, UNARY, &asks);
        // Its answer has its room before the next one asks.
        settle(raw);
    }
    last.call(1, UNARY, &asks);
    assert_eq!(last.ended(1).status, "8", "it finds no room");
    drop(raws);
    let text = r#"{"responseSize": 900000}"#;
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        let out =
            served::rpc(&["call", &server.address(), "grpc.testing.TestService/UnaryCall", text]);
        if out.status.success() {
            assert_eq!(lines(&out).len(), 1);
            return;
        }
    }
    panic!("memory doesn't come back");
}

#[test]
fn what_a_running_function_holds_of_its_request_counts_as_memory() {
    let server = Served::start(&["--max-memory", "3MB", "--keepalive-min", "1ns"]);
    let begin = |path: &str, flags: u8, body: &[u8]| {
        let mut raw = begun(server.socket(), &[]);
        // Its windows are those of its settings from then on.
        raw.send(&frame(SETTINGS, ACK, 0, &[]));
        raw.head(1, 0, &headers(path, &[]));
        send_body(&mut raw, flags, &message(body));
        raw
    };
    // An answer of one byte in a minute: 32,767 others follow, or a payload is beside it; and a
    // function that keeps nothing.
    let later = [18, 7, 8, 1, 16, 0x80, 0x8e, 0xce, 0x1c];
    let many = [&later[..], &[18, 0].repeat((32 << 10) - 1)].concat();
    let payload = padding_as(0x12, 400_000);
    let payload = [&later[..], &[0x1a], &varint(payload.len()), &payload].concat();
    let sleep = [&[8, 0x80, 0xb0, 0x9d, 0xc2, 0xdf, 1][..], &padding(400_000)].concat();
    for (path, flags, body, is_held) in [
        (OUTPUT, END_STREAM, &many, true),
        (OUTPUT, END_STREAM, &payload, false),
        // The client has not ended its side: it might send another message.
        (ECHO, 0, &padding(400_000), true),
        ("/loadline.rpc.v1.Table/Sleep", END_STREAM, &sleep, false),
    ] {
        let mut raws = Vec::new();
        for number in 1..=11 {
            let mut raw = begin(path, flags, body);
            // 400 kB are held seven times, and no more.
            if is_held && number > 7 {
                let ended = raw.ended(1);
                assert_eq!(ended.status, "8", "{path}, {number}: {ended:?}");
            } else {
                assert!(!settle(&mut raw), "{path}, {number}");
            }
            raws.push(raw);
        }
        if is_held {
            drop(raws);
        }
        let (until, mut is_back) = (Instant::now() + Duration::from_secs(60), false);
        while !is_back && Instant::now() < until {
            let mut raw = begun(server.socket(), &[(4, 4 << 20)]);
            raw.send(&frame(WINDOW_UPDATE, 0, 0, &[0, 0x30, 0, 0]));
            raw.call(1, UNARY, &[&[16][..], &varint(1_400_000)].concat());
            is_back = raw.ended(1).status == "0";
        }
        assert!(is_back, "{path}: memory doesn't come back");
    }
}

/// Connects and sends a ping, so that the server's windows are there once it is answered.
pub(crate) fn begun(server: SocketAddr, settings: &[(u16, u32)]) -> Raw {
    let mut raw = Raw::connect(server, settings);
    settle(&mut raw);
    raw
}

/// Waits until the server has read all that was sent, and its calls have had their turn. Returns
/// whether one has ended meanwhile.
pub(crate) fn settle(raw: &mut Raw) -> bool {
    let mut has_ended = false;
    for _ in 0..3 {
        raw.send(&frame(PING, 0, 0, &[1; 8]));
        loop {
            let frame = raw.next().expect("an answer");
            if frame.kind == PING && frame.flags == ACK {
                break;
            }
            has_ended |= frame.kind == HEADERS && frame.flags & END_STREAM != 0;
        }
    }
    has_ended
}

#[test]
fn what_half_duplex_calls_ask_for_counts_and_requests_that_ask_for_nothing_take_nothing() {
    let server = Served::start(&["--max-memory", "1MB", "--keepalive-min", "1ns"]);
    let begin = || {
        let mut raw = begun(server.socket(), &[]);
        raw.send(&frame(SETTINGS, ACK, 0, &[]));
        raw.head(1, 0, &headers("/grpc.testing.TestService/HalfDuplexCall", &[]));
        raw
    };
    let before = resident(&server);
    let mut raw = begin();
    send_body(&mut raw, 0, &message(&[]).repeat(400_000));
    assert!(!settle(&mut raw));
    let more = resident(&server).saturating_sub(before);
    assert!(more < 12 << 10, "{more} KiB");
    // Each asks for an empty answer.
    let mut raw = begin();
    send_body(&mut raw, 0, &message(&[18, 0]).repeat(70_000));
    assert_eq!(raw.ended(1).status, "8");
}

/// As gzip.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory")
}

#[test]
fn answers_that_wait_count_by_what_they_were_before_they_were_compressed() {
    let server = Served::start(&["--max-memory", "3MB", "--keepalive-min", "1ns"]);
    let mut raw = begun(server.socket(), &[(4, 0)]);
    let echo = [&[0x12][..], &varint(1_000_000), &vec![b'a'; 1_000_000]].concat();
    let sent = gzip(&echo);
    let body = [&[1][..], &message(&sent)[1..]].concat();
    let names = [("grpc-encoding", "gzip"), ("grpc-accept-encoding", "gzip")];
    let before = resident(&server);
    for number in 0..32 {
        raw.head(2 * number + 1, 0, &headers(ECHO, &names));
        raw.send(&frame(DATA, END_STREAM, 2 * number + 1, &body));
    }
    // The last finds no room: of those before it a few wait, decompressed and then compressed.
    let ended = raw.ended(63);
    assert!(ended.status == "8" || ended.status.is_empty(), "{ended:?}");
    let more = resident(&server).saturating_sub(before);
    assert!(more < 16 << 10, "{more} KiB");
}

#[test]
fn metadata_of_calls_counts_as_memory_with_what_each_field_takes() {
    let server = Served::start(&["--max-memory", "1MB"]);
    let mut raw = begun(server.socket(), &[]);
    let names: Vec<String> = (0..300).map(|number| format!("x{number}")).collect();
    let fields: Vec<_> = names.iter().map(|name| (&name[..], "1")).collect();
    let block = headers("/grpc.testing.TestService/FullDuplexCall", &fields);
    // 300 fields take 42 kB.
    for number in 0..40 {
        raw.head(2 * number + 1, 0, &block);
    }
    assert_eq!(raw.ended(79).status, "8");
}

#[test]
fn a_client_that_takes_nothing_or_ends_nothing_gives_way_once_others_find_no_memory() {
    let take_timeout = Duration::from_millis(300);
    let settings = Settings {
        max_memory_bytes: 2 << 20,
        keepalive_min: Duration::ZERO,
        take_timeout,
        ..Settings::default()
    };
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = BoundRpc::bind(&[Address::Internet(any)], settings).expect("a port");
    let server = bound.start().expect("threads");
    let Address::Internet(at) = server.addresses()[0] else { panic!("no address") };
    let ask = [&[16][..], &varint(900_000)].concat();
    // One doesn't take its answer; the other might send a second message.
    for (path, body, flags) in [(UNARY, &ask, END_STREAM), (ECHO, &padding(400_000), 0)] {
        let mut lazy = begun(at, &[(4, 0)]);
        lazy.send(&frame(SETTINGS, ACK, 0, &[]));
        // Its time begins with the call, however long this thread takes to go on.
        let start = Instant::now();
        lazy.head(1, 0, &headers(path, &[]));
        send_body(&mut lazy, flags, &message(body));
        settle(&mut lazy);
        // Until others need it, it may take its time, and no more than that; they get it then.
        let refused = std::iter::repeat_with(|| {
            let mut other = begun(at, &[(4, 1 << 20)]);
            other.send(&frame(WINDOW_UPDATE, 0, 0, &[0, 0x10, 0, 0]));
            other.call(1, UNARY, &ask);
            other.ended(1).status
        });
        // A busy host may ask so late that the first one finds it.
        let is_refused = |status: &String| status == "8" && start.elapsed().as_secs() < 60;
        let refused = refused.take_while(is_refused).count();
        let took = start.elapsed();
        assert!(took >= take_timeout, "{path}: {took:?}, {refused} refused");
        assert_eq!(lazy.ended(1).status, "8", "{path}");
    }
    server.stop(Duration::ZERO);
}

#[test]
fn a_request_counts_once() {
    let server = Served::start(&["--max-memory", "6MB"]);
    let mut raw = begun(server.socket(), &[(4, 4 << 20)]);
    raw.send(&frame(SETTINGS, ACK, 0, &[]));
    raw.send(&frame(WINDOW_UPDATE, 0, 0, &[0, 0x40, 0, 0]));
    raw.head(1, 0, &headers(ECHO, &[]));
    send_body(&mut raw, END_STREAM, &message(&padding(4_000_000)));
    assert_eq!(raw.ended(1).status, "0");
}

/// As many bytes as a field that functions pass over, and a few more.
fn padding(bytes: usize) -> Vec<u8> {
    padding_as(0x7a, bytes)
}

/// The same as the field of this key.
fn padding_as(key: u8, bytes: usize) -> Vec<u8> {
    [&[key][..], &varint(bytes), &vec![0; bytes]].concat()
}

/// Sends the body of the first stream, as its windows let it. Returns the server's grants: their
/// streams, and how many bytes each.
fn send_body(raw: &mut Raw, flags: u8, body: &[u8]) -> Vec<(u32, u32)> {
    let (mut windows, mut grants) = ([1 << 20, 512 << 10], Vec::new());
    for (at, piece) in body.chunks(16 << 10).enumerate() {
        while windows.iter().any(|window| *window < piece.len()) {
            let frame = raw.next().expect("a grant");
            if frame.kind == WINDOW_UPDATE {
                windows[frame.stream as usize] += frame.number(0) as usize;
                grants.push((frame.stream, frame.number(0)));
            }
        }
        windows.iter_mut().for_each(|window| *window -= piece.len());
        let is_last = at == (body.len() - 1) / (16 << 10);
        raw.send(&frame(DATA, if is_last { flags } else { 0 }, 1, piece));
    }
    grants
}

#[test]
fn a_client_that_sends_much_is_granted_its_window_in_large_parts() {
    let server = Served::start(&[]);
    let mut raw = begun(server.socket(), &[]);
    // Its windows are those of its settings from then on.
    raw.send(&frame(SETTINGS, ACK, 0, &[]));
    raw.head(1, 0, &headers("/grpc.testing.TestService/StreamingInputCall", &[]));
    let body = [&[0x12][..], &varint(1_000_000), &vec![0; 1_000_000]].concat();
    let request = message(&[&[0x0a][..], &varint(body.len()), &body].concat());
    let grants = send_body(&mut raw, END_STREAM, &request.repeat(4));
    assert_eq!(raw.ended(1).status, "0");
    // A grant is a write of this server, and wakes its client.
    let small: Vec<_> = grants.iter().filter(|(_, bytes)| *bytes < 160 << 10).collect();
    assert!(grants.len() > 8 && small.is_empty(), "{grants:?}");
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    let server = Served::start(&["--max-connections", "2"]);
    let mut first = Raw::connect(server.socket(), &[]);
    first.call(1, ADD, &[8, 1]);
    assert_eq!(first.ended(1).status, "0");
    let mut second = Raw::connect(server.socket(), &[]);
    second.call(1, ADD, &[8, 1]);
    assert_eq!(second.ended(1).status, "0");
    assert_eq!(Raw::connect(server.socket(), &[]).next(), None);
}
