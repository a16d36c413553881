//! What disks do: bytes, operations, and the time in which they had something to do.

use std::path::Path;

use super::super::sensor::{Line, Probe, Reader, Scale, Scope, Sensor};
use super::super::source::{Scratch, Source, lines, number, words};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "disks",
    doc: "bytes, operations and cache flushes of all real disks together, and in how much of the \
          time they were busy (several busy disks add up)",
    source: "/proc/diskstats",
    unseen: "where there is no disk to be seen, as in many containers; flushes before Linux 5.5",
    every: 5,
    series: &[
        Line { name: "read", unit: "bytes_per_s", kind: Scale::Rate(SECTOR_BYTES) },
        Line { name: "written", unit: "bytes_per_s", kind: Scale::Rate(SECTOR_BYTES) },
        Line::rate("reads"),
        Line::rate("writes"),
        Line { name: "busy", unit: "fraction", kind: Scale::Rate(1e-3) },
        Line::rate("flushes"),
    ],
    of: Reader::Host(open),
};

/// The unit of /proc/diskstats, whatever the disk's own sectors are
/// (Linux Documentation/admin-guide/iostats.rst).
const SECTOR_BYTES: f64 = 512.0;

fn open(_: &Scope) -> Box<dyn Probe> {
    let source = Source::open("/proc/diskstats");
    let mut scratch = Scratch::new();
    let text = source.read(&mut scratch).unwrap_or_default();
    Box::new(Disks { disks: disks(text, is_disk), source })
}

struct Disks {
    source: Source,
    disks: Vec<Vec<u8>>,
}

impl Probe for Disks {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let Some(text) = self.source.read(scratch) else { return };
        if !self.disks.is_empty() {
            readings.copy_from_slice(&parse(text, &self.disks).map(Some));
        }
    }
}

fn disks(text: &[u8], is_disk: fn(&str) -> bool) -> Vec<Vec<u8>> {
    let names = lines(text).filter_map(|line| words(line).nth(2));
    let real = |name: &&[u8]| std::str::from_utf8(name).is_ok_and(is_disk);
    names.filter(real).map(<[u8]>::to_vec).collect()
}

/// Partitions and what is built on disks (md, dm, loop) would count the same bytes again; only a
/// disk has a device.
fn is_disk(name: &str) -> bool {
    Path::new("/sys/block").join(name).join("device").exists()
}

fn parse(text: &[u8], disks: &[Vec<u8>]) -> [u64; 6] {
    let mut sum = [0; 6];
    for line in lines(text) {
        let mut words = words(line).skip(2);
        let Some(name) = words.next() else { continue };
        if !disks.iter().any(|disk| disk == name) {
            continue;
        }
        let mut fields = [0; 16];
        for (field, word) in fields.iter_mut().zip(words) {
            *field = number(word).unwrap_or(0);
        }
        let [reads, _, sectors_read, _, writes, _, sectors_written, _, _, busy_ms, ..] = fields;
        // After four figures on discards; Documentation/admin-guide/iostats.rst, field 16.
        let flushes = fields[15];
        let values = [sectors_read, sectors_written, reads, writes, busy_ms, flushes];
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum += value;
        }
    }
    sum
}

#[test]
fn only_real_disks_are_summed() {
    let text = b"   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9\n \
        254       0 vda 365356 19907 17855610 393179 26400 56155 18386496 30841 0 18012 426091\n \
        254       1 vda1 365356 19907 17855610 393179 26400 56155 18386496 30841 0 18012 426091\n \
        254      16 vdb 1 0 2 0 3 0 4 0 0 5 0 0 0 0 0 7 8\n";
    let disks = disks(text, |name| matches!(name, "vda" | "vdb"));
    let expected = [17_855_612, 18_386_500, 365_357, 26_403, 18_017, 7];
    assert_eq!(parse(text, &disks), expected);
}
