//! The dialects against the programs that they are for.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use cache::load::{DELETE, GET, MG, MGET, SERVICE, SET};
use load::{Client, Dialect, Events, Keys, Op, Oracle, Values};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use wire::{Input, Output};

const KEYS: u64 = 200;

enum Socket {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

impl Socket {
    fn send(&mut self, bytes: &[u8]) {
        match self {
            Self::Stream(socket) => socket.write_all(bytes).expect("sent"),
            Self::Datagrams(socket) => {
                socket.send(bytes).expect("sent");
            }
        }
    }

    fn receive(&mut self, input: &mut Input) {
        let mut chunk = vec![0; 65536];
        let count = match self {
            Self::Stream(socket) => socket.read(&mut chunk).expect("an answer"),
            Self::Datagrams(socket) => {
                // What a datagram held beyond its answer belongs to nothing that follows.
                input.clear();
                socket.recv(&mut chunk).expect("an answer")
            }
        };
        assert!(count > 0, "closed");
        input.append(&chunk[..count]);
    }
}

/// Says random operations in a dialect, a few at a time, and demands that all answers are right.
pub(crate) fn drive(dialect: &str, address: SocketAddr, value_bytes: usize) {
    let row = SERVICE.dialect(dialect).expect("a dialect");
    let keys = Keys::new(KEYS, 8).expect("keys");
    let oracle = Arc::new(Oracle::new(keys, Values::new(3, value_bytes), true, true));
    let patience = Some(Duration::from_secs(20));
    let (mut client, mut socket) = match row.client {
        Client::Stream(make) => {
            let socket = TcpStream::connect(address).expect("a connection");
            socket.set_read_timeout(patience).expect("a time-out");
            (make(&oracle), Socket::Stream(socket))
        }
        Client::Datagrams(make) => {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.connect(address).expect("an address");
            socket.set_read_timeout(patience).expect("a time-out");
            (make(&oracle), Socket::Datagrams(socket))
        }
        Client::Calls(_) | Client::InProcess(_) => unreachable!("the service has none"),
    };
    let (mut events, mut out, mut input) = (Events::default(), Output::new(1 << 20), Input::new());
    let mut settle = |client: &mut dyn Dialect, socket: &mut Socket, count: usize| {
        let mut tags = HashSet::new();
        while tags.len() < count {
            socket.receive(&mut input);
            client.receive(0, &mut input, &mut events, &mut Output::new(1)).expect("no fault");
            for done in &events.done {
                assert_eq!(done.wrong, 0, "{dialect}: {:?}", events.findings);
                assert!(tags.insert(done.tag), "answered twice");
            }
            events.clear();
        }
    };
    for first in (0..KEYS).step_by(10) {
        // Several under way, and over datagrams each in one of its own, as the engine prepares.
        for key in first..first + 10 {
            client.prepare(0, key as u32, key, &mut out);
            socket.send(&out.take());
        }
        settle(&mut *client, &mut socket, 10);
    }
    let mut random = SmallRng::seed_from_u64(5);
    for _ in 0..400 {
        let count = random.random_range(1..8);
        for tag in 0..count {
            let operation = [GET, GET, MG, MGET, SET, DELETE][random.random_range(0..6)];
            let many = if operation == MGET { random.random_range(1..20) } else { 1 };
            let keys: Vec<_> = (0..many).map(|_| random.random_range(0..KEYS)).collect();
            client.request(0, tag, &Op { operation, keys: &keys }, &mut out);
            socket.send(&out.take());
        }
        settle(&mut *client, &mut socket, count as usize);
    }
}
