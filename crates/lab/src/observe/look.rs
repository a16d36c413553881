//! What is seen and unseen on this host: every sensor is read once.

use std::sync::Arc;

use super::hiccup::Hiccups;
use super::members::Members;
use super::sensor::{Of, SENSORS, Scope, Sensor};
use super::source::Scratch;

/// What one sensor sees here.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The sensor.
    pub sensor: &'static Sensor,
    /// Its series that can't be read here, by their names within the sensor.
    pub unseen: Vec<&'static str>,
}

/// Reads every sensor once, for these cores; those of process groups look at the own one.
pub fn look(cpus: &[usize]) -> Vec<Seen> {
    let hiccups = Arc::new(Hiccups::start(cpus));
    let scope = Scope { cpus: cpus.to_vec(), hiccups };
    let mut scratch = Scratch::new();
    let mut members = Members::of(rustix::process::getpgrp());
    let mut seen = Vec::new();
    for sensor in SENSORS {
        let mut readings = vec![None; sensor.series.len()];
        match sensor.of {
            Of::Host(open) => {
                let mut probe = open(&scope);
                let mut all = vec![None; readings.len() * probe.instances().len()];
                probe.read(&mut scratch, &mut all);
                let count = readings.len();
                readings.copy_from_slice(&all[..count]);
            }
            Of::Group(read) => {
                members.look(&mut scratch);
                let _ = members.read(&mut scratch);
                read(&mut members, &mut scratch, &mut readings);
            }
        }
        let unseen = sensor.series.iter().zip(&readings).filter(|(_, reading)| reading.is_none());
        seen.push(Seen { sensor, unseen: unseen.map(|(line, _)| line.name).collect() });
    }
    seen
}
