//! The share of time in which some task waited for a core, for the disk or for memory.

use super::super::sensor::{Line, Probe, Reader, Scale, Scope, Sensor};
use super::super::source::{Scratch, Source, lines, number, words};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "pressure",
    doc: "share of time in which some task on the host waited for it (PSI, `some`)",
    source: "/proc/pressure/{cpu,io,memory}",
    unseen: "on a kernel without PSI, or with it switched off (boot with psi=1)",
    every: 1,
    series: &[share("cpu"), share("io"), share("memory")],
    of: Reader::Host(|_: &Scope| {
        let open = |what| Source::open(&format!("/proc/pressure/{what}"));
        Box::new(Pressure(["cpu", "io", "memory"].map(open)))
    }),
};

/// The kernel counts microseconds.
const fn share(name: &'static str) -> Line {
    Line { name, unit: "fraction", kind: Scale::Rate(1e-6) }
}

struct Pressure([Source; 3]);

impl Probe for Pressure {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        for (source, reading) in self.0.iter().zip(readings) {
            *reading = source.read_line(scratch).and_then(parse);
        }
    }
}

fn parse(text: &[u8]) -> Option<u64> {
    let some = lines(text).find_map(|line| line.strip_prefix(b"some "))?;
    words(some).find_map(|word| word.strip_prefix(b"total=")).and_then(number)
}

#[test]
fn the_total_of_some_is_read_as_it_was_recorded() {
    let text = b"some avg10=98.00 avg60=69.38 avg300=50.98 total=451532978\n\
        full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
    assert_eq!(parse(text), Some(451_532_978));
    assert_eq!(parse(b"full avg10=0.00 total=5\n"), None);
}
