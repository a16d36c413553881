//! Any bytes, in any pieces, to the server side of a cache connection, which takes them for text
//! and meta commands or, when the first says so, for packets: they do no harm, and the
//! answers are the same as if the bytes had come at once.
#![no_main]

use std::sync::Arc;

use cache::model::Clock;
use cache::server::{CacheConnection, Options, Service};
use libfuzzer_sys::fuzz_target;
use wire::{Connection, Flow, Input, Output};

fn answers<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, bool) {
    let options = Options { memory_bytes: 1 << 20, item_bytes: 1 << 16, ..Options::default() };
    let clock = Clock { start_ns: 0, start_unix_s: 1_700_000_000 };
    let service = Arc::new(Service::new(options, clock).expect("a service"));
    let mut connection = CacheConnection::new(service, 0);
    let (mut input, mut out) = (Input::new(), Output::new(1 << 30));
    for mut piece in pieces {
        while !piece.is_empty() {
            match connection.place() {
                Some(place) if !place.is_empty() && input.is_empty() => {
                    let count = place.len().min(piece.len());
                    place[..count].copy_from_slice(&piece[..count]);
                    piece = &piece[count..];
                    connection.placed(count);
                }
                _ => {
                    input.append(piece);
                    piece = &[];
                }
            }
            if connection.receive(0, &mut input, &mut out) != Ok(Flow::Continue) {
                return (out.take(), true);
            }
        }
    }
    (out.take(), false)
}

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let whole = answers(std::iter::once(bytes));
    let pieces = answers(bytes.chunks(usize::from(*size).max(1)));
    // `stats` tells of the process's own time, and a refused line takes back only what it can.
    let has_stats = bytes.windows(5).any(|window| window == b"stats");
    let has_long_word = bytes.split(|byte| b" \n".contains(byte)).any(|word| word.len() > 250);
    // A packet of that number asks for statistics.
    let has_stats = has_stats || bytes.starts_with(&[0x80]) && bytes.contains(&0x10);
    if !has_stats && !has_long_word {
        assert_eq!(whole, pieces);
    }
});
