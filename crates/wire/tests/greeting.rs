//! A server may speak first, on any kind of stream socket.

use crate::common::{HANG_GUARD, client, listener, serve};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wire::{
    Address, Config, Connection, Flow, Input, ListenOptions, Listener, Ns, Output, Peer,
    ProtocolError, Server,
};

/// Greets its peer by its address, then says back what it hears.
struct Greeter;

impl Connection for Greeter {
    fn opened(&mut self, _: Ns, peer: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        out.put(format!("hello {}\n", peer.address).as_bytes());
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        out.put(input.bytes());
        input.consume(input.len());
        Ok(Flow::Continue)
    }
}

fn greeted(mut stream: impl Read + Write, greeting: &str) {
    let mut got = vec![0; greeting.len()];
    stream.read_exact(&mut got).expect("a greeting");
    assert_eq!(String::from_utf8_lossy(&got), greeting);
    stream.write_all(b"thanks").expect("write");
    let mut got = [0; 6];
    stream.read_exact(&mut got).expect("an echo");
    assert_eq!(&got, b"thanks");
}

#[test]
fn a_server_that_greets_first_is_heard_before_anything_is_sent() {
    let (_server, address) = serve(Config::default(), |_| Greeter);
    for _ in 0..3 {
        let client = client(address);
        let greeting = format!("hello {}\n", client.local_addr().expect("an address"));
        greeted(client, &greeting);
    }
}

#[test]
fn one_server_listens_on_tcp_and_unix_sockets_at_once() {
    let path = std::env::temp_dir().join(format!("wire-greeting-{}", std::process::id()));
    let unix = Listener::bind(&Address::Unix(path.clone()), &ListenOptions::default());
    let listeners = vec![listener(), unix.expect("a Unix listener")];
    let server = Server::start(Config::default(), listeners, |_| Greeter).expect("a server");
    let stream = UnixStream::connect(&path).expect("a connection");
    stream.set_read_timeout(Some(HANG_GUARD)).expect("a time-out");
    greeted(stream, "hello unix:\n");
    let tcp = client(crate::common::internet(&server.addresses()[0]));
    let greeting = format!("hello {}\n", tcp.local_addr().expect("an address"));
    greeted(tcp, &greeting);
    assert_eq!(server.counters().total_connections, 2);
    server.stop(HANG_GUARD);
    assert!(!path.exists(), "the socket's file goes with the server");
}

#[test]
fn a_server_is_reached_over_ipv6_where_the_host_has_it() {
    let any = "[::1]:0".parse().expect("an address");
    let Ok(listener) = Listener::bind(&any, &ListenOptions::default()) else {
        testing::skip("this host has no IPv6 loopback");
        return;
    };
    let server = Server::start(Config::default(), vec![listener], |_| Greeter).expect("a server");
    let client = client(crate::common::internet(&server.addresses()[0]));
    let greeting = format!("hello {}\n", client.local_addr().expect("an address"));
    assert!(greeting.starts_with("hello [::1]:"));
    greeted(client, &greeting);
}

/// Greets and hangs up, as a server does that is of no use to this client.
struct Brief;

impl Connection for Brief {
    fn opened(&mut self, _: Ns, _: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        out.put(b"not today\n");
        Ok(Flow::Close)
    }

    fn receive(&mut self, _: Ns, _: &mut Input, _: &mut Output) -> Result<Flow, ProtocolError> {
        unreachable!("it has been closed")
    }
}

#[test]
fn a_greeting_may_be_the_last_word() {
    let (_server, address) = serve(Config::default(), |_| Brief);
    let mut client = client(address);
    client.write_all(b"and never read").expect("write");
    let mut got = String::new();
    client.read_to_string(&mut got).expect("the last word");
    assert_eq!(got, "not today\n");
}
