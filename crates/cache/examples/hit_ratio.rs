//! Hit ratios of the store on seeded traces: `cargo run --release -p loadline-cache --example
//! hit_ratio [-- WHAT]`, where WHAT is
//!
//! - `fixed` (the default): what each policy makes of values of one size, beside LRU with as many
//!   items;
//! - `mixed [memcached]`: values from 100 bytes to 100 kB in 12 and 64 MiB, beside a simulated LRU,
//!   and beside memcached with as much memory;
//! - `file TRACE BYTES`: LRU and GDSF simulated on a file of `time,key,bytes` lines, in a cache of
//!   that size;
//! - `write TRACE`: a mixed trace as such a file.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/beside/peer.rs"]
mod peer;
#[path = "../tests/traces/mod.rs"]
mod traces;

use std::fmt::Write as _;

use cache::model::Policy;
use traces::simulated::{Simulated, lru_of_items, simulate};
use traces::{Request, SHAPES, Shape, Sizes, Workload, drive, infinite, memcached};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["fixed"] => fixed(),
        ["mixed"] => mixed(false),
        ["mixed", "memcached"] => mixed(true),
        ["file", file, bytes] => simulate_file(file, bytes.parse().expect("a number of bytes")),
        ["write", file] => write(file),
        _ => panic!("fixed, mixed [memcached], file TRACE BYTES, or write TRACE"),
    }
}

fn fixed() {
    let (mebibytes, keys, length) = (64, 1_000_000, 2_000_000);
    println!("{mebibytes} MiB, {length} requests of {keys} keys of 20 bytes, 200-byte values");
    for shape in SHAPES.into_iter().chain([Shape::Loop]) {
        let keys = if shape == Shape::Loop { 600_000 } else { keys };
        let requests = Workload::fixed(shape, keys, length).requests();
        for (name, policy) in Policy::ALL {
            let made = drive(&requests, mebibytes << 20, policy);
            let of_lru = lru_of_items(&requests, made.items);
            println!(
                "{shape:?} {name:<8} {:.4} with {} items; LRU {of_lru:.4} ({:+.4}); {}",
                made.ratios.items,
                made.items,
                made.ratios.items - of_lru,
                made.in_force.name(),
            );
        }
    }
}

/// The rows of mixed sizes: hit ratios by items and by bytes.
fn rows() -> Vec<Workload> {
    let mut rows = Vec::new();
    for sizes in [Sizes::Equal, Sizes::FewLarge] {
        for skew in [0.7, 0.9, 1.1] {
            rows.extend((1..=3).map(|seed| Workload::mixed(Shape::Zipf, sizes, skew, seed)));
        }
        for shape in [Shape::OneHit, Shape::Scan, Shape::Drift, Shape::Loop, Shape::SizeShift] {
            rows.push(Workload::mixed(shape, sizes, 0.9, 1));
        }
    }
    rows
}

fn mixed(beside_memcached: bool) {
    println!("hit ratios by items and bytes; beside memcached as a ratio; 300,000 requests");
    for workload in rows() {
        let requests = workload.requests();
        for mebibytes in [12, 64] {
            let memory_bytes = mebibytes << 20;
            let made = drive(&requests, memory_bytes, Policy::default());
            let weight = |request: &Request| request.value_bytes + 36;
            let lru = simulate(Simulated::Lru, &requests, memory_bytes, weight);
            let most = infinite(&requests);
            let Workload { shape, skew, sizes, seed, .. } = workload;
            let mut row = format!(
                "{shape:?} {sizes:?} {skew} {mebibytes} MiB seed {seed}: {:.4} {:.4}, \
                 LRU {:.4} {:.4}, infinite {:.4} {:.4}, {} items, {} in force",
                made.ratios.items,
                made.ratios.bytes,
                lru.items,
                lru.bytes,
                most.items,
                most.bytes,
                made.held.items,
                made.in_force.name(),
            );
            if beside_memcached && let Some(program) = peer::program("memcached") {
                let arguments = memcached::arguments(if mebibytes == 12 { "12" } else { "64" });
                let peer = peer::Peer::start(&program, &arguments);
                let peer = memcached::drive(peer.address, &requests);
                let items = made.ratios.items / peer.items;
                let bytes = made.ratios.bytes / peer.bytes;
                let (peer_items, peer_bytes) = (peer.items, peer.bytes);
                let _ = write!(
                    row,
                    ", memcached {peer_items:.4} {peer_bytes:.4}: {items:.3} {bytes:.3}"
                );
            }
            println!("{row}");
        }
    }
}

fn simulate_file(file: &str, bytes: usize) {
    let text = std::fs::read_to_string(file).expect("a trace");
    let request = |line: &str| {
        let mut fields = line.split(',').map(|field| field.trim().parse::<u64>());
        let mut field = || fields.next().expect("three fields").expect("a number");
        let (_, key, bytes) = (field(), field(), field());
        Request { key, value_bytes: bytes as usize }
    };
    let requests: Vec<Request> = text.lines().map(request).collect();
    for policy in [Simulated::Lru, Simulated::Gdsf] {
        let ratios = simulate(policy, &requests, bytes, |request| request.value_bytes);
        println!("{policy:?} {:.4} of requests, {:.4} of bytes", ratios.items, ratios.bytes);
    }
}

fn write(file: &str) {
    let requests = Workload::mixed(Shape::Zipf, Sizes::Equal, 0.9, 1).requests();
    let mut text = String::new();
    for (number, Request { key, value_bytes }) in requests.iter().enumerate() {
        let _ = writeln!(text, "{number},{key},{value_bytes}");
    }
    std::fs::write(file, text).expect("written");
}
