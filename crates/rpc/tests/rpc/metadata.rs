//! Metadata there and back: bytes, repeated names in order; tokens.

use crate::raw::*;
use crate::served::{Served, lines, rpc, said};

#[test]
fn metadata_comes_back_and_repeated_names_keep_their_order() {
    let server = Served::start(&[]);
    let path = "/connectrpc.conformance.v1.ConformanceService/Unary";
    let at = &server.address()[..];
    let more = ["x-one: b", "x-one: a", "x-data-bin: AAH/", "x-data-bin: qw"];
    let headers = more.iter().flat_map(|header| ["--header", header]);
    let args: Vec<_> = ["call", at, &path[1..]].into_iter().chain(headers).collect();
    let out = rpc(&args);
    let info = &lines(&out)[0]["payload"]["requestInfo"];
    let seen = info["requestHeaders"].as_array().expect("headers");
    let values = |name: &str| {
        let found = seen.iter().find(|header| header["name"] == name).expect("a header");
        found["value"].clone()
    };
    assert_eq!(values("x-one"), serde_json::json!(["b", "a"]), "{}", said(&out));
    assert_eq!(values("x-data-bin"), serde_json::json!(["AAH/", "qw"]));
}

#[test]
fn where_there_are_tokens_each_call_but_of_health_needs_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokens");
    std::fs::write(&file, "0123456789abcdef\n").expect("written");
    let server = Served::start(&["--token-file", &file.display().to_string()]);
    let status = |path: &str, token: &str| {
        let mut raw = Raw::connect(server.socket(), &[]);
        let more = if token.is_empty() { vec![] } else { vec![("authorization", token)] };
        raw.head(1, 0, &headers(path, &more));
        raw.send(&frame(DATA, END_STREAM, 1, &message(&[])));
        raw.ended(1).status
    };
    let add = "/loadline.rpc.v1.Table/Add";
    assert_eq!(status(add, ""), "16");
    assert_eq!(status(add, "Bearer 0123456789abcdee"), "16");
    assert_eq!(status(add, "Bearer 0123456789abcdef"), "0");
    assert_eq!(status("/none/none", ""), "16", "what is served is not for all to know");
    assert_eq!(status("/grpc.health.v1.Health/Check", ""), "0");
    let at = &server.address()[..];
    let token = ["--header", "authorization: Bearer 0123456789abcdef"];
    assert!(rpc(&[&["list", at][..], &token].concat()).status.success());
    assert_eq!(rpc(&["list", at]).status.code(), Some(80));
}
