//! What the host has counted so far, read right before and right after a slice: of the same files
//! as the sensors' ten readings a second, but exactly for the time that was measured.

use super::sensor::{Probe, Reader, Scale, Scope, Sensor};
use super::sensors::SENSORS;
use super::source::Scratch;

/// Which figure of [`judge::limits::Figures`] which sensor's series adds up to.
const FIGURES: &[(&str, &str, &str)] = &[
    ("pressure_cpu", "pressure", "cpu"),
    ("pressure_io", "pressure", "io"),
    ("pressure_memory", "pressure", "memory"),
    ("swapped_bytes", "swap", "in"),
    ("swapped_bytes", "swap", "out"),
    ("loopback_packets", "network", "loopback_packets"),
    ("loopback_bytes", "network", "loopback"),
    ("network_packets", "network", "packets_received"),
    ("network_packets", "network", "packets_sent"),
    ("network_bytes", "network", "received"),
    ("network_bytes", "network", "sent"),
    ("dropped_packets", "network", "dropped"),
    ("dropped_packets", "network", "loopback_dropped"),
    ("backlog_dropped", "backlog", "dropped"),
    ("backlog_squeezed", "backlog", "squeezed"),
    ("tcp_retransmits", "sockets", "tcp_retransmits"),
    ("tcp_timeouts", "sockets", "tcp_timeouts"),
    ("tcp_delayed_acks", "sockets", "tcp_delayed_acks"),
    ("listen_overflows", "sockets", "listen_overflows"),
    ("listen_drops", "sockets", "listen_drops"),
    ("udp_receive_errors", "sockets", "udp_receive_errors"),
    ("disk_busy", "disks", "busy"),
    ("disk_reads", "disks", "reads"),
    ("disk_writes", "disks", "writes"),
    ("disk_read_bytes", "disks", "read"),
    ("disk_written_bytes", "disks", "written"),
    ("disk_flushes", "disks", "flushes"),
    ("quota_periods", "quota", "periods"),
    ("quota_throttled_periods", "quota", "throttled_periods"),
];

/// What a core has spent on received packets, by this series.
const SOFTIRQ: (&str, &str) = ("cores", "softirq");

/// A reading of every counter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Totals by figure: counts, bytes, and seconds of what is a share of time. Unseen ones are
    /// left out.
    pub figures: Vec<(&'static str, f64)>,
    /// Seconds that each core has spent on received packets.
    pub softirq_s: Vec<(usize, f64)>,
}

impl Totals {
    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Totals) -> Totals {
        fn growth<K: PartialEq + Copy>(now: &[(K, f64)], then: &[(K, f64)]) -> Vec<(K, f64)> {
            let before = |key: K| then.iter().find(|(name, _)| *name == key).map(|(_, v)| *v);
            let grown = now.iter().filter_map(|(key, now)| Some((*key, now - before(*key)?)));
            grown.filter(|(_, grown)| *grown >= 0.0).collect()
        }
        Totals {
            figures: growth(&self.figures, &earlier.figures),
            softirq_s: growth(&self.softirq_s, &earlier.softirq_s),
        }
    }
}

/// Reads totals.
pub(super) struct TotalsReader {
    cpus: Vec<usize>,
    scratch: Scratch,
    probes: Vec<Opened>,
}

/// A sensor with its probe and the places of its readings.
type Opened = (&'static Sensor, Box<dyn Probe>, Vec<Option<u64>>);

impl std::fmt::Debug for TotalsReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TotalsReader").field("cpus", &self.cpus).finish_non_exhaustive()
    }
}

impl TotalsReader {
    pub(super) fn open(scope: &Scope) -> Self {
        let wanted =
            |name: &str| name == SOFTIRQ.0 || FIGURES.iter().any(|(_, sensor, _)| *sensor == name);
        let mut probes = Vec::new();
        for sensor in SENSORS.iter().filter(|sensor| wanted(sensor.name)) {
            if let Reader::Host(open) = sensor.of {
                let probe = open(scope);
                let count = probe.instances().len() * sensor.series.len();
                probes.push((*sensor, probe, vec![None; count]));
            }
        }
        Self { cpus: scope.cpus.clone(), scratch: Scratch::new(), probes }
    }

    pub(super) fn read(&mut self) -> Totals {
        let mut totals = Totals::default();
        for (sensor, probe, readings) in &mut self.probes {
            readings.fill(None);
            probe.read(&mut self.scratch, readings);
            let place = |name: &str| sensor.series.iter().position(|line| line.name == name);
            let value = |index: usize| {
                let line = &sensor.series[index % sensor.series.len()];
                let (Scale::Rate(scale) | Scale::Level(scale)) = line.kind;
                Some(readings[index]? as f64 * scale)
            };
            if sensor.name == SOFTIRQ.0 {
                let Some(softirq) = place(SOFTIRQ.1) else { continue };
                let cores = self.cpus.iter().enumerate();
                totals.softirq_s.extend(cores.filter_map(|(core, cpu)| {
                    Some((*cpu, value(core * sensor.series.len() + softirq)?))
                }));
            }
            for (figure, of, series) in FIGURES.iter().filter(|row| row.1 == sensor.name) {
                debug_assert_eq!(*of, sensor.name);
                let Some(seen) = place(series).and_then(value) else { continue };
                match totals.figures.iter_mut().find(|(name, _)| name == figure) {
                    Some((_, sum)) => *sum += seen,
                    None => totals.figures.push((figure, seen)),
                }
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_one_of_the_judges_and_every_series_a_sensors() {
        for (figure, sensor, series) in FIGURES {
            assert!(judge::limits::FIGURES.iter().any(|(name, ..)| name == figure), "{figure}");
            let sensor = SENSORS.iter().find(|row| row.name == *sensor).unwrap();
            assert!(sensor.series.iter().any(|line| line.name == *series), "{series}");
        }
    }

    #[test]
    fn only_what_both_readings_saw_has_grown_and_what_was_made_anew_has_not() {
        let read = |values: &[(&'static str, f64)]| Totals {
            figures: values.to_vec(),
            softirq_s: vec![(1, values[0].1)],
        };
        let before = read(&[("a", 1.0), ("b", 5.0)]);
        let after = read(&[("a", 3.0), ("b", 4.0), ("c", 7.0)]);
        let expected = Totals { figures: vec![("a", 2.0)], softirq_s: vec![(1, 2.0)] };
        assert_eq!(after.since(&before), expected);
    }
}
