//! 80 MB to a slow reader: sent from where they lie.
//! In a process of its own, as it measures memory.

use crate::common::{HANG_GUARD, Lines, alone, client, memory_bytes, serve, until};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wire::{Bytes, Config, Connection, Flow, Input, Ns, Output, ProtocolError, Wake};

const ARRAY_BYTES: usize = 80_000_000;

/// Answers each line with a head, the shared array, and a tail.
struct Sender<C> {
    lines: C,
    output_peak_bytes: Arc<AtomicUsize>,
}

impl<C: Connection> Connection for Sender<C> {
    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let flow = self.lines.receive(now, input, out);
        self.output_peak_bytes.fetch_max(out.capacity(), Relaxed);
        flow
    }

    fn resume(&mut self, _: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        assert_eq!(why, Wake::Drained);
        self.output_peak_bytes.fetch_max(out.capacity(), Relaxed);
        Ok(Flow::Continue)
    }
}

#[test]
fn a_shared_array_goes_to_slow_readers_uncopied() {
    alone("large_out::a_shared_array_goes_to_slow_readers_uncopied", send_an_array_to_slow_readers);
}

fn send_an_array_to_slow_readers() {
    let array: Bytes = (0..ARRAY_BYTES).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
    let output_peak_bytes = Arc::new(AtomicUsize::new(0));
    let (server, address) = {
        let (array, output_peak_bytes) = (array.clone(), Arc::clone(&output_peak_bytes));
        serve(Config::default(), move |_| {
            let array = array.clone();
            let lines = Lines(move |_: &[u8], out: &mut Output| {
                out.put(b"head");
                out.share(array.clone());
                out.put(b"tail");
                Flow::Continue
            });
            Sender { lines, output_peak_bytes: Arc::clone(&output_peak_bytes) }
        })
    };
    let before_bytes = memory_bytes("VmHWM");

    // Two readers take turns, so that each keeps the server waiting for much of the time.
    let mut readers = [client(address), client(address)];
    for reader in &mut readers {
        reader.write_all(b"array\n").expect("write");
    }
    let expected_bytes = 4 + ARRAY_BYTES + 4;
    let mut chunk = vec![0; 100_000];
    let mut got_bytes = 0;
    while got_bytes < expected_bytes {
        let take = chunk.len().min(expected_bytes - got_bytes);
        for reader in &mut readers {
            reader.read_exact(&mut chunk[..take]).expect("the array");
            for (at, byte) in (got_bytes..).zip(&chunk[..take]) {
                let expected = match at {
                    0..4 => b"head"[at],
                    _ if at - 4 < ARRAY_BYTES => ((at - 4) % 251) as u8,
                    _ => b"tail"[at - 4 - ARRAY_BYTES],
                };
                assert_eq!(*byte, expected, "at {at}");
            }
        }
        got_bytes += take;
    }

    let grown_bytes = memory_bytes("VmHWM") - before_bytes;
    println!("the process's peak grew by {grown_bytes} bytes");
    assert!(grown_bytes < ARRAY_BYTES / 4, "{grown_bytes} bytes more than the array");
    let output_bytes = output_peak_bytes.load(Relaxed);
    assert!(output_bytes < 4096, "the output itself held {output_bytes} bytes");
    assert!(server.counters().yields > 0, "a turn sends no more than its share");
    let counters = server.stop(HANG_GUARD);
    assert_eq!(counters.bytes_written, 2 * expected_bytes as u64);
    until("nobody else holds the array", || array.is_unique());
}
