//! Our client against servers of other libraries, Go's of the interoperability tests and tonic's;
//! and tonic's client against our server.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rpc::client::{CallOptions, Client};
use rpc::protocol::metadata::Metadata;
use rpc::protocol::status::Code;

use crate::peers::{built, go};
use crate::served::{Served, lines, rpc, rpc_with, said};

/// How long a server may take until it accepts connections.
const READY_TIME: Duration = Duration::from_secs(60);

/// How long a client may take for a call, or all of its cases.
const CLIENT_TIME: &str = "30s";

/// A server that is ended with this value.
struct Server {
    child: Child,
    address: String,
    _limit: testing::Limit,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Go's, which prints no line once it is ready.
    fn of_go(program: &Path) -> Self {
        // The program takes no other way to learn of a port.
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, testing::free_port()));
        let mut command = Command::new(program);
        command.args(["--port", &free.port().to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let until = Instant::now() + READY_TIME;
        let limit = testing::Limit::of(&child);
        while TcpStream::connect(free).is_err() {
            assert!(Instant::now() < until, "it does not accept connections");
            std::thread::yield_now();
        }
        Self { child, address: free.to_string(), _limit: limit }
    }

    /// tonic's.
    fn of_tonic(program: &Path) -> Self {
        let mut child = Command::new(program).stdout(Stdio::piped()).spawn().expect("it starts");
        let limit = testing::Limit::of(&child);
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let ready: serde_json::Value = serde_json::from_str(&line).expect("a ready line");
        let address = ready["address"].as_str().expect("an address").to_owned();
        Self { child, address, _limit: limit }
    }

    /// Calls a function of the interoperability tests: exit code, answers, and what was said.
    fn call(&self, function: &str, request: &str) -> (Option<i32>, Vec<serde_json::Value>, String) {
        let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/grpc/testing/test.proto");
        let method = format!("grpc.testing.TestService/{function}");
        let proto = proto.display().to_string();
        let call = ["call", &self.address, &method, "-", "--proto", &proto];
        let out = rpc_with(&[&call[..], &["--timeout", CLIENT_TIME]].concat(), request);
        (out.status.code(), lines(&out), said(&out))
    }

    /// The bytes of each answer's payload.
    fn sizes(&self, function: &str, request: &str) -> Vec<usize> {
        let (code, answers, said) = self.call(function, request);
        assert_eq!(code, Some(0), "{function}: {said}");
        let size = |answer: &serde_json::Value| {
            // Base64 has four digits for three bytes.
            let body = answer["payload"]["body"].as_str().unwrap_or_default().trim_end_matches('=');
            body.len() * 3 / 4
        };
        answers.iter().map(size).collect()
    }

    /// The cases of the interoperability tests that a client without code of its own can ask.
    fn is_as_described(&self) {
        assert_eq!(self.call("EmptyCall", "{}").0, Some(0));
        // large_unary
        let body = "AAAA".repeat(90_609);
        let large = format!(r#"{{"responseSize": 314159, "payload": {{"body": "{body}"}}}}"#);
        assert_eq!(self.sizes("UnaryCall", &large), [314_159]);
        // server_streaming, ping_pong, empty_stream
        let asked = r#"{"responseParameters": [{"size": 31415}, {"size": 9}, {"size": 2653}]}"#;
        assert_eq!(self.sizes("StreamingOutputCall", asked), [31_415, 9, 2_653]);
        let sizes = [31_415, 9, 58_979];
        let one = |size: usize| format!(r#"{{"responseParameters": [{{"size": {size}}}]}} "#);
        assert_eq!(self.sizes("FullDuplexCall", &sizes.map(one).concat()), sizes);
        assert_eq!(self.sizes("FullDuplexCall", ""), [0; 0]);
        // client_streaming
        let body =
            |count: usize| format!(r#"{{"payload": {{"body": "{}"}}}} "#, "AAAA".repeat(count));
        let bodies = [9_061, 3, 607, 15_301].map(body).concat();
        let (code, answers, said) = self.call("StreamingInputCall", &bodies);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(answers[0]["aggregatedPayloadSize"], 3 * (9_061 + 3 + 607 + 15_301));
        // unimplemented_method
        assert_eq!(self.call("UnimplementedCall", "{}").0, Some(64 + 12));
    }
}

const DUPLEX: &str = "/grpc.testing.TestService/FullDuplexCall";

/// `StreamingOutputCallRequest` for one answer of 100 bytes.
const ASKS: &[u8] = &[0x12, 2, 8, 100];

/// The cases that take a client with code of its own.
async fn is_as_described_to_code(client: &Client) {
    let options = CallOptions::default();
    // cancel_after_begin
    let path = "/grpc.testing.TestService/StreamingInputCall";
    let (sender, receiver) = client.open(path, &options).await.expect("a call");
    drop(sender);
    assert_eq!(receiver.ended().status.code, Code::Cancelled);
    // cancel_after_first_response
    let (mut sender, mut receiver) = client.open(DUPLEX, &options).await.expect("a call");
    sender.send(ASKS).await.expect("sent");
    assert!(receiver.next().await.is_some_and(|answer| answer.len() > 100));
    drop(sender);
    assert_eq!(receiver.ended().status.code, Code::Cancelled);
    // custom_metadata
    let (initial, trailing) = (&b"test_initial_metadata_value"[..], &b"\xab\xab\xab"[..]);
    let mut metadata = Metadata::default();
    metadata.add("x-grpc-test-echo-initial", initial);
    metadata.add("x-grpc-test-echo-trailing-bin", trailing);
    let options = CallOptions { metadata, ..options };
    // A `SimpleRequest` for 100 bytes, and the above.
    for (path, request) in [("/grpc.testing.TestService/UnaryCall", &[16, 100][..]), (DUPLEX, ASKS)]
    {
        let (mut sender, mut receiver) = client.open(path, &options).await.expect("a call");
        sender.send(request).await.expect("sent");
        sender.end().expect("sent");
        let (answer, trailers) = receiver.only().await.expect("an answer");
        assert!(answer.len() > 100, "{path}");
        let of = |metadata: &Metadata, name| metadata.get(name).cloned();
        let head = of(receiver.headers(), "x-grpc-test-echo-initial");
        assert_eq!(head, Some(Bytes::from_static(initial)), "{path}");
        let behind = of(&trailers, "x-grpc-test-echo-trailing-bin");
        assert_eq!(behind, Some(Bytes::from_static(trailing)), "{path}");
    }
    // unimplemented_service
    let path = "/grpc.testing.UnimplementedService/UnimplementedCall";
    let ended = client.call(path, &[], &options).await.expect_err("there is none");
    assert_eq!(ended.status.code, Code::Unimplemented);
}

#[test]
fn our_client_finds_gos_interoperability_server_as_it_is_described() {
    let Some(program) = go("grpc-interop-server") else { return };
    let server = Server::of_go(&program);
    server.is_as_described();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let address = server.address.parse().expect("an address");
        let client = Client::connect(&address, None, READY_TIME).await.expect("a server");
        is_as_described_to_code(&client).await;
    });
    // status_code_and_message, special_status_message
    for (function, text) in [
        ("UnaryCall", "test status message"),
        (
            "FullDuplexCall",
            "\\t\\ntest with whitespace\\r\\nand Unicode BMP ☺ and non-BMP 😈\\t\\n",
        ),
    ] {
        let request = format!(r#"{{"responseStatus": {{"code": 2, "message": "{text}"}}}}"#);
        let (code, _, said) = server.call(function, &request);
        let part = text.split("\\").last().unwrap_or(text);
        assert!(code == Some(64 + 2) && said.contains(part.trim_start_matches('n')), "{said}");
    }
    // timeout_on_sleeping_server: its answer comes after a minute.
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/grpc/testing/test.proto");
    let method = "grpc.testing.TestService/FullDuplexCall";
    let late = r#"{"responseParameters": [{"size": 9, "intervalUs": 60000000}]}"#;
    let call = ["call", &server.address, method, late, "--timeout", "100ms", "--proto"];
    let out = rpc(&[&call[..], &[&proto.display().to_string()]].concat());
    assert_eq!(out.status.code(), Some(68), "{}", said(&out));
}

#[test]
fn tonics_client_finds_our_server_as_it_should_be() {
    let Some(program) = built("tonic-client") else { return };
    let server = Served::start(&[]);
    let mut command = Command::new(program);
    command.arg(format!("http://{}", server.socket()));
    let out = testing::output(&mut command, b"");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text == "all is right\n", "{text}{}", said(&out));
}

#[test]
fn our_client_finds_tonics_server_as_it_is_described() {
    let Some(program) = built("tonic-server") else { return };
    Server::of_tonic(&program).is_as_described();
}
