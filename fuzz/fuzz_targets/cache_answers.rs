//! Any bytes, in any pieces, as answers to a load generator's requests: they do no harm, and no
//! request is reported twice.
#![no_main]

use std::sync::Arc;

use cache::load::{DELETE, GET, MG, MGET, Memcached, MemcachedUdp, Redis, SET};
use libfuzzer_sys::fuzz_target;
use wire::{Input, Output};
use load::kv::{Keys, Oracle, Values};
use load::{Dialect, Events, Op};

const ASKED: &[(usize, u64)] =
    &[(GET, 1), (MGET, 7), (SET, 1), (MG, 2), (DELETE, 3), (GET, 3)];

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let keys = Keys::new(10, 2).expect("keys");
    let mut oracle = Oracle::new(keys, Values::new(1, 4)).begin(true, size & 1 == 0);
    oracle.keys_per_request = 3;
    let oracle = Arc::new(oracle);
    // The first bits choose; a datagram's answers come in any order, so only their number is held.
    let is_udp = size & 12 == 4;
    let mut dialect: Box<dyn Dialect> = match size & 12 {
        4 => Box::new(MemcachedUdp::new(&oracle)),
        8 => Box::new(Redis::new(&oracle)),
        _ => Box::new(Memcached::new(&oracle)),
    };
    let (mut events, mut out, mut input) = (Events::default(), Output::new(1 << 20), Input::new());
    for (tag, (operation, what)) in ASKED.iter().enumerate() {
        let op = Op { operation: *operation, what: *what };
        dialect.request(0, tag as u32, op, &mut out);
    }
    if size & 2 == 0 {
        dialect.expire(1);
    }
    for piece in bytes.chunks(usize::from(size >> 4).max(1) * 3) {
        input.append(piece);
        if dialect.receive(0, &mut input, &mut events, &mut out).is_err() {
            break;
        }
    }
    let tags: Vec<_> = events.done.iter().map(|done| done.tag).collect();
    assert!((is_udp || tags.is_sorted()) && tags.len() <= ASKED.len(), "{tags:?}");
});
