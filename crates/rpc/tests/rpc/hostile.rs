//! Clients that break rules, or keep them in unusual ways: a row each of what other servers were
//! seen to answer, and what is right. None harms its neighbours.

use std::io::{Read as _, Write as _};

use crate::limits::{resident, settle};
use crate::raw::*;
use crate::served::Served;

const ADD: &str = "/loadline.rpc.v1.Table/Add";
const ECHO: &str = "/loadline.rpc.v1.Table/Echo";
const EMPTY: &str = "/grpc.testing.TestService/EmptyCall";

/// `Number { value: 1 }`.
const ONE: &[u8] = &[8, 1];

/// Sends one call with these headers and this body, and returns how it ended.
fn call(server: &Served, path: &str, changed: &[(&str, &str)], body: &[u8]) -> Ended {
    let mut raw = Raw::connect(server.socket(), &[]);
    raw.head(1, 0, &headers(path, changed));
    raw.send(&frame(DATA, END_STREAM, 1, body));
    raw.ended(1)
}

fn status(server: &Served, changed: &[(&str, &str)]) -> String {
    call(server, ADD, changed, &message(ONE)).status
}

#[test]
fn what_is_unusual_is_served() {
    let server = Served::start(&[]);
    let body = message(b"\x12\x05abcde");
    let echo = |raw: &mut Raw, send: &dyn Fn(&mut Raw)| {
        send(raw);
        let ended = raw.ended(1);
        assert_eq!((&ended.status[..], &ended.data), ("0", &body), "{ended:?}");
    };
    let mut raw = Raw::connect(server.socket(), &[]);
    echo(&mut raw, &|raw| {
        raw.head(1, 0, &headers(ECHO, &[]));
        body.iter().for_each(|byte| raw.send(&frame(DATA, 0, 1, &[*byte])));
        raw.send(&frame(DATA, END_STREAM, 1, &[]));
    });
    // Its headers in three frames, and padded data.
    let mut raw = Raw::connect(server.socket(), &[(0x7777, 1)]);
    echo(&mut raw, &|raw| {
        let all = headers(ECHO, &[("content-type", "application/grpc+proto")]);
        let (one, rest) = all.split_at(20);
        let (two, three) = rest.split_at(20);
        raw.send(&frame(HEADERS, 0, 1, one));
        raw.send(&frame(CONTINUATION, 0, 1, two));
        raw.send(&frame(CONTINUATION, END_HEADERS, 1, three));
        raw.send(&frame(0x77, 0, 1, b"unknown"));
        let padded = [&[10][..], &body, &[0; 10]].concat();
        raw.send(&frame(DATA, END_STREAM | PADDED, 1, &padded));
    });
    // Without `te`, as some proxies send it.
    let ended = call(&server, ECHO, &[("te", "")], &body);
    assert_eq!((&ended.status[..], ended.data), ("0", body));
}

#[test]
fn padding_counts_in_the_window_and_is_given_back() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    // More padding than the connection's window has, a call after another.
    let padded = [&[255][..], &message(ONE), &[0; 255]].concat();
    for number in 0..8_000 {
        let stream = 2 * number + 1;
        raw.head(stream, 0, &headers(ADD, &[]));
        raw.send(&frame(DATA, END_STREAM | PADDED, stream, &padded));
        assert_eq!(raw.ended(stream).status, "0", "{stream}");
    }
}

#[test]
fn a_window_of_one_byte_is_served_byte_by_byte() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[(4, 0)]);
    let sent = [&[0x12, 20][..], &[b'a'; 20]].concat();
    raw.call(1, ECHO, &sent);
    let mut got = Vec::new();
    while got.len() < sent.len() + 5 {
        raw.send(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]));
        let data = std::iter::from_fn(|| raw.next()).find(|frame| frame.kind == DATA);
        let data = data.expect("data").payload;
        assert_eq!(data.len(), 1);
        got.extend(data);
    }
    assert_eq!(got, message(&sent));
    assert_eq!(raw.ended(1).status, "0");
}

#[test]
fn a_call_that_is_none_is_refused_by_http() {
    let server = Served::start(&[]);
    let text = call(&server, ADD, &[("content-type", "text/plain")], &message(ONE));
    assert_eq!((&text.http[..], &text.status[..]), ("415", "3"));
    let get = call(&server, ADD, &[(":method", "GET")], &message(ONE));
    assert_eq!((&get.http[..], &get.status[..]), ("405", "13"));
    for other in ["application/grpc-web", "application/grpc+json", "application/grpcx", ""] {
        let ended = call(&server, ADD, &[("content-type", other)], &message(ONE));
        assert_eq!(ended.http, "415", "{other}");
    }
}

#[test]
fn what_is_not_there_is_unimplemented() {
    let server = Served::start(&[]);
    for path in ["/loadline.rpc.v1.Table/None", "/none.None/Add", "/x", "/", "/a/b/c"] {
        assert_eq!(call(&server, path, &[], &message(ONE)).status, "12", "{path}");
    }
}

#[test]
fn one_message_has_to_be_one() {
    let server = Served::start(&[]);
    for path in [ADD, EMPTY] {
        let body = |body: &[u8]| call(&server, path, &[], body).status;
        assert_eq!(body(&[]), "12", "none");
        assert_eq!(body(&[message(&[]), message(&[])].concat()), "12", "two");
        assert_eq!(body(&[0, 0, 0, 0, 9, 1]), "13", "cut short");
        assert_eq!(body(&[0, 0]), "13", "cut in its prefix");
        assert_eq!(body(&message(&[0x0a])), "13", "not a protobuf");
        assert_eq!(body(&[0, 255, 255, 255, 255]), "8", "4 GiB");
        assert_eq!(body(&[1, 0, 0, 0, 0]), "13", "compressed with nothing");
        assert_eq!(body(&[2, 0, 0, 0, 0]), "13", "an unknown flag");
    }
    // The total was left alone.
    assert_eq!(call(&server, ADD, &[], &message(ONE)).data, message(ONE));
}

#[test]
fn a_length_is_refused_before_its_message_comes() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    raw.head(1, 0, &headers(ADD, &[]));
    raw.send(&frame(DATA, 0, 1, &[0, 255, 255, 255, 255]));
    assert_eq!(raw.ended(1).status, "8");
    // The stream ends without an error, and the connection goes on.
    raw.call(3, ADD, ONE);
    assert_eq!(raw.ended(3).status, "0");
}

#[test]
fn compression_that_is_unknown_or_none_is_refused() {
    let server = Served::start(&[]);
    let ended = call(&server, ADD, &[("grpc-encoding", "snappy")], &message(ONE));
    assert_eq!(ended.status, "12");
    let accepted = ended.headers.iter().find(|(name, _)| name == "grpc-accept-encoding");
    // The text is read up to its first symbol of more than six bits.
    assert!(accepted.is_some_and(|(_, value)| value.starts_with("identit")), "{ended:?}");
    for encoding in ["gzip", "zstd"] {
        let body = [&[1][..], &message(ONE)[1..]].concat();
        let ended = call(&server, ADD, &[("grpc-encoding", encoding)], &body);
        assert_eq!(ended.status, "13", "{encoding} that isn't");
        let plain = call(&server, ADD, &[("grpc-encoding", encoding)], &message(&[]));
        assert_eq!(plain.status, "0", "a message may be left uncompressed");
    }
    // A frame of zstd (RFC 8878) with one raw block, and an answer that comes compressed, too.
    let text = [&[0x12, 98][..], &[b'a'; 98]].concat();
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 100, 0x21, 0x03, 0][..], &text].concat();
    let body = [&[1][..], &message(&zstd)[1..]].concat();
    let changed = [("grpc-encoding", "zstd"), ("grpc-accept-encoding", "gzip,zstd")];
    let ended = call(&server, ECHO, &changed, &body);
    assert_eq!(ended.status, "0", "{ended:?}");
    assert!(ended.data[0] == 1 && ended.data.len() < 60, "{:?}", ended.data);
}

#[test]
fn a_timeout_that_has_passed_is_4_and_one_that_is_none_13() {
    let server = Served::start(&[]);
    let timeout =
        |path, written| call(&server, path, &[("grpc-timeout", written)], &message(&[])).status;
    for path in [ADD, EMPTY] {
        for (written, right) in [
            ("0m", "4"),
            ("1n", "4"),
            ("100", "13"),
            ("123456789m", "13"),
            ("-1S", "13"),
            ("99999999H", "0"),
            ("10S", "0"),
        ] {
            assert_eq!(timeout(path, written), right, "{path} {written}");
        }
    }
    // Sleep for 20 s, within 50 ms.
    let sleep = [8, 0x80, 0x90, 0xdf, 0xc0, 0x4a];
    let changed = [("grpc-timeout", "50m")];
    let ended = call(&server, "/loadline.rpc.v1.Table/Sleep", &changed, &message(&sleep));
    assert_eq!(ended.status, "4");
}

#[test]
fn metadata_is_checked_and_has_a_limit_that_ends_one_call() {
    let server = Served::start(&[]);
    assert_eq!(status(&server, &[("x-bin", "not base64!")]), "13");
    assert_eq!(status(&server, &[("x-bin", "AAH/,qw==")]), "0");
    let long = |bytes| "x".repeat(bytes);
    assert_eq!(status(&server, &[("x-long", &long(10_000))]), "0");
    assert_eq!(status(&server, &[("x-long", &long(15_000))]), "0");
    let mut raw = Raw::connect(server.socket(), &[]);
    for (stream, bytes, right) in
        [(1, 17_000, "8"), (3, 120_000, "8"), (5, 150_000, "431"), (7, 10, "0")]
    {
        let block = headers(ADD, &[("x-long", &long(bytes))]);
        let pieces: Vec<_> = block.chunks(16_000).collect();
        for (number, piece) in pieces.iter().enumerate() {
            let kind = if number == 0 { HEADERS } else { CONTINUATION };
            let flags = if number + 1 == pieces.len() { END_HEADERS } else { 0 };
            raw.send(&frame(kind, flags, stream, piece));
        }
        raw.send(&frame(DATA, END_STREAM, stream, &message(ONE)));
        let ended = raw.ended(stream);
        let got = if ended.status.is_empty() { ended.http } else { ended.status };
        assert_eq!(got, right, "{bytes} bytes");
    }
    // What is allowed, in small frames.
    let block = headers(ADD, &[("x-long", &long(9_000))]);
    let pieces: Vec<_> = block.chunks(1_000).collect();
    for (number, piece) in pieces.iter().enumerate() {
        let kind = if number == 0 { HEADERS } else { CONTINUATION };
        let flags = if number + 1 == pieces.len() { END_HEADERS } else { 0 };
        raw.send(&frame(kind, flags, 9, piece));
    }
    raw.send(&frame(DATA, END_STREAM, 9, &message(ONE)));
    assert_eq!(raw.ended(9).status, "0");
}

#[test]
fn headers_without_end_are_refused_early() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    let before = resident(&server);
    raw.send(&frame(HEADERS, 0, 1, &headers(ADD, &[])));
    let one = literal("x-more", &"x".repeat(10_000));
    for _ in 0..1_000 {
        raw.send(&frame(CONTINUATION, 0, 1, &one));
    }
    assert_eq!(raw.away(), Some(CALM));
    // Of 10 MB.
    let more = resident(&server).saturating_sub(before);
    assert!(more < 5 << 10, "{more} KiB");
}

#[test]
fn what_breaks_the_protocol_ends_the_connection_with_the_right_reason() {
    let server = Served::start(&[]);
    let away = |send: &dyn Fn(&mut Raw)| {
        let mut raw = Raw::connect(server.socket(), &[]);
        send(&mut raw);
        raw.away()
    };
    let large = frame(DATA, 0, 1, &[0; 16_385]);
    assert_eq!(away(&|raw| raw.send(&large)), Some(6), "a frame over the limit");
    assert_eq!(away(&|raw| raw.send(&frame(DATA, 0, 5, &[0]))), Some(1), "an idle stream");
    assert_eq!(away(&|raw| raw.call(2, ADD, ONE)), Some(1), "an even stream");
    let over = frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(away(&|raw| raw.send(&over)), Some(3), "a window past its limit");
    // Others are served.
    assert_eq!(status(&server, &[]), "0");
}

#[test]
fn an_upper_case_header_ends_no_more_than_its_connection() {
    let server = Served::start(&[]);
    let ended = call(&server, ADD, &[("X-Upper", "1")], &message(ONE));
    // RFC 9113 asks for RST_STREAM; h2 ends the connection.
    assert!(ended.reset == Some(1) || ended.away == Some(1), "{ended:?}");
    assert_eq!(status(&server, &[]), "0");
}

#[test]
fn pings_settings_and_resets_without_end_bring_goaway() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    raw.send(&frame(PING, 0, 0, &[7; 8]).repeat(10_000));
    assert_eq!(raw.away(), Some(CALM));
    let mut raw = Raw::connect(server.socket(), &[]);
    raw.send(&frame(SETTINGS, 0, 0, &[]).repeat(10_000));
    assert_eq!(raw.away(), Some(CALM));
    let resets = |count: u32| {
        let mut raw = Raw::connect(server.socket(), &[]);
        // What comes next comes of these, which are one write so that none is looked at before it
        // is reset.
        raw.send(&frame(PING, 0, 0, &[1; 8]));
        while raw.next().is_none_or(|frame| frame.kind != PING) {}
        let one = |number| {
            let stream = 2 * number + 1;
            let head = frame(HEADERS, END_HEADERS, stream, &headers(ADD, &[]));
            [head, frame(RESET, 0, stream, &[0, 0, 0, 8])].concat()
        };
        raw.send(&(0..count).flat_map(one).collect::<Vec<_>>());
        raw.call(2 * count + 1, ADD, ONE);
        raw.ended(2 * count + 1)
    };
    assert_eq!(resets(20).status, "0");
    assert_eq!(resets(21).away, Some(CALM));
    assert_eq!(status(&server, &[]), "0");
}

/// Whether the server counts this many calls, those that failed, and messages sent.
fn counts(server: &Served, counts: [u64; 3]) {
    let address = server.ready["addresses"]["metrics"].as_str().expect("an address");
    let mut socket = std::net::TcpStream::connect(address).expect("a connection");
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("sent");
    let mut page = String::new();
    socket.read_to_string(&mut page).expect("text");
    for (name, value) in ["calls", "calls_failed", "messages_sent"].into_iter().zip(counts) {
        assert!(page.contains(&format!("\nrpc_{name}_total {value}\n")), "{name}: {page}");
    }
}

#[test]
fn calls_that_are_reset_end_at_once_and_count_as_failed() {
    let server = Served::start(&["--metrics", "127.0.0.1:0", "--keepalive-min", "1ns"]);
    let mut raw = Raw::connect(server.socket(), &[]);
    let head = |stream| frame(HEADERS, END_HEADERS, stream, &headers(ADD, &[]));
    let reset = |stream| frame(RESET, 0, stream, &[0, 0, 0, 8]);
    let data = frame(DATA, END_STREAM, 1, &message(ONE));
    // One write, so that they are looked at together: its whole request, and none of it.
    raw.send(&[head(1), data, reset(1), head(3), reset(3)].concat());
    raw.call(5, ADD, ONE);
    assert_eq!(raw.ended(5).status, "0");
    counts(&server, [3, 2, 1]);
    // One whose function waits for a minute.
    raw.call(7, "/loadline.rpc.v1.Table/Sleep", &[8, 0x80, 0xb0, 0x9d, 0xc2, 0xdf, 0x01]);
    settle(&mut raw);
    counts(&server, [4, 2, 1]);
    raw.send(&reset(7));
    settle(&mut raw);
    counts(&server, [4, 3, 1]);
}

#[test]
fn many_small_messages_of_one_stream_are_served_whether_their_function_reads_or_waits() {
    let server = Served::start(&[]);
    // 12,000 messages without a field, a frame each, within the first windows.
    let many = frame(DATA, 0, 1, &message(&[])).repeat(12_000);
    let mut reads = Raw::connect(server.socket(), &[]);
    reads.head(1, 0, &headers("/grpc.testing.TestService/StreamingInputCall", &[]));
    reads.send(&many);
    reads.send(&frame(DATA, END_STREAM, 1, &[]));
    let ended = reads.ended(1);
    assert_eq!((&ended.status[..], &ended.data[..]), ("0", &message(&[])[..]), "{ended:?}");
    // Its first message asks for an answer after 300 ms.
    let mut waits = Raw::connect(server.socket(), &[]);
    waits.head(1, 0, &headers("/grpc.testing.TestService/FullDuplexCall", &[]));
    let pause = message(&[0x12, 6, 8, 1, 16, 0xe0, 0xa7, 0x12]);
    waits.send(&frame(DATA, 0, 1, &pause));
    waits.send(&many);
    waits.send(&frame(DATA, END_STREAM, 1, &[]));
    let ended = waits.ended(1);
    assert_eq!(ended.status, "0", "{ended:?}");
}

#[test]
fn answers_to_pings_that_were_never_sent_bring_goaway() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    raw.send(&frame(PING, ACK, 0, &[7; 8]).repeat(10_000));
    assert_eq!(raw.away(), Some(CALM));
}

#[test]
fn a_ping_is_answered_at_once_with_its_own_bytes() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    raw.send(&frame(PING, 0, 0, b"abcdefgh"));
    let pong = std::iter::from_fn(|| raw.next()).find(|frame| frame.kind == PING);
    let pong = pong.expect("an answer");
    assert_eq!((pong.flags, &pong.payload[..]), (ACK, &b"abcdefgh"[..]));
}

#[test]
fn http1_is_told_what_is_spoken_here() {
    let server = Served::start(&[]);
    let mut raw = Raw::bare(server.socket());
    raw.socket.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("sent");
    let mut answer = String::new();
    raw.socket.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.contains("HTTP/2 by prior knowledge"), "{answer}");
    // Neither bytes that are nothing, nor silence, nor half a preface harm anyone.
    for bytes in [&b"\x16\x03\x01"[..], b"", b"PRI * HTTP/2.0\r\n\r\nXX"] {
        let mut raw = Raw::bare(server.socket());
        raw.send(bytes);
        raw.socket.shutdown(std::net::Shutdown::Write).expect("shut");
        assert_eq!(raw.next(), None);
    }
    assert_eq!(status(&server, &[]), "0");
}

#[test]
fn all_that_comes_with_one_read_is_answered_with_one_write() {
    let server = Served::start(&[]);
    let mut raw = Raw::connect(server.socket(), &[]);
    let mut all = Vec::new();
    for number in 0..20 {
        let stream = 2 * number + 1;
        all.extend(frame(HEADERS, END_HEADERS, stream, &headers(ADD, &[])));
        all.extend(frame(DATA, END_STREAM, stream, &message(ONE)));
    }
    // So that what comes next comes of these.
    raw.send(&frame(PING, 0, 0, &[1; 8]));
    while raw.next().is_none_or(|frame| frame.kind != PING) {}
    raw.send(&all);
    let mut buffer = [0; 65_536];
    let count = raw.socket.read(&mut buffer).expect("answers");
    raw.unread(&buffer[..count]);
    let mut totals = Vec::new();
    for _ in 0..60 {
        assert!(raw.has_whole(), "three frames of each answer in one piece");
        let frame = raw.next().expect("a frame");
        totals.extend((frame.kind == DATA).then(|| frame.payload[6]));
    }
    totals.sort_unstable();
    assert_eq!(totals, (1..=20).collect::<Vec<_>>(), "each once");
}
