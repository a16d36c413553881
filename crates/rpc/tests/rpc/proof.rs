//! What others have written to prove servers of gRPC: Go's interoperability client and the
//! conformance suite of Connect. `cargo xtask proof rpc` runs these.

use std::process::Command;

use crate::peers::{go, script};
use crate::served::{PROGRAM, Served};

/// The cases that need no special set-up.
const CASES: &[&str] = &[
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
];

#[test]
fn the_interoperability_client_of_go_passes_its_cases() {
    let Some(program) = go("grpc-interop-client") else { return };
    let server = Served::start(&[]);
    let port = format!("--server_port={}", server.socket().port());
    for case in CASES {
        let mut command = Command::new(&program);
        command.args(["--server_host=127.0.0.1", &port, &format!("--test_case={case}")]);
        let out = testing::output(&mut command, b"");
        assert!(out.status.success(), "{case}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

/// Runs the conformance suite as a file says, and returns what it printed.
fn conformance(file: &str) -> Option<String> {
    let mut command = Command::new(go("connectconformance")?);
    command.args(["--mode", "server", "--conf"]).arg(script(file));
    command.args(["--", "python3"]).arg(script("conformance_server.py"));
    Some(printed(command.arg(PROGRAM)))
}

/// As [`conformance`], of the client.
fn conformance_of_client(file: &str) -> Option<String> {
    let mut command = Command::new(go("connectconformance")?);
    command.args(["--mode", "client", "--conf"]).arg(script(file));
    Some(printed(command.args(["--", PROGRAM, "conformance"])))
}

fn printed(command: &mut Command) -> String {
    let out = testing::output(command, b"");
    let text = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(out.status.success(), "{}", text.concat());
    text.concat()
}

#[test]
fn the_conformance_suite_passes_all_its_cases() {
    let Some(text) = conformance("conformance.yaml") else { return };
    assert!(text.contains("374 passed, 0 failed"), "{text}");
}

#[test]
fn the_conformance_suite_passes_all_its_cases_with_zstd_and_encrypted() {
    let Some(text) = conformance("conformance_more.yaml") else { return };
    assert!(text.contains("747 passed, 0 failed"), "{text}");
}

#[test]
fn the_client_passes_all_cases_of_the_conformance_suite() {
    let Some(text) = conformance_of_client("conformance_client.yaml") else { return };
    assert!(text.contains("646 passed, 0 failed"), "{text}");
}
