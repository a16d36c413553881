//! Encrypted connections, by ALPN, and Unix sockets.

use crate::served::{Served, lines, rpc, said};

#[test]
fn calls_are_encrypted_where_there_is_a_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
    let [cert, key] = ["server.pem", "server.key"].map(|name| folder.path().join(name));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let [cert, key] = [cert, key].map(|path| path.display().to_string());
    let server = Served::start(&["--tls-cert", &cert, "--tls-key", &key]);
    let at = &format!("grpcs://{}", server.address())[..];
    let out = rpc(&["call", at, "loadline.rpc.v1.Table/Who", "--tls-ca", &cert]);
    assert_eq!(lines(&out)[0]["carrier"], "tcp+tls", "{}", said(&out));
    let plain = rpc(&["list", &server.address(), "--connect-timeout", "2s"]);
    assert_eq!(plain.status.code(), Some(1), "{}", said(&plain));
    assert!(said(&plain).contains("it speaks TLS"), "{}", said(&plain));
    let cleartext = Served::start(&[]);
    let at = format!("grpcs://{}", cleartext.address());
    let out = rpc(&["list", &at, "--tls-ca", &cert, "--connect-timeout", "2s"]);
    assert!(said(&out).contains("in cleartext"), "{}", said(&out));
}

#[test]
fn a_unix_socket_is_served_beside_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rpc.sock").display().to_string();
    let server = Served::start(&["--unix", &path]);
    assert_eq!(server.ready["addresses"]["grpc2"], format!("unix:{path}"));
    let at = format!("unix:{path}");
    let out = rpc(&["call", &at, "loadline.rpc.v1.Table/Who"]);
    assert_eq!(lines(&out)[0]["carrier"], "unix", "{}", said(&out));
}
