//! The sensors: one file each, and the table of all.

pub(super) mod backlog;
pub(super) mod cores;
pub(super) mod descriptors;
pub(super) mod disks;
pub(super) mod hiccups;
pub(super) mod load;
pub(super) mod load_threads;
pub(super) mod network;
pub(super) mod pressure;
pub(super) mod processes;
pub(super) mod quota;
pub(super) mod sockets;
pub(super) mod swap;
pub(super) mod switches;

use super::sensor::Sensor;

/// Every sensor there is.
pub static SENSORS: &[&Sensor] = &[
    &cores::SENSOR,
    &load::SENSOR,
    &load_threads::SENSOR,
    &pressure::SENSOR,
    &hiccups::SENSOR,
    &swap::SENSOR,
    &network::SENSOR,
    &sockets::SENSOR,
    &backlog::SENSOR,
    &disks::SENSOR,
    &processes::SENSOR,
    &switches::SENSOR,
    &descriptors::SENSOR,
    &quota::SENSOR,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_what_it_is_and_no_two_are_called_the_same() {
        let mut names = std::collections::BTreeSet::new();
        for sensor in SENSORS {
            for text in [sensor.doc, sensor.source, sensor.unseen] {
                assert!(!text.is_empty(), "{}", sensor.name);
            }
            for line in sensor.series {
                assert!(names.insert((sensor.name, line.name)), "{} {}", sensor.name, line.name);
                let units = ["fraction", "cores", "count", "bytes", "ns", "per_s", "bytes_per_s"];
                assert!(units.contains(&line.unit), "{}", line.unit);
            }
        }
    }
}
