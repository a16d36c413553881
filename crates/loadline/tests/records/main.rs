//! `loadline serve records` and `loadline records`, from outside: beside EPICS programs that were
//! written by others.

mod common;

use common::{Served, peer, run};

/// What the tests of one server find there.
const RECORDS: &str = r#"
[[record]]
name = "temperature"
type = "double"
value = 20.5
units = "C"
control = { low = 0, high = 80 }
alarm = { high_warning = 60, high = 75 }

[[record]]
name = "wave"
type = "long[]"
value = [1, 2, 3]

[[record]]
name = "mode"
type = "enum"
choices = ["off", "on"]

[[record]]
name = "label"
type = "string"
value = "words"
writable = false

[[record]]
name = "table"
type = "table"
columns = { a = "string", b = "double" }
value = { a = ["x", "y"], b = [1, 2] }

[[record]]
name = "camera"
type = "ndarray"
"#;

#[test]
fn p4ps_client_gets_puts_monitors_and_calls() {
    let Some(python) = peer("python") else { return };
    for way in ["tcp", "udp"] {
        let served = Served::start(RECORDS, &[]);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/clients.py");
        let address = served.address();
        let output = run(&python, &[script, address, served.search(), way]);
        assert_eq!(output, "all is well\n", "by {way}");
    }
}

#[test]
fn spvirits_tools_read_write_and_describe() {
    let Some(get) = peer("spget") else { return };
    let served = Served::start(RECORDS, &["--no-search"]);
    let tool = |name: &str, arguments: &[&str]| {
        let server = ["--server", served.address()];
        run(&get.with_file_name(name), &[&server, arguments].concat())
    };
    assert!(tool("spget", &["temperature"]).contains("20.5"));
    assert!(tool("spput", &["temperature", "33"]).contains("OK"));
    assert!(tool("spget", &["temperature"]).contains("33"));
    assert!(tool("spinfo", &["wave"]).contains("value: long[]"));
}

#[test]
fn a_config_with_a_mistake_says_file_line_and_what_would_be_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, "[[record]]\nname = \"a\"\ntype = \"real\"\n").expect("written");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["serve", "records", "--config"])
        .arg(&path)
        .output()
        .expect("loadline runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("wrong.toml") && said.contains("line 3"), "{said}");
    assert!(said.contains("\"real\" is no type; write boolean"), "{said}");
}
