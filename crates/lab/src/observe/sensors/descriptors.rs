//! How many files and sockets a process group has open.

use super::super::members::Members;
use super::super::sensor::{Line, Reader, Sensor};
use super::super::source::Scratch;

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "descriptors",
    doc: "open files and sockets of a process group",
    source: "/proc/PID/fd",
    unseen: "before Linux 6.2, which counts them first; for another user's processes",
    every: 10,
    series: &[Line::level("open", "count")],
    of: Reader::Group(|members: &mut Members, _: &mut Scratch, readings: &mut [Option<u64>]| {
        readings[0] = members.descriptors();
    }),
};
