//! The time that disturbances took from a slice, by tenths of a second, as sensors saw it: waits of
//! the target's threads and of the load's for a core, cores that the hypervisor kept, pauses, and
//! what running beside others may have cost.

use judge::Stretch;
use wire::Ns;

use super::watch::{Sample, Series, Watch};

/// What else runs on a core's other thread, or in its caches, slows what runs by half at most: of
/// two hardware threads that share a core each has at least about half of it.
const SLOWED: f64 = 0.5;

/// A pause is seen up to one sleep of the thread that sees it too short (`hiccup`).
const UNSEEN_OF_A_PAUSE_S: f64 = 0.005;

/// The distance of samples; the first one after a side began to be followed has none before it.
const PERIOD_NS: u64 = 100_000_000;

/// How busy the two sides were in a slice: the parts of the time, 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    /// The target's busiest thread.
    pub(crate) target: f64,
    /// The load's busiest thread, without what it spun.
    pub(crate) load: f64,
}

/// With a thread busier than that, the queue that a wait leaves behind lasts too long.
const BUSY_LIMIT: f64 = 0.5;

impl Watch {
    /// What was taken from a slice of this target from one time to another on the run's clock;
    /// `None` where it isn't known or a thread was busy for more than half of the time.
    pub(crate) fn taken(&self, target: &str, slice: [Ns; 2], busy: Busy) -> Option<Vec<Stretch>> {
        self.sample_now();
        if self.lost() > 0 || busy.target.max(busy.load) > BUSY_LIMIT {
            return None;
        }
        let series = self.series();
        let [from, to] = slice;
        let samples = self.samples_since(from.saturating_sub(10 * PERIOD_NS));
        stretches(&series, &samples, target, [from, to], busy)
    }
}

/// The factor by which a sample's value times its interval is time taken; `None` of other series.
fn factor(series: &Series, target: &str) -> Option<f64> {
    match (series.group.as_deref(), series.sensor, &*series.name) {
        (Some(group), "processes", "waiting") if group == target => Some(1.0),
        (Some(group), "processes", "cpu") if group == target => Some(SLOWED),
        (None, "load_threads", "waiting") | (None, "hiccups", "lost") => Some(1.0),
        (None, "hiccups", "over_1_ms") => Some(UNSEEN_OF_A_PAUSE_S),
        (None, "cores", name) if name.ends_with(".steal") => Some(1.0),
        _ => None,
    }
}

fn stretches(
    all: &[Series],
    samples: &[Sample],
    target: &str,
    [from, to]: [Ns; 2],
    busy: Busy,
) -> Option<Vec<Stretch>> {
    let mut stretches = Vec::new();
    let (mut sees_target, mut sees_load) = (false, false);
    for (index, series) in (0_u32..).zip(all) {
        let Some(factor) = factor(series, target) else { continue };
        let mut before: Option<Ns> = None;
        let mut reaches = 0;
        for sample in samples.iter().filter(|sample| sample.series == index) {
            let since = before.replace(sample.at).unwrap_or(sample.at.saturating_sub(PERIOD_NS));
            if sample.at <= from || since >= to {
                continue;
            }
            let taken_ns = (sample.value * factor * (sample.at - since) as f64).ceil() as u64;
            stretches.push(Stretch { from_ns: since, to_ns: sample.at, taken_ns });
            reaches = sample.at;
        }
        // What was seen has to reach to the end.
        let is_whole = reaches >= to;
        sees_target |= is_whole && series.sensor == "processes" && series.name == "waiting";
        sees_load |= is_whole && series.sensor == "load_threads";
    }
    // What the load itself computes may have been slowed as well.
    let mut at = from;
    while at < to {
        let taken_ns = (busy.load * SLOWED * PERIOD_NS as f64).ceil() as u64;
        stretches.push(Stretch { from_ns: at, to_ns: at + PERIOD_NS, taken_ns });
        at += PERIOD_NS;
    }
    (sees_target && sees_load).then_some(stretches)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn series() -> Vec<Series> {
        let of = |group: Option<&str>, sensor, name: &str| Series {
            group: group.map(str::to_owned),
            sensor,
            name: name.to_owned(),
            unit: "cores",
        };
        vec![
            of(Some("a"), "processes", "waiting"),
            of(Some("b"), "processes", "waiting"),
            of(None, "load_threads", "waiting"),
            of(None, "cores", "cpu0.steal"),
            of(None, "cores", "cpu0.user"),
        ]
    }

    fn sample(series: u32, at_ms: u64, value: f64) -> Sample {
        Sample { series, at: at_ms * MS, value }
    }

    #[test]
    fn what_was_taken_lies_where_it_was_sampled() {
        let idle = Busy { target: 0.0, load: 0.0 };
        let slice = [1_000 * MS, 1_150 * MS];
        let samples = [
            sample(0, 960, 9.0),
            sample(0, 1_060, 0.2),
            sample(1, 1_060, 9.0),
            sample(4, 1_060, 9.0),
            sample(2, 1_060, 0.0),
            sample(3, 1_060, 0.1),
            sample(0, 1_151, 0.0),
            sample(2, 1_151, 0.1),
        ];
        let of = |samples: &[Sample], busy| stretches(&series(), samples, "a", slice, busy);
        let taken = of(&samples, idle).unwrap();
        let some: Vec<_> = taken.iter().filter(|one| one.taken_ns > 0).collect();
        let stretch = |from, to, taken_us: u64| Stretch {
            from_ns: from * MS,
            to_ns: to * MS,
            taken_ns: taken_us * 1_000,
        };
        let expected = [
            stretch(960, 1_060, 20_000),
            stretch(1_060, 1_151, 9_100),
            stretch(960, 1_060, 10_000),
        ];
        assert_eq!(some, expected.iter().collect::<Vec<_>>());
        let busy = of(&samples, Busy { load: 0.4, ..idle }).unwrap();
        let sum = |taken: &[Stretch]| taken.iter().map(|one| one.taken_ns).sum::<u64>();
        assert_eq!(sum(&busy) - sum(&taken), 2 * 20 * MS);
        assert_eq!(of(&samples[..7], idle), None, "the load's end wasn't seen");
        assert_eq!(of(&samples[2..6], idle), None, "nor was the target");
    }
}
