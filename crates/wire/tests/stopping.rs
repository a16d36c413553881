//! The end of a server: what is in flight is finished, what is idle is closed, nothing hangs.

use crate::common::{HANG_GUARD, Lines, client, echo, serve, until};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::{Bytes, Closed, Config, Connection, Flow, Input, Ns, Output, ProtocolError, Server};

type Ends = Arc<Mutex<Vec<Closed>>>;

struct Noting<C>(C, Ends);

impl<C: Connection> Connection for Noting<C> {
    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        self.0.receive(now, input, out)
    }

    fn closed(&mut self, why: Closed) {
        self.1.lock().expect("ends").push(why);
    }
}

/// A server that answers each line with a megabyte, and the ends of its connections.
fn generous(threads: usize) -> (Server, std::net::SocketAddr, Ends) {
    let ends = Ends::default();
    let noted = Arc::clone(&ends);
    let array = Bytes::from(vec![1; 1_000_000]);
    let (server, address) = serve(Config { threads, ..Config::default() }, move |_| {
        let array = array.clone();
        let lines = Lines(move |_: &[u8], out: &mut Output| {
            out.share(array.clone());
            Flow::Continue
        });
        Noting(lines, Arc::clone(&noted))
    });
    (server, address, ends)
}

#[test]
fn idle_connections_are_closed_at_once() {
    for threads in [1, 3] {
        let ends = Ends::default();
        let noted = Arc::clone(&ends);
        let config = Config { threads, ..Config::default() };
        let (server, address) = serve(config, move |_| Noting(echo(), Arc::clone(&noted)));
        let mut clients: Vec<_> = (0..10).map(|_| client(address)).collect();
        for client in &mut clients {
            client.write_all(b"hello\n").expect("write");
            client.read_exact(&mut [0; 6]).expect("an answer");
        }
        // An hour's patience isn't needed.
        let counters = server.stop(Duration::from_secs(3600));
        assert_eq!((counters.current_connections, counters.total_connections), (0, 10));
        assert_eq!(*ends.lock().expect("ends"), vec![Closed::Stopping; 10]);
        for client in &mut clients {
            assert_eq!(client.read(&mut [0; 1]).expect("a clean end"), 0);
        }
        let refused = std::net::TcpStream::connect_timeout(&address, HANG_GUARD);
        refused.expect_err("nobody listens");
    }
}

#[test]
fn what_is_in_flight_is_finished() {
    const LINES: usize = 60;
    for threads in [1, 3] {
        let (server, address, ends) = generous(threads);
        let mut client = client(address);
        client.write_all(&b"more\n".repeat(LINES)).expect("write");
        client.read_exact(&mut [0; 1]).expect("the first byte");
        let stopped = std::thread::spawn(move || server.stop(HANG_GUARD));
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("all answers and a clean end");
        assert_eq!(got.len(), LINES * 1_000_000 - 1);
        assert_eq!(stopped.join().expect("stopped").current_connections, 0);
        assert_eq!(*ends.lock().expect("ends"), [Closed::Stopping]);
    }
}

#[test]
fn who_does_not_read_is_waited_for_no_longer_than_said() {
    let (server, address, ends) = generous(2);
    let mut clients = [client(address), client(address)];
    for client in &mut clients {
        client.write_all(&b"more\n".repeat(100)).expect("write");
    }
    until("both are being answered", || server.counters().bytes_read == 1000);
    let counters = server.stop(Duration::from_millis(50));
    assert_eq!(counters.current_connections, 0);
    assert_eq!(*ends.lock().expect("ends"), [Closed::Stopping, Closed::Stopping]);
}

#[test]
fn an_unfinished_message_may_be_finished() {
    let ends = Ends::default();
    let noted = Arc::clone(&ends);
    let (server, address) = serve(Config::default(), move |_| Noting(echo(), Arc::clone(&noted)));
    let mut client = client(address);
    client.write_all(b"unfini").expect("write");
    until("it is read", || server.counters().bytes_read == 6);
    let stopped = std::thread::spawn(move || server.stop(HANG_GUARD));
    client.write_all(b"shed\n").expect("write");
    let mut got = String::new();
    client.read_to_string(&mut got).expect("an answer and a clean end");
    assert_eq!(got, "unfinished\n");
    stopped.join().expect("stopped");
}

#[test]
fn a_server_that_is_dropped_stops() {
    let (server, address) = serve(Config { threads: 2, ..Config::default() }, |_| echo());
    let mut client = client(address);
    client.write_all(b"hello\n").expect("write");
    client.read_exact(&mut [0; 6]).expect("an answer");
    drop(server);
    assert_eq!(client.read(&mut [0; 1]).expect("a clean end"), 0);
}
