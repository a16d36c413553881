//! TLS below either version of HTTP, with a server of rustls in memory: what is trusted, what is
//! not, and what the errors say.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use http::load::MAX_UNREAD_BYTES;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use wire::ProtocolError;

use crate::common::{Bench, ok, one};

/// A certificate of its own, and the file that has it.
struct Identity {
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Identity {
    /// For `host`. What `openssl req -x509` makes `is_authority`.
    fn of(host: &str, is_authority: bool) -> Self {
        let mut parameters = rcgen::CertificateParams::new([host.to_owned()]).expect("a name");
        if is_authority {
            let any = rcgen::BasicConstraints::Unconstrained;
            parameters.is_ca = rcgen::IsCa::Ca(any);
        }
        let signing_key = rcgen::KeyPair::generate().expect("a key");
        let cert = parameters.self_signed(&signing_key).expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, cert.pem()).expect("a file");
        Self { made: rcgen::CertifiedKey { cert, signing_key }, _folder: folder, file }
    }

    /// The options of a client that trusts it.
    fn trusted(&self) -> String {
        format!("tls = true\nca = '{}'\n", self.file.display())
    }

    /// The server's side of a connection.
    fn server(&self, protocols: &[&str]) -> ServerConnection {
        let key = PrivateKeyDer::try_from(self.made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.made.cert.der().clone()], key)
            .expect("usable");
        config.alpn_protocols = protocols.iter().map(|name| (*name).into()).collect();
        ServerConnection::new(Arc::new(config)).expect("a server")
    }
}

/// Hands the server what the client has sent. Returns what it answers; an alert, too.
fn serve(server: &mut ServerConnection, sent: &[u8]) -> Vec<u8> {
    let mut rest = sent;
    while !rest.is_empty() {
        server.read_tls(&mut rest).expect("from memory");
        let _ = server.process_new_packets();
    }
    let mut answer = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut answer).expect("to memory");
    }
    answer
}

/// A connection with the handshake done.
fn shake(options: &str, server: &mut ServerConnection) -> Result<Bench, ProtocolError> {
    let mut bench = Bench::with(&one("path='/'\nexpect.body='hello'"), options)?;
    bench.dialect.opened(0, &mut bench.events, &mut bench.out)?;
    assert!(!bench.events.ready, "the handshake comes first");
    loop {
        let sent = bench.out.take();
        if sent.is_empty() {
            return Ok(bench);
        }
        let answer = serve(server, &sent);
        bench.gets(&answer)?;
    }
}

/// The error of a handshake.
fn refused(options: &str, server: &mut ServerConnection) -> String {
    match shake(options, server) {
        Ok(_) => panic!("the handshake was done"),
        Err(fault) => fault.to_string(),
    }
}

/// What the server has read, decrypted.
fn said(server: &mut ServerConnection) -> String {
    let mut text = Vec::new();
    let _ = server.reader().read_to_end(&mut text);
    String::from_utf8(text).expect("text")
}

/// What the server sends for these bytes.
fn encrypted(server: &mut ServerConnection, bytes: &[u8]) -> Vec<u8> {
    server.writer().write_all(bytes).expect("to memory");
    serve(server, &[])
}

#[test]
fn requests_and_answers_are_the_same_as_without_it() {
    for is_authority in [false, true] {
        let identity = Identity::of("localhost", is_authority);
        let mut server = identity.server(&["h2", "http/1.1"]);
        let mut bench = shake(&identity.trusted(), &mut server).expect("trusted");
        assert!(bench.events.ready);
        assert_eq!(server.alpn_protocol(), Some(&b"http/1.1"[..]));
        let sent = bench.asks(&[0, 0]);
        serve(&mut server, &sent);
        assert_eq!(said(&mut server), "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2));
        let answers = encrypted(&mut server, &[ok("hello"), ok("hullo")].concat());
        for byte in answers {
            bench.gets(&[byte]).expect("understood");
        }
        assert_eq!(bench.answered(), [(0, true), (1, false)]);
        assert_eq!(bench.events.findings[0].received, b"hullo");
    }
}

#[test]
fn a_server_that_is_not_trusted_is_refused_with_what_would_be_right() {
    let (identity, other) = (Identity::of("localhost", false), Identity::of("localhost", false));
    let error = refused(&other.trusted(), &mut identity.server(&[]));
    assert!(error.contains("ca = \"…\"") && error.contains("--insecure"), "{error}");
    shake("tls = true\ninsecure = true", &mut identity.server(&[])).expect("any is taken");

    for is_authority in [false, true] {
        let elsewhere = Identity::of("elsewhere.test", is_authority);
        let error = refused(&elsewhere.trusted(), &mut elsewhere.server(&[]));
        assert!(error.contains("name = \"…\""), "{error}");
        assert!(error.contains("\"localhost\""), "{error}");
        let named = format!("{}name = 'elsewhere.test'", elsewhere.trusted());
        shake(&named, &mut elsewhere.server(&[])).expect("its own name");
    }
    let error = refused("tls = true\nca = 'no/such/file'", &mut identity.server(&[]));
    assert!(error.contains("no/such/file"), "{error}");
}

#[test]
fn the_host_of_the_requests_is_whom_the_certificate_has_to_be_for() {
    let identity = Identity::of("a.test", false);
    let workload = one("path='/'\nheaders={Host='a.test:8443'}");
    let mut server = identity.server(&[]);
    let mut bench = Bench::with(&workload, &identity.trusted()).expect("a connection");
    bench.dialect.opened(0, &mut bench.events, &mut bench.out).expect("said");
    let answer = serve(&mut server, &bench.out.take());
    bench.gets(&answer).expect("trusted");
    assert_eq!(server.server_name(), Some("a.test"));
    assert!(bench.events.ready);
}

#[test]
fn what_does_not_speak_tls_or_this_version_is_named() {
    let workload = one("path='/'");
    let options = "tls = true\ninsecure = true\n";
    let mut bench = Bench::with(&workload, options).expect("a connection");
    bench.dialect.opened(0, &mut bench.events, &mut bench.out).expect("said");
    let fault = bench.gets(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect_err("no TLS").to_string();
    assert!(fault.contains("no TLS is spoken at this port"), "{fault}");

    let mut bench = Bench::with(&workload, options).expect("a connection");
    bench.dialect.opened(0, &mut bench.events, &mut bench.out).expect("said");
    let fault = bench.dialect.closed(0, &mut bench.events).expect_err("cut off").to_string();
    assert!(fault.contains("during the handshake"), "{fault}");

    let identity = Identity::of("localhost", false);
    let version_2 = format!("{options}version = 2");
    for protocols in [&["http/1.1"][..], &[]] {
        let error = refused(&version_2, &mut identity.server(protocols));
        assert!(error.contains("leave `version` out"), "{error}");
    }
    let bench = shake(&version_2, &mut identity.server(&["h2"])).expect("HTTP/2");
    assert!(!bench.events.ready, "the server has not said its settings");
}

#[test]
fn a_connection_that_ends_in_good_order_is_made_again_with_its_requests() {
    let identity = Identity::of("localhost", false);
    let mut server = identity.server(&[]);
    let mut bench = shake(&identity.trusted(), &mut server).expect("trusted");
    bench.asks(&[0, 0]);
    bench.events.clear();
    let mut answer = encrypted(&mut server, &ok("hello"));
    server.send_close_notify();
    answer.extend(serve(&mut server, &[]));
    assert!(bench.gets(&answer).is_err(), "one request is not answered");
    assert_eq!(bench.answered(), [(0, true)]);

    bench.out.take();
    assert!(bench.dialect.may_repeat(1));
    bench.dialect.repeat(&mut bench.out);
    assert!(bench.out.is_empty(), "the handshake comes first");
    let mut server = identity.server(&[]);
    bench.dialect.opened(0, &mut bench.events, &mut bench.out).expect("said");
    while !bench.out.is_empty() {
        let answer = serve(&mut server, &bench.out.take());
        bench.gets(&answer).expect("trusted");
    }
    assert_eq!(said(&mut server), "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let answer = encrypted(&mut server, &ok("hello"));
    bench.gets(&answer).expect("understood");
    assert_eq!(bench.answered(), [(1, true)]);
    server.send_close_notify();
    bench.gets(&serve(&mut server, &[])).expect("nothing is under way");
    assert!(bench.events.close);
}

#[test]
fn a_server_that_floods_and_does_not_read_is_given_up() {
    let identity = Identity::of("localhost", false);
    let mut server = identity.server(&["h2"]);
    let mut bench =
        shake(&format!("{}version = 2", identity.trusted()), &mut server).expect("HTTP/2");
    let settings = [&[0, 0, 0, 4, 0], &[0; 4][..]].concat();
    let faults = (0..2 * MAX_UNREAD_BYTES / 9 / 1000).find_map(|_| {
        let flood = encrypted(&mut server, &settings.repeat(1000));
        bench.gets(&flood).err()
    });
    let fault = faults.expect("given up").to_string();
    assert!(fault.contains("more than 4 MiB of that wait"), "{fault}");
    assert!(bench.out.len() < MAX_UNREAD_BYTES + (1 << 20), "{}", bench.out.len());
}
