//! Encrypted connections: the protocols of the other tests, unchanged, over TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{client, internet, listener, loopback, until};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use wire::{
    Bytes, ClientCertificates, Config, Connection, Flow, Input, ListenOptions, Listener, Ns,
    Output, Peer, ProtocolError, Server, Tls, TlsError, TlsSettings,
};

/// A certificate for `localhost`, made for this test, and its key.
struct Identity {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

fn identity() -> Identity {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    Identity { certificate, key, der: made.cert.der().clone() }
}

impl Identity {
    fn settings(&self) -> TlsSettings<'_> {
        TlsSettings {
            certificates: self.certificate.as_bytes(),
            key: self.key.as_bytes(),
            client_authorities: b"",
            clients: ClientCertificates::Ignored,
            speaks_1_2: true,
            protocols: &[],
        }
    }

    fn serve<C, M>(&self, config: Config, make: M) -> (Server, SocketAddr)
    where
        C: Connection + 'static,
        M: Fn(wire::Loop<C>) -> C + Send + Sync + 'static,
    {
        let tls = Tls::new(&self.settings()).expect("usable");
        let server = Server::start(config, vec![listener().with_tls(tls)], make);
        let server = server.expect("a server");
        let address = internet(&server.addresses()[0]);
        (server, address)
    }

    /// A client that has said hello and trusts this identity only.
    fn connect(
        &self,
        address: SocketAddr,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        StreamOwned::new(connection, client(address))
    }
}

/// Sends what it is sent back, through every buffer there is.
struct Echo;

impl Connection for Echo {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        while !out.is_full() && !input.is_empty() {
            let count = input.len().min(1000);
            out.put(&input.bytes()[..count]);
            input.consume(count);
        }
        Ok(Flow::Continue)
    }
}

/// Says a lot before it is said anything, and then closes.
struct Greeting(Bytes);

impl Connection for Greeting {
    fn opened(&mut self, _: Ns, _: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        out.share(self.0.clone());
        Ok(Flow::Close)
    }

    fn receive(&mut self, _: Ns, _: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        Ok(Flow::Continue)
    }
}

#[test]
fn megabytes_come_back_as_they_were_over_either_version() {
    let identity = identity();
    let small = Config { output_limit_bytes: 20_000, input_limit_bytes: 9000, ..Config::default() };
    for config in [Config::default(), small] {
        let (server, address) = identity.serve(config, |_| Echo);
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let mut stream = identity.connect(address, version);
            let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
            // A client that reads only now and then: the server has to stop reading meanwhile.
            let mut got = Vec::new();
            for chunk in sent.chunks(100_000) {
                stream.write_all(chunk).expect("sent");
                let mut part = vec![0; chunk.len()];
                stream.read_exact(&mut part).expect("received");
                got.extend_from_slice(&part);
            }
            assert!(got == sent);
        }
        drop(server);
    }
}

#[test]
fn a_server_that_speaks_first_is_heard_to_its_end_by_a_slow_reader() {
    let identity = identity();
    let greeting = Bytes::from((0..5_000_000_u32).map(|at| (at / 11) as u8).collect::<Vec<_>>());
    let said = greeting.clone();
    let (_server, address) = identity.serve(Config::default(), move |_| Greeting(greeting.clone()));
    let mut stream = identity.connect(address, &rustls::version::TLS13);
    let mut got = Vec::new();
    // An end that is not announced would be an error: bytes could have been cut off.
    stream.read_to_end(&mut got).expect("an announced end");
    assert!(got == said);
}

#[test]
fn nonsense_ends_a_connection_and_harms_no_other() {
    let identity = identity();
    let (server, address) = identity.serve(Config::default(), |_| crate::common::echo());
    let mut good = identity.connect(address, &rustls::version::TLS13);
    good.write_all(b"hello\n").expect("sent");
    let mut bad = client(address);
    bad.write_all(b"get key\r\n").expect("sent");
    let mut answer = Vec::new();
    // An alert, or nothing: in any case an end.
    let _ = bad.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"get"));
    let mut line = [0; 6];
    good.read_exact(&mut line).expect("received");
    assert_eq!(&line, b"hello\n");
    drop((good, bad));
    until("both are gone", || server.counters().current_connections == 0);
}

#[test]
fn a_handshake_that_takes_too_long_is_ended_and_one_that_is_done_is_not() {
    let identity = identity();
    let handshake_timeout = Duration::from_millis(200);
    let config = Config { handshake_timeout, ..Config::default() };
    let (server, address) = identity.serve(config, |_| crate::common::echo());
    let echo = |good: &mut StreamOwned<ClientConnection, TcpStream>| {
        let mut line = [0; 6];
        good.write_all(b"hello\n").and_then(|()| good.read_exact(&mut line)).map(|()| line)
    };
    // On a busy machine a handshake may really take too long.
    let mut good = loop {
        let mut good = identity.connect(address, &rustls::version::TLS13);
        if echo(&mut good).is_ok() {
            break good;
        }
    };
    let mut silent = client(address);
    let mut halting = client(address);
    // The header of a handshake record whose body doesn't come.
    halting.write_all(&[0x16, 3, 1, 2, 0]).expect("sent");
    for half_open in [&mut silent, &mut halting] {
        // An alert at most; the end may be a reset.
        let mut answer = Vec::new();
        let end = half_open.read_to_end(&mut answer).map_err(|error| error.kind());
        assert!(answer.len() < 16 && end != Err(std::io::ErrorKind::WouldBlock), "{end:?}");
    }
    assert_eq!(&echo(&mut good).expect("still open"), b"hello\n");
    until("they are gone", || server.counters().current_connections == 1);
}

#[test]
fn a_plain_listener_beside_an_encrypted_one_stays_plain() {
    let identity = identity();
    let tls = Tls::new(&identity.settings()).expect("usable");
    let plain = Listener::bind(&loopback(), &ListenOptions::default()).expect("a listener");
    let listeners = vec![listener().with_tls(tls), plain];
    let server = Server::start(Config { threads: 2, ..Config::default() }, listeners, |_| Echo);
    let server = server.expect("a server");
    let addresses: Vec<_> = server.addresses().iter().map(internet).collect();
    for _ in 0..4 {
        let mut encrypted = identity.connect(addresses[0], &rustls::version::TLS13);
        let mut open = client(addresses[1]);
        for stream in [&mut encrypted as &mut dyn ReadWrite, &mut open] {
            stream.write_all(b"hello").expect("sent");
            let mut got = [0; 5];
            stream.read_exact(&mut got).expect("received");
            assert_eq!(&got, b"hello");
        }
    }
}

trait ReadWrite: Read + Write {}
impl<S: Read + Write> ReadWrite for S {}

#[test]
fn what_is_of_no_use_is_said_before_anything_is_served() {
    let (one, other) = (identity(), identity());
    let wrong = TlsSettings { key: other.key.as_bytes(), ..one.settings() };
    assert!(matches!(Tls::new(&wrong), Err(TlsError::Unusable(_))));
    let none = TlsSettings { certificates: b"nothing", ..one.settings() };
    assert!(matches!(Tls::new(&none), Err(TlsError::Pem { what: "certificate", .. })));
    let no_key = TlsSettings { key: one.certificate.as_bytes(), ..one.settings() };
    assert!(matches!(Tls::new(&no_key), Err(TlsError::Pem { what: "private key", .. })));
}
