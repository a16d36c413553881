//! Hit ratios of the store on seeded traces: `cargo run --release -p loadline-cache --example
//! hit_ratio [-- WHAT]`, where WHAT is
//!
//! - `fixed` (the default): what each policy makes of values of one size, beside LRU with as many
//!   items;
//! - `mixed [memcached] [FIRST-LAST]`: values from 100 bytes to 100 kB in 12 and 64 MiB, beside a
//!   simulated LRU, and beside memcached with as much memory, whose least multiples end it as a
//!   table. The traces have the seeds FIRST to LAST, 1 to 3 unless given;
//! - `file TRACE BYTES`: LRU and GDSF simulated on a file of `time,key,bytes` lines, in a cache of
//!   that size;
//! - `write TRACE`: a mixed trace as such a file.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/beside/peer.rs"]
mod peer;
#[path = "../tests/traces/mod.rs"]
mod traces;

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use cache::model::Policy;
use traces::simulated::{Simulated, lru_of_items, simulate};
use traces::{Request, SHAPES, Shape, Sizes, Workload, drive, infinite, memcached};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["fixed"] => fixed(),
        ["mixed"] => mixed(false, 1..=3),
        ["mixed", "memcached"] => mixed(true, 1..=3),
        ["mixed", "memcached", seeds] => mixed(true, range(seeds)),
        ["mixed", seeds] => mixed(false, range(seeds)),
        ["file", file, bytes] => simulate_file(file, bytes.parse().expect("a number of bytes")),
        ["write", file] => write(file),
        _ => panic!("fixed, mixed [memcached] [FIRST-LAST], file TRACE BYTES, or write TRACE"),
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

/// The seeds in `FIRST-LAST`.
fn range(seeds: &str) -> RangeInclusive<u64> {
    let number = |text: &str| text.parse().expect("a number");
    let (first, last) = seeds.split_once('-').expect("FIRST-LAST");
    number(first)..=number(last)
}

/// The memory of the rows of mixed sizes, in MiB.
const MEBIBYTES: [&str; 2] = ["12", "64"];

/// The rows of mixed sizes, for one seed.
fn rows(seed: u64) -> Vec<Workload> {
    let mut rows = Vec::new();
    for sizes in [Sizes::Equal, Sizes::FewLarge] {
        for skew in [0.7, 0.9, 1.1] {
            rows.push(Workload::mixed(Shape::Zipf, sizes, skew, seed));
        }
        for shape in [Shape::OneHit, Shape::Scan, Shape::Drift, Shape::Loop, Shape::SizeShift] {
            rows.push(Workload::mixed(shape, sizes, 0.9, seed));
        }
    }
    rows
}

fn mixed(beside_memcached: bool, seeds: RangeInclusive<u64>) {
    println!("hit ratios by items and bytes; beside memcached as a multiple; 300,000 requests");
    // For each row, what ours and an unlimited cache have as multiples of memcached's, the least
    // of all seeds, with 12 MiB and with 64.
    let mut least = vec![[[f64::INFINITY; 4]; 2]; rows(0).len()];
    for (number, workload) in seeds.flat_map(|seed| rows(seed).into_iter().enumerate()) {
        let requests = workload.requests();
        let most = infinite(&requests);
        for (memory, mebibytes) in MEBIBYTES.into_iter().enumerate() {
            let memory_bytes = mebibytes.parse::<usize>().expect("a number") << 20;
            let made = drive(&requests, memory_bytes, Policy::default());
            let weight = |request: &Request| request.value_bytes + 36;
            let lru = simulate(Simulated::Lru, &requests, memory_bytes, weight);
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
                let peer = peer::Peer::start(&program, &memcached::arguments(mebibytes));
                let peer = memcached::drive(peer.address, &requests);
                let multiples = [
                    made.ratios.items / peer.items,
                    made.ratios.bytes / peer.bytes,
                    most.items / peer.items,
                    most.bytes / peer.bytes,
                ];
                let [items, bytes, ..] = multiples;
                let (peer_items, peer_bytes) = (peer.items, peer.bytes);
                let _ = write!(
                    row,
                    ", memcached {peer_items:.4} {peer_bytes:.4}: {items:.3} {bytes:.3}"
                );
                let all = least[number][memory].iter_mut().zip(multiples);
                all.for_each(|(least, multiple)| *least = least.min(multiple));
            }
            println!("{row}");
        }
    }
    if beside_memcached {
        write_table(&least);
    }
}

fn write_table(least: &[[[f64; 4]; 2]]) {
    println!("\n| keys | values | 12 MiB: items, bytes | all | 64 MiB: items, bytes | all |");
    println!("|---|---|---|---|---|---|");
    for (Workload { shape, skew, sizes, .. }, multiples) in rows(0).iter().zip(least) {
        let cells = multiples.map(|[items, bytes, most_items, most_bytes]| {
            format!("{items:.3}, {bytes:.3} | {most_items:.3}, {most_bytes:.3}")
        });
        println!("| {shape:?} {skew} | {sizes:?} | {} |", cells.join(" | "));
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
