//! The data of a run's charts beyond its [`Summary`](crate::Summary): whole distributions, and
//! series over time.
//!
//! Everything is thinned while it is read, so that the picture of an hour is no larger than that
//! of a minute: a line has at most [`MAX_POINTS`] points, each the mean (or, for a percentile, the
//! greatest) of the values in its stretch of the run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeBounds;

use ledger::{
    Histogram, HistogramKind, HistogramRow, Ledger, LedgerError, RoundId, RunView, TargetId,
    TrialId, Validity,
};

use crate::assembly::index_of;

/// The most points of one line over time.
pub const MAX_POINTS: usize = 240;

/// The most trials whose seconds are read: each is a query, and a page can't hold more.
const MAX_TRIALS_READ: usize = 1_000;

/// The most slices that are marked one by one.
const MAX_SLICES: usize = 600;

/// The data of a run's charts beyond its summary.
#[derive(Debug, Clone, Default)]
pub struct ChartData {
    /// All answers of each target at each point, in the trials that its figures are of.
    pub distributions: Vec<Distribution>,
    /// Rate and latency over time, by target.
    pub paces: Vec<Pace>,
    /// The series of sensors: the host's first, then by target.
    pub series: Vec<Watched>,
    /// The rounds: the point of each, and its stretch.
    pub rounds: Vec<(usize, Stretch)>,
    /// The time before each round's first slice: starting, preparing, warming up.
    pub settling: Vec<Stretch>,
    /// The slices by target; empty where there are too many to distinguish.
    pub slices: Vec<(usize, Vec<Stretch>)>,
    /// Slices that were disturbed.
    pub disturbed: Vec<Stretch>,
    /// The events of the suite by name, in the order in which each first happened.
    pub events: Vec<EventOutcome>,
    /// The length of the run, in seconds.
    pub length_s: f64,
}

/// The events of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct EventOutcome {
    /// The name.
    pub name: String,
    /// To which target each happened and when, in their order.
    pub times: Vec<(usize, Stretch)>,
}

/// The latencies of one target at one point.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// The point.
    pub point: usize,
    /// The target.
    pub target: usize,
    /// Latencies in ns, of its valid trials taken as one; without one of its disturbed trials, and
    /// without one of these of its invalid ones, as its other figures are.
    pub histogram: Histogram<u64>,
}

/// Rate and latency of one target over the time of a run. Moments are seconds since the run
/// started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pace {
    /// Operations per second, by moment.
    pub rate_per_s: Vec<(f64, f64)>,
    /// Median latency in ns, by moment.
    pub p50_ns: Vec<(f64, f64)>,
    /// The greatest 99th percentile of a second, in ns, by moment.
    pub p99_ns: Vec<(f64, f64)>,
}

/// One series of a sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// The target that it is of; `None` is the host.
    pub target: Option<usize>,
    /// The sensor.
    pub sensor: String,
    /// Its name within the sensor.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// Moments in seconds, and values.
    pub samples: Vec<(f64, f64)>,
}

/// A stretch of the run, in seconds since it started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Its begin.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
}

impl ChartData {
    /// Reads the chart data of this run, with the distributions of these points only.
    ///
    /// Fails when the ledger can't be read, or when a histogram or a chunk in it is damaged.
    pub fn read(
        ledger: &Ledger,
        view: &RunView,
        drawn: impl RangeBounds<usize>,
    ) -> Result<ChartData, LedgerError> {
        let places = Places::of(view);
        let length_s = length_s(view);
        let mut data = ChartData {
            distributions: distributions(view, &places, &drawn)?,
            rounds: rounds(view, &places),
            settling: settling(view, &places),
            slices: slices(view, &places),
            disturbed: disturbed(view),
            events: events(view, &places),
            length_s,
            ..ChartData::default()
        };
        for target in 0..view.targets.len() {
            data.paces.push(pace(ledger, view, &places, target, length_s)?);
        }
        for (id, row) in ledger.series(view.id)? {
            let samples = ledger.samples(id)?;
            let mut line = Thinned::over(length_s, mean);
            samples.iter().for_each(|one| line.push(seconds(one.at_ns), one.value));
            data.series.push(Watched {
                target: row.target_id.and_then(|id| places.targets.get(&id).copied()),
                sensor: row.sensor,
                name: row.name,
                unit: row.unit,
                samples: line.points(),
            });
        }
        Ok(data)
    }

    /// The latencies of one target at one point; `None` when it has none.
    pub fn distribution(&self, point: usize, target: usize) -> Option<&Histogram<u64>> {
        let mut all = self.distributions.iter();
        let found = all.find(|one| one.point == point && one.target == target)?;
        (!found.histogram.is_empty()).then_some(&found.histogram)
    }
}

/// Where each trial of a run belongs.
struct Places {
    targets: HashMap<TargetId, usize>,
    trials: HashMap<TrialId, (usize, usize)>,
    /// The trials that figures are of.
    counted: HashSet<TrialId>,
    rounds: HashMap<TrialId, RoundId>,
}

impl Places {
    fn of(view: &RunView) -> Places {
        let targets = index_of(view.targets.iter().map(|(id, _)| *id));
        let points = index_of(view.points.iter().map(|(id, _)| *id));
        let rounds: HashMap<RoundId, usize> = view
            .rounds
            .iter()
            .filter_map(|(id, row)| Some((*id, *points.get(&row.point_id)?)))
            .collect();
        let place = |row: &ledger::TrialRow| {
            Some((*rounds.get(&row.round_id)?, *targets.get(&row.target_id)?))
        };
        let trials: HashMap<_, _> =
            view.trials.iter().filter_map(|(id, row)| Some((*id, place(row)?))).collect();
        let mut best: HashMap<(usize, usize), Validity> = HashMap::new();
        let graded =
            || view.trials.iter().filter_map(|(id, row)| Some((*id, row, trials.get(id)?)));
        for (_, row, place) in graded() {
            let best = best.entry(*place).or_insert(row.validity);
            *best = more_valid(*best, row.validity);
        }
        let is_counted = |row: &ledger::TrialRow, place| best.get(place) == Some(&row.validity);
        let counted = graded().filter(|(_, row, place)| is_counted(row, place));
        let counted = counted.map(|(id, ..)| id).collect();
        let rounds = view.trials.iter().map(|(id, row)| (*id, row.round_id)).collect();
        Places { targets, trials, counted, rounds }
    }
}

/// The better one of two.
fn more_valid(one: Validity, other: Validity) -> Validity {
    let order = [Validity::Valid, Validity::Disturbed, Validity::Invalid];
    order.into_iter().find(|grade| [one, other].contains(grade)).unwrap_or(Validity::Invalid)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn length_s(view: &RunView) -> f64 {
    let slices = view.slices.iter().map(|slice| slice.start_ns + slice.duration_ns);
    let trials = view.trials.iter().map(|(_, trial)| trial.started_ns + trial.measured_ns);
    // A command may end after its slice.
    let events = view.events.iter().map(|event| event.at_ns.saturating_add(event.took_ns));
    seconds(slices.chain(trials).chain(events).max().unwrap_or(0))
}

fn distributions(
    view: &RunView,
    places: &Places,
    drawn: &impl RangeBounds<usize>,
) -> Result<Vec<Distribution>, LedgerError> {
    let mut merged: BTreeMap<(usize, usize), Histogram<u64>> = BTreeMap::new();
    let overall = view.histograms.iter().filter(|row| {
        row.kind == HistogramKind::Latency && row.clients.is_empty() && row.operation.is_empty()
    });
    for row in overall.filter(|row| places.counted.contains(&row.trial_id)) {
        let Some(place) = places.trials.get(&row.trial_id) else { continue };
        if !drawn.contains(&place.0) {
            continue;
        }
        let one = row.histogram()?;
        match merged.get_mut(place) {
            None => drop(merged.insert(*place, one)),
            Some(all) => all.add(one).map_err(LedgerError::histogram)?,
        }
    }
    let row = |((point, target), histogram)| Distribution { point, target, histogram };
    Ok(merged.into_iter().map(row).collect())
}

fn rounds(view: &RunView, places: &Places) -> Vec<(usize, Stretch)> {
    let mut all: BTreeMap<RoundId, (usize, Stretch)> = BTreeMap::new();
    for slice in &view.slices {
        let (Some((point, _)), Some(round)) =
            (places.trials.get(&slice.trial_id), places.rounds.get(&slice.trial_id))
        else {
            continue;
        };
        let own = stretch(slice);
        let (_, whole) = all.entry(*round).or_insert((*point, own));
        whole.start_s = whole.start_s.min(own.start_s);
        whole.end_s = whole.end_s.max(own.end_s);
    }
    all.into_values().collect()
}

/// From the start of each round's first target to its first slice.
fn settling(view: &RunView, places: &Places) -> Vec<Stretch> {
    let mut starts: BTreeMap<RoundId, (u64, u64)> = BTreeMap::new();
    for (_, trial) in &view.trials {
        let (start, _) = starts.entry(trial.round_id).or_insert((u64::MAX, u64::MAX));
        *start = (*start).min(trial.started_ns);
    }
    for slice in &view.slices {
        let round = places.rounds.get(&slice.trial_id).and_then(|round| starts.get_mut(round));
        if let Some((_, first)) = round {
            *first = (*first).min(slice.start_ns);
        }
    }
    let known = starts.into_values().filter(|(start, first)| start < first && *first < u64::MAX);
    known.map(|(start, first)| Stretch { start_s: seconds(start), end_s: seconds(first) }).collect()
}

fn slices(view: &RunView, places: &Places) -> Vec<(usize, Vec<Stretch>)> {
    if view.slices.len() > MAX_SLICES {
        return Vec::new();
    }
    let mut all: BTreeMap<usize, Vec<Stretch>> = BTreeMap::new();
    for slice in &view.slices {
        if let Some((_, target)) = places.trials.get(&slice.trial_id) {
            all.entry(*target).or_default().push(stretch(slice));
        }
    }
    all.into_iter().collect()
}

fn stretch(slice: &ledger::SliceRow) -> Stretch {
    Stretch { start_s: seconds(slice.start_ns), end_s: seconds(slice.start_ns + slice.duration_ns) }
}

fn disturbed(view: &RunView) -> Vec<Stretch> {
    let spoiled = view.slices.iter().filter(|slice| slice.validity == Validity::Disturbed);
    spoiled.map(stretch).collect()
}

fn events(view: &RunView, places: &Places) -> Vec<EventOutcome> {
    let mut rows: Vec<&ledger::EventRow> = view.events.iter().collect();
    rows.sort_by_key(|row| row.at_ns);
    let mut all: Vec<EventOutcome> = Vec::new();
    for row in rows {
        let Some((_, target)) = places.trials.get(&row.trial_id) else { continue };
        let (start_s, end_s) = (seconds(row.at_ns), seconds(row.at_ns + row.took_ns));
        let time = (*target, Stretch { start_s, end_s });
        match all.iter_mut().find(|one| one.name == row.name) {
            Some(one) => one.times.push(time),
            None => all.push(EventOutcome { name: row.name.clone(), times: vec![time] }),
        }
    }
    all
}

fn pace(
    ledger: &Ledger,
    view: &RunView,
    places: &Places,
    target: usize,
    length_s: f64,
) -> Result<Pace, LedgerError> {
    let is_own = |trial: &TrialId| places.trials.get(trial).is_some_and(|own| own.1 == target);
    let mut answered = HashMap::new();
    let mut p50 = Thinned::over(length_s, mean);
    let mut p99 = Thinned::over(length_s, greatest);
    let own = view.trials.iter().map(|(id, _)| *id).filter(is_own);
    for trial in own.take(MAX_TRIALS_READ) {
        let rows = ledger.seconds(trial)?;
        for (second, middle, high) in by_second(&rows)? {
            p50.push(f64::from(second) + 0.5, middle as f64);
            p99.push(f64::from(second) + 0.5, high as f64);
        }
        answered.insert(trial, answers_by_second(&rows));
    }
    let mut rate = Thinned::over(length_s, mean);
    let own = || view.slices.iter().filter(|slice| is_own(&slice.trial_id));
    let mut pieces: HashMap<TrialId, usize> = HashMap::new();
    own().for_each(|slice| *pieces.entry(slice.trial_id).or_default() += 1);
    for slice in own() {
        let (start_ns, end_ns) = (slice.start_ns, slice.start_ns.saturating_add(slice.duration_ns));
        // A second may be of two slices, and what was answered in it is known of both together.
        let is_whole = pieces.get(&slice.trial_id) == Some(&1);
        let answered = answered.get(&slice.trial_id).filter(|_| is_whole);
        for (at, value) in rates((start_ns, end_ns), slice.operations, answered) {
            rate.push(at, value);
        }
    }
    Ok(Pace { rate_per_s: rate.points(), p50_ns: p50.points(), p99_ns: p99.points() })
}

/// How many requests of a trial were answered in each second. Service times are those of answers,
/// and latencies also of requests that were given up; a closed loop has only these.
fn answers_by_second(rows: &[HistogramRow]) -> BTreeMap<u64, u64> {
    let is_any = |kind| rows.iter().any(|row| row.kind == kind);
    let kind = match is_any(HistogramKind::Service) {
        true => HistogramKind::Service,
        false => HistogramKind::Latency,
    };
    let mut seconds = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == kind) {
        *seconds.entry(u64::from(row.second.unwrap_or(0))).or_default() += row.count;
    }
    seconds
}

/// The rates of a slice with the middles of the times that they are of: of one that is longer than
/// a second, and all that a trial has, a rate for each second of the run, as its arrivals may have
/// several.
fn rates(
    (start_ns, end_ns): (u64, u64),
    operations: u64,
    answered: Option<&BTreeMap<u64, u64>>,
) -> Vec<(f64, f64)> {
    const SECOND: u64 = 1_000_000_000;
    const MOST_SECONDS: u64 = 100_000;
    if end_ns <= start_ns {
        return Vec::new();
    }
    let (first, last) = (start_ns / SECOND, (end_ns - 1) / SECOND);
    let none = BTreeMap::new();
    let is_long = end_ns - start_ns > SECOND && last - first < MOST_SECONDS;
    let answered = answered.filter(|_| is_long).unwrap_or(&none);
    let all: u64 = answered.range(first..=last).map(|(_, count)| count).sum();
    let operations = operations as f64;
    let rate = |from: u64, until: u64, operations: f64| {
        (seconds(from + (until - from) / 2), operations / seconds(until - from))
    };
    if all == 0 {
        return vec![rate(start_ns, end_ns, operations)];
    }
    let of_second = |second: u64| {
        let begins = second * SECOND;
        let (from, until) = (start_ns.max(begins), end_ns.min(begins.saturating_add(SECOND)));
        let count = answered.get(&second).copied().unwrap_or(0) as f64;
        // Of a few milliseconds a rate says nothing.
        (until - from >= SECOND / 10).then(|| rate(from, until, operations * count / all as f64))
    };
    (first..=last).filter_map(of_second).collect()
}

/// Median and 99th percentile of each second, over all clients and operations.
fn by_second(rows: &[HistogramRow]) -> Result<Vec<(u32, u64, u64)>, LedgerError> {
    let mut seconds: BTreeMap<u32, Vec<&HistogramRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == HistogramKind::Latency && row.count > 0) {
        seconds.entry(row.second.unwrap_or(0)).or_default().push(row);
    }
    let mut found = Vec::with_capacity(seconds.len());
    for (second, rows) in seconds {
        let (first, rest) = rows.split_first().expect("a second is only there with a row");
        let percentiles = match (rest, first.p50_ns, first.p99_ns) {
            ([], Some(p50), Some(p99)) => (p50, p99),
            _ => {
                let mut all = first.histogram()?;
                for row in rest {
                    all.add(row.histogram()?).map_err(LedgerError::histogram)?;
                }
                (all.value_at_quantile(0.5), all.value_at_quantile(0.99))
            }
        };
        found.push((second, percentiles.0, percentiles.1));
    }
    Ok(found)
}

/// A line over time that keeps at most [`MAX_POINTS`] points.
struct Thinned {
    stretch_s: f64,
    of: fn(&[f64]) -> f64,
    bins: BTreeMap<usize, (f64, Vec<f64>)>,
}

impl Thinned {
    fn over(length_s: f64, of: fn(&[f64]) -> f64) -> Thinned {
        let stretch_s = (length_s / MAX_POINTS as f64).max(1e-3);
        Thinned { stretch_s, of, bins: BTreeMap::new() }
    }

    fn push(&mut self, at_s: f64, value: f64) {
        let bin = ((at_s / self.stretch_s) as usize).min(MAX_POINTS - 1);
        let (at, values) = self.bins.entry(bin).or_default();
        *at += at_s;
        values.push(value);
    }

    fn points(self) -> Vec<(f64, f64)> {
        let point = |(at, values): &(f64, Vec<f64>)| (at / values.len() as f64, (self.of)(values));
        self.bins.values().map(point).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_and_a_minute_make_lines_of_the_same_length() {
        for length_s in [60.0, 3600.0] {
            let mut line = Thinned::over(length_s, mean);
            let samples = (length_s * 10.0) as usize;
            (0..samples).for_each(|at| line.push(at as f64 / 10.0, 7.0));
            let points = line.points();
            assert_eq!(points.len(), MAX_POINTS);
            assert!(points.iter().all(|(_, value)| *value == 7.0), "{points:?}");
            assert!(points.is_sorted_by(|a, b| a.0 < b.0), "{points:?}");
        }
    }

    #[test]
    fn a_slice_longer_than_a_second_has_a_rate_for_each_second() {
        let ms = |ms: u64| ms * 1_000_000;
        let answered = BTreeMap::from([(7, 250), (8, 1_000), (9, 2_000), (10, 1)]);
        // From the half of the seventh second to just after the begin of the tenth.
        let rates_of = |slice, answered| rates(slice, 3_251, answered);
        let seen = rates_of((ms(7_500), ms(10_002)), Some(&answered));
        assert_eq!(seen, [(7.75, 500.0), (8.5, 1_000.0), (9.5, 2_000.0)]);
        let waited = rates_of((ms(7_500), ms(12_000)), Some(&answered));
        assert_eq!(waited.last(), Some(&(11.5, 0.0)), "nothing was answered");
        let mean = [(8.0, 1_625.5)];
        assert_eq!(rates_of((ms(7_000), ms(9_000)), None), mean);
        assert_eq!(rates_of((ms(7_250), ms(7_750)), Some(&answered)), [(7.5, 6_502.0)]);
        assert_eq!(rates_of((ms(7_000), ms(7_000)), None), []);
    }
}
