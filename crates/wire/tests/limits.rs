//! Limits: what is read, what waits, how many there are. Each is enforced and told.

use crate::common::{HANG_GUARD, Lines, client, echo, internet, loopback, serve, until};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wire::{
    Bytes, Closed, Config, Connection, Flow, Input, ListenOptions, Listener, Ns, Output,
    ProtocolError, Server, WhenFull,
};

#[test]
fn a_client_that_sends_and_never_reads_is_not_read_from() {
    const ANSWER_BYTES: usize = 1024;
    const MAX_REQUESTS: usize = 4_000_000;
    let output_peak_bytes = Arc::new(AtomicUsize::new(0));
    let peak = Arc::clone(&output_peak_bytes);
    let config = Config { output_limit_bytes: 64 * 1024, ..Config::default() };
    let (server, address) = serve(config, move |_| {
        let peak = Arc::clone(&peak);
        let mut answered = 0_u64;
        Lines(move |_: &[u8], out: &mut Output| {
            answered += 1;
            out.put(&answered.to_le_bytes());
            let padded = out.tail().len() + ANSWER_BYTES - 8;
            out.tail().resize(padded, 0);
            peak.fetch_max(out.capacity(), Relaxed);
            Flow::Continue
        })
    });
    let mut client = client(address);
    // Sends until nothing more goes through for a while; should that be only for want of a CPU,
    // there are fewer answers to check, and no harm is done.
    client.set_write_timeout(Some(Duration::from_millis(300))).expect("a time-out");
    let requests = b"give me a long answer \n".repeat(1000);
    let mut sent_bytes = 0;
    while sent_bytes < MAX_REQUESTS * 23 {
        match client.write(&requests[sent_bytes % requests.len()..]) {
            Ok(count) => sent_bytes += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    println!("{sent_bytes} bytes went through, {} were read", server.counters().bytes_read);
    assert!(sent_bytes < MAX_REQUESTS * 23, "a reader of everything would have taken it all");

    let mut answer = vec![0; ANSWER_BYTES];
    for number in 1..=(sent_bytes / 23) as u64 {
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[..8], number.to_le_bytes());
    }
    let peak_bytes = output_peak_bytes.load(Relaxed);
    assert!(peak_bytes <= 4 * 64 * 1024, "the output held {peak_bytes} bytes");
}

/// Notes why it ended, and has a last word for a message that is too large.
struct Noting {
    ends: Arc<Mutex<Vec<Closed>>>,
    input_peak_bytes: Arc<AtomicUsize>,
}

impl Connection for Noting {
    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        self.input_peak_bytes.fetch_max(input.len(), Relaxed);
        echo().receive(now, input, out)
    }

    fn too_large(&mut self, out: &mut Output) {
        out.put(b"too large\n");
    }

    fn closed(&mut self, why: Closed) {
        self.ends.lock().expect("ends").push(why);
    }
}

#[test]
fn a_message_over_the_limit_is_a_fault_and_one_at_the_limit_is_not() {
    // The second limit is larger than the buffer that one read fills.
    for limit in [10_000, 700_000] {
        let ends = Arc::<Mutex<Vec<Closed>>>::default();
        let input_peak_bytes = Arc::<AtomicUsize>::default();
        let (noted, peak) = (Arc::clone(&ends), Arc::clone(&input_peak_bytes));
        let config = Config { input_limit_bytes: limit, ..Config::default() };
        let (server, address) = serve(config, move |_| Noting {
            ends: Arc::clone(&noted),
            input_peak_bytes: Arc::clone(&peak),
        });
        let mut client = client(address);
        let mut message = vec![b'x'; limit];
        message[limit - 1] = b'\n';
        client.write_all(&message).expect("write");
        let mut got = vec![0; limit];
        client.read_exact(&mut got).expect("an echo");
        assert!(got == message);

        // What follows the unfinished message is thrown away: the last word isn't lost by that.
        client.write_all(&vec![b'x'; limit + 1]).expect("write");
        let mut got = String::new();
        client.read_to_string(&mut got).expect("a last word");
        assert_eq!(got, "too large\n");
        until("it is told", || !ends.lock().expect("ends").is_empty());
        assert!(matches!(ends.lock().expect("ends")[..], [Closed::ProtocolError(_)]));
        assert!(input_peak_bytes.load(Relaxed) <= limit);
        assert_eq!(server.counters().protocol_errors, 1);
    }
}

#[test]
fn one_connection_too_many_waits_until_another_is_closed() {
    for threads in [1, 2] {
        let config = Config { threads, max_connections: 2, ..Config::default() };
        let (server, address) = serve(config, |_| echo());
        let mut got = [0; 6];
        let mut ask = |mut client: std::net::TcpStream| {
            client.write_all(b"hello\n").expect("write");
            client.read_exact(&mut got).expect("an answer");
            client
        };
        let first = ask(client(address));
        let second = ask(client(address));
        assert_eq!(server.counters().listen_disabled, 0, "two are not too many");
        let third = client(address);
        until("accepting is suspended", || server.counters().listen_disabled == 1);
        let counters = server.counters();
        assert_eq!((counters.total_connections, counters.accepting), (2, false));
        drop(first);
        drop((ask(third), second));
        until("all are closed", || server.counters().current_connections == 0);
        for _ in 0..10 {
            drop(ask(client(address)));
        }
        until("all are accepted again", || server.counters().accepting);
        assert_eq!(server.stop(HANG_GUARD).total_connections, 13);
    }
}

#[test]
fn one_connection_too_many_is_refused_in_words_where_that_is_asked_for() {
    let when_full = WhenFull::Refuse(Bytes::from_static(b"ERROR Too many open connections\r\n"));
    let config = Config { max_connections: 1, when_full, ..Config::default() };
    let (server, address) = serve(config, |_| echo());
    let mut first = client(address);
    first.write_all(b"hello\n").expect("write");
    first.read_exact(&mut [0; 6]).expect("an answer");
    for _ in 0..5 {
        let mut got = String::new();
        client(address).read_to_string(&mut got).expect("words");
        assert_eq!(got, "ERROR Too many open connections\r\n");
    }
    let counters = server.counters();
    assert_eq!((counters.rejected_connections, counters.listen_disabled), (5, 0));
    first.write_all(b"hello\n").expect("write");
    first.read_exact(&mut [0; 6]).expect("the first goes on");
}

#[test]
fn connections_wait_in_the_backlog_while_accepting_pauses_between_two() {
    let accept_interval = Duration::from_millis(20);
    let options = ListenOptions { accept_interval, no_delay: false, ..ListenOptions::default() };
    let listener = Listener::bind(&loopback(), &options).expect("a listener");
    let started = Instant::now();
    let server = Server::start(Config::default(), vec![listener], |_| echo()).expect("a server");
    let address = internet(&server.addresses()[0]);
    let mut clients: Vec<_> = (0..4).map(|_| client(address)).collect();
    for client in &mut clients {
        client.write_all(b"hello\n").expect("write");
        client.read_exact(&mut [0; 6]).expect("an answer");
    }
    assert!(started.elapsed() >= 3 * accept_interval);
    assert_eq!(server.counters().total_connections, 4);
}
