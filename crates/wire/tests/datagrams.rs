//! Datagrams: a batch in, a batch out, beside streams in the same server.

use crate::common::{HANG_GUARD, client, echo, internet, listener, loopback};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use wire::{
    Batch, Config, Connection, DatagramListener, Datagrams, Ns, Replies, Server, ServerBuilder,
};

/// Says back what it hears in capitals, and notes how many came together.
struct Shouter {
    batches: Arc<Mutex<Vec<usize>>>,
    gate: Option<Receiver<()>>,
}

impl Datagrams for Shouter {
    fn datagrams(&mut self, _: Ns, batch: &Batch, replies: &mut Replies) {
        for (from, bytes) in batch.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            replies.compose(from.clone(), |reply| reply.extend(bytes.to_ascii_uppercase()));
        }
        self.batches.lock().expect("batches").push(batch.len());
        if let Some(gate) = self.gate.take() {
            gate.recv_timeout(HANG_GUARD).expect("the gate opens");
        }
    }
}

fn shouter(
    threads: usize,
    gate: Option<Receiver<()>>,
) -> (Server, std::net::SocketAddr, Arc<Mutex<Vec<usize>>>) {
    let batches = Arc::<Mutex<Vec<usize>>>::default();
    let noted = Arc::clone(&batches);
    let gate = Mutex::new(gate);
    let datagrams = vec![DatagramListener::bind(&loopback(), threads).expect("a listener")];
    let shouter =
        move |_| Shouter { batches: Arc::clone(&noted), gate: gate.lock().expect("gate").take() };
    let builder = ServerBuilder::new(Config { threads, ..Config::default() });
    let server = builder.listen(listener(), |_| echo()).datagrams(datagrams, shouter).start();
    let server = server.expect("a server");
    let address = internet(&server.datagram_addresses()[0]);
    (server, address, batches)
}

/// A server without listeners for connections.
fn datagram_server() -> ServerBuilder<Box<dyn Connection>> {
    ServerBuilder::new(Config::default())
}

fn caller(address: std::net::SocketAddr) -> UdpSocket {
    let caller = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    caller.set_read_timeout(Some(HANG_GUARD)).expect("a time-out");
    caller.connect(address).expect("connect");
    caller
}

fn hear(caller: &UdpSocket) -> String {
    let mut reply = [0; 2000];
    let count = caller.recv(&mut reply).expect("a reply");
    String::from_utf8_lossy(&reply[..count]).into_owned()
}

#[test]
fn datagrams_that_wait_together_are_answered_together() {
    let (open, gate) = channel();
    let (server, address, batches) = shouter(1, Some(gate));
    let caller = caller(address);
    caller.send(b"first").expect("send");
    crate::common::until("the first is being answered", || {
        !batches.lock().expect("batches").is_empty()
    });
    // Of many lengths, so that none can be taken for its neighbour.
    let call = |number: usize| format!("call {number} {}", "a".repeat(4 * number));
    for number in 0..100 {
        caller.send(call(number).as_bytes()).expect("send");
    }
    // One without an answer is skipped.
    caller.send(b"").expect("send");
    open.send(()).expect("open the gate");
    let mut heard: BTreeSet<String> = (0..101).map(|_| hear(&caller)).collect();
    assert!(heard.remove("FIRST"));
    assert_eq!(heard, (0..100).map(|number| call(number).to_uppercase()).collect());
    crate::common::until("all are received", || server.counters().datagrams_received == 102);
    let counters = server.stop(HANG_GUARD);
    assert_eq!((counters.datagrams_sent, counters.datagrams_dropped), (101, 0));
    let batches = batches.lock().expect("batches");
    assert!(batches.iter().all(|&count| count <= 64), "{batches:?}");
    assert!(batches.iter().any(|&count| count > 1), "{batches:?}");
}

#[test]
fn who_waits_for_each_answer_and_then_for_none_is_answered_all_the_same() {
    let (server, address, _) = shouter(1, None);
    let caller = caller(address);
    for round in 0..50 {
        caller.send(format!("call {round}").as_bytes()).expect("send");
        assert_eq!(hear(&caller), format!("CALL {round}"));
    }
    for number in 0..60 {
        caller.send(format!("call {number}").as_bytes()).expect("send");
    }
    let heard: BTreeSet<String> = (0..60).map(|_| hear(&caller)).collect();
    assert_eq!(heard, (0..60).map(|number| format!("CALL {number}")).collect());
    assert_eq!(server.stop(HANG_GUARD).datagrams_received, 110);
}

#[test]
fn every_thread_answers_datagrams_and_streams_beside_them() {
    let (server, address, _) = shouter(3, None);
    let mut stream = client(internet(&server.addresses()[0]));
    for round in 0..200 {
        // Callers differ in their port, by which the kernel chooses the thread.
        let caller = caller(address);
        caller.send(format!("hello {round}").as_bytes()).expect("send");
        assert_eq!(hear(&caller), format!("HELLO {round}"));
        stream.write_all(b"hello\n").expect("write");
        let mut got = [0; 6];
        stream.read_exact(&mut got).expect("an answer");
    }
    let counters = server.stop(HANG_GUARD);
    assert_eq!((counters.datagrams_received, counters.datagrams_sent), (200, 200));
    assert_eq!(counters.bytes_read, 1200);
}

#[test]
fn a_reply_that_cannot_be_sent_is_counted_and_the_others_go_on() {
    struct TooMuch;
    impl Datagrams for TooMuch {
        fn datagrams(&mut self, _: Ns, batch: &Batch, replies: &mut Replies) {
            for (from, bytes) in batch.iter() {
                replies.push(from.clone(), bytes);
                replies.push(from.clone(), &[0; 70_000]);
                replies.push(wire::Address::Unix("/nowhere".into()), bytes);
                replies.push(from.clone(), b"end");
            }
        }
    }
    let datagrams = vec![DatagramListener::bind(&loopback(), 1).expect("a listener")];
    let server = datagram_server().datagrams(datagrams, |_| TooMuch).start();
    let server = server.expect("a server");
    let caller = caller(internet(&server.datagram_addresses()[0]));
    caller.send(b"begin").expect("send");
    assert_eq!((hear(&caller), hear(&caller)), ("begin".to_owned(), "end".to_owned()));
    crate::common::until("all are counted", || server.counters().datagrams_dropped == 2);
    assert_eq!(server.counters().datagrams_sent, 2);
}

#[test]
fn a_listener_for_another_number_of_threads_is_refused() {
    let datagrams = vec![DatagramListener::bind(&loopback(), 2).expect("a listener")];
    let shouter = |_| Shouter { batches: Arc::default(), gate: None };
    let server = datagram_server().datagrams(datagrams, shouter).start();
    assert_eq!(server.expect_err("refused").kind(), std::io::ErrorKind::InvalidInput);
}
