//! What goes over network interfaces; loopback stands apart, since there both sides are ours.

use super::super::sensor::{Line, Probe, Reader, Scope, Sensor};
use super::super::source::{Scratch, Source, lines, number, words};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "network",
    doc: "bytes, packets and drops of all interfaces together, and of loopback (whose packets are \
          sent and received at once)",
    source: "/proc/net/dev",
    unseen: "never, save in a sandbox; another network namespace's interfaces always",
    every: 1,
    series: &[
        Line::bytes_rate("received"),
        Line::bytes_rate("sent"),
        Line::rate("packets_received"),
        Line::rate("packets_sent"),
        Line::rate("dropped"),
        Line::bytes_rate("loopback"),
        Line::rate("loopback_packets"),
        Line::rate("loopback_dropped"),
    ],
    of: Reader::Host(|_: &Scope| Box::new(Network(Source::open("/proc/net/dev")))),
};

struct Network(Source);

impl Probe for Network {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let Some(text) = self.0.read(scratch) else { return };
        readings.copy_from_slice(&parse(text).map(Some));
    }
}

/// Loopback counts what it drops under received packets.
fn parse(text: &[u8]) -> [u64; 8] {
    let mut sum = [0; 8];
    for line in lines(text).skip(2) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = line[..colon].trim_ascii();
        let mut fields = [0; 12];
        for (field, word) in fields.iter_mut().zip(words(&line[colon + 1..])) {
            *field = number(word).unwrap_or(0);
        }
        let [bytes_in, packets_in, _, dropped_in, ..] = fields;
        let [bytes_out, packets_out, _, dropped_out] =
            [fields[8], fields[9], fields[10], fields[11]];
        let values = match name {
            b"lo" => [0, 0, 0, 0, 0, bytes_in, packets_in, dropped_in + dropped_out],
            _ => [bytes_in, bytes_out, packets_in, packets_out, dropped_in + dropped_out, 0, 0, 0],
        };
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum += value;
        }
    }
    sum
}

#[test]
fn interfaces_are_summed_and_loopback_stands_apart() {
    let text = b"Inter-|   Receive                                                |  Transmit\n \
face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo\n\
    lo: 44230580558 72235729    0 5958    0     0          0      0 44230580558 72235729    0 0\n\
  eth0: 123970801    7281    0    1    0     0          0         0   624811    5768    0    2 0\n\
  eth1:1 1 0 0 0 0 0 0 1 1 0 0 0\n";
    let expected = [123_970_802, 624_812, 7_282, 5_769, 3, 44_230_580_558, 72_235_729, 5_958];
    assert_eq!(parse(text), expected);
}
