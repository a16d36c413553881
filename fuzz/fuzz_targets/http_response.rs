//! Any bytes, in any pieces, as answers to HTTP requests: they do no harm, no request is reported
//! twice, and what is understood does not depend on how the bytes were split.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wire::{Input, Output};
use http::load::SERVICE;
use load::{Done, Events, Op, Scenario, Speaks};

const SUITE: &str = "service = 'http'\nmix = {a = 1, b = 1, c = 1, d = 1}\nkeys = {count = 9}\n\
    [[request]]\nname = 'a'\npath = '/'\nexpect.body = 'hello'\n\
    [[request]]\nname = 'b'\npath = '/'\nmethod = 'HEAD'\nexpect.headers = {a = 'b'}\n\
    [[request]]\nname = 'c'\npath = '/{key}'\nexpect.body = '<{key}>'\n\
    [[request]]\nname = 'd'\npath = '/'\nexpect.bytes = 3\nexpect.status = 404\n";

static WORKLOAD: LazyLock<Scenario> =
    LazyLock::new(|| Scenario::parse(SUITE, &SERVICE).expect("right"));

const ASKED: &[usize] = &[0, 1, 2, 3, 0, 0, 3];

/// The answered requests, whether it went well, and whether the server closes.
fn answered(bytes: &[u8], piece_bytes: usize, expired: u32) -> (Vec<Done>, bool, bool) {
    let speaks = Speaks::plainly(&SERVICE.dialects[0]);
    let mut dialect = WORKLOAD.begin().dialect(&speaks).expect("a connection");
    let (mut events, mut out, mut input) = (Events::default(), Output::new(1 << 20), Input::new());
    for (tag, operation) in ASKED.iter().enumerate() {
        dialect.request(0, tag as u32, Op { operation: *operation, what: 4 }, &mut out);
    }
    dialect.expire(expired);
    let mut is_well = true;
    for piece in bytes.chunks(piece_bytes) {
        input.append(piece);
        is_well = dialect.receive(0, &mut input, &mut events, &mut out).is_ok();
        if !is_well || events.close {
            break;
        }
    }
    if is_well && !events.close {
        is_well = dialect.closed(0, &mut events).is_ok();
    }
    let tags: Vec<_> = events.done.iter().map(|done| done.tag).collect();
    assert!(tags.is_sorted() && tags.len() <= ASKED.len(), "{tags:?}");
    (events.done, is_well, events.close)
}

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let (expired, piece_bytes) = (u32::from(first & 7), usize::from(first >> 3) + 1);
    assert_eq!(answered(bytes, piece_bytes, expired), answered(bytes, usize::MAX, expired));
});
