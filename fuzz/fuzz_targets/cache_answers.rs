//! Any bytes, in any pieces, as answers to a load generator's requests: they do no harm, and no
//! request is reported twice.
#![no_main]

use std::sync::Arc;

use cache::load::{DELETE, GET, MG, MGET, Memcached, MemcachedUdp, Redis, SET};
use libfuzzer_sys::fuzz_target;
use wire::{Input, Output};
use load::{Dialect, Events, Keys, Op, Oracle, Values};

const ASKED: &[(usize, &[u64])] =
    &[(GET, &[1]), (MGET, &[2, 1, 3]), (SET, &[1]), (MG, &[2]), (DELETE, &[3]), (GET, &[3])];

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let keys = Keys::new(10, 2).expect("keys");
    let oracle = Arc::new(Oracle::new(keys, Values::new(1, 4), size & 1 == 0, true));
    // The first bits choose; a datagram's answers come in any order, so only their number is held.
    let is_udp = size & 12 == 4;
    let mut dialect: Box<dyn Dialect> = match size & 12 {
        4 => Box::new(MemcachedUdp::new(&oracle)),
        8 => Box::new(Redis::new(&oracle)),
        _ => Box::new(Memcached::new(&oracle)),
    };
    let (mut events, mut out, mut input) = (Events::default(), Output::new(1 << 20), Input::new());
    for (tag, (operation, keys)) in ASKED.iter().enumerate() {
        let op = Op { operation: *operation, keys };
        dialect.request(0, tag as u32, &op, &mut out);
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
