//! One target's slices in one round: the sums from which every figure is computed.

use std::borrow::Cow;

use findings::{WRITES_REFUSED, Why};
use hdrhistogram::Histogram;
use judge::Stretch;
use ledger::{Cause, FailedAt, Validity};
use load::{Conclusion, CounterKind, Kind};
use wire::Ns;

use super::distribution::Distribution;
use super::events::EventOutcome;
use super::slice::Slice;
use super::usage::Usage;
use crate::drive::batch::REPORTED;
use crate::drive::{
    self, Counts, Figure, Interval, LoadResult, Pressure, Slowest, StreamSum, StretchSum,
    WrongAnswer,
};
use crate::observe::{self, Cpu, Reading, own_resident_bytes};
use crate::plan::{ERRORS, OF_THOSE_ASKED, Point, Requirement, percentile};

/// One target's slices in one round. Times of `Ns` are on the run's clock.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The target, as an index into the point's.
    pub target: usize,
    /// The round at its point, from 1.
    pub round: u32,
    /// Whether it may be compared.
    pub(crate) validity: Validity,
    /// Why it is invalid.
    pub(crate) reason: Option<String>,
    /// Whether its answers made it invalid, and nothing before them.
    pub(super) is_spoilt_by_answers: bool,
    /// Whether a slice that counts was disturbed by what the suite doesn't ignore.
    pub(super) was_disturbed: bool,
    /// What disturbed each of its slices that count.
    causes: Vec<Cause>,
    /// What time that took from them; `None` is unseen.
    pub(super) taken: Option<Vec<Stretch>>,
    pub(crate) started: Ns,
    /// Whether its target had been loaded before it was measured.
    pub(crate) is_warm: bool,
    pub(crate) measured_ns: u64,
    /// What its operations are divided by for their rate.
    pub(crate) rate_ns: u64,
    /// Operations of the slices that count.
    pub(crate) counts: Counts,
    /// Wrong answers while preparing and warming up, and in slices that were set aside.
    pub(crate) wrong_outside: u64,
    /// Refusals at such times.
    pub(super) refused_outside: u64,
    /// Whether anything was answered while preparing and warming up, and in such slices.
    pub(crate) answered_outside: bool,
    /// CPU time of the target while measured; `None` is unseen.
    pub(crate) server: Option<Cpu>,
    pub(crate) server_rss_bytes: Option<u64>,
    pub(crate) generator: Cpu,
    pub(crate) generator_rss_bytes: Option<u64>,
    /// The busy time of the busiest generator thread.
    busy_ns: f64,
    pub(crate) prepare_ns: Option<u64>,
    pub(crate) warmup_ns: Option<u64>,
    /// Whether a warm-up that waits for it reached a steady state, and after how long.
    pub(crate) stationary: Option<bool>,
    pub(crate) steady_after_ns: Option<u64>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) intervals: Vec<Interval>,
    /// Wrong answers, then refusals, with their bytes.
    pub(crate) wrong_answers: Vec<WrongAnswer>,
    /// Figures reported by client programs.
    pub(crate) figures: Vec<(String, f64)>,
    /// The target's own counters over the slices that count; `None` before the first of them.
    pub(crate) counters: Option<Reading>,
    /// What its target says of its statements, and what would help.
    pub(crate) advised: Option<Conclusion>,
    pub(crate) pressure: Pressure,
    /// The stretches of its schedules.
    pub(crate) stretches: Vec<StretchSum>,
    pub(crate) slowest: Slowest,
    /// Outcomes of events in its slices, also of those that don't count.
    pub(crate) events: Vec<EventOutcome>,
    /// Updates of streams, by group of clients.
    pub(crate) streams: Vec<StreamSum>,
    /// The stage at which its target failed.
    pub(crate) failed_at: Option<FailedAt>,
    /// How the first run of a batch failed, where all of them did.
    pub(super) runs_failed: Option<String>,
    /// The first fault of a connection that broke under the load.
    pub(super) broken_by: Option<String>,
    /// Every metric that was seen, once the trial is in the ledger.
    metrics: Vec<(Cow<'static, str>, f64)>,
    /// Every latency, and the age of every value on arrival, once the metrics are set.
    latencies: Distribution,
    ages: Distribution,
    /// Resource usage of both sides and of the host in its slices.
    pub(super) usage: Usage,
}

/// At most this many names of figures are listed in a reason.
const MAX_NAMES: usize = 20;

/// At most this many events of one trial are kept: the first ones.
const MAX_EVENTS: usize = 10_000;

impl Trial {
    pub(crate) fn begin(target: usize, round: u32, started: Ns) -> Self {
        Self {
            target,
            round,
            validity: Validity::Valid,
            reason: None,
            is_spoilt_by_answers: false,
            was_disturbed: false,
            causes: Vec::new(),
            taken: Some(Vec::new()),
            started,
            is_warm: false,
            measured_ns: 0,
            rate_ns: 0,
            counts: Counts::default(),
            wrong_outside: 0,
            refused_outside: 0,
            answered_outside: false,
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
            wrong_answers: Vec::new(),
            figures: Vec::new(),
            counters: None,
            advised: None,
            pressure: Pressure::default(),
            stretches: Vec::new(),
            slowest: Slowest::default(),
            events: Vec::new(),
            streams: Vec::new(),
            failed_at: None,
            runs_failed: None,
            broken_by: None,
            metrics: Vec::new(),
            latencies: Distribution::default(),
            ages: Distribution::default(),
            usage: Usage::default(),
        }
    }

    /// Marks it as invalid; the first reason is kept.
    pub(crate) fn invalidate(&mut self, reason: impl Into<String>) {
        if self.validity != Validity::Invalid {
            self.validity = Validity::Invalid;
            self.reason = Some(reason.into());
        }
    }

    /// Adds the outcomes of a slice's events. One that failed makes the trial invalid: it is
    /// another experiment.
    pub(crate) fn add_events(&mut self, events: Vec<EventOutcome>) {
        if let Some(failure) = events.iter().find_map(|event| event.failure.as_ref()) {
            self.invalidate(format!("an event failed: {failure}"));
        }
        let left = MAX_EVENTS.saturating_sub(self.events.len());
        self.events.extend(events.into_iter().take(left));
    }

    /// Marks it as invalid because its target failed at this stage.
    pub(crate) fn fail(&mut self, at: FailedAt, reason: impl Into<String>) {
        self.failed_at.get_or_insert(at);
        self.invalidate(reason);
    }

    /// Notes how the runs of a batch failed, where all of them did.
    pub(super) fn note_failed_runs(&mut self) {
        let Counts { operations, wrong, .. } = self.counts;
        let notes = self.wrong_answers.iter().map(|one| &one.finding.note);
        let first = notes.into_iter().find(|note| !note.starts_with(REPORTED));
        self.runs_failed = first.filter(|_| operations > 0 && operations == wrong).cloned();
    }

    /// Adds the preparation. A target that isn't completely prepared has failed.
    pub(crate) fn prepared(&mut self, result: LoadResult, took_ns: u64) {
        self.prepare_ns = Some(took_ns);
        self.add_outside(&result);
        let Counts { missing, refused, wrong, .. } = result.counts;
        if missing > 0 && result.trouble.is_none() {
            self.invalidate(format!("{missing} writes unanswered while preparing"));
        }
        if refused > 0 {
            let mut refusals = result.wrong_answers.iter().filter(|one| one.is_refusal);
            let how = refusals.next().map_or("", |first| &first.finding.note);
            self.invalidate(format!("{refused} {WRITES_REFUSED}: {how}"));
        }
        self.judge_trouble(result.trouble.as_deref());
        if missing + refused + wrong > 0 || result.trouble.is_some() {
            self.failed_at.get_or_insert(FailedAt::Prepare);
        }
        self.keep(result.wrong_answers);
    }

    /// Sets its metrics, by their names in suites, and keeps its distributions for judging: a
    /// condensed trial has nothing else to compute them from.
    pub(super) fn set_metrics(&mut self, metrics: Vec<(Cow<'static, str>, f64)>) {
        self.metrics = metrics;
        self.latencies = Distribution::of(&self.latency());
        self.ages = Distribution::of(&self.staleness(None));
    }

    /// All values of a figure, of those that a trial keeps: latencies and ages.
    pub(super) fn distribution(&self, figure: Figure) -> &Distribution {
        match figure {
            Figure::Staleness => &self.ages,
            _ => &self.latencies,
        }
    }

    /// How much longer one of its answers to a schedule may have taken because it was disturbed, at
    /// a limit on their latency: see [`judge::margin`]. `None` where that can't be bounded.
    pub(super) fn margin(&self, limit_ns: u64) -> Option<u64> {
        match self.validity {
            Validity::Valid => Some(0),
            _ => judge::margin(self.taken.as_deref()?, limit_ns),
        }
    }

    /// Makes it disturbed by these causes, as if a slice had been.
    #[cfg(test)]
    pub(super) fn disturb(&mut self, causes: &[Cause]) {
        (self.validity, self.was_disturbed) = (Validity::Disturbed, true);
        self.causes.extend_from_slice(causes);
    }

    /// The trial with these latencies, as if they had been measured.
    #[cfg(test)]
    pub(super) fn with_latencies(mut self, latencies: &Histogram<u64>) -> Self {
        self.latencies = Distribution::of(latencies);
        self
    }

    /// Wrong answers, also those outside the slices that count.
    pub(super) fn wrong_answers_in_all(&self) -> u64 {
        self.counts.wrong + self.wrong_outside
    }

    /// Holds it against the figures that it is judged by: a trial whose program didn't report one
    /// of them, or not in each of its `runs`, is invalid. Returns whether all were reported.
    pub(super) fn hold_reported(&mut self, needed: &[&str], runs: Option<u64>) -> bool {
        let found = needed.iter().find_map(|name| {
            let times = self.figures.iter().filter(|(reported, _)| reported == name).count();
            match runs {
                _ if times == 0 => Some(format!("no {name} was reported{}", self.reported())),
                Some(runs) if (times as u64) < runs => {
                    Some(format!("{name} was reported in {times} of {runs} runs only"))
                }
                _ => None,
            }
        });
        let holds = found.is_none();
        found.into_iter().for_each(|reason| self.invalidate(reason));
        holds
    }

    /// The names of the figures that were reported, to be read after what is missing.
    fn reported(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in &self.figures {
            if names.len() < MAX_NAMES && !names.contains(name) {
                names.push(name.clone());
            }
        }
        match names.is_empty() {
            true => ", nor any other figure".to_owned(),
            false => format!("; the program reported {}", names.join(", ")),
        }
    }

    /// Checks the suite's expectations: a trial that breaks one measured something else and is
    /// invalid. Returns whether all hold.
    pub(super) fn hold_against(&mut self, expected: &[Requirement]) -> bool {
        let mut holds = true;
        for condition in expected {
            let value = condition.figure.value(&|name| self.metric(name));
            if value.is_some_and(|value| condition.holds(value)) {
                continue;
            }
            holds = false;
            self.invalidate(match value {
                Some(value) => format!("{} was expected, not {value:.4}", condition.text),
                None => format!("{} was expected and not seen", condition.text),
            });
        }
        holds
    }

    /// What disturbed its slices that count, each kind once.
    pub(crate) fn causes(&self) -> Vec<Cause> {
        findings::merged(&self.causes)
    }

    /// Why it isn't to be compared, or what is ignored.
    pub(super) fn why(&self) -> Vec<Why> {
        Why::of(self.validity, self.reason.as_deref(), &self.causes())
    }

    /// Whether its target failed, so that there is nothing to measure.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed_at.is_some()
    }

    /// Whether it may be compared.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }

    /// Adds answers, and connections that broke, outside the slices that count.
    pub(super) fn add_outside(&mut self, result: &LoadResult) {
        self.wrong_outside += result.counts.wrong;
        self.refused_outside += result.counts.refused;
        self.answered_outside |= result.counts.operations > 0;
        self.counts.broken += result.counts.broken;
        self.broken_by = self.broken_by.take().or_else(|| result.fault.clone());
    }

    /// Sets a disturbed slice aside, which is measured again. Its wrong answers and refusals
    /// count, but apart: its operations don't.
    pub(crate) fn set_aside(&mut self, slice: Slice, result: LoadResult) {
        self.add_outside(&result);
        self.judge_trouble(result.trouble.as_deref());
        self.keep(result.wrong_answers);
        self.slices.push(slice);
    }

    /// Adds a measured slice. A disturbed one that can't be measured again makes the trial
    /// disturbed.
    pub(crate) fn add(&mut self, slice: Slice, result: LoadResult) {
        self.causes.extend_from_slice(&slice.causes);
        if slice.is_disturbed {
            let more = slice.taken.as_deref();
            self.taken = self.taken.take().zip(more).map(|(all, more)| [&all, more].concat());
        }
        self.was_disturbed |= slice.is_disturbed;
        if slice.is_disturbed && self.validity == Validity::Valid {
            self.validity = Validity::Disturbed;
        }
        self.measured_ns += result.duration_ns;
        self.rate_ns += result.rate_ns();
        self.counts.add(result.counts);
        self.generator = self.generator.plus(result.generator);
        let resident_bytes = result.generator_bytes.or_else(own_resident_bytes);
        self.generator_rss_bytes = self.generator_rss_bytes.max(resident_bytes);
        self.busy_ns += result.busy * result.duration_ns as f64;
        self.server = self.server.zip(slice.server).map(|(sum, server)| sum.plus(server));
        self.counters = Some(observe::plus(self.counters.as_ref(), slice.counters.clone()));
        self.slices.push(slice);
        self.broken_by = self.broken_by.take().or(result.fault);
        self.judge_claims(result.counts);
        self.judge_trouble(result.trouble.as_deref());
        self.keep(result.wrong_answers);
        self.intervals.extend(result.intervals);
        // What is no number counts as not reported.
        self.figures.extend(result.figures.into_iter().filter(|(_, value)| value.is_finite()));
        self.pressure.add_slice(result.pressure);
        drive::add_slice(&mut self.stretches, result.stretches);
        self.slowest.add(result.slowest);
        drive::add_streams(&mut self.streams, result.streams);
    }

    /// The bytes of values that a client claims can't exceed what the sockets carried.
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

    /// Age of values on arrival, for one group of clients or for all.
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

    /// Whether requests became due faster than they were answered.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.stretches.iter().any(StretchSum::is_overloaded)
    }

    /// The trial without its histograms and answers, which take megabytes.
    pub(crate) fn condensed(mut self) -> Self {
        self.intervals = Vec::new();
        self.stretches.iter_mut().for_each(|stretch| stretch.latencies = Vec::new());
        self.wrong_answers = Vec::new();
        self.figures = Vec::new();
        self.events = Vec::new();
        (self.streams, self.slices) = (Vec::new(), Vec::new());
        self.advised = None;
        self.causes = self.causes();
        self.usage = Usage::default();
        self
    }

    fn judge_trouble(&mut self, trouble: Option<&str>) {
        if let Some(trouble) = trouble {
            self.invalidate(trouble);
        }
    }

    /// The part of the measured time that the busiest generator thread was not waiting.
    pub(crate) fn busy(&self) -> Option<f64> {
        (self.measured_ns > 0).then(|| self.busy_ns / self.measured_ns as f64)
    }

    /// How many reads found their key; `None` where there are no keys to miss: neither may a read
    /// find nothing, nor did an answer say "not there".
    pub(crate) fn hits(&self, point: &Point) -> Option<u64> {
        let operations = point.workload.workload.operations();
        let reads = |interval: &&Interval| operations[interval.operation].kind == Kind::Read;
        let any = self.intervals.iter().any(|interval| reads(&interval));
        (any && (point.may_miss || self.counts.misses > 0)).then_some(self.counts.hits)
    }

    /// All latencies of all groups and operations.
    pub(crate) fn latency(&self) -> Histogram<u64> {
        self.figure(Figure::Latency, None)
    }

    /// The value of a metric by its name in suites; `None` is unseen, as all are before the trial
    /// is in the ledger.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let known = self.metrics.iter().find(|(known, _)| *known == name);
        // The ledger keeps wrong answers outside the slices that count apart.
        let apart = if name == "wrong" { self.wrong_outside as f64 } else { 0.0 };
        let known = known.map(|(_, value)| value + apart);
        known.or_else(|| self.service(name)).or_else(|| self.computed(name))
    }

    /// What no column of the ledger holds: any percentile, errors, and shares of the operations
    /// that were asked for.
    pub(super) fn computed(&self, name: &str) -> Option<f64> {
        if let Some((figure, part)) = percentile(name) {
            return self.distribution(figure).quantile(part).map(|ns| ns as f64);
        }
        if name == ERRORS {
            let Counts { refused, missing, .. } = self.counts;
            return Some((self.wrong_answers_in_all() + refused + missing) as f64);
        }
        let (some, asked) = self.of_those_asked(name.strip_suffix(OF_THOSE_ASKED)?)?;
        (asked > 0).then(|| some as f64 / asked as f64)
    }

    /// How many of the operations asked for in the slices that count had this outcome (`wrong`,
    /// `refused`, `missing` or `errors`), and how many were asked for.
    pub(super) fn of_those_asked(&self, outcome: &str) -> Option<(u64, u64)> {
        let Counts { operations, wrong, refused, missing, unchecked, .. } = self.counts;
        Some(match outcome {
            // An unchecked answer is not a right one.
            "wrong" => (wrong, operations.saturating_sub(unchecked).max(wrong) + missing),
            "refused" => (refused, operations + missing),
            "missing" => (missing, operations + missing),
            ERRORS => (wrong + refused + missing, operations + missing),
            _ => return None,
        })
    }

    /// One of the target's own counters by its name in suites: `service.NAME` is its growth in the
    /// measured time or, of a level, its last value; `.per_op` and `.per_s` divide that. A name
    /// that has labels is the sum over them.
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

    /// The target's own counters: the name, whether it only grows, and the value.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&String, bool, f64)> {
        let all = self.counters.as_ref().and_then(Option::as_ref).into_iter().flatten();
        all.map(|(name, (kind, value))| (name, *kind == CounterKind::Total, *value))
    }
}

#[cfg(test)]
mod tests {
    use ledger::CauseKind;

    use super::*;

    fn slice(causes: &[Cause], is_disturbed: bool) -> Slice {
        Slice {
            start: 0,
            duration_ns: 1_000_000_000,
            operations: 0,
            server: None,
            generator: Cpu::default(),
            counters: Default::default(),
            causes: causes.to_vec(),
            is_disturbed,
            taken: None,
        }
    }

    /// A trial of one piece with these counts.
    fn measured(counts: Counts) -> Trial {
        let mut trial = Trial::begin(0, 1, 0);
        let result = LoadResult { counts, duration_ns: 1_000_000_000, ..LoadResult::default() };
        trial.add(slice(&[], false), result);
        trial
    }

    #[test]
    fn a_trial_has_the_causes_of_all_its_slices_that_count() {
        let (mut trial, result) = (Trial::begin(0, 1, 0), LoadResult::default);
        let stolen = |least, most| Cause { least, most, ..Cause::new(CauseKind::Steal, 0.0) };
        let paused = Cause::new(CauseKind::Pause, 12e6);
        trial.set_aside(slice(&[stolen(0.5, 0.5)], true), result());
        trial.add(slice(&[stolen(0.02, 0.02)], true), result());
        trial.add(slice(&[], false), result());
        trial.add(slice(&[paused.clone(), stolen(0.14, 0.14)], true), result());
        assert_eq!((trial.validity, &trial.reason), (Validity::Disturbed, &None));
        assert_eq!(trial.causes(), [stolen(0.02, 0.14), paused.clone()]);
        let mut ignored = Trial::begin(0, 1, 0);
        ignored.add(slice(std::slice::from_ref(&paused), false), result());
        assert!(ignored.is_valid() && ignored.causes() == [paused]);
    }

    #[test]
    fn a_slice_that_is_set_aside_leaves_its_refusals() {
        let mut trial = Trial::begin(0, 1, 0);
        let counts = Counts { operations: 10, refused: 5, ..Counts::default() };
        trial.set_aside(slice(&[], true), LoadResult { counts, ..LoadResult::default() });
        trial.add(slice(&[], false), LoadResult::default());
        trial.judge_answers(&[]);
        assert_eq!((trial.counts.refused, trial.refused_outside), (0, 5));
        assert!(!trial.is_valid(), "the target refused");
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
    }
}
