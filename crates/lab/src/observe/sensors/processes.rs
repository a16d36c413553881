//! What a process group uses: its members of now, and those that have ended.

use super::super::members::Members;
use super::super::sensor::{Line, Reader, Sensor};
use super::super::source::Scratch;

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "processes",
    doc: "a process group's CPU time and its threads' wait for a core, page faults, resident \
          memory and threads",
    source: "/proc/PID/stat, /proc/PID/task/TID/schedstat",
    unseen: "for an address whose owner isn't seen, and with hidepid for another user's",
    every: 1,
    series: &[
        Line::share("cpu", "cores"),
        Line::share("waiting", "cores"),
        Line::rate("minor_faults"),
        Line::rate("major_faults"),
        Line::level("resident", "bytes"),
        Line::level("threads", "count"),
    ],
    of: Reader::Group(read),
};

fn read(members: &mut Members, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
    let Some(usage) = members.read(scratch) else { return };
    let values = [
        usage.cpu_ns,
        usage.waited_ns,
        usage.minor_faults,
        usage.major_faults,
        usage.resident_bytes,
        usage.threads,
    ];
    readings.copy_from_slice(&values.map(Some));
}
