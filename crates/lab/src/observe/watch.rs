//! The thread that reads every sensor ten times a second, on the run's clock, and keeps what it
//! read until it is taken away.
//!
//! A counter becomes its growth per second over the interval's true length, from one successful
//! reading to the next; a counter that fell was made anew and says nothing. A sample stands at the
//! end of its interval.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use load::{Counter, CounterKind};
use wire::Ns;
use wire::clock::{MILLISECOND_NS, now};

use super::census::{Census, OtherPrograms, RunProcesses};
use super::hiccup::Hiccups;
use super::mark::{Mark, Marker};
use super::members::Members;
use super::roots::Roots;
use super::sensor::{Probe, Reader, Scale, Scope, Sensor};
use super::sensors::SENSORS;
use super::source::Scratch;
use super::totals::{Totals, TotalsReader};

/// From one reading to the next.
const PERIOD_NS: u64 = 100 * MILLISECOND_NS;

/// The number of readings between two searches for new members of process groups.
const LOOK_EVERY: u32 = 10;

/// The most samples kept until they are taken: about an hour of fifty series. Later ones are
/// dropped and counted.
const SAMPLES_LIMIT: usize = 2_000_000;

/// The most process groups followed at once.
const GROUPS_LIMIT: usize = 64;

/// What one series is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The process group, by the name it is followed under; `None` is the host.
    pub group: Option<String>,
    /// The sensor.
    pub sensor: &'static str,
    /// Its name within the sensor: `user`, or `cpu0.user` where there are several of a kind.
    pub name: String,
    /// The unit of its values.
    pub unit: &'static str,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Which series, as an index into [`Watch::series`].
    pub series: u32,
    /// When, on the run's clock.
    pub at: Ns,
    /// What was seen.
    pub value: f64,
}

/// Watches the host and the process groups that it follows, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    clock_zero: Ns,
    commands: Sender<WatchCommand>,
    shared: Arc<WatchState>,
    marker: Marker,
    totals: TotalsReader,
    census: Census,
    handle: Option<JoinHandle<()>>,
    _hiccups: Arc<Hiccups>,
}

enum WatchCommand {
    Follow(String, Roots),
    Leave(String),
    /// Sample at once, and say when that is done.
    Sample(Sender<()>),
}

#[derive(Debug, Default)]
struct WatchState {
    series: Mutex<Vec<Series>>,
    samples: Mutex<Samples>,
    /// The processes that are followed, by their names.
    followed: Mutex<Vec<(String, Roots)>>,
}

#[derive(Debug, Default)]
struct Samples {
    kept: Vec<Sample>,
    lost: u64,
}

impl WatchState {
    fn keep(&self, batch: &mut Vec<Sample>) {
        let mut samples = locked(&self.samples);
        let room = SAMPLES_LIMIT.saturating_sub(samples.kept.len()).min(batch.len());
        samples.lost += (batch.len() - room) as u64;
        samples.kept.extend_from_slice(&batch[..room]);
        batch.clear();
    }
}

/// Keeps what one service counts itself, as series of the sensor `service`.
#[derive(Debug)]
pub struct Sink {
    clock_zero: Ns,
    shared: Arc<WatchState>,
    own: Mutex<Own>,
}

#[derive(Debug, Default)]
struct Own {
    /// Each counter's series, once it has changed, and its last reading.
    known: HashMap<String, (Option<u32>, Ns, f64)>,
    batch: Vec<Sample>,
}

impl Sink {
    /// One counter as it was read now. What has not `changed` since the first reading has no
    /// series; what only grows becomes its growth per second.
    pub(super) fn service(&self, group: &str, counter: &Counter, changed: bool) {
        let at = now() - self.clock_zero;
        let mut own = locked(&self.own);
        let before = own.known.get(&counter.name).copied();
        let mut series = before.and_then(|(series, ..)| series);
        if changed && series.is_none() {
            series = Some(self.shared.service_series(group, counter));
        }
        own.known.insert(counter.name.clone(), (series, at, counter.value));
        let value = match (counter.kind, before) {
            (CounterKind::Level, _) => Some(counter.value),
            (CounterKind::Total, Some((_, since, earlier))) if at > since => {
                let growth = Some(counter.value - earlier).filter(|growth| *growth >= 0.0);
                growth.map(|growth| growth * 1e9 / (at - since) as f64)
            }
            (CounterKind::Total, _) => None,
        };
        let sample = series.zip(value).map(|(series, value)| Sample { series, at, value });
        own.batch.extend(sample);
    }

    /// Hands on what has been read.
    pub(super) fn hand_over(&self) {
        self.shared.keep(&mut locked(&self.own).batch);
    }
}

/// The last samples of a watch, for another thread.
#[derive(Clone, Debug)]
pub struct RecentSamples(Arc<WatchState>);

/// The window of [`RecentSamples`]: counters of ticks need tenths of a second.
const RECENT_NS: u64 = 5 * PERIOD_NS;

impl RecentSamples {
    /// The mean of every series over the last half second. Nothing, when a round has just ended
    /// and its samples were taken away.
    pub fn recent(&self) -> Vec<(Series, f64)> {
        let mut sums: HashMap<u32, (f64, f64)> = HashMap::new();
        {
            let samples = locked(&self.0.samples);
            let since = samples.kept.last().map_or(0, |last| last.at.saturating_sub(RECENT_NS));
            for sample in samples.kept.iter().rev().take_while(|sample| sample.at > since) {
                let (count, sum) = sums.entry(sample.series).or_default();
                *count += 1.0;
                *sum += sample.value;
            }
        }
        let all = locked(&self.0.series);
        let named = |(series, (count, sum)): (u32, (f64, f64))| {
            Some((all.get(series as usize)?.clone(), sum / count))
        };
        sums.into_iter().filter_map(named).collect()
    }
}

impl WatchState {
    /// The place of a counter's series: the one of an earlier service of that name, or a new one.
    fn service_series(&self, group: &str, counter: &Counter) -> u32 {
        let unit = match counter.kind {
            CounterKind::Total => "per_s",
            CounterKind::Level => "count",
        };
        let (group, name) = (Some(group.to_owned()), counter.name.clone());
        let wanted = Series { group, sensor: "service", name, unit };
        let mut all = locked(&self.series);
        let known = all.iter().position(|series| *series == wanted);
        let place = known.unwrap_or(all.len());
        if known.is_none() {
            all.push(wanted);
        }
        place as u32
    }
}

impl Watch {
    /// Starts to watch. `clock_zero` is the zero of the run's clock and `cpus` are the run's cores;
    /// empty means all that this process may use. Where there are other cores it sits on those.
    ///
    /// # Errors
    /// When a thread can't be started.
    pub fn start(clock_zero: Ns, cpus: &[usize]) -> std::io::Result<Self> {
        let here = crate::cpus::cpus_here();
        let cpus = if cpus.is_empty() { here.clone() } else { cpus.to_vec() };
        let hiccups = Arc::new(Hiccups::start(&cpus));
        let marker = Marker::open(clock_zero, hiccups.reader());
        let shared = Arc::new(WatchState::default());
        let (commands, received) = channel();
        let aside: Vec<usize> = here.into_iter().filter(|cpu| !cpus.contains(cpu)).collect();
        let scope = Scope { cpus, hiccups: hiccups.clone() };
        let totals = TotalsReader::open(&scope);
        let its = shared.clone();
        let handle = std::thread::Builder::new().name("watch".into()).spawn(move || {
            let _ = crate::cpus::pin_this_thread(&aside);
            let mut watcher = Watcher::open(clock_zero, &scope, its);
            watcher.watch(&received);
        })?;
        let handle = Some(handle);
        let census = Census::open();
        Ok(Self { clock_zero, commands, shared, marker, totals, census, handle, _hiccups: hiccups })
    }

    /// The zero of the run's clock.
    pub fn clock_zero(&self) -> Ns {
        self.clock_zero
    }

    /// Follows a process group, or processes that ran already, from now on, under this name; what
    /// has the same name is left.
    pub fn follow(&self, name: &str, roots: impl Into<Roots>) {
        let roots = roots.into();
        let mut followed = locked(&self.shared.followed);
        followed.retain(|(known, _)| known != name);
        followed.push((name.to_owned(), roots.clone()));
        drop(followed);
        // The thread only ends when this is dropped.
        let _ = self.commands.send(WatchCommand::Follow(name.to_owned(), roots));
    }

    /// Follows the process group of this program.
    pub fn follow_own(&self, name: &str) {
        self.follow(name, rustix::process::getpgrp());
    }

    /// Follows it no longer. Its series stays, for the next group of the same name.
    pub fn leave(&self, name: &str) {
        locked(&self.shared.followed).retain(|(known, _)| known != name);
        let _ = self.commands.send(WatchCommand::Leave(name.to_owned()));
    }

    /// Where what services count themselves is kept beside what is read here.
    pub fn sink(&self) -> Sink {
        Sink { clock_zero: self.clock_zero, shared: self.shared.clone(), own: Mutex::default() }
    }

    /// What has been sampled since this was last called.
    pub fn take(&self) -> Vec<Sample> {
        std::mem::take(&mut locked(&self.shared.samples).kept)
    }

    /// What has been sampled after this time and not been taken yet.
    pub(super) fn samples_since(&self, since: Ns) -> Vec<Sample> {
        let samples = locked(&self.shared.samples);
        samples.kept.iter().filter(|sample| sample.at > since).copied().collect()
    }

    /// Has everything sampled once more, and waits for that.
    pub(super) fn sample_now(&self) {
        let (done, is_done) = channel();
        // Without the thread nothing is sampled, which shows in the samples.
        if self.commands.send(WatchCommand::Sample(done)).is_ok() {
            let _ = is_done.recv();
        }
    }

    /// Every series so far; it only grows, so that indices stay as they are.
    pub fn series(&self) -> Vec<Series> {
        locked(&self.shared.series).clone()
    }

    /// The newest samples, for another thread.
    pub fn recent_samples(&self) -> RecentSamples {
        RecentSamples(self.shared.clone())
    }

    /// The number of samples dropped because they weren't taken in time.
    pub fn lost(&self) -> u64 {
        locked(&self.shared.samples).lost
    }

    /// What is judged about a slice, read at once by the calling thread: right before the slice
    /// and right after it.
    pub fn mark(&mut self) -> Mark {
        self.marker.read()
    }

    /// Reads which processes there are, for [`Watch::other_programs`]: before a slice.
    pub fn before_slice(&mut self) {
        self.census.before_slice();
    }

    /// The programs that used CPU time since [`Watch::before_slice`], other than the target of
    /// these processes and the lab, on these cores; empty means all. `programs_load` says whether
    /// programs that the lab has started are its load. `None` is unseen.
    pub fn other_programs(
        &mut self,
        target: Option<&Roots>,
        programs_load: bool,
        cpus: &[usize],
    ) -> Option<OtherPrograms> {
        let followed = locked(&self.shared.followed).clone();
        let run = RunProcesses { target, followed: &followed, programs_load, cpus };
        self.census.after_slice(&run)
    }

    /// What the host has counted so far, read at once by the calling thread.
    pub fn totals(&mut self) -> Totals {
        self.totals.read()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Disconnecting ends the thread.
        let (disconnected, _) = channel();
        self.commands = disconnected;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// A thread that panicked has left whole samples behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One sensor of the host, or of one group.
struct Stream {
    sensor: &'static Sensor,
    /// The place of its first series.
    first: u32,
    readings: Vec<Option<u64>>,
    /// The last successful reading of each.
    last: Vec<Option<(Ns, u64)>>,
}

struct Group {
    name: String,
    members: Members,
    streams: Vec<Stream>,
}

struct Watcher {
    clock_zero: Ns,
    scratch: Scratch,
    host: Vec<(Stream, Box<dyn Probe>)>,
    groups: Vec<Group>,
    batch: Vec<Sample>,
    shared: Arc<WatchState>,
}

impl Watcher {
    fn open(clock_zero: Ns, scope: &Scope, shared: Arc<WatchState>) -> Self {
        let mut host = Vec::new();
        for sensor in SENSORS {
            if let Reader::Host(open) = sensor.of {
                let probe = open(scope);
                host.push((Stream::new(sensor, None, &probe.instances(), &shared), probe));
            }
        }
        let scratch = Scratch::new();
        Self { clock_zero, scratch, host, groups: Vec::new(), batch: Vec::new(), shared }
    }

    fn watch(&mut self, commands: &Receiver<WatchCommand>) {
        let mut tick = 0_u32;
        let mut due = now();
        loop {
            let wait = Duration::from_nanos(due.saturating_sub(now()));
            match commands.recv_timeout(wait) {
                Ok(WatchCommand::Follow(name, roots)) => self.follow(name, roots),
                Ok(WatchCommand::Leave(name)) => self.leave(&name),
                Ok(WatchCommand::Sample(done)) => {
                    self.sample(1);
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    self.sample(tick);
                    tick = tick.wrapping_add(1);
                    // A reading that was missed is not made up for.
                    due = (due + PERIOD_NS).max(now());
                }
            }
        }
    }

    fn follow(&mut self, name: String, roots: Roots) {
        self.leave(&name);
        if self.groups.len() == GROUPS_LIMIT {
            tracing::warn!("{name} is not watched: {GROUPS_LIMIT} process groups are already");
            return;
        }
        let mut streams = Vec::new();
        for sensor in SENSORS {
            if matches!(sensor.of, Reader::Group(_)) {
                streams.push(Stream::new(sensor, Some(&name), &[String::new()], &self.shared));
            }
        }
        let mut group = Group { name, members: Members::of(roots), streams };
        group.sample(self.clock_zero, 0, &mut self.scratch, &mut self.batch);
        self.groups.push(group);
        self.hand_over();
    }

    fn leave(&mut self, name: &str) {
        let Some(place) = self.groups.iter().position(|group| group.name == name) else { return };
        let mut group = self.groups.swap_remove(place);
        group.sample(self.clock_zero, 0, &mut self.scratch, &mut self.batch);
        self.hand_over();
    }

    /// Reads what is due in this tenth of a second.
    fn sample(&mut self, tick: u32) {
        let due = |(stream, _): &&mut (Stream, _)| tick.is_multiple_of(stream.sensor.every);
        for (stream, probe) in self.host.iter_mut().filter(due) {
            stream.readings.fill(None);
            probe.read(&mut self.scratch, &mut stream.readings);
            stream.emit(now() - self.clock_zero, &mut self.batch);
        }
        for group in &mut self.groups {
            group.sample(self.clock_zero, tick, &mut self.scratch, &mut self.batch);
        }
        self.hand_over();
    }

    fn hand_over(&mut self) {
        self.shared.keep(&mut self.batch);
    }
}

impl Group {
    /// Once a second it is looked for new members as well.
    fn sample(&mut self, zero: Ns, tick: u32, scratch: &mut Scratch, batch: &mut Vec<Sample>) {
        if tick.is_multiple_of(LOOK_EVERY) {
            self.members.look(scratch);
        }
        let due = |stream: &&mut Stream| tick.is_multiple_of(stream.sensor.every);
        for stream in self.streams.iter_mut().filter(due) {
            stream.readings.fill(None);
            if let Reader::Group(read) = stream.sensor.of {
                read(&mut self.members, scratch, &mut stream.readings);
            }
            stream.emit(now() - zero, batch);
        }
    }
}

impl Stream {
    /// Finds its series again when a group of this name was followed before, or adds them.
    fn new(
        sensor: &'static Sensor,
        group: Option<&str>,
        instances: &[String],
        shared: &WatchState,
    ) -> Self {
        let mut all = locked(&shared.series);
        let known =
            |series: &Series| series.group.as_deref() == group && series.sensor == sensor.name;
        let first = all.iter().position(known).unwrap_or(all.len());
        if first == all.len() {
            for instance in instances {
                let dot = if instance.is_empty() { "" } else { "." };
                all.extend(sensor.series.iter().map(|line| Series {
                    group: group.map(str::to_owned),
                    sensor: sensor.name,
                    name: format!("{instance}{dot}{}", line.name),
                    unit: line.unit,
                }));
            }
        }
        let count = sensor.series.len() * instances.len();
        let (readings, last) = (vec![None; count], vec![None; count]);
        Self { sensor, first: first as u32, readings, last }
    }

    /// Turns the readings into samples; what is unseen makes none.
    fn emit(&mut self, at: Ns, batch: &mut Vec<Sample>) {
        let lines = self.sensor.series.iter().cycle();
        let series = self.first..;
        for (((line, series), reading), last) in
            lines.zip(series).zip(&self.readings).zip(&mut self.last)
        {
            let Some(reading) = *reading else { continue };
            let before = last.replace((at, reading));
            if let Some(value) = value(line.kind, before, at, reading) {
                batch.push(Sample { series, at, value });
            }
        }
    }
}

fn value(kind: Scale, before: Option<(Ns, u64)>, at: Ns, reading: u64) -> Option<f64> {
    match kind {
        Scale::Level(scale) => Some(reading as f64 * scale),
        Scale::Rate(scale) => {
            let (since, earlier) = before?;
            let growth = reading.checked_sub(earlier)?;
            let interval_ns = at.checked_sub(since).filter(|interval_ns| *interval_ns > 0)?;
            Some(growth as f64 * scale * 1e9 / interval_ns as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::clock::SECOND_NS;

    use super::*;

    #[test]
    fn a_counter_becomes_its_growth_over_the_true_interval() {
        let rate = Scale::Rate(1.0);
        let second = SECOND_NS;
        assert_eq!(value(rate, None, second, 5), None, "there is nothing to compare with");
        assert_eq!(value(rate, Some((second, 5)), 3 * second, 9), Some(2.0));
        assert_eq!(value(rate, Some((second, 5)), 2 * second, 4), None, "it was made anew");
        assert_eq!(value(rate, Some((second, 5)), second, 9), None, "no time has passed");
        assert_eq!(value(Scale::Level(0.01), None, second, 469), Some(4.69));
        let share = value(Scale::Rate(1e-9), Some((0, 0)), second, 250_000_000).unwrap();
        assert!((share - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_interval_of_a_counter_reaches_over_what_was_not_read() {
        let shared = WatchState::default();
        let mut stream = Stream::new(SENSORS[1], None, &[String::new()], &shared);
        let mut batch = Vec::new();
        assert_eq!(stream.sensor.name, "load");
        stream.readings = vec![Some(105), None, Some(7)];
        stream.emit(4, &mut batch);
        let expected = [(0, 1.05), (2, 7.0)].map(|(series, value)| Sample { series, at: 4, value });
        assert_eq!(batch, expected);
    }

    #[test]
    fn a_glance_is_the_mean_of_what_was_sampled_lately() {
        let shared = Arc::new(WatchState::default());
        let recent_samples = RecentSamples(shared.clone());
        assert_eq!(recent_samples.recent(), []);
        Stream::new(SENSORS[1], None, &[String::new()], &shared);
        let tenth = PERIOD_NS;
        let sample = |series, tenths: u64, value| Sample { series, at: tenths * tenth, value };
        let mut batch = vec![sample(1, 1, 9.0), sample(0, 1, 9.0), sample(0, 8, 1.0)];
        batch.push(sample(0, 10, 2.0));
        shared.keep(&mut batch);
        let recent = recent_samples.recent();
        assert_eq!(recent.len(), 1, "what was sampled long before is left out: {recent:?}");
        assert_eq!((recent[0].0.name.as_str(), recent[0].1), ("one_minute", 1.5));
    }

    #[test]
    fn a_group_of_the_same_name_goes_on_in_its_series() {
        let shared = WatchState::default();
        let host = Stream::new(SENSORS[0], None, &["cpu0".into(), "cpu1".into()], &shared);
        let names = [String::new()];
        let first = Stream::new(SENSORS[1], Some("a"), &names, &shared);
        let other = Stream::new(SENSORS[1], Some("b"), &names, &shared);
        let again = Stream::new(SENSORS[1], Some("a"), &names, &shared);
        assert_eq!((host.first, first.first, other.first, again.first), (0, 12, 15, 12));
        let series = locked(&shared.series);
        assert_eq!(series[6].name, "cpu1.user");
        assert_eq!(
            (series[12].name.as_str(), series[12].group.as_deref()),
            ("one_minute", Some("a"))
        );
    }
}
