//! Any bytes, in any pieces, as own frames of either side: they are frames or a fault, the same in
//! all pieces, and what is kept is never more than came.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use rpc::protocol::native::greeting::{ClientGreeting, Method, ServerGreeting};
use rpc::protocol::native::{Begin, ClientSession, Decoder, Fault, Item};

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

/// A client with two calls, to which these bytes are sent by its server.
fn call(bytes: &[u8], size: usize) {
    let greeting = ClientGreeting { max_message: MOST_BYTES as u32, token: Bytes::new() };
    let mut session = ClientSession::new(&greeting);
    let method = |name: &str| Method {
        name: name.to_owned(),
        client_streams: true,
        server_streams: true,
    };
    let mut greeting = BytesMut::new();
    let methods = vec![method("/a")];
    ServerGreeting { max_message: 1 << 10, max_calls: 2, methods }.encode(&mut greeting);
    session.receive(&greeting).expect("a greeting");
    let open = session.open(0, &Begin::default()).expect("a call");
    session.call(0, &Bytes::new(), &Begin::default()).expect("a call");
    for piece in bytes.chunks(size) {
        if session.receive(piece).is_err() {
            break;
        }
        let _ = session.send(open, &Bytes::new());
        while session.next_event().is_some() {}
    }
    assert!(session.outstanding() <= 2);
}

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let size = usize::from(*size).max(1);
    assert_eq!(decoded(bytes, size), decoded(bytes, bytes.len().max(1)));
    call(bytes, size);
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
