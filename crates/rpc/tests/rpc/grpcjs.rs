//! grpc-js: gRPC in JavaScript, which grants a server 64 KiB at a time.

use std::process::Command;

use crate::peers::{node, script};
use crate::served::Served;

#[test]
fn grpc_js_finds_everything_as_it_should_be_through_its_small_window() {
    let Some(modules) = node("@grpc/grpc-js") else { return };
    let server = Served::start(&["--max-message", "16MiB"]);
    let mut command = Command::new("node");
    command.arg(script("grpcjs_client.js")).arg(server.address()).env("NODE_PATH", modules);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/proto"));
    let out = testing::output(&mut command, b"");
    let (text, wrong) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}\n{wrong}");
    assert!(text.ends_with("all is right\n"), "{text}\n{wrong}");
}
