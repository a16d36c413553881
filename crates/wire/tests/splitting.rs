//! A protocol gets the same messages however the network cuts them.

use crate::common::{HANG_GUARD, Random, client, echo, serve, until};
use std::io::{Read, Write};
use wire::Config;

#[test]
fn messages_may_be_split_at_every_byte() {
    let (server, address) = serve(Config::default(), |_| echo());
    let messages = b"first\nsecond\n\nthird and last\n";
    let mut client = client(address);
    let mut read = 0;
    for split in 0..=messages.len() {
        for part in [&messages[..split], &messages[split..]] {
            client.write_all(part).expect("write");
            read += part.len() as u64;
            until("the part is read", || server.counters().bytes_read == read);
        }
        let mut got = vec![0; messages.len()];
        client.read_exact(&mut got).expect("echoes");
        assert_eq!(got, messages, "split at {split}");
    }
}

#[test]
fn messages_of_all_sizes_in_pieces_of_all_sizes_come_back_in_order() {
    let seed = 1_847_221;
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut messages = Vec::new();
    for _ in 0..400 {
        // Mostly short, some larger than a small rest, a few larger than one read.
        let most = [40, 40, 40, 40, 40, 9_000, 9_000, 300_000][random.below(8) as usize];
        let filler = b'a' + random.below(26) as u8;
        messages.resize(messages.len() + random.below(most) as usize, filler);
        messages.push(b'\n');
    }
    let config = Config { output_limit_bytes: 30_000, turn_bytes: 50_000, ..Config::default() };
    let (server, address) = serve(config, |_| echo());
    let mut writer = client(address);
    let mut reader = writer.try_clone().expect("a second handle");
    let mut got = vec![0; messages.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| reader.read_exact(&mut got).expect("echoes"));
        let mut left = &messages[..];
        while !left.is_empty() {
            let most = [10, 1000, 100_000][random.below(3) as usize];
            let (piece, rest) = left.split_at(left.len().min(1 + random.below(most) as usize));
            writer.write_all(piece).expect("write");
            left = rest;
        }
    });
    assert!(got == messages);
    drop((writer, reader));
    until("it is closed", || server.counters().current_connections == 0);
    assert_eq!(server.stop(HANG_GUARD).bytes_written, messages.len() as u64);
}
