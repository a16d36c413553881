//! The end of a connection: every answer arrives, every connection is told once, none leaks.

use crate::common::{HANG_GUARD, Lines, Random, client, serve, until};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use wire::{Closed, Config, Connection, Flow, Input, Ns, Output, Peer, ProtocolError};

type Ends = Arc<Mutex<Vec<Closed>>>;

/// `quit`: the last word; `fault`: a fault with an answer; anything else is said back.
struct Talker {
    ends: Ends,
    is_open: bool,
}

impl Talker {
    fn new(ends: &Ends) -> Self {
        Self { ends: Arc::clone(ends), is_open: false }
    }
}

impl Connection for Talker {
    fn opened(&mut self, _: Ns, _: &Peer, _: &mut Output) -> Result<Flow, ProtocolError> {
        assert!(!std::mem::replace(&mut self.is_open, true), "opened twice");
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        assert!(self.is_open, "called after its end");
        let mut fault = None;
        let mut lines = Lines(|line: &[u8], out: &mut Output| {
            out.put(line);
            if line == b"fault\n" {
                fault = Some(ProtocolError::new("asked for"));
            }
            if line == b"quit\n" || fault.is_some() { Flow::Close } else { Flow::Continue }
        });
        let flow = lines.receive(now, input, out);
        fault.map_or(flow, Err)
    }

    fn closed(&mut self, why: Closed) {
        assert!(std::mem::replace(&mut self.is_open, false), "closed twice, or never opened");
        self.ends.lock().expect("ends").push(why);
    }
}

fn ends_of(talk: impl FnOnce(std::net::SocketAddr)) -> Vec<Closed> {
    let ends = Ends::default();
    let noted = Arc::clone(&ends);
    let (server, address) = serve(Config::default(), move |_| Talker::new(&noted));
    talk(address);
    until("all are closed", || server.counters().current_connections == 0);
    let ends = ends.lock().expect("ends").clone();
    assert_eq!(server.counters().total_connections, ends.len() as u64);
    ends
}

fn answer(address: std::net::SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut client = client(address);
    client.write_all(request).expect("write");
    let mut got = Vec::new();
    client.read_to_end(&mut got).expect("an answer and then the end");
    got
}

#[test]
fn ten_thousand_short_connections_leave_nothing_behind() {
    let seed = 20_261_121;
    println!("seed {seed}");
    let mut random = Random(seed);
    let ends = ends_of(|address| {
        for _ in 0..10_000 {
            let mut request = b"hello\nquit\n".to_vec();
            // Every third client sends more than is read.
            if random.below(3) == 0 {
                request.resize(request.len() + random.below(300) as usize, b'x');
            }
            assert_eq!(answer(address, &request), b"hello\nquit\n");
        }
    });
    assert_eq!(ends.len(), 10_000);
    assert!(ends.iter().all(|end| *end == Closed::ByUs));
}

#[test]
fn an_answer_is_not_lost_when_the_client_goes_on_sending() {
    let ends = ends_of(|address| {
        let mut client = client(address);
        client.write_all(b"hello\nquit\n").expect("write");
        // Half a megabyte that nobody wants; the socket takes it all the same.
        client.write_all(&[b'x'; 500_000]).expect("no reset");
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("no reset");
        assert_eq!(got, b"hello\nquit\n");
    });
    assert_eq!(ends, [Closed::ByUs]);
}

#[test]
fn a_fault_is_answered_before_the_end() {
    let ends = ends_of(|address| {
        assert_eq!(answer(address, b"hello\nfault\nunheard\n"), b"hello\nfault\n");
    });
    assert_eq!(ends, [Closed::ProtocolError(ProtocolError::new("asked for"))]);
}

#[test]
fn a_peer_that_has_said_its_last_word_still_gets_its_answers() {
    let ends = ends_of(|address| {
        let mut client = client(address);
        client.write_all(b"hello\nunfinished").expect("write");
        client.shutdown(Shutdown::Write).expect("shutdown");
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("an answer");
        assert_eq!(got, b"hello\n");
    });
    assert_eq!(ends, [Closed::ByPeer]);
}

#[test]
fn a_peer_that_vanishes_with_answers_unread_is_told_apart() {
    let ends = ends_of(|address| {
        let mut client = client(address);
        client.write_all(b"hello\n").expect("write");
        // Closing with an answer unread resets the connection.
        let mut got = [0; 1];
        while client.peek(&mut got).expect("peek") == 0 {}
        drop(client);
    });
    assert_eq!(ends, [Closed::Socket(ErrorKind::ConnectionReset)]);
}

#[test]
fn a_peer_that_vanishes_while_the_server_waits_for_it_is_noticed() {
    let ends = Ends::default();
    let noted = Arc::clone(&ends);
    let (server, address) = serve(Config::default(), move |_| Talker::new(&noted));
    for _ in 0..3 {
        let mut client = client(address);
        client.set_write_timeout(Some(std::time::Duration::from_millis(50))).expect("a time-out");
        // Sends, and reads nothing, until nothing more goes through.
        while client.write(&b"hello\n".repeat(10_000)).is_ok() {}
        // With an answer unread, closing resets the connection.
        assert_eq!(client.peek(&mut [0; 1]).expect("an answer"), 1);
        assert_eq!(server.counters().current_connections, 1);
        drop(client);
        until("it is noticed", || server.counters().current_connections == 0);
    }
    let ends = ends.lock().expect("ends");
    assert!(ends.len() == 3 && ends.iter().all(|end| matches!(end, Closed::Socket(_))), "{ends:?}");
}

#[test]
fn a_large_last_answer_to_a_slow_reader_is_sent_in_full() {
    let array = wire::Bytes::from(vec![7; 20_000_000]);
    let (server, address) = serve(Config::default(), move |_| {
        let array = array.clone();
        Lines(move |_: &[u8], out: &mut Output| {
            out.share(array.clone());
            Flow::Close
        })
    });
    let mut client = client(address);
    client.write_all(b"all\nand more").expect("write");
    let mut got = Vec::new();
    client.read_to_end(&mut got).expect("all");
    assert!(got.len() == 20_000_000 && got.iter().all(|&byte| byte == 7));
    drop(client);
    until("it is closed", || server.counters().current_connections == 0);
    server.stop(HANG_GUARD);
}
