//! Any bytes, in any pieces, as what a pvAccess server says to the load: they do no harm, and what
//! is understood does not depend on how the bytes were split.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use records::load::{CONNECT, GET, MONITOR, Oracle, PUT, PvAccess, RPC, Updates};
use wire::{Input, Output};
use load::kv::Keys;
use load::{Dialect, Done, Events, Op, Update};

fn heard(bytes: &[u8], piece_bytes: usize, is_array: bool) -> (Vec<Done>, Vec<Update>, bool) {
    let keys = Keys::new(9, 8).expect("keys");
    let oracle = Arc::new(Oracle::new(keys, is_array.then_some(3), 0).begin(true));
    let mut dialect = PvAccess::new(&oracle, Updates::default());
    let (mut events, mut out, mut input) = (Events::default(), Output::new(1 << 20), Input::new());
    dialect.opened(0, &mut events, &mut out).expect("opened");
    for (tag, operation) in [GET, PUT, MONITOR, RPC, CONNECT].into_iter().enumerate() {
        dialect.request(0, tag as u32, Op { operation, what: 4 }, &mut out);
    }
    let mut is_well = true;
    for piece in bytes.chunks(piece_bytes) {
        input.append(piece);
        is_well = dialect.receive(0, &mut input, &mut events, &mut out).is_ok();
        if !is_well {
            break;
        }
    }
    (events.done, events.updates, is_well)
}

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let (is_array, piece_bytes) = (first & 1 == 1, usize::from(first >> 1) + 1);
    assert_eq!(heard(bytes, piece_bytes, is_array), heard(bytes, usize::MAX, is_array));
});
