//! Own frames that are torn, or that no client sends: the connection ends with a reason, and the
//! server serves on.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rpc::client::native::NativeOptions;
use rpc::protocol::status::Code;

use crate::limits::resident;
use crate::native::{ADD, connect, connect_with};
use crate::served::Served;

/// The greeting of a client that takes 1 MiB.
const GREETING: [u8; 12] = [0x9b, b'l', b'r', b'f', 1, 0, 0, 0, 0, 0, 16, 0];

/// A header: length, kind, codec, flags, number of the call, method, time.
fn header(length: u32, kind: u8, flags: u16, id: u64, method: u32) -> Vec<u8> {
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend([kind, 0]);
    bytes.extend(flags.to_le_bytes());
    bytes.extend(id.to_le_bytes());
    bytes.extend(method.to_le_bytes());
    bytes.extend([0; 4]);
    bytes
}

/// All that the server sends until it closes.
fn sent(server: &Served, bytes: &[u8], close: bool) -> Vec<u8> {
    let mut socket = TcpStream::connect(server.socket()).expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    socket.write_all(bytes).expect("sent");
    if close {
        socket.shutdown(Shutdown::Write).expect("shut");
    }
    let mut all = Vec::new();
    socket.read_to_end(&mut all).expect("an end");
    all
}

#[test]
fn a_torn_or_hostile_frame_ends_its_connection_with_a_reason() {
    let server = Served::start(&[]);
    let sleep = {
        let client = connect(&format!("tcp:{}", server.address()));
        client.method(crate::native::SLEEP).expect("a method")
    };
    // Ten seconds.
    let pause = [8, 0x80, 0xc8, 0xaf, 0xa0, 0x25];
    let duplex = {
        let client = connect(&format!("tcp:{}", server.address()));
        client.any_method("/grpc.testing.TestService/FullDuplexCall").expect("a method")
    };
    // A stream that is open, and waits for ten seconds with its first message.
    let open = [header(0, 1, 1, 7, duplex), header(9, 5, 0, 7, 0)].concat();
    let open = [open, vec![18, 7, 8, 1, 16, 0x80, 0xad, 0xe2, 4]].concat();
    let ended = [header(0, 6, 0, 7, 0), header(0, 5, 0, 7, 0)].concat();
    let ended = [open.clone(), ended].concat();
    let credit = [open.clone(), header(0, 8, 0, 7, 1)].concat();
    let over = [header(70_000, 5, 0, 7, 0), vec![0; 70_000]].concat().repeat(3);
    let over = [open, over].concat();
    let again = [header(6, 1, 0, 7, sleep), pause.to_vec()].concat().repeat(2);
    for (bytes, close, reason) in [
        (header(0, 99, 0, 1, 0), false, "unknown kind 99"),
        (header(0, 1, 24, 1, 0), false, "unknown flags 0x0018"),
        (header(0, 2, 0, 1, 0), false, "wrong side"),
        (header(9_999, 4, 0, 1, 0), false, "\"goodbye\" with 9999 bytes is too long"),
        (header(1, 7, 0, 1, 0), false, "\"cancel\" with 1 bytes is too long"),
        ([header(5, 1, 2, 1, 0), vec![9, 0, 0, 0, 0]].concat(), false, "metadata of a frame"),
        (header(u32::MAX, 2, 0, 1, 0), false, "wrong side"),
        (again, false, "call 7 is outstanding already"),
        (ended, false, "a message of call 7, whose messages have ended"),
        (credit, false, "call 7 has sent or given more than its credit"),
        (over, false, "call 7 has sent or given more than its credit"),
        (header(10, 1, 0, 1, 0), true, "24 bytes into"),
        (vec![1, 0, 0], true, "3 bytes into"),
    ] {
        let all = sent(&server, &[&GREETING[..], &bytes].concat(), close);
        let text = String::from_utf8_lossy(&all);
        assert!(text.contains(reason), "{reason}: {text}");
    }
    for (bytes, reason) in [
        (&b"\x9blrf\x02\0"[..], "version 2"),
        (b"\x9bxxx", "doesn't speak own frames"),
        (b"\x9blrf\x01\0\xff\xff\0\0\0\0", "a greeting of 65535 bytes"),
        (b"\x9blrf\x01", "5 bytes into"),
    ] {
        let text = String::from_utf8_lossy(&sent(&server, bytes, true)).into_owned();
        assert!(text.contains(reason), "{reason}: {text}");
        assert!(text.contains(ADD), "its greeting, with the table: {text}");
    }
    let mut client = connect(&format!("tcp:{}", server.address()));
    let add = client.method(ADD).expect("add");
    assert!(client.call(add, &vec![8, 1].into(), None).is_ok(), "it serves on");
}

#[test]
fn a_frame_of_4_gib_is_refused_by_its_header_and_passed_over() {
    let server = Served::start(&["--max-streams", "1"]);
    let mut socket = TcpStream::connect(server.socket()).expect("a connection");
    socket.write_all(&GREETING).expect("sent");
    socket.write_all(&header(u32::MAX, 1, 0, 5, 0)).expect("sent");
    let mut all = Vec::new();
    let mut buffer = [0; 4_096];
    while !String::from_utf8_lossy(&all).contains("--max-message") {
        let count = socket.read(&mut buffer).expect("an answer");
        assert!(count > 0, "the connection goes on");
        all.extend(&buffer[..count]);
    }
}

#[test]
fn messages_that_wait_to_be_whole_have_a_limit_over_all_connections() {
    let server = Served::start(&["--max-memory", "300KiB"]);
    let begin = |bytes: usize| {
        let mut socket = TcpStream::connect(server.socket()).expect("a connection");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        let head = header(1 << 20, 1, 0, 1, 0);
        socket.write_all(&[&GREETING[..], &head, &vec![0; bytes]].concat()).expect("sent");
        socket
    };
    let mut first = begin(200 << 10);
    // Whichever is looked at later finds no room.
    let mut ended = begin(200 << 10);
    ended.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
    first.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
    let (mut all, mut buffer) = (Vec::new(), [0; 4_096]);
    let is_refused = |all: &[u8]| String::from_utf8_lossy(all).contains("--max-memory");
    let until = Instant::now() + Duration::from_secs(60);
    while !is_refused(&all) && Instant::now() < until {
        for socket in [&mut ended, &mut first] {
            if let Ok(count) = socket.read(&mut buffer) {
                all.extend(&buffer[..count]);
            }
        }
    }
    assert!(is_refused(&all));
    drop((ended, first));
    // It comes back with the connections.
    let address = format!("tcp:{}", server.address());
    let message = [&[0x2a, 0x80, 0x80, 0x08][..], &vec![1; 128 << 10]].concat().into();
    let is_served = || {
        let mut client = connect(&address);
        let echo = client.method(crate::native::ECHO).expect("echo");
        client.call(echo, &message, None).is_ok()
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !is_served() {
        assert!(Instant::now() < until, "memory doesn't come back");
    }
}

#[test]
fn a_hostile_server_ends_the_connection_of_its_client_with_a_reason() {
    // Magic, version, one method, a message of 1 KiB, four calls, the table.
    let greeting = b"\x9blrf\x01\0\x01\0\0\x04\0\0\x04\0\0\0\x04\0\0\0\0\x01\0a".to_vec();
    for (bytes, code, reason) in [
        ([&greeting[..], &header(0, 2, 0, 77, 0)].concat(), Code::Internal, "call 77"),
        ([&greeting[..], &header(0, 1, 0, 1, 0)].concat(), Code::Internal, "wrong side"),
        ([&greeting[..], &header(0, 9, 0, 1, 0).repeat(2)].concat(), Code::Internal, "second head"),
        ([&greeting[..], &header(0, 8, 0, 1, 1)].concat(), Code::Internal, "than its credit"),
        ([&greeting[..], &header(9, 2, 0, 1, 0)].concat(), Code::Unavailable, "24 bytes into"),
        ([&greeting[..], &header(4, 4, 0, 0, 14), b"away"].concat(), Code::Unavailable, "away"),
        (greeting.clone(), Code::Unavailable, "closed the connection"),
        (b"HTTP/1.1 400 Bad Request".to_vec(), Code::Unavailable, "doesn't speak own frames"),
        (greeting[..22].to_vec(), Code::Unavailable, "22 bytes into"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("tcp:{}", listener.local_addr().expect("an address"));
        let length = greeting.len();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            let mut greeting = [0; GREETING.len()];
            socket.read_exact(&mut greeting).expect("a greeting");
            let (first, rest) = bytes.split_at(bytes.len().min(length));
            socket.write_all(first).expect("sent");
            if !rest.is_empty() {
                socket.read_exact(&mut [0; 25]).expect("a call");
                socket.write_all(rest).expect("sent");
            }
            // The end of the client, or of what it sends.
            socket.shutdown(Shutdown::Write).expect("shut");
            let _ = std::io::copy(&mut socket, &mut std::io::sink());
        });
        let called = connect_with(&address, &NativeOptions::default()).and_then(|mut client| {
            let result = client.call(0, &vec![1].into(), None);
            assert_eq!(client.outstanding(), 0, "{reason}");
            result
        });
        let status = called.expect_err(reason);
        assert_eq!(status.code, code, "{status}");
        assert!(status.message.contains(reason), "{reason}: {status}");
        server.join().expect("the server");
    }
}

#[test]
fn answers_to_many_calls_take_the_memory_of_one_beyond_what_is_sent() {
    let server = Served::start(&[]);
    let address = format!("tcp:{}", server.address());
    let unary = connect(&address).method("/grpc.testing.TestService/UnaryCall").expect("a method");
    let mut socket = TcpStream::connect(server.socket()).expect("a connection");
    let mut greeting = GREETING;
    // It takes 16 MiB.
    greeting[11] = 1;
    socket.write_all(&greeting).expect("sent");
    let before = resident(&server);
    // A hundred answers of four million bytes.
    let one = |id| [header(5, 1, 0, id, unary), vec![16, 0x80, 0x92, 0xf4, 0x01]].concat();
    socket.write_all(&(1..=100).flat_map(one).collect::<Vec<_>>()).expect("sent");
    let (mut bytes, mut most, mut buffer) = (0, 0, vec![0; 1 << 20]);
    while bytes < 400_000_000 {
        let count = socket.read(&mut buffer).expect("answers");
        assert!(count > 0, "{bytes}");
        bytes += count;
        most = most.max(resident(&server).saturating_sub(before));
    }
    assert!(most < 64 << 10, "{most} KiB");
}

#[test]
fn calls_that_were_carried_out_are_answered_before_a_goodbye() {
    let server = Served::start(&["--max-memory", "300KiB"]);
    let mut holder = TcpStream::connect(server.socket()).expect("a connection");
    let partial = [&GREETING[..], &header(1 << 20, 1, 0, 1, 0), &vec![0; 290 << 10]].concat();
    holder.write_all(&partial).expect("sent");
    let method = {
        let client = connect(&format!("tcp:{}", server.address()));
        client.method(ADD).expect("add")
    };
    let mut asks = GREETING.to_vec();
    for id in 1..=600 {
        asks.extend(header(2, 1, 0, id, method));
        asks.extend([8, 1]);
    }
    // What has come of the holder counts once the server has read it, which may be after this.
    let (until, mut before) = (Instant::now() + Duration::from_secs(60), 0);
    loop {
        let came = sent(&server, &asks, true);
        let mut client = connect(&format!("tcp:{}", server.address()));
        let total = client.call(method, &vec![8, 1].into(), None).expect("a total");
        // Seven bits a byte, after the field's key.
        let total = total[1..].iter().rev().fold(0, |all, byte| all << 7 | u64::from(byte & 0x7f));
        // The first answer, and all that follow it.
        let is_first = |at: &usize| came[*at..].starts_with(&header(2, 2, 0, 1, 0));
        let first = (0..came.len()).find(is_first);
        let mut at = first.unwrap_or(came.len());
        let mut answers = 0;
        while came.get(at + 4) == Some(&2) {
            answers += 1;
            at += 24 + usize::from(came[at]);
        }
        assert_eq!(answers, total - 1 - before, "{} bytes came", came.len());
        before = total;
        match came.get(at + 4) {
            Some(kind) => return assert_eq!(*kind, 4, "a goodbye"),
            None => assert!(Instant::now() < until, "no goodbye comes"),
        }
    }
}
