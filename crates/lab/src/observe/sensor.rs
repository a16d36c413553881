//! The types of a sensor: one row with its name, its files, its series and when it is unseen. Every
//! sensor is a file in `sensors/` and a line of the table there.

use std::sync::Arc;

use super::hiccup::Hiccups;
use super::members::Members;
use super::source::Scratch;

/// One source of readings.
#[derive(Debug)]
pub struct Sensor {
    /// The sensor's name.
    pub name: &'static str,
    /// What it shows.
    pub doc: &'static str,
    /// The files it reads.
    pub source: &'static str,
    /// When it, or a part of it, is unseen.
    pub unseen: &'static str,
    /// The period in tenths of a second: 1, or more where a reading is expensive.
    pub every: u32,
    /// What it reads: the same series everywhere, whether seen or not.
    pub series: &'static [Line],
    /// Its reader.
    pub(super) of: Reader,
}

/// One series of a sensor.
#[derive(Debug)]
pub struct Line {
    /// Its name within its sensor.
    pub name: &'static str,
    /// The unit of its values: `fraction` of the time or of a core, `cores`, `count`, `bytes`,
    /// `ns`, `per_s` or `bytes_per_s`.
    pub unit: &'static str,
    /// How a reading becomes a value.
    pub(super) kind: Scale,
}

/// How a reading becomes a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// The reading times this is the value.
    Level(f64),
    /// The reading only grows: its growth in a second, times this, is the value.
    Rate(f64),
}

impl Line {
    /// A reading that is the value.
    pub(super) const fn level(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, kind: Scale::Level(1.0) }
    }

    /// A counter of things, whose growth per second is the value.
    pub(super) const fn rate(name: &'static str) -> Self {
        Self { name, unit: "per_s", kind: Scale::Rate(1.0) }
    }

    /// A counter of bytes.
    pub(super) const fn bytes_rate(name: &'static str) -> Self {
        Self { name, unit: "bytes_per_s", kind: Scale::Rate(1.0) }
    }

    /// A counter of nanoseconds: its growth per nanosecond is a fraction, or a number of cores.
    pub(super) const fn share(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, kind: Scale::Rate(1e-9) }
    }
}

/// The reader of a sensor: for the host, or for each process group.
#[derive(Debug)]
pub(super) enum Reader {
    /// The host: opened once.
    Host(fn(&Scope) -> Box<dyn Probe>),
    /// Each process group that is followed. It reads into as many places as there are series.
    Group(fn(&mut Members, &mut Scratch, &mut [Option<u64>])),
}

/// What a sensor of the host may read.
#[derive(Debug)]
pub(super) struct Scope {
    /// The cores of the run.
    pub(super) cpus: Vec<usize>,
    /// The thread that notes pauses.
    pub(super) hiccups: Arc<Hiccups>,
}

/// An opened sensor of the host.
pub(super) trait Probe: Send {
    /// The instances for which it reads all series; most sensors have one.
    fn instances(&self) -> Vec<String> {
        vec![String::new()]
    }

    /// Reads every series of the first instance, then of the next; all places come as `None`,
    /// which means unseen, and stay so where nothing can be read.
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]);
}
