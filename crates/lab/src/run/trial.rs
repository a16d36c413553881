//! One target's slices in one round, as measured: sums that every figure is computed from.

use hdrhistogram::Histogram;
use ledger::{FailedAt, Validity};
use wire::Ns;
use workload::{CounterKind, Kind};

use super::usage::Usage;
use crate::drive::{self, Counts, Figure, Found, Interval, Piece, Pressure, Slowest, StreamSum};
use crate::observe::{self, Cpu, Reading, own_resident_bytes};
use crate::plan::Requirement;

/// One slice.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) start: Ns,
    pub(crate) duration_ns: u64,
    pub(crate) operations: u64,
    pub(crate) server: Option<Cpu>,
    pub(crate) generator: Cpu,
    /// What the target counted itself.
    pub(crate) counters: Reading,
    /// Who else was at work meanwhile, if anybody was.
    pub(crate) disturbed: Option<String>,
}

/// One target's slices in one round. Times of `Ns` are on the run's clock.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The target, as an index into the point's.
    pub target: usize,
    /// The round at its point, from 1.
    pub round: u32,
    /// Whether it may be compared, and why not.
    pub(crate) validity: Validity,
    pub(crate) reason: Option<String>,
    pub(crate) started: Ns,
    /// Whether its target had been loaded before it was measured.
    pub(crate) is_warm: bool,
    pub(crate) measured_ns: u64,
    pub(crate) counts: Counts,
    /// CPU time of the target while measured; `None` is unseen.
    pub(crate) server: Option<Cpu>,
    pub(crate) server_rss_bytes: Option<u64>,
    pub(crate) generator: Cpu,
    pub(crate) generator_rss_bytes: Option<u64>,
    /// The busy time of the busiest generator thread.
    busy_ns: f64,
    pub(crate) prepare_ns: Option<u64>,
    pub(crate) warmup_ns: Option<u64>,
    /// What a warm-up that waits for it found: whether the load is steady, and after how long.
    pub(crate) stationary: Option<bool>,
    pub(crate) steady_after_ns: Option<u64>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) found: Vec<Found>,
    /// Figures that the clients measured themselves.
    pub(crate) figures: Vec<(String, f64)>,
    /// What the target counted itself in the slices that count; nothing before the first of them.
    pub(crate) counters: Option<Reading>,
    pub(crate) pressure: Pressure,
    pub(crate) slowest: Slowest,
    /// What streams have brought, by group of clients.
    pub(crate) streams: Vec<StreamSum>,
    /// How far its target came before it failed.
    pub(crate) failed_at: Option<FailedAt>,
    /// Every metric, once the trial is over and its histograms are in the ledger.
    metrics: Vec<(&'static str, f64)>,
    /// What both sides and the host did in its slices.
    pub(super) usage: Usage,
}

/// At most this many wrong answers are kept with their bytes in one trial.
const MOST_FOUND: usize = 64;

impl Trial {
    pub(crate) fn begin(target: usize, round: u32, started: Ns) -> Self {
        Self {
            target,
            round,
            validity: Validity::Valid,
            reason: None,
            started,
            is_warm: false,
            measured_ns: 0,
            counts: Counts::default(),
            server: Some(Cpu::default()),
            server_rss_bytes: None,
            generator: Cpu::default(),
            generator_rss_bytes: None,
            busy_ns: 0.0,
            prepare_ns: None,
            warmup_ns: None,
            stationary: None,
            steady_after_ns: None,
            slices: Vec::new(),
            intervals: Vec::new(),
            found: Vec::new(),
            figures: Vec::new(),
            counters: None,
            pressure: Pressure::default(),
            slowest: Slowest::default(),
            streams: Vec::new(),
            failed_at: None,
            metrics: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// Marks it as not comparable; the first reason stays.
    pub(crate) fn invalidate(&mut self, reason: impl Into<String>) {
        if self.validity != Validity::Invalid {
            self.validity = Validity::Invalid;
            self.reason = Some(reason.into());
        }
    }

    /// Marks it as not comparable, because its target failed at this stage.
    pub(crate) fn fail(&mut self, at: FailedAt, reason: impl Into<String>) {
        self.failed_at.get_or_insert(at);
        self.invalidate(reason);
    }

    /// Notes how its target was prepared. One that was not prepared as it should be has failed.
    pub(crate) fn prepared(&mut self, piece: Piece, took_ns: u64) {
        self.prepare_ns = Some(took_ns);
        self.counts.wrong = piece.counts.wrong;
        let missing = piece.counts.missing;
        if missing > 0 && piece.trouble.is_none() {
            self.invalidate(format!("{missing} writes unanswered while preparing"));
        }
        self.judge_answers(&piece.found, piece.trouble.as_deref());
        if missing > 0 || piece.trouble.is_some() || piece.counts.wrong > 0 {
            self.failed_at.get_or_insert(FailedAt::Prepare);
        }
        self.found.extend(piece.found);
    }

    /// A trial that is not as it was expected to be measured something else: it is invalid.
    pub(crate) fn hold_against(&mut self, expected: &[Requirement]) {
        for condition in expected {
            let value = condition.figure.value(&|name| self.compute(name));
            match value {
                Some(value) if condition.holds(value) => {}
                Some(value) => {
                    self.invalidate(format!("{} was expected, not {value:.4}", condition.text));
                }
                None => self.invalidate(format!("{} was expected and not seen", condition.text)),
            }
        }
    }

    /// Whether its target did not come as far as it should have: there is nothing to measure.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed_at.is_some()
    }

    /// Whether it may be compared.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }

    /// Notes a slice that is not counted, because it was disturbed and is measured again. Its
    /// wrong answers count all the same.
    pub(crate) fn set_aside(&mut self, slice: Slice, piece: Piece) {
        self.counts.wrong += piece.counts.wrong;
        self.judge_answers(&piece.found, piece.trouble.as_deref());
        let room = MOST_FOUND.saturating_sub(self.found.len());
        self.found.extend(piece.found.into_iter().take(room));
        self.slices.push(slice);
    }

    /// Adds a measured slice. A disturbed one that can't be measured again makes the trial
    /// disturbed.
    pub(crate) fn add(&mut self, slice: Slice, piece: Piece) {
        if let Some(reason) = &slice.disturbed
            && self.validity == Validity::Valid
        {
            self.validity = Validity::Disturbed;
            self.reason = Some(reason.clone());
        }
        self.measured_ns += piece.duration_ns;
        self.counts.add(piece.counts);
        self.generator = self.generator.plus(piece.generator);
        let resident_bytes = piece.generator_bytes.or_else(own_resident_bytes);
        self.generator_rss_bytes = self.generator_rss_bytes.max(resident_bytes);
        self.busy_ns += piece.busy * piece.duration_ns as f64;
        self.server = self.server.zip(slice.server).map(|(sum, server)| sum.plus(server));
        self.counters = Some(observe::plus(self.counters.as_ref(), slice.counters.clone()));
        self.slices.push(slice);
        self.judge_claims(piece.counts);
        self.judge_answers(&piece.found, piece.trouble.as_deref());
        let room = MOST_FOUND.saturating_sub(self.found.len());
        self.found.extend(piece.found.into_iter().take(room));
        self.intervals.extend(piece.intervals);
        self.figures.extend(piece.figures);
        self.pressure.add(piece.pressure);
        self.slowest.add(piece.slowest);
        drive::add_streams(&mut self.streams, piece.streams);
    }

    /// What is said to have come can't be more than what the sockets have carried.
    fn judge_claims(&mut self, counts: Counts) {
        let carried = counts.received_bytes + counts.sent_bytes;
        if counts.payload_bytes > carried {
            let claimed = counts.payload_bytes;
            self.invalidate(format!(
                "{claimed} bytes of values are claimed, and the sockets carried {carried}"
            ));
        }
    }

    /// Updates of each stream of all groups.
    pub(crate) fn updates_of_each(&self) -> impl Iterator<Item = u64> {
        self.streams.iter().flat_map(|sum| sum.each.iter().copied())
    }

    /// How old values were when they came: to one group of clients, or to all.
    pub(crate) fn staleness(&self, group: Option<usize>) -> Histogram<u64> {
        self.figure(Figure::Staleness, group)
    }

    /// The distribution of one figure over all operations of one group, or of all.
    pub(super) fn figure(&self, wanted: Figure, group: Option<usize>) -> Histogram<u64> {
        let mut all = drive::empty_histogram();
        let is_wanted =
            |one: &&Interval| one.figure == wanted && group.is_none_or(|group| one.group == group);
        for interval in self.intervals.iter().filter(is_wanted) {
            interval.histogram.add_to(&mut all);
        }
        all
    }

    /// Whether requests became due faster than they were answered: what waited at the end of the
    /// slices is more than a hundredth of all, and more by a third than what waited half-way.
    pub(crate) fn is_overloaded(&self) -> bool {
        let Pressure { offered, backlog_half, backlog_end, .. } = self.pressure;
        backlog_end * 100 > offered && backlog_end * 3 > backlog_half * 4
    }

    /// The trial with its metrics and without its histograms and answers, which take megabytes.
    pub(crate) fn condensed(mut self) -> Self {
        let names = judge::METRICS.iter().map(|metric| metric.suite);
        self.metrics = names.filter_map(|name| Some((name, self.compute(name)?))).collect();
        self.intervals = Vec::new();
        self.found = Vec::new();
        self.figures = Vec::new();
        self.streams = Vec::new();
        self.slices = Vec::new();
        self.usage = Usage::default();
        self
    }

    /// Wrong answers make a trial invalid: how fast a wrong answer came says nothing.
    pub(crate) fn judge_answers(&mut self, found: &[Found], trouble: Option<&str>) {
        if let Some(trouble) = trouble {
            self.invalidate(trouble);
        }
        if let Some(first) = found.first() {
            self.invalidate(format!("wrong answers: {}", first.finding.note));
        } else if self.counts.wrong > 0 {
            self.invalidate("wrong answers");
        }
    }

    /// The part of the measured time that the busiest generator thread was not waiting.
    pub(crate) fn busy(&self) -> Option<f64> {
        (self.measured_ns > 0).then(|| self.busy_ns / self.measured_ns as f64)
    }

    /// How many reads found their key.
    pub(crate) fn hits(&self, room: &workload::Room) -> Option<u64> {
        let reads = |interval: &&Interval| {
            matches!(room.operations[interval.operation].kind, Kind::Read | Kind::ReadMany)
        };
        let any = self.intervals.iter().any(|interval| reads(&interval));
        any.then_some(self.counts.hits)
    }

    /// All latencies of all groups and operations.
    pub(crate) fn latency(&self) -> Histogram<u64> {
        self.figure(Figure::Latency, None)
    }

    /// The value of a metric by its name in suites; `None` is unseen.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let known = self.metrics.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| *value).or_else(|| self.service(name))
    }

    /// What the target counted itself, by its name in suites: `service.NAME` is its growth in the
    /// measured time or, of what may fall, where it stood at the end; `.per_op` and `.per_s`
    /// divide that. A name that has labels is the sum over them.
    fn service(&self, name: &str) -> Option<f64> {
        let name = name.strip_prefix("service.")?;
        let counters = self.counters.as_ref()?.as_ref()?;
        let (name, divisor) = match (name.strip_suffix(".per_op"), name.strip_suffix(".per_s")) {
            (Some(name), _) => (name, self.counts.operations as f64),
            (_, Some(name)) => (name, self.measured_ns as f64 / 1e9),
            (None, None) => (name, 1.0),
        };
        let labelled = |known: &&String| known.split('{').next() == Some(name);
        let values = counters.keys().filter(labelled).map(|known| counters[known].1);
        let sum = values.reduce(|sum, value| sum + value)?;
        Some(sum / divisor).filter(|value| value.is_finite())
    }

    /// What the target counted itself, by name: whether it only grows, and its value.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&String, bool, f64)> {
        let all = self.counters.as_ref().and_then(Option::as_ref).into_iter().flatten();
        all.map(|(name, (kind, value))| (name, *kind == CounterKind::Total, *value))
    }

    /// What the lab measured, or what calls told under the metric's name: the mean over calls.
    fn compute(&self, name: &str) -> Option<f64> {
        self.measured(name).or_else(|| {
            let named = self.figures.iter().filter(|(known, _)| known == name);
            let (count, sum) =
                named.fold((0.0, 0.0), |(count, sum), (_, value)| (count + 1.0, sum + value));
            (count > 0.0).then(|| sum / count)
        })
    }

    fn measured(&self, name: &str) -> Option<f64> {
        let operations = self.counts.operations as f64;
        let per_operation =
            |ns: Option<u64>| ns.filter(|_| operations > 0.0).map(|ns| ns as f64 / operations);
        let quantile = |q: f64| {
            let latency = self.latency();
            (!latency.is_empty()).then(|| latency.value_at_quantile(q) as f64)
        };
        let stale = |q: f64| {
            let staleness = self.staleness(None);
            (!staleness.is_empty()).then(|| staleness.value_at_quantile(q) as f64)
        };
        let per_s = |count: u64| {
            let measured = count > 0 && self.measured_ns > 0;
            measured.then(|| count as f64 * 1e9 / self.measured_ns as f64)
        };
        let of_streams = |value: u64| (!self.streams.is_empty()).then_some(value as f64);
        let server = self.server;
        let split = |cpu: Option<Cpu>| cpu.and_then(Cpu::split_ns);
        match name {
            "rate_per_s" if self.measured_ns > 0 => {
                Some(operations * 1e9 / self.measured_ns as f64)
            }
            "latency.p50" => quantile(0.5),
            "latency.p90" => quantile(0.9),
            "latency.p99" => quantile(0.99),
            "latency.p999" => quantile(0.999),
            "latency.max" => quantile(1.0),
            "latency.mean" => Some(self.latency().mean()).filter(|mean| *mean > 0.0),
            "updates_per_s" => per_s(self.counts.updates),
            "elements_per_s" => per_s(self.counts.elements),
            "bytes_per_s" => per_s(self.counts.payload_bytes),
            "staleness.p50" => stale(0.5),
            "staleness.p99" => stale(0.99),
            "staleness.max" => stale(1.0),
            "missed" => of_streams(self.streams.iter().map(|sum| sum.missed).sum()),
            "merged" => of_streams(self.streams.iter().map(|sum| sum.merged).sum()),
            "fairness" => drive::fairness(self.updates_of_each()),
            "least_updates" => self.updates_of_each().min().map(|least| least as f64),
            "missing" => Some(self.counts.missing as f64),
            "wrong" => Some(self.counts.wrong as f64),
            "misses" => Some(self.counts.misses as f64),
            "hit_ratio" => {
                let asked = self.counts.hits + self.counts.misses;
                (asked > 0).then(|| self.counts.hits as f64 / asked as f64)
            }
            "server.cpu_ns_per_op" => per_operation(server.map(|cpu| cpu.total_ns)),
            "server.user_ns_per_op" => per_operation(split(server).map(|(user, _)| user)),
            "server.system_ns_per_op" => per_operation(split(server).map(|(_, system)| system)),
            "server.rss_bytes" => self.server_rss_bytes.map(|bytes| bytes as f64),
            "generator.cpu_ns_per_op" => per_operation(Some(self.generator.total_ns)),
            "generator.user_ns_per_op" => {
                per_operation(split(Some(self.generator)).map(|(user, _)| user))
            }
            "generator.system_ns_per_op" => {
                per_operation(split(Some(self.generator)).map(|(_, system)| system))
            }
            "generator.rss_bytes" => self.generator_rss_bytes.map(|bytes| bytes as f64),
            "generator.busy" => self.busy(),
            _ => self.service(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial of one piece with these counts.
    fn measured(counts: Counts) -> Trial {
        let mut trial = Trial::begin(0, 1, 0);
        let piece = Piece { counts, duration_ns: 1_000_000_000, ..Piece::default() };
        let slice = Slice {
            start: 0,
            duration_ns: piece.duration_ns,
            operations: counts.operations,
            server: None,
            generator: Cpu::default(),
            counters: Default::default(),
            disturbed: None,
        };
        trial.add(slice, piece);
        trial
    }

    #[test]
    fn more_bytes_of_values_than_the_sockets_carried_are_not_believed() {
        let counts = Counts {
            updates: 69,
            elements: 690_000_000,
            payload_bytes: 5_520_000_000,
            received_bytes: 1_380,
            sent_bytes: 100,
            ..Counts::default()
        };
        let phantom = measured(counts);
        assert_eq!(phantom.validity, Validity::Invalid);
        let reason = phantom.reason.unwrap();
        assert_eq!(reason, "5520000000 bytes of values are claimed, and the sockets carried 1480");
        let real = measured(Counts { received_bytes: 5_520_001_380, ..counts });
        assert_eq!(real.validity, Validity::Valid);
        assert_eq!(real.compute("bytes_per_s"), Some(5_520_000_000.0));
        assert_eq!(real.compute("updates_per_s"), Some(69.0));
        assert_eq!((real.compute("fairness"), real.compute("missed")), (None, None));
    }
}
