//! Encrypted connections, by ALPN, and Unix sockets.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread;

use crate::raw::{DATA, END_STREAM, Raw, frame, headers, message};
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
    assert!(said(&plain).contains("it speaks TLS: call it by grpcs://"), "{}", said(&plain));
    for command in [&["ping"][..], &["call", "loadline.rpc.v1.Table/Who"]] {
        let (name, rest) = command.split_first().expect("a command");
        let at = format!("tcp:{}", server.address());
        let frames = rpc(&[&[*name, &at], rest].concat());
        assert!(said(&frames).contains("speaks TLS"), "{}", said(&frames));
        assert!(said(&frames).contains("by grpcs://HOST:PORT"), "{}", said(&frames));
    }
    let cleartext = Served::start(&[]);
    let at = format!("grpcs://{}", cleartext.address());
    let out = rpc(&["list", &at, "--tls-ca", &cert, "--connect-timeout", "2s"]);
    assert!(said(&out).contains("in cleartext by grpc://"), "{}", said(&out));
}

#[test]
fn a_certificate_that_is_not_taken_is_named_with_what_would_be_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let key = rcgen::KeyPair::generate().expect("a key");
    std::fs::write(file("key"), key.serialize_pem()).expect("written");
    let made = |host: &str, name: &str, is_ca| {
        let mut params = rcgen::CertificateParams::new([host.to_owned()]).expect("a name");
        params.is_ca = is_ca;
        let made = params.self_signed(&key).expect("made");
        std::fs::write(file(name), made.pem()).expect("written");
    };
    made("127.0.0.1", "ca", rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
    made("elsewhere", "other", rcgen::IsCa::ExplicitNoCa);
    for (shown, words) in [("ca", "basicConstraints=critical,CA:FALSE"), ("other", "--tls-name")] {
        let (cert, key) = (file(shown), file("key"));
        let server = Served::start(&["--tls-cert", &cert, "--tls-key", &key]);
        let at = format!("grpcs://{}", server.address());
        let out = rpc(&["list", &at, "--tls-ca", &cert]);
        assert!(said(&out).contains(words), "{}", said(&out));
        assert!(!said(&out).contains("OtherError"), "{}", said(&out));
    }
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

/// A port whose first connection is one to a Unix socket.
fn bridge(path: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let unix = UnixStream::connect(path).expect("a connection");
    thread::spawn(move || {
        let (tcp, _) = listener.accept().expect("a connection");
        let (mut from, mut to) = (tcp.try_clone().expect("one"), unix.try_clone().expect("one"));
        thread::spawn(move || {
            // A client that has gone needs no more.
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
        let (mut from, mut to) = (unix, tcp);
        let _ = io::copy(&mut from, &mut to);
    });
    at
}

#[test]
fn the_path_that_c_core_sends_as_authority_is_taken_over_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rpc.sock").display().to_string();
    let server = Served::start(&["--unix", &path]);
    let call = |at| {
        let mut raw = Raw::connect(at, &[]);
        let changed = [(":authority", &path.replace('/', "%2F")[..])];
        raw.head(1, 0, &headers("/loadline.rpc.v1.Table/Add", &changed));
        raw.send(&frame(DATA, END_STREAM, 1, &message(&[8, 1])));
        raw.ended(1)
    };
    assert_eq!(call(bridge(&path)).status, "0");
    // As h2 has it.
    assert_eq!(call(server.socket()).reset, Some(1));
}
