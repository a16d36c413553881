//! Any bytes as any encoding: pieces lie side by side, and a fault within the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::codecs::inspect::Encoding;

fuzz_target!(|data: &[u8]| {
    let Some((which, bytes)) = data.split_first() else { return };
    let (_, encoding) = Encoding::ALL[usize::from(*which) % Encoding::ALL.len()];
    let inspection = encoding.inspect(bytes, None);
    let mut at = 0;
    for piece in &inspection.pieces {
        assert_eq!(piece.offset, at);
        at += piece.length;
    }
    match inspection.fault {
        None => assert_eq!(at, bytes.len()),
        Some(fault) => assert!(fault.offset <= bytes.len()),
    }
});
