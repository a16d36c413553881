//! What each policy makes of four traces, beside LRU with as many items: `cargo run --release -p
//! cache --example hit_ratio [MEBIBYTES [KEYS [REQUESTS]]]`.

#[path = "../tests/traces/mod.rs"]
mod traces;

use cache::model::Policy;
use traces::{SHAPES, drive, lru, trace};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let mut number = |otherwise: usize| numbers.next().unwrap_or(otherwise);
    let (mebibytes, keys, length) = (number(64), number(1_000_000), number(2_000_000));
    println!("{mebibytes} MiB, {length} requests of {keys} keys of 20 bytes, 200-byte values");
    for shape in SHAPES {
        let requests = trace(shape, keys as u64, length, 42);
        for (name, policy) in Policy::ALL {
            let made = drive(&requests, mebibytes << 20, 200, policy);
            let of_lru = lru(&requests, made.items);
            println!(
                "{shape:?} {name:<8} {:.4} with {} items; LRU {of_lru:.4} ({:+.4}); {}",
                made.hits,
                made.items,
                made.hits - of_lru,
                made.in_force.name(),
            );
        }
    }
}
