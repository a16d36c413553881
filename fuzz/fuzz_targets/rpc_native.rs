//! Any bytes, in any pieces, as own frames of either side: they are frames or a fault, the same in
//! all pieces, and what is kept is never more than came.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use rpc::protocol::native::greeting::{ClientGreeting, ServerGreeting};
use rpc::protocol::native::{Decoder, Fault, Item};

/// Payloads of a frame.
const MOST_BYTES: usize = 1 << 10;

fn decoded(bytes: &[u8], size: usize) -> (Vec<Item>, Option<Fault>) {
    let (mut decoder, mut items) = (Decoder::new(MOST_BYTES), Vec::new());
    for piece in bytes.chunks(size) {
        decoder.space().extend_from_slice(piece);
        loop {
            match decoder.next_item() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(fault) => return (items, Some(fault)),
            }
        }
        assert!(decoder.kept_bytes() <= bytes.len());
    }
    (items, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let size = usize::from(*size).max(1);
    assert_eq!(decoded(bytes, size), decoded(bytes, bytes.len().max(1)));
    // A greeting that is whole comes back from its own bytes.
    if let Ok(Some(greeting)) = ClientGreeting::decode(&mut BytesMut::from(bytes)) {
        let mut again = BytesMut::new();
        greeting.encode(&mut again);
        assert!(bytes.starts_with(&again));
    }
    if let Ok(Some(greeting)) = ServerGreeting::decode(&mut BytesMut::from(bytes)) {
        let mut again = BytesMut::new();
        greeting.encode(&mut again);
        assert!(bytes.starts_with(&again));
    }
});
