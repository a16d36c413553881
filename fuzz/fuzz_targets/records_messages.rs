//! Any bytes as a stream of pvAccess messages, in any pieces: cutting, and reading what is cut as
//! every payload there is, does no harm, and what is read is written and read again the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use records::protocol::messages::{
    Beacon, CreateChannels, FieldType, Introduction, Offer, Search, SearchResponse,
};
use records::protocol::{Frame, Frames, Pool, Registry, Request, Sender, Status, Writer, zeros};

fn read(body: &records::protocol::Body<'_>, order: records::protocol::Order) {
    let mut known = Registry::default();
    Beacon::read(&mut body.reader(order));
    CreateChannels::read(&mut body.reader(order));
    FieldType::read(&mut body.reader(order), &mut known);
    Introduction::read(&mut body.reader(order), &mut known);
    Offer::read(&mut body.reader(order));
    Search::read(&mut body.reader(order));
    SearchResponse::read(&mut body.reader(order));
    Status::read(&mut body.reader(order));
    let mut reader = body.reader(order);
    let Some(item) = reader.item(&mut known) else { return };
    Request::of(Some(&item));
    let mut nodes = zeros(item.kind());
    reader.changed(item.kind(), &mut known, &mut nodes);
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, order).item(Some(&item));
    let mut reader = records::protocol::Reader::new(&bytes, order);
    let again = reader.item(&mut Registry::default()).expect("what was written");
    // Not equal when it holds something that equals nothing; its bytes are.
    let mut twice = Vec::new();
    Writer::new(&mut twice, order).item(Some(&again));
    assert_eq!(bytes, twice);
}

fuzz_target!(|data: &[u8]| {
    let Some((piece, stream)) = data.split_first() else { return };
    let mut frames = Frames::new(Sender::Client, 1 << 20, Pool::new(1));
    let mut waiting = Vec::new();
    for piece in stream.chunks(usize::from(*piece).max(1)) {
        waiting.extend_from_slice(piece);
        loop {
            let Ok((used, frame)) = frames.next(&waiting) else { return };
            let is_idle = used == 0 && frame.is_none();
            if let Some(Frame::Message { body, order, .. }) = &frame {
                read(body, *order);
            }
            drop(frame);
            waiting.drain(..used);
            match frames.place() {
                Some(place) if !waiting.is_empty() => {
                    let count = place.len().min(waiting.len());
                    place[..count].copy_from_slice(&waiting[..count]);
                    waiting.drain(..count);
                    frames.placed(count);
                }
                _ if is_idle => break,
                _ => {}
            }
        }
    }
});
