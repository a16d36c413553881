//! How many tasks want to run.

use super::super::sensor::{Line, Probe, Reader, Scale, Scope, Sensor};
use super::super::source::{Scratch, Source, hundredths, number, words};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "load",
    doc: "tasks that run or want to: the mean over a minute, and at the moment",
    source: "/proc/loadavg",
    unseen: "never, save in a sandbox that hides /proc/loadavg",
    every: 1,
    series: &[
        Line { name: "one_minute", unit: "count", kind: Scale::Level(0.01) },
        Line::level("runnable", "count"),
        Line::level("tasks", "count"),
    ],
    of: Reader::Host(|_: &Scope| Box::new(Load(Source::open("/proc/loadavg")))),
};

struct Load(Source);

impl Probe for Load {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let Some(text) = self.0.read_line(scratch) else { return };
        readings.copy_from_slice(&parse(text));
    }
}

fn parse(text: &[u8]) -> [Option<u64>; 3] {
    let mut words = words(text);
    let mean = words.next().and_then(hundredths);
    let mut tasks = words.nth(2).unwrap_or_default().split(|byte| *byte == b'/').map(number);
    [mean, tasks.next().flatten(), tasks.next().flatten()]
}

#[test]
fn load_is_read_as_it_was_recorded() {
    assert_eq!(parse(b"4.69 3.65 2.36 6/102 3165\n"), [Some(469), Some(6), Some(102)]);
    assert_eq!(parse(b"cut"), [None, None, None]);
}
