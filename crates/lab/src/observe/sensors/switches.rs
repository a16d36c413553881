//! How often a process group's threads gave up their core, and how often it was taken from them.

use super::super::members::Members;
use super::super::sensor::{Line, Reader, Sensor};
use super::super::source::Scratch;

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "switches",
    doc: "context switches of a process group's threads: voluntary ones wait for something, \
          involuntary ones had to make room",
    source: "/proc/PID/task/TID/status",
    unseen: "for an address whose owner isn't seen",
    every: 10,
    series: &[Line::rate("voluntary"), Line::rate("involuntary")],
    of: Reader::Group(read),
};

fn read(members: &mut Members, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
    if let Some(switches) = members.switches(scratch) {
        readings.copy_from_slice(&switches.map(Some));
    }
}
