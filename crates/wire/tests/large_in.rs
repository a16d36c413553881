//! 80 MB received: read straight into their place. In a process of its own, as it measures memory.

use crate::common::{alone, client, memory_bytes, serve};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wire::{Config, Connection, Flow, Input, Ns, Output, ProtocolError};

const ARRAY_BYTES: usize = 80_000_000;

/// Takes arrays, each after a line with its length, and answers with their sums.
#[derive(Default)]
struct Taker {
    array: Vec<u8>,
    filled: usize,
    through_input_bytes: Arc<AtomicUsize>,
}

impl Connection for Taker {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        loop {
            if self.filled < self.array.len() {
                return Ok(Flow::Continue);
            }
            if !self.array.is_empty() {
                let sum: u64 = self.array.iter().map(|&byte| u64::from(byte)).sum();
                out.put(format!("{sum}\n").as_bytes());
                self.array = Vec::new();
                self.filled = 0;
            }
            self.through_input_bytes.fetch_add(input.len(), Relaxed);
            let Some(end) = input.bytes().iter().position(|&byte| byte == b'\n') else {
                return Ok(Flow::Continue);
            };
            let line = std::str::from_utf8(&input.bytes()[..end]).ok();
            let length = line.and_then(|line| line.parse::<usize>().ok());
            let length = length.filter(|&length| length <= ARRAY_BYTES);
            self.array = vec![0; length.ok_or(ProtocolError::new("no length"))?];
            input.consume(end + 1);
        }
    }

    fn place(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.array[self.filled..])
    }

    fn placed(&mut self, count: usize) {
        self.filled += count;
    }
}

fn sum(bytes: &[u8]) -> String {
    format!("{}\n", bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>())
}

#[test]
fn an_array_is_read_straight_into_its_place() {
    alone("large_in::an_array_is_read_straight_into_its_place", read_an_array);
}

fn read_an_array() {
    let through_input_bytes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&through_input_bytes);
    let config = Config { input_limit_bytes: 1000, ..Config::default() };
    let (server, address) = serve(config, move |_| Taker {
        through_input_bytes: Arc::clone(&counted),
        ..Taker::default()
    });
    let array: Vec<u8> = (0..ARRAY_BYTES).map(|at| (at % 253) as u8).collect();
    let expected = sum(&array);
    let before_bytes = memory_bytes("VmHWM");
    let mut client = client(address);
    // The head and the array come in one write: what of the array was read with the head is
    // moved to its place by the loop. A second array follows at once.
    let mut all = format!("{ARRAY_BYTES}\n").into_bytes();
    all.extend_from_slice(&array[..500]);
    client.write_all(&all).expect("write");
    client.write_all(&array[500..]).expect("write");
    client.write_all(b"3\n\x01\x02\x03").expect("write");
    let expected = expected + "6\n";
    let mut got = vec![0; expected.len()];
    client.read_exact(&mut got).expect("sums");
    assert_eq!(String::from_utf8_lossy(&got), expected);

    let grown_bytes = memory_bytes("VmHWM") - before_bytes;
    println!("the process's peak grew by {grown_bytes} bytes");
    assert!(grown_bytes < ARRAY_BYTES * 5 / 4, "{grown_bytes} bytes for one array");
    let through_bytes = through_input_bytes.load(Relaxed);
    assert!(through_bytes < 4000, "{through_bytes} bytes took the way through the input");
    assert_eq!(server.counters().bytes_read, (all.len() - 500 + ARRAY_BYTES + 5) as u64);
}

#[test]
fn head_and_array_may_be_split_anywhere() {
    let (server, address) = serve(Config::default(), |_| Taker::default());
    let message = b"5\nabcde0\n11\nABCDEFGHIJK";
    let expected = [sum(b"abcde"), sum(b"ABCDEFGHIJK")].concat();
    for split in 1..message.len() {
        let mut client = client(address);
        let before = server.counters().bytes_read;
        client.write_all(&message[..split]).expect("write");
        crate::common::until("the first part is read", || {
            server.counters().bytes_read == before + split as u64
        });
        client.write_all(&message[split..]).expect("write");
        let mut got = vec![0; expected.len()];
        client.read_exact(&mut got).expect("sums");
        assert_eq!(String::from_utf8_lossy(&got), expected, "split at {split}");
    }
}
