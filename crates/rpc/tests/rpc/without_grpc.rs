//! A program that was built without gRPC: what needs it says so, and how to get it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::served::{Served, rpc, said};

const WORDS: &str = "built without gRPC: build it with `cargo build --release --features rpc`";

#[test]
fn a_command_that_needs_grpc_names_the_feature_that_brings_it() {
    let at = "127.0.0.1:1";
    for args in [
        &["call", at, "loadline.rpc.v1.Table/Add", "{}"][..],
        &["list", at],
        &["describe", at],
        &["health", at],
        &["codecs"],
        &["inspect", "--codec", "cbor", "00"],
        &["ping", "grpc://127.0.0.1:1"],
        &["why", "grpcs://127.0.0.1:1"],
    ] {
        let out = rpc(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", said(&out));
        assert!(said(&out).contains(WORDS), "{args:?}: {}", said(&out));
    }
}

#[test]
fn a_client_of_grpc_or_http_reads_what_the_server_lacks_and_the_server_serves_on() {
    let server = Served::start(&[]);
    let preface = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..];
    for (sent, begins) in [
        // Its settings, and its end with no stream begun, for an internal error.
        (preface, &b"\0\0\0\x04\0\0\0\0\0\0\0"[..]),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    ] {
        let mut socket = TcpStream::connect(server.socket()).expect("a connection");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        socket.write_all(sent).expect("sent");
        let mut all = Vec::new();
        socket.read_to_end(&mut all).expect("an end");
        let text = String::from_utf8_lossy(&all);
        assert!(all.starts_with(begins), "{text:?}");
        assert!(text.contains(WORDS), "{text:?}");
    }
    let out = rpc(&["ping", &format!("tcp:{}", server.address()), "--count", "9"]);
    assert!(out.status.success(), "{}", said(&out));
}
