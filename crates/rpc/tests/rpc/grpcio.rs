//! grpcio: gRPC on C-core, which knows the server by its reflection alone (v1alpha).

use std::process::Command;

use crate::peers::{python, script};
use crate::served::Served;

#[test]
fn grpcio_finds_everything_as_it_should_be() {
    let Some(python) = python() else { return };
    let server = Served::start(&["--threads", "2"]);
    let mut command = Command::new(python);
    command.arg(script("grpcio_client.py")).arg(server.address());
    let out = command.output().expect("Python runs");
    let (text, wrong) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}\n{wrong}");
    assert!(text.ends_with("all is right\n"), "{text}\n{wrong}");
}
