//! Any bytes from a client that has introduced itself, in any pieces: the server's side of the
//! connection does no harm, and all that it says is messages.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use records::model::{Time, declare};
use records::protocol::{Frame, Frames, Pool, Sender};
use records::server::{Limits, RecordsConnection, Service};
use wire::{Connection, Input, Output, Peer, Wake, Waker, deliver};

const RECORDS: &str = "[[record]]\nname = \"a\"\ntype = \"double\"\n\
                       [[record]]\nname = \"b\"\ntype = \"long[]\"\nvalue = [1, 2]\n\
                       [[group]]\nname = \"g\"\nrecords = { a = \"a\", b = \"b\" }\n";

/// What a client says first: anonymous, and a channel to each record and to the group of both.
const BEGIN: &[u8] = b"\xca\x02\x00\x01\x12\x00\x00\x00\0\0\0\0\0\0\0\0\x09anonymous\xff\
                       \xca\x02\x00\x07\x08\x00\x00\x00\x01\x00\x01\x00\x00\x00\x01a\
                       \xca\x02\x00\x07\x08\x00\x00\x00\x01\x00\x02\x00\x00\x00\x01b\
                       \xca\x02\x00\x07\x08\x00\x00\x00\x01\x00\x03\x00\x00\x00\x01g";

fuzz_target!(|data: &[u8]| {
    let Some((piece, bytes)) = data.split_first() else { return };
    let (message_bytes, segment_bytes) = (1 << 16, Some(64));
    let service = Service::new(Limits { message_bytes, segment_bytes, ..Limits::default() });
    service.declare(declare(RECORDS).expect("records")).expect("added");
    let mut connection = RecordsConnection::new(Arc::clone(&service));
    let (mut input, mut out) = (Input::new(), Output::new(1 << 20));
    let address = "127.0.0.1:9".parse().expect("an address");
    let peer = Peer { address, waker: Waker::new(|| {}) };
    connection.opened(0, &peer, &mut out).expect("a greeting");
    let mut said = Vec::new();
    for piece in std::iter::once(BEGIN).chain(bytes.chunks(usize::from(*piece).max(1))) {
        input.append(piece);
        let result = deliver(&mut connection, 0, &mut input, &mut out);
        said.extend(out.take());
        if result.is_err() {
            break;
        }
        let record = service.find("a").expect("a record");
        record.update(Time::default(), |draft| draft.set(1, 2.5.into()));
        connection.resume(0, Wake::Posted, &mut out).expect("no fault of a push");
        said.extend(out.take());
    }
    let mut frames = Frames::new(Sender::Server, 1 << 30, Pool::new(0));
    let mut left = &said[..];
    while !left.is_empty() {
        let (used, frame) = frames.next(left).expect("messages");
        left = &left[used..];
        if let Some(place) = frames.place().filter(|_| !left.is_empty()) {
            let count = place.len().min(left.len());
            left = &left[count..];
            frames.placed(count);
        } else if used == 0 && !matches!(frame, Some(Frame::Message { .. })) {
            panic!("half a message was said");
        }
    }
});
