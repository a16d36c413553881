//! Whether the kernel keeps up with received packets.

use super::super::sensor::{Line, Probe, Reader, Scope, Sensor};
use super::super::source::{Scratch, Source, lines, words};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "backlog",
    doc: "packets thrown away because a core's queue of received packets was full, and how often a \
          core ran out of time for them; on the whole host",
    source: "/proc/net/softnet_stat",
    unseen: "never, save in a sandbox",
    every: 5,
    series: &[Line::rate("dropped"), Line::rate("squeezed")],
    of: Reader::Host(|_: &Scope| Box::new(Backlog(Source::open("/proc/net/softnet_stat")))),
};

struct Backlog(Source);

impl Probe for Backlog {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let Some(text) = self.0.read(scratch) else { return };
        readings.copy_from_slice(&parse(text).map(Some));
    }
}

/// One line per core, in hexadecimal: packets, dropped, squeezed, …
fn parse(text: &[u8]) -> [u64; 2] {
    let mut sum = [0; 2];
    for line in lines(text) {
        for (sum, word) in sum.iter_mut().zip(words(line).skip(1)) {
            *sum += hexadecimal(word).unwrap_or(0);
        }
    }
    sum
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

#[test]
fn the_cores_lines_are_hexadecimal_and_summed() {
    let text = b"02309ede 00001506 00000000 00000000\n021db864 00000240 0000000a 00000000\n";
    assert_eq!(parse(text), [0x1506 + 0x240, 10]);
}
