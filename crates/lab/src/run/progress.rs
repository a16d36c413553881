//! What a run reports while it goes on: one sequence of events, from which a live view folds its
//! state. The run itself produces them between slices. Within a slice, when it is busy measuring, a
//! view asks the run's [`LiveFeed`] for more of them.

use std::sync::Arc;
use std::time::Duration;

use ledger::Cause;

use super::slice_stats::{SliceStats, TargetStatus};
use crate::drive::{LiveStats, Second};
use crate::observe::{RecentSamples, Series};

/// An event of a run.
#[derive(Clone, Debug)]
pub enum RunEvent<'a> {
    /// The host and the load are watched from now on.
    Begins(&'a LiveFeed),
    /// The run does something else, or the same at another place.
    Activity(Activity<'a>),
    /// A target is being prepared, which takes longer than a second.
    Preparing {
        /// Its name.
        target: &'a str,
        /// How many parts have been begun.
        begun: u64,
        /// How many there are.
        parts: u64,
    },
    /// A message worth a line of its own.
    Note(&'a str),
    /// A slice begins that is long enough to be shown second by second.
    SliceBegins {
        /// The target, as an index into the plan's.
        target: usize,
        /// The second of the run's clock in which it begins.
        second: u64,
    },
    /// What was measured in seconds of the current slice, up to the first that isn't settled yet.
    Seconds {
        /// Seconds by thread of load, each reported once.
        measured: Vec<Second>,
        /// The first second of the run's clock that isn't settled.
        settled: u64,
    },
    /// The mean of every sensor's series over the last half second.
    Sampled(Vec<(Series, f64)>),
    /// A slice has ended.
    SliceEnds(&'a SliceStats),
    /// The round of the latest activity has ended, with the status of each of its targets.
    RoundEnds(&'a [TargetStatus]),
    /// The last rounds were all disturbed. It comes once in a run.
    StaysDisturbed {
        /// How many.
        rounds: usize,
        /// What disturbed each target, with its name.
        causes: &'a [(&'a str, Vec<Cause>)],
    },
}

/// What a run does, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Activity<'a> {
    /// The point's label.
    pub point: &'a str,
    /// The round at this point, from 1; 0 before the first round and after the last one.
    pub round: u32,
    /// What is done, and with which target.
    pub words: &'a str,
    /// The part of the planned rounds that is done, from 0 to 1.
    pub done: f64,
    /// The estimated remaining time.
    pub left: Option<Duration>,
}

/// The events within slices, for the thread of a live view.
#[derive(Clone, Debug)]
pub struct LiveFeed {
    samples: RecentSamples,
    stats: Arc<LiveStats>,
}

impl LiveFeed {
    pub(super) fn new(samples: RecentSamples, stats: Arc<LiveStats>) -> Self {
        Self { samples, stats }
    }

    /// A feed that is read from now on: only then threads of load copy their figures.
    pub fn follow(&self) -> Self {
        self.stats.want();
        self.clone()
    }

    /// The events since the last call. There is no sample right after a round, whose samples are in
    /// the ledger by then.
    pub fn events(&self) -> impl Iterator<Item = RunEvent<'static>> {
        let recent = self.samples.recent();
        let sampled = (!recent.is_empty()).then_some(RunEvent::Sampled(recent));
        let (measured, settled) = self.stats.take();
        sampled.into_iter().chain([RunEvent::Seconds { measured, settled }])
    }
}
