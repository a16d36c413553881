//! The interface beside its own description, by a program that generates requests of it: right ones
//! and wrong ones, of a fixed seed.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use service::Tokens;

use crate::served::{ask, get, serve};

#[test]
fn generated_requests_are_answered_as_the_interface_is_described() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = here.join("../../target/venv/conditions/bin/schemathesis");
    if !program.exists() {
        testing::skip("schemathesis is not installed (`cargo xtask peers` installs the peers)");
        return;
    }
    let data = tempfile::tempdir().expect("a folder");
    let tokens = data.path().join("tokens");
    std::fs::write(&tokens, "0123456789abcdef\n").expect("written");
    let tokens = Tokens::read(tokens).expect("tokens");
    let server = serve(&data.path().join("data"), Some(tokens));
    let at = server.addresses()[0];
    // What the examples of the description name.
    let token = "Bearer 0123456789abcdef";
    let columns = json!([{ "name": "value", "kind": "float" }]);
    let object = json!({ "channel": 3, "since": 100, "values": [20.5] });
    for (path, body) in [
        (
            "/folders",
            json!({ "path": "/det/temperature", "versioning": "multi", "columns": columns }),
        ),
        ("/objects", json!({ "batches": [{ "folder": "/det/temperature", "objects": [object] }] })),
        ("/tags", json!({ "name": "checked", "path": "/det/temperature" })),
    ] {
        let headers = [("content-type", "application/json"), ("authorization", token)];
        let made =
            ask(at, "POST", &format!("/api/v1{path}"), &headers, body.to_string().as_bytes());
        assert_eq!(made.status, 200, "{path}");
    }
    let mut command = Command::new(program);
    command.current_dir(data.path());
    command.arg("--config-file").arg(here.join("tests/conditions/schemathesis.toml"));
    command.arg("run").arg(format!("http://{at}/api/v1/openapi.json"));
    command.args(["--seed", "1", "--max-examples", "20", "--phases", "examples,coverage,fuzzing"]);
    command.args(["--no-shrink", "--generation-database", "none", "--no-color"]);
    command.args(["--continue-on-failure", "--warnings", "off"]);
    command.args(["--header", &format!("Authorization: {token}")]);
    let out = command.output().expect("schemathesis");
    let said = String::from_utf8_lossy(&out.stdout);
    let wrong = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}\n{wrong}");
    // It came through to what changes something, and to what is refused.
    let page = String::from_utf8(get(at, "/metrics", &[]).body).expect("text");
    let count = |name: &str| -> u64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name)).expect("a count");
        line.trim().parse().expect("a number")
    };
    let counts = ["conditions_changes_total", "conditions_reads_total", "conditions_refused_total"];
    let counts = counts.map(count);
    assert!(counts[0] >= 20 && counts[1] >= 300 && counts[2] >= 300, "{counts:?}");
}
