//! Kill and status commands: they have places of their own, so that jobs whose commands hang can be
//! ended. One that waits is started for the job only that it was asked for.

use std::collections::BTreeMap;

/// The most of each kind that run at once.
pub(super) const MOST_RUNNING: usize = 32;

/// The most of each kind that wait for those.
pub(super) const MOST_WAITING: usize = 100_000;

/// The commands of one kind.
#[derive(Default)]
pub(super) struct Signals {
    pub(super) running: usize,
    /// By path and process; with the try and the password of the job.
    pub(super) waiting: BTreeMap<(String, String), (i32, String)>,
}
