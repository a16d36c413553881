//! Pauses of the host that no counter of the kernel's shows; see [`super::super::hiccup`].

use super::super::hiccup::PauseReader;
use super::super::sensor::{Line, Probe, Reader, Scope, Sensor};
use super::super::source::Scratch;

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "hiccups",
    doc: "how much later than asked for a thread on the run's cores wakes that sleeps 5 ms at a \
          time, beside its wait for a core: the host's own pauses, at least",
    source: "a thread of the lab's",
    unseen: "when the thread can't be started",
    every: 1,
    series: &[
        Line::level("longest", "ns"),
        Line::rate("over_1_ms"),
        Line::share("lost", "fraction"),
    ],
    of: Reader::Host(|scope: &Scope| Box::new(Pauses(scope.hiccups.reader()))),
};

struct Pauses(PauseReader);

impl Probe for Pauses {
    fn read(&mut self, _: &mut Scratch, readings: &mut [Option<u64>]) {
        let Some(seen) = self.0.read() else { return };
        let values = [seen.longest_ns, seen.count, seen.lost_ns];
        readings.copy_from_slice(&values.map(Some));
    }
}
