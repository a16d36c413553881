//! The state of a run as its events tell it: plain lines and the full-screen view both show this.
//! Time comes from outside, so that tests can set it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use findings::{TargetProgress, TrialProgress};
use judge::Metric;
use lab::drive::{Counted, Counts, Figure, Second, empty_histogram};
use lab::observe::Series;
use lab::plan::{Plan, Target};
use lab::run::{Activity, RunEvent, SliceStats, TargetStatus};
use ledger::{Histogram, Validity};

/// Slices or seconds whose rates are kept: as many as the widest terminal shows.
const RATES_KEPT: usize = 240;

/// Of a mean whose interval isn't shown.
const CONFIDENCE: f64 = 0.95;

/// Lines worth saying that are kept until the end; what is more is in the ledger, too.
const SAID_KEPT: usize = 200;

/// What a run has shown so far.
pub(super) struct State {
    pub(super) title: String,
    /// The suite's primary metric.
    pub(super) primary: Metric,
    /// How many rounds of each point, at least and at most.
    pub(super) rounds: (u32, u32),
    pub(super) points: usize,
    pub(super) point: String,
    pub(super) round: u32,
    pub(super) activity: String,
    pub(super) done: f64,
    /// While data are prepared, the share of them.
    pub(super) prepared: Option<f64>,
    /// When it was last known how much time was left, and how much it was.
    left: Option<(Duration, Duration)>,
    /// How long the plan takes at least.
    least: Duration,
    /// In the order of the plan, those that are left out as well.
    pub(super) targets: Vec<Side>,
    /// Cores that the lab's own processes use now, the load's threads among them.
    pub(super) generator_now: Option<f64>,
    /// How busy each core of the run is now: its number, and the share of its time.
    pub(super) cores: Vec<(usize, f64)>,
    said: VecDeque<String>,
    within: Option<Within>,
}

/// A slice that is looked into while it is measured, and what its target showed before it: once it
/// is over it is taken as a whole.
struct Within {
    target: usize,
    /// The seconds of the run's clock that are shown so far, all of them whole ones of the slice.
    shown: std::ops::Range<u64>,
    latency: Histogram<u64>,
    lag: Histogram<u64>,
    bad: Bad,
}

/// How many answers of the run were not what they should have been.
#[derive(Clone, Copy, Default)]
pub(super) struct Bad {
    pub(super) wrong: u64,
    pub(super) refused: u64,
    pub(super) missing: u64,
}

impl Bad {
    fn add(&mut self, wrong: u64, refused: u64, missing: u64) {
        self.wrong += wrong;
        self.refused += refused;
        self.missing += missing;
    }
}

/// One target's figures.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) is_skipped: bool,
    /// Latencies over the rounds of the current point, since the run last came to it; or how old
    /// updates were, where there are only updates.
    pub(super) latency: Histogram<u64>,
    /// Send lags over the same.
    pub(super) lag: Histogram<u64>,
    /// The rounds of the current point that have ended.
    pub(super) rounds: TargetProgress,
    /// The same of every other point, by label.
    others: HashMap<String, TargetProgress>,
    /// The rate of every slice of the run, the latest last; of every second of slices that are
    /// looked into.
    pub(super) rates: VecDeque<f64>,
    /// Whether its slices are reported by the second.
    pub(super) by_second: bool,
    /// The rate of its last slice, or of the last second of one that is measured.
    pub(super) rate: Option<f64>,
    /// Cores that the target used in its last slice; `None` is unseen.
    pub(super) server: Option<f64>,
    /// How busy the load's busiest thread was in it.
    pub(super) busy: Option<f64>,
    /// Requests that waited for a slot at its end, where there is a schedule.
    pub(super) backlog: Option<u64>,
    /// Cores that the target uses now; `None` while it doesn't run.
    pub(super) now: Option<f64>,
    pub(super) bad: Bad,
    /// Trials of the run: valid ones, and all.
    pub(super) valid: u32,
    pub(super) trials: u32,
    /// Why the last trial that may not be compared may not.
    pub(super) reason: Option<String>,
    /// What gave way first in the last trial; `None` before the first is over.
    pub(super) limit: Option<String>,
    /// Why the last slice is measured again, if it is.
    pub(super) disturbed: Option<String>,
}

impl Side {
    fn of(name: &str, is_skipped: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_skipped,
            latency: empty_histogram(),
            lag: empty_histogram(),
            rounds: TargetProgress::default(),
            others: HashMap::new(),
            rates: VecDeque::new(),
            by_second: false,
            rate: None,
            server: None,
            busy: None,
            backlog: None,
            now: None,
            bad: Bad::default(),
            valid: 0,
            trials: 0,
            reason: None,
            limit: None,
            disturbed: None,
        }
    }

    /// The rate of the last slice at this point, else over the earlier rounds of it.
    pub(super) fn last_rate(&self) -> Option<f64> {
        let earlier = || self.rounds.rate(CONFIDENCE).map(|rate| rate.mean);
        self.rate.or_else(earlier)
    }

    /// The median or the 99th percentile of latencies in the same way, in ns.
    pub(super) fn latency_ns(&self, q: f64) -> Option<f64> {
        let earlier = if q > 0.5 { self.rounds.p99_ns() } else { self.rounds.p50_ns() };
        match self.latency.is_empty() {
            true => earlier,
            false => Some(self.latency.value_at_quantile(q) as f64),
        }
    }

    fn slice(&mut self, stats: &SliceStats) {
        let seconds = stats.duration_ns.max(1) as f64 / 1e9;
        let rate = stats.counts.operations as f64 * 1e9 / stats.rate_ns.max(1) as f64;
        self.rate = Some(rate);
        if !self.by_second {
            self.push_rate(rate);
        }
        self.server = stats.server_ns.map(|ns| ns as f64 / 1e9 / seconds);
        self.busy = Some(stats.busy);
        let is_scheduled = stats.pressure.offered > 0;
        self.backlog = is_scheduled.then_some(stats.pressure.backlog_end);
        let Counts { wrong, refused, missing, .. } = stats.counts;
        self.bad.add(wrong, refused, missing);
        self.disturbed = Some(report::disturbed_by(&stats.causes)).filter(|by| !by.is_empty());
        self.add_times(&stats.times);
    }

    fn push_rate(&mut self, rate: f64) {
        if self.rates.len() == RATES_KEPT {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
    }

    fn add_times(&mut self, times: &[(Figure, Counted)]) {
        let has_latencies = times.iter().any(|(figure, _)| *figure == Figure::Latency);
        for (figure, counted) in times {
            match figure {
                Figure::Latency => counted.add_to(&mut self.latency),
                Figure::Staleness if !has_latencies => counted.add_to(&mut self.latency),
                Figure::Lag => counted.add_to(&mut self.lag),
                Figure::Staleness | Figure::Service => {}
            }
        }
    }

    /// Adds seconds of the current slice, up to one that isn't settled yet. A thread without
    /// answers publishes a second late; it is added where it belongs.
    fn passed(&mut self, seconds: &[Second], settled: u64, shown: &mut std::ops::Range<u64>) {
        self.by_second |= !seconds.is_empty();
        if !self.by_second {
            return;
        }
        for _ in shown.end..settled {
            self.push_rate(0.0);
        }
        shown.end = shown.end.max(settled);
        for one in seconds {
            self.bad.add(one.wrong, one.refused, one.missing);
            self.add_times(&one.times);
            if shown.contains(&one.second) {
                let from_end = (shown.end - one.second) as usize;
                let place = self.rates.len().checked_sub(from_end);
                if let Some(rate) = place.and_then(|place| self.rates.get_mut(place)) {
                    *rate += one.operations as f64;
                }
            }
        }
        if !shown.is_empty() {
            self.rate = self.rates.back().copied();
        }
        self.server = self.now.or(self.server);
    }

    fn stands(&mut self, status: &TargetStatus) {
        self.trials += 1;
        self.valid += u32::from(status.validity == Validity::Valid);
        if status.validity != Validity::Valid {
            let reason = report::validity_note(status.validity, &status.why);
            self.reason = reason.or(self.reason.take());
        }
        self.limit = Some(status.limit.clone().unwrap_or_else(|| "none reached".to_owned()));
        self.disturbed = None;
        self.rounds.add(&trial_of(status));
    }

    /// The run goes from one point to another.
    fn change_point(&mut self, from: &str, to: &str) {
        self.latency.reset();
        self.lag.reset();
        self.rate = None;
        let rounds = self.others.remove(to).unwrap_or_default();
        self.others.insert(from.to_owned(), std::mem::replace(&mut self.rounds, rounds));
    }
}

/// A trial that has just ended.
fn trial_of(status: &TargetStatus) -> TrialProgress {
    TrialProgress {
        validity: status.validity,
        why: status.why.clone(),
        operations: status.counts.operations,
        wrong: status.counts.wrong,
        refused: status.counts.refused,
        missing: status.counts.missing,
        rate_ns: status.rate_ns,
        p50_p99_ns: status.p50_p99_ns,
        generator_busy: status.busy,
    }
}

impl State {
    pub(super) fn of(plan: &Plan) -> Self {
        let side = |target: &Target| Side::of(&target.name, target.skipped.is_some());
        Self {
            title: plan.title.clone(),
            primary: plan.rounds.primary.clone(),
            rounds: (plan.rounds.at_least, plan.rounds.at_most),
            points: plan.points.len(),
            point: String::new(),
            round: 0,
            activity: "beginning".to_owned(),
            done: 0.0,
            prepared: None,
            left: None,
            least: plan.shortest().duration(),
            targets: plan.targets().iter().map(side).collect(),
            generator_now: None,
            cores: Vec::new(),
            said: VecDeque::new(),
            within: None,
        }
    }

    /// Adds an event that came `at` this time of the run.
    pub(super) fn fold(&mut self, at: Duration, event: &RunEvent<'_>) {
        match event {
            RunEvent::Begins(_) => {}
            RunEvent::Activity(activity) => self.place(at, activity),
            RunEvent::Preparing { target, begun, parts } => {
                self.activity = preparing(target, *begun, *parts);
                self.prepared = Some(*begun as f64 / (*parts).max(1) as f64);
            }
            RunEvent::Note(text) => self.say(text),
            RunEvent::SliceBegins { target, second } => self.begins(*target, *second),
            RunEvent::Seconds { measured, settled } => self.passed(measured, *settled),
            RunEvent::Sampled(recent) => self.seen(recent),
            RunEvent::SliceEnds(stats) => self.slice(stats),
            RunEvent::RoundEnds(statuses) => self.stand(statuses),
            RunEvent::StaysDisturbed { rounds, causes } => {
                let help = report::HELP_FOR_SUITES;
                self.say(&report::stays_disturbed(*rounds, causes, help));
            }
        }
    }

    fn place(&mut self, at: Duration, activity: &Activity<'_>) {
        let Activity { point, round, words, done, left } = *activity;
        if self.point != point {
            self.targets.iter_mut().for_each(|side| side.change_point(&self.point, point));
            point.clone_into(&mut self.point);
        }
        if self.activity != words {
            self.within = None;
            words.clone_into(&mut self.activity);
        }
        self.round = round;
        self.prepared = None;
        self.done = done;
        if left.is_some() {
            self.left = left.map(|left| (at, left));
        }
    }

    /// A slice that is looked into begins in this second of the run's clock.
    fn begins(&mut self, target: usize, second: u64) {
        self.within = self.targets.get(target).map(|side| Within {
            target,
            shown: second + 1..second + 1,
            latency: side.latency.clone(),
            lag: side.lag.clone(),
            bad: side.bad,
        });
    }

    fn passed(&mut self, seconds: &[Second], settled: u64) {
        let Some(within) = &mut self.within else { return };
        if let Some(side) = self.targets.get_mut(within.target) {
            side.passed(seconds, settled, &mut within.shown);
        }
    }

    fn slice(&mut self, stats: &SliceStats) {
        let Some(side) = self.targets.get_mut(stats.target) else { return };
        if let Some(before) = self.within.take().filter(|one| one.target == stats.target) {
            (side.latency, side.lag) = (before.latency, before.lag);
            side.bad = before.bad;
        }
        side.slice(stats);
    }

    fn stand(&mut self, statuses: &[TargetStatus]) {
        for status in statuses {
            if let Some(side) = self.targets.get_mut(status.target) {
                side.stands(status);
            }
        }
    }

    fn say(&mut self, said: &str) {
        for line in said.lines() {
            if self.said.len() == SAID_KEPT {
                self.said.pop_front();
            }
            self.said.push_back(report::one_line(line));
        }
    }

    /// The targets that are measured.
    pub(super) fn sides(&self) -> impl Iterator<Item = &Side> {
        self.targets.iter().filter(|side| !side.is_skipped)
    }

    /// Everything that was worth a line, in order.
    pub(super) fn said(&self) -> impl DoubleEndedIterator<Item = &String> {
        self.said.iter()
    }

    /// The time that is left, and whether it is only the least of it.
    pub(super) fn left(&self, at: Duration) -> (Duration, bool) {
        match self.left {
            Some((then, left)) => (left.saturating_sub(at.saturating_sub(then)), false),
            None => (self.least.saturating_sub(at), true),
        }
    }

    fn seen(&mut self, recent: &[(Series, f64)]) {
        let cpu_of = |group: &str| {
            let is_cpu = |series: &Series| {
                series.group.as_deref() == Some(group)
                    && (series.sensor, series.name.as_str()) == ("processes", "cpu")
            };
            recent.iter().find(|(series, _)| is_cpu(series)).map(|(_, cores)| *cores)
        };
        self.generator_now = cpu_of("generator");
        for side in &mut self.targets {
            side.now = cpu_of(&side.name);
        }
        self.cores.clear();
        for (series, share) in recent.iter().filter(|(series, _)| series.sensor == "cores") {
            let Some((cpu, what)) = series.name.split_once('.') else { continue };
            let cpu = cpu.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
            // Waiting for a disk leaves a core free.
            let Some(cpu) = cpu.filter(|_: &usize| what != "iowait") else { continue };
            match self.cores.iter_mut().find(|(known, _)| *known == cpu) {
                Some((_, sum)) => *sum += share,
                None => self.cores.push((cpu, *share)),
            }
        }
        self.cores.sort_unstable_by_key(|(cpu, _)| *cpu);
    }
}

/// `preparing postgres-gist, 4,000 of 10,002 parts`.
fn preparing(target: &str, begun: u64, parts: u64) -> String {
    format!("preparing {target}, {} of {} parts", report::count(begun), report::count(parts))
}
