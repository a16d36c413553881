//! What each core of the run does. The kernel counts here in ticks of 10 ms, by sampling, so a
//! value of one tenth of a second is rough and only its mean over seconds is good.

use super::super::sensor::{Line, Probe, Reader, Scope, Sensor};
use super::super::source::{Scratch, Source, lines, number, words};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "cores",
    doc: "share of each core's time by what it did; `others` is the sum of the run's other cores",
    source: "/proc/stat",
    unseen: "never, save in a sandbox that hides /proc/stat; steal stays 0 where the host hides it",
    every: 1,
    series: &[
        Line::share("user", "fraction"),
        Line::share("system", "fraction"),
        Line::share("softirq", "fraction"),
        Line::share("irq", "fraction"),
        Line::share("steal", "fraction"),
        Line::share("iowait", "fraction"),
    ],
    of: Reader::Host(open),
};

/// At most this many cores have series of their own; the rest are summed.
const CORES_LIMIT: usize = 64;

fn open(scope: &Scope) -> Box<dyn Probe> {
    let mut cpus = scope.cpus.clone();
    cpus.truncate(CORES_LIMIT);
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Box::new(Cores { source: Source::open("/proc/stat"), cpus, tick_ns })
}

struct Cores {
    source: Source,
    cpus: Vec<usize>,
    tick_ns: u64,
}

impl Probe for Cores {
    fn instances(&self) -> Vec<String> {
        let own = self.cpus.iter().map(|cpu| format!("cpu{cpu}"));
        own.chain(["others".to_owned()]).collect()
    }

    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let Some(text) = self.source.read(scratch) else { return };
        parse(text, &self.cpus, self.tick_ns, readings);
    }
}

fn parse(text: &[u8], cpus: &[usize], tick_ns: u64, readings: &mut [Option<u64>]) {
    let width = SENSOR.series.len();
    for line in lines(text).take_while(|line| line.starts_with(b"cpu")) {
        let mut words = words(line);
        // The first line is the sum over all cores and has no number.
        let Some(cpu) = words.next().and_then(|name| number(&name[3..])) else { continue };
        let mut ticks = [0; 8];
        for (tick, word) in ticks.iter_mut().zip(words) {
            *tick = number(word).unwrap_or(0);
        }
        let [user, nice, system, _idle, iowait, irq, softirq, steal] = ticks;
        let place = cpus.iter().position(|own| *own as u64 == cpu).unwrap_or(cpus.len());
        let values = [user + nice, system, softirq, irq, steal, iowait];
        for (reading, value) in readings[place * width..][..width].iter_mut().zip(values) {
            *reading = Some(reading.unwrap_or(0) + value * tick_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"cpu  139380 7858 23132 453643 1109 0 8104 158 0 0\n\
        cpu0 66978 3674 11242 230302 233 0 4194 82 0 0\n\
        cpu1 72402 4183 11890 223341 875 0 3910 76 0 0\n\
        cpu2 1 2 3 4 5 6 7 8 0 0\n\
        intr 5197424 0 0 0\nctxt 10894232\n";

    #[test]
    fn a_core_of_the_run_has_its_own_series_and_the_others_are_summed() {
        let mut readings = [None; 12];
        parse(TEXT, &[1], 10_000_000, &mut readings);
        let ticks = readings.map(|reading| reading.unwrap() / 10_000_000);
        assert_eq!(ticks[..6], [76_585, 11_890, 3_910, 0, 76, 875]);
        assert_eq!(ticks[6..], [70_655, 11_245, 4_201, 6, 90, 238]);
    }

    #[test]
    fn a_core_that_is_not_there_is_unseen() {
        let mut readings = [None; 18];
        parse(TEXT, &[0, 9], 10_000_000, &mut readings);
        assert!(readings[0].is_some());
        assert_eq!(readings[6..12], [None; 6]);
    }
}
