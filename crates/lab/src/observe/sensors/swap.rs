//! Memory that the kernel writes to disk and reads back, on the whole host.

use super::super::sensor::{Line, Probe, Reader, Scale, Scope, Sensor};
use super::super::source::{Scratch, Source, value_of};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "swap",
    doc: "memory swapped in and out, and pages that had to be read from disk, on the whole host",
    source: "/proc/vmstat",
    unseen: "on a kernel without swap",
    every: 5,
    series: &[page_rate("in"), page_rate("out"), Line::rate("major_faults")],
    of: Reader::Host(|_: &Scope| Box::new(Swap(Source::open("/proc/vmstat")))),
};

/// The kernel counts pages of 4 KiB on almost every machine; the sum is for orientation.
const fn page_rate(name: &'static str) -> Line {
    Line { name, unit: "bytes_per_s", kind: Scale::Rate(4096.0) }
}

struct Swap(Source);

impl Probe for Swap {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let Some(text) = self.0.read(scratch) else { return };
        readings.copy_from_slice(&parse(text));
    }
}

fn parse(text: &[u8]) -> [Option<u64>; 3] {
    [&b"pswpin "[..], b"pswpout ", b"pgmajfault "].map(|key| value_of(text, key))
}

/// Pages swapped in and out, together.
pub(in super::super) fn pages(text: &[u8]) -> Option<u64> {
    let [read, written, _] = parse(text);
    Some(read? + written?)
}

#[test]
fn swap_is_read_as_it_was_recorded() {
    let text = b"nr_free_pages 5\npgmajfault 14798\npswpin 7\npswpout 9\n";
    assert_eq!(parse(text), [Some(7), Some(9), Some(14_798)]);
    assert_eq!(pages(text), Some(16));
    assert_eq!(pages(b"pgmajfault 14798\n"), None);
}
