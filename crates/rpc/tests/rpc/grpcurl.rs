//! grpcurl, which knows a server by its reflection (v1).

use std::process::Command;

use crate::peers::go;
use crate::served::Served;

#[test]
fn grpcurl_lists_describes_and_calls() {
    let Some(program) = go("grpcurl") else { return };
    let server = Served::start(&[]);
    let ask = |before: &[&str], behind: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("-plaintext").args(before).arg(server.address()).args(behind);
        let out = testing::output(&mut command, b"");
        let (text, wrong) =
            (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        (out.status.code(), format!("{text}{wrong}"))
    };
    let (code, text) = ask(&[], &["list"]);
    assert!(code == Some(0) && text.contains("loadline.rpc.v1.Table"), "{text}");
    let (code, text) = ask(&[], &["describe", "loadline.rpc.v1.Sample"]);
    assert!(code == Some(0) && text.contains("repeated double reals = 10"), "{text}");
    for total in ["2", "4"] {
        let (code, text) = ask(&["-d", r#"{"value": 2}"#], &["loadline.rpc.v1.Table/Add"]);
        assert_eq!(
            (code, text.split_whitespace().collect::<String>()),
            (Some(0), format!(r#"{{"value":"{total}"}}"#))
        );
    }
    let (code, text) = ask(&[], &["grpc.health.v1.Health/Check"]);
    assert!(code == Some(0) && text.contains("SERVING"), "{text}");
    let duplex = r#"{"responseParameters": [{"size": 1}, {"size": 2}]} {}"#;
    let (code, text) = ask(&["-d", duplex], &["grpc.testing.TestService/FullDuplexCall"]);
    assert!(code == Some(0) && text.matches("payload").count() == 2, "{text}");
    let (code, text) = ask(
        &["-d", r#"{"responseStatus": {"code": 9, "message": "größe"}}"#],
        &["grpc.testing.TestService/UnaryCall"],
    );
    assert!(code == Some(64 + 9) && text.contains("größe"), "{code:?} {text}");
}
