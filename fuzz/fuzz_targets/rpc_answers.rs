//! Any bytes, in any pieces, as a server's answers to calls over HTTP/2: they do no harm, and no
//! call is reported twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use load::{Events, Op, Scenario, Speaks};
use rpc::load::{ADD, BIDI, CLIENT_STREAM, SERVER_STREAM, SERVICE, UNARY};
use wire::{Input, Output};

const SUITE: &str = "service = 'rpc'\nbytes = 3\nmessages = 2\n\
                     mix = { unary = 1, server-stream = 1, client-stream = 1, bidi = 1 }";

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let workload = Scenario::parse(SUITE, &SERVICE).expect("a workload").begin();
    let speaks = Speaks::plainly(&SERVICE.dialects[0]);
    let mut dialect = workload.dialect(&speaks).expect("a dialect");
    let (mut events, mut out, mut input) = (Events::default(), Output::new(1 << 20), Input::new());
    dialect.opened(0, &mut events, &mut out).expect("opened");
    // The server's settings, which come first.
    input.append(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    dialect.receive(0, &mut input, &mut events, &mut out).expect("settings");
    assert!(events.ready);
    for (tag, operation) in
        [UNARY, ADD, SERVER_STREAM, CLIENT_STREAM, BIDI, UNARY].into_iter().enumerate()
    {
        dialect.request(0, tag as u32, Op { operation, what: 7 }, &mut out);
    }
    if size & 1 == 0 {
        dialect.expire(1);
    }
    for piece in bytes.chunks(usize::from(size >> 1).max(1) * 3) {
        input.append(piece);
        if dialect.receive(0, &mut input, &mut events, &mut out).is_err() {
            break;
        }
    }
    let mut tags: Vec<_> = events.done.iter().map(|done| done.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), events.done.len(), "{:?}", events.done);
});
