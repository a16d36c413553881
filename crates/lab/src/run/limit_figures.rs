//! The figures of a trial by which its limits are judged.

use std::collections::BTreeSet;

use hdrhistogram::Histogram;
use judge::limits::Figures;

use super::trial::Trial;
use super::usage::Usage;
use crate::drive::{Figure, empty_histogram};
use crate::plan::{Arrivals, Clients, Point};

/// The confidence of slopes over a soak: one trial in a hundred without growth may look grown.
const SLOPE_CONFIDENCE: f64 = 0.99;

/// The least number of slices for a slope.
const MIN_SLICES: usize = 6;

impl Usage {
    /// The figures of the trial that this is of.
    pub(super) fn figures(&self, trial: &Trial, point: &Point, copy_bytes_per_s: f64) -> Figures {
        let mut figures = Figures {
            measured_ns: Some(self.watched_ns as f64).filter(|ns| *ns > 0.0),
            copy_bytes_per_s: Some(copy_bytes_per_s),
            foreign: share(self.foreign_ns, self.core_time_ns),
            disk_work: share(Some(self.disk_work_ns).filter(|ns| *ns > 0), self.core_time_ns),
            longest_pause_ns: self.longest_pause_ns.map(|ns| ns as f64),
            paused: share(self.paused_ns, self.watched_ns),
            ..Figures::default()
        };
        for (name, total) in &self.totals {
            let unit = judge::limits::FIGURES.iter().find(|row| row.0 == *name).map(|row| row.1);
            // What is a share of time was summed in seconds.
            let seconds = self.watched_ns.max(1) as f64 / 1e9;
            let divisor = if unit == Some("fraction") { seconds } else { 1.0 };
            figures.set(name, total / divisor);
        }
        if self.outside_ns > 0 {
            figures.server_outside_ns = Some(self.outside_ns as f64);
            figures.server_outside_cpu_ns = Some(self.outside_cpu_ns as f64);
        }
        self.cores(&mut figures, trial, point);
        self.processes(&mut figures, trial);
        load(&mut figures, trial, point);
        growing(&mut figures, &self.resident, &self.descriptors);
        figures
    }

    fn cores(&self, figures: &mut Figures, trial: &Trial, point: &Point) {
        let (server, generator) = cpus(trial, point);
        let count = |cpus: &[usize]| Some(cpus.len() as f64).filter(|count| *count > 0.0);
        let used = |cpu: &usize| {
            let idle_ns = *self.idle_ns.get(cpu)?;
            Some((1.0 - idle_ns as f64 / self.watched_ns.max(1) as f64).max(0.0))
        };
        let of_server = || server.iter().filter_map(used);
        figures.server_cores = count(&server);
        figures.generator_cores = count(&generator);
        figures.server_core_least = of_server().reduce(f64::min);
        figures.server_core_most = of_server().reduce(f64::max);
        let shared = server.iter().filter(|cpu| generator.contains(cpu)).count();
        figures.shared_cores = Some(shared as f64).filter(|_| !server.is_empty());
        let mut run: Vec<usize> = [server, generator].concat();
        run.sort_unstable();
        run.dedup();
        figures.run_cores = count(&run);
        let seconds = self.watched_ns.max(1) as f64 / 1e9;
        let of_run = |cpu: &&usize| run.contains(cpu);
        let softirq = self.softirq_s.iter().filter(|(cpu, _)| of_run(cpu));
        figures.softirq_core_most = softirq.map(|(_, s)| s / seconds).reduce(f64::max);
        let stolen = self.stolen_ns.iter().filter(|(cpu, _)| of_run(cpu));
        figures.steal_core_most = stolen.map(|(_, ns)| *ns as f64 / 1e9 / seconds).reduce(f64::max);
    }

    fn processes(&self, figures: &mut Figures, trial: &Trial) {
        let (user_system, generator) = (trial.generator.split_ns(), trial.generator);
        figures.generator_cpu_ns = Some(generator.total_ns as f64);
        figures.generator_system_ns = user_system.map(|(_, system)| system as f64);
        figures.generator_waited_ns = Some(generator.waited_ns as f64);
        figures.generator_voluntary_switches = Some(generator.switches[0] as f64);
        figures.generator_involuntary_switches = Some(generator.switches[1] as f64);
        // Of a small program's run CPU time is known, and memory is not.
        let Some(server) = trial.server.filter(|_| trial.measured_ns > 0) else { return };
        figures.server_cpu_ns = Some(server.total_ns as f64);
        figures.server_system_ns = server.split_ns().map(|(_, system)| system as f64);
        // Batches report the CPU time of whole processes; their threads are unseen.
        if self.busiest_thread_ns.is_none() {
            return;
        }
        figures.server_listen_drops = self.listen_drops.map(|count| count as f64);
        figures.server_waited_ns = Some(server.waited_ns as f64);
        figures.server_voluntary_switches = Some(server.switches[0] as f64);
        figures.server_involuntary_switches = Some(server.switches[1] as f64);
        figures.server_busiest_thread_ns = self.busiest_thread_ns.map(|ns| ns as f64);
        figures.server_runnable_threads = self.runnable_threads.map(|count| count as f64);
        figures.server_written_bytes = self.written_bytes.map(|bytes| bytes as f64);
    }
}

fn share(part: Option<u64>, whole: u64) -> Option<f64> {
    (whole > 0).then(|| Some(part? as f64 / whole as f64))?
}

/// The cores that target and load may use. A target whose processes are unseen has none here.
fn cpus(trial: &Trial, point: &Point) -> (Vec<usize>, Vec<usize>) {
    let server = match &trial.usage.server_cpus {
        None => Vec::new(),
        Some(all) if all.is_empty() => crate::cpus::cpus_here(),
        Some(some) => some.clone(),
    };
    (server, generator_cpus(&point.clients))
}

/// The cores that groups of clients may use.
pub(super) fn generator_cpus(groups: &[Clients]) -> Vec<usize> {
    let pinned = groups.iter().map(|group| &group.cpus[..]);
    each_once(pinned).unwrap_or_else(crate::cpus::cpus_here)
}

/// Every core once, also when groups share it: threads that wait for each other there must not
/// seem to wait for other programs. `None` when a group isn't pinned.
pub(super) fn each_once<'a>(groups: impl IntoIterator<Item = &'a [usize]>) -> Option<Vec<usize>> {
    let mut cores = BTreeSet::new();
    for group in groups {
        cores.extend(group);
        if group.is_empty() {
            return None;
        }
    }
    Some(cores.into_iter().collect())
}

/// The resources that target and load share, as text.
pub(super) fn shared(trial: &Trial, point: &Point) -> String {
    let (server, generator) = cpus(trial, point);
    judge::limits::shared_resources(&server, &generator, trial.usage.is_elsewhere)
}

fn load(figures: &mut Figures, trial: &Trial, point: &Point) {
    figures.operations = Some(trial.counts.operations as f64);
    figures.generator_busy = trial.busy();
    let carried = trial.counts.received_bytes + trial.counts.sent_bytes;
    figures.carried_bytes = Some(carried as f64).filter(|bytes| *bytes > 0.0);
    let (mut threads, mut outstanding) = (0, 0);
    for group in &point.clients {
        outstanding += group.connections * group.pipeline;
        threads += group.threads;
    }
    figures.generator_threads = Some(threads as f64);
    figures.outstanding = Some(outstanding as f64);
    let greedy = point.clients.iter().any(|group| group.arrivals == Arrivals::Closed);
    figures.wants_more = Some(f64::from(u8::from(greedy || trial.is_overloaded())));
    let latency = trial.figure(Figure::Latency, None);
    if !latency.is_empty() {
        figures.latency_p50_ns = Some(latency.value_at_quantile(0.5) as f64);
        figures.latency_p99_ns = Some(latency.value_at_quantile(0.99) as f64);
    }
    let answered = answered(trial, point.clients.len());
    if !answered.is_empty() {
        let all = answered.len() as f64;
        let between = |low, high| Some(answered.count_between(low, high) as f64 / all);
        figures.near_40ms = between(39_000_000, 48_000_000);
        figures.below_40ms = between(8_000_000, 38_900_000);
    }
    let lag = trial.figure(Figure::Lag, None);
    figures.lag_p50_ns = (!lag.is_empty()).then(|| lag.value_at_quantile(0.5) as f64);
}

/// How long answers took once they were asked for: of a schedule without what requests have waited
/// before they were sent, of groups without one their latency.
fn answered(trial: &Trial, groups: usize) -> Histogram<u64> {
    let mut all = empty_histogram();
    for group in 0..groups {
        let service = trial.figure(Figure::Service, Some(group));
        let taken = match service.is_empty() {
            true => trial.figure(Figure::Latency, Some(group)),
            false => service,
        };
        // Both have the same range.
        let _ = all.add(taken);
    }
    all
}

/// How memory and descriptors grew from slice to slice.
fn growing(figures: &mut Figures, resident: &[(f64, f64)], descriptors: &[(f64, f64)]) {
    figures.server_resident_bytes = resident.last().map(|(_, bytes)| *bytes);
    figures.server_descriptors = descriptors.last().map(|(_, count)| *count);
    let slopes = |points: &[(f64, f64)]| {
        let enough = points.len() >= MIN_SLICES;
        let all = judge::slope(points, SLOPE_CONFIDENCE).filter(|_| enough)?;
        let late = judge::slope(&points[points.len() / 2..], SLOPE_CONFIDENCE);
        Some((all, late.map(|late| late.slope)))
    };
    if let Some((all, late)) = slopes(resident) {
        figures.server_resident_slope = Some(all.slope);
        figures.server_resident_slope_low = Some(all.low);
        figures.server_resident_slope_high = Some(all.high);
        figures.server_resident_slope_late = late;
    }
    if let Some((all, late)) = slopes(descriptors) {
        figures.server_descriptors_slope = Some(all.slope);
        figures.server_descriptors_slope_low = Some(all.low);
        figures.server_descriptors_slope_high = Some(all.high);
        figures.server_descriptors_slope_late = late;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_share_a_core_have_one() {
        assert_eq!(each_once([&[1][..], &[1]]), Some(vec![1]));
        assert_eq!(each_once([&[3, 1][..], &[1, 2]]), Some(vec![1, 2, 3]));
        assert_eq!(each_once([&[1][..], &[]]), None, "one may run anywhere");
    }
}
