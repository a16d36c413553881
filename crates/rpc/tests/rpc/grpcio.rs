//! grpcio: gRPC on C-core, which knows the server by its reflection alone (v1alpha).

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::peers::{python, script};
use crate::served::{Served, lines, rpc, rpc_with, said};

#[test]
fn grpcio_finds_everything_as_it_should_be() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for over_unix in [false, true] {
        let path = folder.path().join(format!("{over_unix}.sock")).display().to_string();
        let server = Served::start(&["--threads", "2", "--unix", &path]);
        let address = if over_unix { format!("unix:{path}") } else { server.address() };
        let mut command = Command::new(&python);
        command.arg(script("grpcio_client.py")).arg(&address);
        let out = testing::output(&mut command, b"");
        let (text, wrong) =
            (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "{address}: {text}\n{wrong}");
        assert!(text.ends_with("all is right\n"), "{address}: {text}\n{wrong}");
    }
}

#[test]
fn our_client_calls_grpcio_by_its_older_reflection() {
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    command.arg(script("grpcio_server.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("Python runs");
    let limit = testing::Limit::of(&child);
    let mut port = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut port).expect("a port");
    let at = &format!("127.0.0.1:{}", port.trim())[..];
    let values = |args: &[&str], input: &str| {
        let out = rpc_with(&[&["call", at][..], args].concat(), input);
        let values = lines(&out).iter().map(|line| line["value"].clone()).collect::<Vec<_>>();
        (out.status.code(), values, said(&out))
    };
    let ok = |args: &[&str], input: &str| {
        let (code, values, said) = values(args, input);
        assert_eq!(code, Some(0), "{said}");
        values
    };
    assert_eq!(ok(&["sums.Sums/Add", r#"{"value": 41}"#], ""), ["42"]);
    assert_eq!(ok(&["sums.Sums.Add", r#"{"value": 41}"#, "--gzip"], ""), ["42"]);
    let three = r#"{"value": 1} {"value": 2} {"value": 3}"#;
    assert_eq!(ok(&["sums.Sums/All", "-"], three), ["6"]);
    assert_eq!(ok(&["sums.Sums/Each", "-"], three), ["-1", "-2", "-3"]);
    assert_eq!(ok(&["sums.Sums/Count", r#"{"value": 3}"#], ""), ["0", "1", "2"]);
    let (code, _, said) = values(&["sums.Sums/Add", r#"{"value": -1}"#], "");
    assert_eq!((code, &said[..]), (Some(64 + 11), "error: OUT_OF_RANGE: größe % \n x\n"));
    let services = String::from_utf8(rpc(&["list", at]).stdout).expect("text");
    assert!(services.lines().any(|line| line == "sums.Sums"), "{services}");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    drop(limit);
}
