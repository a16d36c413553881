//! When jobs ran: the lines of the log, which outlive the server.

use std::path::Path;

use serde::Serialize;

use super::fault::Fault;
use crate::history::{self, Run};
use crate::server::disk::Disk;

/// The last runs of the tasks at and below a path.
#[derive(Serialize, Debug)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// The time of the last line.
    now: i64,
}

/// The last runs of jobs at and below a path, at most this many, the oldest first; of the end of
/// the log.
///
/// # Errors
/// When it can't be read.
pub(super) fn of(
    log: &Path,
    path: &str,
    most: usize,
    is_job: impl Fn(&str) -> bool,
) -> Result<Runs, Fault> {
    let bytes = Disk::read_end(&log.to_string_lossy())
        .map_err(|why| Fault::of_owner(&format!("{}: {why}", log.display())))?;
    let mut seen = history::Runs::new(path);
    String::from_utf8_lossy(&bytes).lines().for_each(|line| seen.take(line));
    let (mut runs, now) = seen.end();
    runs.retain(|run| is_job(&run.path));
    runs.drain(..runs.len().saturating_sub(most));
    Ok(Runs { runs, now })
}
