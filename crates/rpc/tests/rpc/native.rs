//! Own frames from outside, over every carrier.

use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rpc::carriers::{CarrierAddress, Tuning};
use rpc::client::native::{NativeClient, NativeOptions};
use rpc::protocol::native::greeting::{Method, ServerGreeting};
use rpc::protocol::native::{Begin, What};
use rpc::protocol::status::{Code, Status};

use crate::served::{PROGRAM, Served};

pub(crate) const ADD: &str = "/loadline.rpc.v1.Table/Add";
pub(crate) const ECHO: &str = "/loadline.rpc.v1.Table/Echo";
pub(crate) const SLEEP: &str = "/loadline.rpc.v1.Table/Sleep";

/// `Number { value: 1 }`.
const ONE: Bytes = Bytes::from_static(&[8, 1]);

/// A field of protobuf: its key, and a number.
pub(crate) fn field(key: u8, mut value: u64) -> Bytes {
    let mut out = vec![key];
    while value >= 128 {
        out.push((value % 128 + 128) as u8);
        value /= 128;
    }
    out.push(value as u8);
    out.into()
}

/// `Pause` of this time.
pub(crate) fn pause(time: Duration) -> Bytes {
    field(8, time.as_nanos() as u64)
}

/// `Sample` with a blob of this size.
fn blob(bytes: usize) -> Bytes {
    [&field(0x2a, bytes as u64)[..], &vec![7; bytes]].concat().into()
}

pub(crate) fn connect_with(address: &str, options: &NativeOptions) -> Result<NativeClient, Status> {
    let address: CarrierAddress = address.parse().expect("an address");
    let carrier = address.connect(Tuning::default(), options.connect_timeout);
    NativeClient::connect(carrier.expect("a connection"), options)
}

pub(crate) fn connect(address: &str) -> NativeClient {
    connect_with(address, &NativeOptions::default()).expect("a greeting")
}

fn code(result: Result<Bytes, Status>) -> Code {
    result.map_or_else(|status| status.code, |_| Code::Ok)
}

/// Does something over every carrier.
pub(crate) fn over_every_carrier(mut check: impl FnMut(&str, NativeClient)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket").display().to_string();
    let shared = folder.path().join("memory").display().to_string();
    let server = Served::start(&["--unix", &path, "--shm", &shared]);
    let tcp = format!("tcp:{}", server.address());
    let shm = format!("shm:{shared}");
    let pipe = format!("pipe:exec {PROGRAM} serve --pipe");
    for address in ["here:", "frames:", &pipe, &tcp, &format!("unix:{path}"), &shm] {
        check(address, connect(address));
    }
}

#[test]
fn answers_come_out_of_order_and_nothing_is_outstanding_in_the_end() {
    over_every_carrier(|address, mut client| {
        let method = |name| client.method(name).expect("a method");
        let (add, sleep) = (method(ADD), method(SLEEP));
        let long = pause(Duration::from_millis(300));
        let late = client.start(sleep, &long, None).expect("a call");
        let soon = client.start(sleep, &pause(Duration::from_millis(100)), None).expect("a call");
        let first: Vec<_> =
            (0..50).map(|_| client.start(add, &ONE, None).expect("a call")).collect();
        assert_eq!(client.outstanding(), 52);
        let mut ended = Vec::new();
        while let Some(reply) = client.next_reply().expect("a connection") {
            assert!(reply.result.is_ok(), "{address}: {reply:?}");
            ended.push(reply.id);
        }
        assert_eq!(ended[..50], first, "{address}");
        assert_eq!(ended[50..], [soon, late], "{address}");
        assert_eq!(client.outstanding(), 0, "{address}");
        // The greeting, and all calls.
        assert_eq!(client.traffic().writes, 2, "{address}");
    });
}

#[test]
fn a_call_comes_after_those_begun_before_it() {
    over_every_carrier(|address, mut client| {
        let add = client.method(ADD).expect("add");
        let begun = client.start(add, &ONE, None).expect("a call");
        let after = client.call(add, &ONE, None).expect("a total");
        let before = client.next_reply().expect("a connection").expect("the first call");
        assert_eq!(before.id, begun, "{address}");
        let before = before.result.expect("a total");
        assert_eq!(after[1], before[1] + 1, "{address}: {before:?}, then {after:?}");
    });
}

/// A server that greets, and reads no more than the client's greeting; it ends with the socket.
pub(crate) fn deaf(path: &str) -> mpsc::Receiver<UnixStream> {
    let listener = UnixListener::bind(path).expect("a socket");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        let method = |name: &str, client_streams| Method {
            name: name.to_owned(),
            client_streams,
            server_streams: false,
        };
        let methods = vec![method(ECHO, false), method("/a.B/Stream", true)];
        let mut greeting = BytesMut::new();
        ServerGreeting { max_message: 64 << 20, max_calls: 9, methods }.encode(&mut greeting);
        socket.write_all(&greeting).expect("a greeting");
        sender.send(socket)
    });
    receiver
}

#[test]
fn a_deadline_ends_a_call_whose_request_finds_no_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket").display().to_string();
    let server = deaf(&path);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let mut client = connect(&format!("unix:{path}"));
        let (echo, large) = (client.method(ECHO).expect("echo"), blob(16 << 20));
        let time = Some(Duration::from_millis(20));
        let once = client.call(echo, &large, time);
        // What is left of it is in the way of the next.
        let twice = client.call(echo, &large, time);
        let begun = client.start(echo, &ONE, time).expect("a call");
        client.flush().expect("a connection");
        let reply = client.next_reply().expect("a connection").expect("a call");
        assert_eq!(reply.id, begun);
        let stream = client.any_method("/a.B/Stream").expect("a method");
        let how = Begin::within(time, Instant::now);
        let stream = client.open(stream, &how).expect("a call");
        client.send(stream, &large).expect("a connection");
        client.send(stream, &large).expect("a connection");
        client.end(stream).expect("a connection");
        let event = client.next_event().expect("a connection").expect("an end");
        assert!(matches!(event.what, What::Ended(_)), "{event:?}");
        let given_up = client.start(echo, &large, None).expect("a call");
        client.cancel(given_up).expect("a connection");
        while client.next_reply().expect("a connection").is_some() {}
        assert_eq!(client.outstanding(), 5, "the server has ended none");
        sender.send([code(once), code(twice), code(reply.result)]).expect("the test waits");
    });
    let ended = ended.recv_timeout(Duration::from_secs(60));
    assert_eq!(ended, Ok([Code::DeadlineExceeded; 3]), "each call ends");
    drop(server);
}

#[test]
fn a_deadline_ends_a_call_and_its_number_is_free_once_the_server_has_answered() {
    over_every_carrier(|address, mut client| {
        let (add, sleep) = (client.method(ADD).expect("add"), client.method(SLEEP).expect("sleep"));
        let minute = pause(Duration::from_secs(60));
        let start = Instant::now();
        let result = client.call(sleep, &minute, Some(Duration::from_millis(20)));
        assert_eq!(code(result), Code::DeadlineExceeded, "{address}");
        assert!(start.elapsed() < Duration::from_secs(50));
        assert_eq!(client.call(add, &ONE, None), Ok(ONE), "{address}: a new total");
        assert_eq!(client.next_reply(), Ok(None));
        assert_eq!(client.outstanding(), 0, "{address}");
        let refused = client.call(9_999, &ONE, None);
        assert_eq!(code(refused), Code::Unimplemented, "{address}");
        let wrong = client.call(add, &Bytes::from_static(&[8]), None);
        assert_eq!(code(wrong), Code::Internal, "{address}: no message");
        let methods = client.method("/grpc.testing.TestService/FullDuplexCall");
        assert_eq!(methods.expect_err("a stream").code, Code::Unimplemented);
        // Each carrier has a total of its own, but those of the one server.
        assert!(client.call(add, &Bytes::from_static(&[8, 0x7f]), None).is_ok());
        let back = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        let less = Bytes::from([&field(8, 0)[..1], &minus_128(&back)].concat());
        assert_eq!(client.call(add, &less, None).expect("a total").len(), 0, "{address}: zero");
    });
}

/// -128 as a number of protobuf, made of that of -1.
fn minus_128(minus_one: &[u8; 10]) -> Vec<u8> {
    let mut bytes = minus_one.to_vec();
    bytes[0] = 0x80;
    bytes
}

#[test]
fn large_messages_pass_both_ways_at_once() {
    over_every_carrier(|address, mut client| {
        let echo = client.method(ECHO).expect("echo");
        let message = blob(3_000_000);
        for _ in 0..8 {
            client.start(echo, &message, None).expect("a call");
        }
        let mut count = 0;
        while let Some(reply) = client.next_reply().expect("a connection") {
            assert_eq!(reply.result.expect("an answer"), message, "{address}");
            count += 1;
        }
        assert_eq!(count, 8);
    });
}

#[test]
fn limits_are_refused_by_the_side_that_knows_first_and_the_connection_goes_on() {
    let server = Served::start(&["--max-streams", "2", "--max-message", "2000"]);
    let address = format!("tcp:{}", server.address());
    let mut client = connect(&address);
    let (echo, sleep) = (client.method(ECHO).expect("echo"), client.method(SLEEP).expect("sleep"));
    assert_eq!(client.call(echo, &blob(1_997), None), Ok(blob(1_997)));
    assert_eq!(code(client.call(echo, &blob(1_998), None)), Code::ResourceExhausted);
    let short = pause(Duration::from_millis(10));
    for _ in 0..2 {
        client.start(sleep, &short, None).expect("a call");
    }
    let third = client.start(sleep, &short, None).expect_err("too many");
    assert_eq!(third.code, Code::ResourceExhausted);
    while client.next_reply().expect("a connection").is_some() {}
    // A client that takes less.
    let options = NativeOptions { max_message_bytes: 100, ..NativeOptions::default() };
    let mut small = connect_with(&address, &options).expect("a greeting");
    let refused = small.call(echo, &blob(200), None).expect_err("too large");
    assert_eq!(refused.code, Code::ResourceExhausted);
    assert!(refused.message.contains("100"), "{refused}");
    assert!(small.call(echo, &blob(50), None).is_ok());
    // The server's reason is longer than a message may be.
    let options = NativeOptions { max_message_bytes: 7, ..NativeOptions::default() };
    let mut tiny = connect_with(&address, &options).expect("a greeting");
    let refused = tiny.call(echo, &blob(50), None).expect_err("too large");
    assert_eq!(refused.code, Code::ResourceExhausted, "{refused}");
    assert!(refused.message.contains("52 bytes"), "{refused}");
    assert!(tiny.call(echo, &blob(5), None).is_ok());
}

#[test]
#[cfg(feature = "grpc")]
fn a_token_opens_a_connection_and_health_needs_none() {
    use std::os::unix::fs::PermissionsExt as _;

    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "a-token-of-sixteen\n").expect("written");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file.path(), mode).expect("private");
    let server = Served::start(&["--token-file", &file.path().display().to_string()]);
    let address = format!("tcp:{}", server.address());
    let mut without = connect(&address);
    let add = without.method(ADD).expect("add");
    assert_eq!(code(without.call(add, &ONE, None)), Code::Unauthenticated);
    let health = without.method("/grpc.health.v1.Health/Check").expect("health");
    assert_eq!(without.call(health, &Bytes::new(), None), Ok(ONE), "SERVING");
    let token = Bytes::from_static(b"a-token-of-sixteen");
    let options = NativeOptions { token, ..NativeOptions::default() };
    let mut with = connect_with(&address, &options).expect("a greeting");
    assert_eq!(with.call(add, &ONE, None), Ok(ONE));
}

#[test]
fn a_call_in_flight_ends_well_when_the_server_stops_and_new_ones_are_unavailable() {
    let mut server = Served::start(&[]);
    let mut client = connect(&format!("tcp:{}", server.address()));
    let mut idle = connect(&format!("tcp:{}", server.address()));
    let (add, sleep) = (client.method(ADD).expect("add"), client.method(SLEEP).expect("sleep"));
    let late = client.start(sleep, &pause(Duration::from_secs(2)), None).expect("a call");
    // Its answer shows that the one before has come, too.
    client.call(add, &ONE, None).expect("an answer");
    server.terminate();
    // The end of an idle connection shows that the server stops.
    loop {
        match idle.call(add, &ONE, None) {
            Ok(_) => {}
            Err(status) => {
                assert_eq!(status.code, Code::Unavailable, "{status}");
                assert!(status.message.contains("the server stops"), "{status}");
                break;
            }
        }
    }
    let refused = client.call(add, &ONE, None);
    assert_eq!(code(refused), Code::Unavailable);
    let reply = client.next_reply().expect("a connection").expect("a reply");
    assert_eq!((reply.id, code(reply.result)), (late, Code::Ok));
    assert!(server.wait().success());
    assert_eq!(client.call(add, &ONE, None).expect_err("it is gone").code, Code::Unavailable);
    assert_eq!(client.outstanding(), 0);
}

#[test]
fn a_server_of_pipes_says_goodbye_on_sigterm_and_refuses_what_is_no_pipe() {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--pipe", "--log", "warn"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = child.stdout.take().expect("a pipe");
    input.write_all(b"\x9blrf\x01\0\0\0\0\0\x10\0").expect("sent");
    // Its greeting shows that it serves, and catches signals.
    output.read_exact(&mut [0; 20]).expect("a greeting");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).expect("the end");
    assert!(String::from_utf8_lossy(&rest).ends_with("once it is back"), "a reason");
    assert!(child.wait().expect("it ends").success());
    drop(input);

    let mut command = Command::new(PROGRAM);
    let out = command.args(["serve", "--pipe"]).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("have to be pipes"), "{out:?}");
}
