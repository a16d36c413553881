//! Any bytes as datagrams to a cache: they do no harm, and every reply is a framed piece of at
//! most 1,400 bytes.
#![no_main]

use std::sync::Arc;

use cache::model::Clock;
use cache::protocol::datagram::{FRAME_BYTES, Frame, MAX_DATAGRAM_BYTES};
use cache::server::{CacheDatagrams, Options, Service};
use libfuzzer_sys::fuzz_target;
use wire::{Batch, Datagrams, Replies};

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let options = Options { memory_bytes: 1 << 20, item_bytes: 1 << 16, ..Options::default() };
    let clock = Clock { start_ns: 0, start_unix_s: 1_700_000_000 };
    let service = Arc::new(Service::new(options, clock).expect("a service"));
    let mut socket = CacheDatagrams::new(service, 0);
    let (mut batch, mut replies) = (Batch::default(), Replies::default());
    let from: wire::Address = "127.0.0.1:9".parse().expect("an address");
    for (number, piece) in bytes.chunks(usize::from(*size).max(1)).enumerate() {
        if number % 2 == 0 {
            batch.push(from.clone(), piece);
        } else {
            batch.push(from.clone(), &[&[1, 2, 0, 0, 0, 1, 0, 0], piece].concat());
        }
    }
    socket.datagrams(0, &batch, &mut replies);
    for (_, reply) in replies.iter() {
        assert!((FRAME_BYTES + 1..=MAX_DATAGRAM_BYTES).contains(&reply.len()));
        let (frame, _) = Frame::read(reply).expect("a frame");
        assert!(frame.sequence < frame.total);
    }
});
