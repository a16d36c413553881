//! The dialects against the programs that they are for.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use cache::load::{DELETE, GET, MG, MGET, Memcached, MemcachedUdp, Redis, SET};
use load::kv::{Keys, Oracle, Values};
use load::{Dialect, Events, Op};
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
    let keys = Keys::new(KEYS, 8).expect("keys");
    let mut oracle = Oracle::new(keys, Values::new(3, value_bytes)).begin(true, true);
    oracle.keys_per_request = 7;
    let oracle = Arc::new(oracle);
    let patience = Some(Duration::from_secs(60));
    let mut client: Box<dyn Dialect> = match dialect {
        "memcached" => Box::new(Memcached::new(&oracle)),
        "memcached-udp" => Box::new(MemcachedUdp::new(&oracle)),
        _ => Box::new(Redis::new(&oracle)),
    };
    let mut socket = if dialect == "memcached-udp" {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(address).expect("an address");
        socket.set_read_timeout(patience).expect("a time-out");
        Socket::Datagrams(socket)
    } else {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_read_timeout(patience).expect("a time-out");
        Socket::Stream(socket)
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
            let what = random.random_range(0..KEYS);
            client.request(0, tag, Op { operation, what }, &mut out);
            socket.send(&out.take());
        }
        settle(&mut *client, &mut socket, count as usize);
    }
}
