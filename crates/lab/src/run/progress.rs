//! What a run reports while it goes on.

use std::sync::Arc;
use std::time::Duration;

use super::slice_stats::{SliceStats, TargetStatus};
use crate::drive::LiveStats;
use crate::observe::Watch;

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The point's label.
    pub point: &'a str,
    /// The round at this point, from 1.
    pub round: u32,
    /// The current target and what is done with it.
    pub activity: &'a str,
    /// The part of the planned rounds that is done, from 0 to 1.
    pub done: f64,
    /// The estimated remaining time.
    pub left: Option<Duration>,
    /// The event that caused this report, if one did.
    pub event: Option<RunEvent<'a>>,
    /// The sensors; their recent samples may be read after the call.
    pub watch: &'a Watch,
    /// Figures of the slice that is measured, second by second, once a view asks for them.
    pub live_stats: &'a Arc<LiveStats>,
}

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// A message worth a line of its own.
    Note(&'a str),
    /// A slice begins that is long enough to be shown second by second.
    SliceBegins {
        /// The target, as an index into the plan's.
        target: usize,
        /// The second of the run's clock in which it begins.
        second: u64,
    },
    /// A slice has ended.
    SliceEnds(&'a SliceStats),
    /// A round has ended, with the status of each of its targets.
    RoundEnds(&'a [TargetStatus]),
}
