//! What one operation costs in memory: a pipelined batch through the dialect, the connection and
//! back, without a socket. `cargo run --release -p loadline-cache --example pipeline`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use cache::load::{GET, MG, MGET, Memcached, SET};
use cache::model::Clock;
use cache::server::{CacheConnection, Options, Service};
use load::kv::{Keys, Oracle, Values};
use load::{Dialect, Events, Op};
use wire::{Connection, Input, Output};

const DEPTH: usize = 64;
const BATCHES: usize = 20_000;

struct Costs {
    request_ns: f64,
    server_ns: f64,
    check_ns: f64,
}

fn main() {
    println!("ns per key at depth {DEPTH}: dialect.request, connection, dialect.receive");
    for (count, value_bytes) in [(10_000, 16), (1_000_000, 100), (21_000, 480)] {
        let keys = Keys::new(count, 8).expect("keys fit");
        for (name, operation) in [("get", GET), ("mg", MG), ("mget", MGET), ("set", SET)] {
            let oracle = Oracle::new(keys.clone(), Values::new(1, value_bytes));
            let oracle = oracle.begin(operation == SET, false);
            let costs = measure(&Arc::new(oracle), operation);
            println!(
                "{count:>8} keys x {value_bytes:>3} B  {name:<5} {:6.1} {:6.1} {:6.1}",
                costs.request_ns, costs.server_ns, costs.check_ns
            );
        }
    }
}

fn measure(oracle: &Arc<Oracle>, operation: usize) -> Costs {
    let options = Options { memory_bytes: 512 << 20, ..Options::default() };
    let clock = Clock { start_ns: 0, start_unix_s: 0 };
    let service = Arc::new(Service::new(options, clock).expect("a service"));
    let mut connection = CacheConnection::new(service, 0);
    let mut dialect = Memcached::new(oracle);
    let mut events = Events::default();
    let (mut requests, mut answers) = (Output::new(1 << 24), Output::new(1 << 24));
    let (mut to_server, mut to_client) = (Input::new(), Input::new());
    for key in 0..oracle.keys.count() {
        dialect.prepare(0, 0, key, &mut requests);
        pass(&mut requests, &mut to_server);
        connection.receive(0, &mut to_server, &mut answers).expect("no fault");
        pass(&mut answers, &mut to_client);
        dialect.receive(0, &mut to_client, &mut events, &mut requests).expect("no fault");
        events.clear();
    }
    let (mut random, mut keys) = (1_u64, [0; DEPTH]);
    let (mut request_ns, mut server_ns, mut check_ns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        for key in &mut keys {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *key = ((u128::from(random) * u128::from(oracle.keys.count())) >> 64) as u64;
        }
        let start = Instant::now();
        if operation == MGET {
            dialect.get(0, MGET, &keys, &mut requests);
        } else {
            for key in &keys {
                dialect.request(0, 0, Op { operation, what: *key }, &mut requests);
            }
        }
        request_ns.push(start.elapsed().as_nanos());
        pass(&mut requests, &mut to_server);
        let start = Instant::now();
        connection.receive(0, &mut to_server, &mut answers).expect("no fault");
        server_ns.push(start.elapsed().as_nanos());
        pass(&mut answers, &mut to_client);
        let start = Instant::now();
        dialect.receive(0, &mut to_client, &mut events, &mut requests).expect("no fault");
        check_ns.push(start.elapsed().as_nanos());
        let done: u32 = events.done.iter().map(|done| done.answers - done.wrong).sum();
        assert_eq!(done as usize, DEPTH, "{:?}", events.findings.first());
        black_box(&mut events).clear();
    }
    Costs {
        request_ns: per_key(request_ns),
        server_ns: per_key(server_ns),
        check_ns: per_key(check_ns),
    }
}

/// A key's part of the median batch: others on the same processor hold up some batches, not most.
fn per_key(mut batches_ns: Vec<u128>) -> f64 {
    batches_ns.sort_unstable();
    batches_ns[batches_ns.len() / 2] as f64 / DEPTH as f64
}

fn pass(from: &mut Output, to: &mut Input) {
    to.append(from.plain().expect("nothing is shared"));
    from.advance(from.len());
}
