//! The metrics of one trial, or of all valid trials of one target at one point.

use std::borrow::Cow;

use judge::{Metric, Metrics, OF_A_SCHEDULE, median};
use ledger::{HistogramRow, LedgerError, StreamRow, TrialRow};

use crate::call_values::ValueFigures;
use crate::latency::{Latency, lags, overall};
use crate::streams::StreamFigures;

/// Every metric of a trial: those of the table [`judge::METRICS`], and reported figures. `None` is
/// *unseen*.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Operations completed.
    pub operations: u64,
    /// Operations per second of [`TrialRow::rate_ns`].
    pub rate_per_s: Option<f64>,
    /// Latency of all operations.
    pub latency: Latency,
    /// The mean number of operations under way in the measured time, each from when it was due to
    /// its answer.
    pub concurrency: Option<f64>,
    /// Send lag of all operations; empty unless there is a schedule.
    pub lag: Latency,
    /// Requests that a schedule made due, per second of its own time.
    pub offered_per_s: Option<f64>,
    /// The most requests that were due and had no free slot.
    pub backlog_most: Option<u64>,
    /// Operations whose answers were not checked.
    pub unchecked: u64,
    /// Wrong answers.
    pub wrong: u64,
    /// Operations that the target refused.
    pub refused: u64,
    /// Operations not answered in time.
    pub missing: u64,
    /// Keys requested and not found.
    pub misses: u64,
    /// Found ÷ requested, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Resources used by the target.
    pub server: Usage,
    /// Resources used by the load generator.
    pub generator: Usage,
    /// Share of time that the generator didn't spend in empty polls, 0 to 1.
    pub generator_busy: Option<f64>,
    /// Elements of values per second, where values have elements.
    pub elements_per_s: Option<f64>,
    /// Their bytes per second.
    pub bytes_per_s: Option<f64>,
    /// The updates of streams; `None` without streams.
    pub streams: Option<StreamFigures>,
    /// Figures that calls reported, by name: each is its own metric or, where the lab measures none
    /// itself, the metric of this name.
    pub reported: Vec<(String, f64)>,
}

/// Resources used by a process group.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// CPU time per operation, in ns.
    pub cpu_ns_per_op: Option<f64>,
    /// Its part in user space.
    pub user_ns_per_op: Option<f64>,
    /// Its part in the kernel.
    pub system_ns_per_op: Option<f64>,
    /// The most resident memory.
    pub rss_bytes: Option<u64>,
}

impl Figures {
    /// The figures of one trial, with its whole-trial histograms, its streams, and what its calls
    /// reported.
    ///
    /// Fails when a histogram is damaged and has to be decoded.
    pub fn of_trial(
        trial: &TrialRow,
        histograms: &[&HistogramRow],
        streams: &[&StreamRow],
        reported: &[ValueFigures],
    ) -> Result<Figures, LedgerError> {
        Figures::of_trials(&[trial], &[histograms], streams, reported)
    }

    /// Every metric that was seen, by its name in suites.
    pub fn seen(&self, metrics: &Metrics) -> Vec<(Cow<'static, str>, f64)> {
        let seen = |metric: &Metric| Some((metric.suite.clone(), self.value(metric)?));
        metrics.iter().filter_map(seen).filter(|(_, value)| value.is_finite()).collect()
    }

    /// What a ledger keeps of them: every metric that was seen, and what is known of the schedule.
    pub fn stored(&self, metrics: &Metrics) -> Vec<(Cow<'static, str>, f64)> {
        let [p50, p99] = [self.lag.p50_ns, self.lag.p99_ns].map(|ns| ns.map(|ns| ns as f64));
        let schedule = OF_A_SCHEDULE.into_iter().zip([self.offered_per_s, p50, p99]);
        let mut all = self.seen(metrics);
        all.extend(schedule.filter_map(|(name, value)| Some((name.into(), value?))));
        all
    }

    /// The figures of several trials taken as one, with the percentiles of their merged
    /// histograms: percentiles are never averaged.
    ///
    /// Costs per operation are sums over sums, of the trials in which they were seen; memory is
    /// the greatest; busy is the median, because one odd trial shouldn't decide whether a run is
    /// generator-bound.
    ///
    /// Fails when a histogram in the ledger is damaged.
    pub(crate) fn of_trials(
        trials: &[&TrialRow],
        histograms: &[&[&HistogramRow]],
        streams: &[&StreamRow],
        reported: &[ValueFigures],
    ) -> Result<Figures, LedgerError> {
        let latencies: Vec<_> = histograms.iter().filter_map(|own| overall(own)).collect();
        let lags: Vec<_> = histograms.iter().flat_map(|own| lags(own)).collect();
        let sum = |of: fn(&TrialRow) -> u64| trials.iter().map(|trial| of(trial)).sum::<u64>();
        let per_op = |of: fn(&TrialRow) -> Option<u64>| {
            quotient(trials, |trial| Some((of(trial)?, trial.operations)))
        };
        let per_s = |of: fn(&TrialRow) -> Option<u64>| {
            let per_ns = quotient(trials, |trial| Some((of(trial)?, trial.rate_ns)))?;
            Some(per_ns * 1e9)
        };
        let most = |of: fn(&TrialRow) -> Option<u64>| trials.iter().filter_map(|t| of(t)).max();
        let latency = Latency::merged(&latencies)?;
        let measured_ns = sum(|trial| trial.measured_ns);
        let busy: Vec<f64> = trials.iter().filter_map(|trial| trial.generator_busy).collect();
        Ok(Figures {
            operations: sum(|trial| trial.operations),
            rate_per_s: per_s(|trial| Some(trial.operations)),
            concurrency: concurrency(&latency, measured_ns),
            latency,
            lag: Latency::merged(&lags)?,
            offered_per_s: quotient(trials, |trial| Some((trial.offered?, trial.schedule_ns?)))
                .map(|per_ns| per_ns * 1e9),
            backlog_most: most(|trial| trial.backlog_most),
            unchecked: sum(|trial| trial.unchecked),
            wrong: sum(|trial| trial.wrong),
            refused: sum(|trial| trial.refused),
            missing: sum(|trial| trial.missing),
            misses: sum(|trial| trial.misses),
            hit_ratio: quotient(trials, |trial| Some((trial.hits?, trial.hits? + trial.misses))),
            server: Usage {
                cpu_ns_per_op: per_op(|trial| trial.server_cpu_ns),
                user_ns_per_op: per_op(|trial| trial.server_user_ns),
                system_ns_per_op: per_op(|trial| trial.server_system_ns),
                rss_bytes: most(|trial| trial.server_rss_bytes),
            },
            generator: Usage {
                cpu_ns_per_op: per_op(|trial| trial.generator_cpu_ns),
                user_ns_per_op: per_op(|trial| trial.generator_user_ns),
                system_ns_per_op: per_op(|trial| trial.generator_system_ns),
                rss_bytes: most(|trial| trial.generator_rss_bytes),
            },
            generator_busy: median(&busy),
            elements_per_s: per_s(|trial| trial.elements),
            bytes_per_s: per_s(|trial| trial.payload_bytes),
            streams: StreamFigures::of(streams, trials)?,
            reported: reported.iter().map(|one| (one.name.clone(), one.mean)).collect(),
        })
    }

    /// The value of a metric, in the metric's unit; `None` when it is unseen.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        let streams = self.streams.as_ref();
        let stale = |of: fn(&Latency) -> Option<u64>| {
            streams.and_then(|one| of(&one.staleness)).map(|ns| ns as f64)
        };
        let measured = match &*metric.json {
            "rate_per_s" => self.rate_per_s,
            "latency_ns.p50" => whole(self.latency.p50_ns),
            "latency_ns.p90" => whole(self.latency.p90_ns),
            "latency_ns.p99" => whole(self.latency.p99_ns),
            "latency_ns.p999" => whole(self.latency.p999_ns),
            "latency_ns.max" => whole(self.latency.max_ns),
            "latency_ns.mean" => self.latency.mean_ns,
            "concurrency.mean" => self.concurrency,
            "updates_per_s" => streams.and_then(|one| one.updates_per_s),
            "elements_per_s" => self.elements_per_s,
            "bytes_per_s" => self.bytes_per_s,
            "staleness_ns.p50" => stale(|latency| latency.p50_ns),
            "staleness_ns.p99" => stale(|latency| latency.p99_ns),
            "staleness_ns.max" => stale(|latency| latency.max_ns),
            "missed" => whole(streams.map(|one| one.missed)),
            "merged" => whole(streams.map(|one| one.merged)),
            "fairness" => streams.and_then(|one| one.fairness),
            "least_updates" => whole(streams.map(|one| one.least_updates)),
            "wrong" => whole(Some(self.wrong)),
            "refused" => whole(Some(self.refused)),
            "missing" => whole(Some(self.missing)),
            "misses" => whole(Some(self.misses)),
            "hit_ratio" => self.hit_ratio,
            "server.cpu_ns_per_op" => self.server.cpu_ns_per_op,
            "server.user_ns_per_op" => self.server.user_ns_per_op,
            "server.system_ns_per_op" => self.server.system_ns_per_op,
            "server.rss_bytes" => whole(self.server.rss_bytes),
            "generator.cpu_ns_per_op" => self.generator.cpu_ns_per_op,
            "generator.user_ns_per_op" => self.generator.user_ns_per_op,
            "generator.system_ns_per_op" => self.generator.system_ns_per_op,
            "generator.rss_bytes" => whole(self.generator.rss_bytes),
            "generator.busy" => self.generator_busy,
            _ => None,
        };
        let reported = || self.reported.iter().find(|(name, _)| **name == *metric.suite);
        measured.or_else(|| reported().map(|(_, value)| *value))
    }
}

impl Usage {
    /// The kernel's share of the CPU time, 0 to 1: of the trials in which its parts were seen. What
    /// used less than a clock tick in others has its CPU time there, and no parts.
    pub fn kernel_share(&self) -> Option<f64> {
        let system_ns = self.system_ns_per_op?;
        let share = system_ns / (self.user_ns_per_op? + system_ns);
        share.is_finite().then_some(share)
    }
}

/// The mean number of operations under way in slices of this length together. A slice lasts from
/// its first request to its last answer (of closed loops: in the mean of all slots), so nothing is
/// under way at its ends, and the time integral of their number is the sum of their latencies:
/// Little's law without an assumption (J. D. C. Little, Oper. Res. 59, 2011).
fn concurrency(latency: &Latency, measured_ns: u64) -> Option<f64> {
    let under_way_ns = latency.count as f64 * latency.mean_ns?;
    (measured_ns > 0).then(|| under_way_ns / measured_ns as f64)
}

/// One sum over another, of the trials in which both were seen.
fn quotient(trials: &[&TrialRow], of: impl Fn(&TrialRow) -> Option<(u64, u64)>) -> Option<f64> {
    let seen = trials.iter().filter_map(|trial| of(trial));
    let (a, b) = seen.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (b > 0).then(|| a as f64 / b as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_add_up_to_the_operations_under_way() {
        let latency = Latency { count: 2_000, mean_ns: Some(5e6), ..Latency::default() };
        assert_eq!(concurrency(&latency, 2_000_000_000), Some(5.0), "1,000/s of 5 ms each");
        assert_eq!(concurrency(&Latency::default(), 2_000_000_000), None);
        assert_eq!(concurrency(&latency, 0), None);
    }

    /// An overloaded target answers its backlog after the schedule's end: that time is measured,
    /// and nothing becomes due in it.
    #[test]
    fn what_was_offered_is_divided_by_the_schedules_time() {
        let trial = |schedule_ns: Option<u64>| TrialRow {
            measured_ns: 5_000_000_000,
            rate_ns: 5_000_000_000,
            operations: 2_000,
            offered: schedule_ns.map(|_| 2_000),
            schedule_ns,
            ..TrialRow::default()
        };
        let rates = |trials: &[&TrialRow]| {
            let figures = Figures::of_trials(trials, &[], &[], &[]).unwrap();
            (figures.offered_per_s, figures.rate_per_s)
        };
        let [one, other] = [1_000_000_000, 3_000_000_000].map(|ns| trial(Some(ns)));
        assert_eq!(rates(&[&one]), (Some(2_000.0), Some(400.0)));
        assert_eq!(rates(&[&one, &other]), (Some(1_000.0), Some(400.0)));
        assert_eq!(rates(&[&trial(None)]), (None, Some(400.0)));
    }

    #[test]
    fn the_kernels_share_is_of_the_trials_that_saw_both_parts() {
        let trial = |cpu_ns, parts: Option<(u64, u64)>| TrialRow {
            operations: 1_000,
            server_cpu_ns: Some(cpu_ns),
            server_user_ns: parts.map(|(user, _)| user),
            server_system_ns: parts.map(|(_, system)| system),
            ..TrialRow::default()
        };
        let share = |trials: &[&TrialRow]| {
            let figures = Figures::of_trials(trials, &[], &[], &[]).unwrap();
            figures.server.kernel_share()
        };
        let [short, long] = [trial(2_000, None), trial(8_000, Some((400, 7_600)))];
        assert_eq!(share(&[&short, &long]), Some(0.95), "7.6 of 5 ns an operation would be 152 %");
        assert_eq!(share(&[&short]), None, "less than a tick");
    }
}
