//! Every sensor read once, to find which are unseen on this host.

use std::sync::Arc;

use super::hiccup::Hiccups;
use super::members::Members;
use super::sensor::{Reader, Scope, Sensor};
use super::sensors::SENSORS;
use super::source::Scratch;

/// The result for one sensor.
#[derive(Clone, Debug)]
pub struct SensorCheck {
    /// The sensor.
    pub sensor: &'static Sensor,
    /// Its series that can't be read here, by their names within the sensor.
    pub unseen: Vec<&'static str>,
}

/// Reads every sensor once, for these cores; those of process groups read this process's own group.
pub fn check_sensors(cpus: &[usize]) -> Vec<SensorCheck> {
    let hiccups = Arc::new(Hiccups::start(cpus));
    let scope = Scope { cpus: cpus.to_vec(), hiccups };
    let mut scratch = Scratch::new();
    let mut members = Members::of(rustix::process::getpgrp());
    let mut seen = Vec::new();
    for sensor in SENSORS {
        let mut readings = vec![None; sensor.series.len()];
        match sensor.of {
            Reader::Host(open) => {
                let mut probe = open(&scope);
                let mut all = vec![None; readings.len() * probe.instances().len()];
                probe.read(&mut scratch, &mut all);
                let count = readings.len();
                readings.copy_from_slice(&all[..count]);
            }
            Reader::Group(read) => {
                members.look(&mut scratch);
                let _ = members.read(&mut scratch);
                read(&mut members, &mut scratch, &mut readings);
            }
        }
        let unseen = sensor.series.iter().zip(&readings).filter(|(_, reading)| reading.is_none());
        seen.push(SensorCheck { sensor, unseen: unseen.map(|(line, _)| line.name).collect() });
    }
    seen
}
