//! The state of a run for `loadline ui`, which is another process: a small file beside the run's
//! logs, written at most once a second and gone when the run has ended.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use report::{Now, TargetNow};

use super::state::{Side, State};
use crate::storage::Storage;

/// How often it is written, at most.
const EVERY: Duration = Duration::from_secs(1);

/// No such file is longer.
const MAX_BYTES: u64 = 1 << 20;

/// The rates of a target that it holds: the latest.
const RATES: usize = 48;

/// The file.
#[derive(Debug)]
pub(super) struct Published {
    path: PathBuf,
    written: Option<Instant>,
}

impl Published {
    /// A file for a run that begins. What an earlier one left there is gone.
    pub(super) fn begin(storage: &Storage) -> Self {
        let path = path(storage);
        let _ = std::fs::remove_file(&path);
        Self { path, written: None }
    }

    /// Writes the state, unless that was done within this second. A failure to write doesn't
    /// end the run.
    pub(super) fn write(&mut self, state: &State, at: Duration) {
        if self.written.is_some_and(|written| written.elapsed() < EVERY) {
            return;
        }
        self.written = Some(Instant::now());
        let Ok(text) = serde_json::to_vec(&now(state, at)) else { return };
        // A reader finds a whole file, the old one or the new one.
        let fresh = self.path.with_extension("new");
        let _ = std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, &self.path));
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the run that is being measured into this ledger published last.
pub(crate) fn published(storage: &Storage) -> Option<Now> {
    let path = path(storage);
    let is_small = std::fs::metadata(&path).ok()?.len() <= MAX_BYTES;
    serde_json::from_slice(&std::fs::read(path).ok().filter(|_| is_small)?).ok()
}

fn path(storage: &Storage) -> PathBuf {
    storage.logs.join("live.json")
}

fn now(state: &State, at: Duration) -> Now {
    let (left, is_least) = state.left(at);
    let sides = state.targets.iter().enumerate().filter(|(_, side)| !side.is_skipped);
    Now {
        point: state.point.clone(),
        round: state.round,
        activity: state.activity.clone(),
        done: state.done,
        left_s: (!is_least).then_some(left.as_secs_f64()),
        targets: sides.map(|(target, side)| target_now(target, side)).collect(),
    }
}

fn target_now(target: usize, side: &Side) -> TargetNow {
    let finite = |value: &f64| value.is_finite();
    TargetNow {
        target,
        rate_per_s: side.last_rate().filter(finite),
        rates: side.rates.iter().skip(side.rates.len().saturating_sub(RATES)).copied().collect(),
        p50_ns: side.latency_ns(0.5).filter(finite),
        p99_ns: side.latency_ns(0.99).filter(finite),
        wrong: side.bad.wrong,
        refused: side.bad.refused,
        missing: side.bad.missing,
        cores: side.server.filter(finite),
        valid: side.valid,
        trials: side.trials,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::begun;
    use super::*;

    #[test]
    fn what_is_published_is_read_by_another_and_gone_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::named(&folder.path().join("a.sqlite"));
        std::fs::create_dir(&storage.logs).expect("a folder");
        std::fs::write(path(&storage), "left by a killed run").expect("it is written");
        let mut state = begun(&["ours", "theirs"]);
        state.targets[1].rate = Some(500.0);
        let mut file = Published::begin(&storage);
        assert_eq!(published(&storage), None);
        file.write(&state, Duration::ZERO);
        state.targets[1].rate = Some(600.0);
        file.write(&state, Duration::ZERO);
        let now = published(&storage).expect("it is there");
        assert_eq!(now.targets.len(), 2);
        assert_eq!(now.targets[1].rate_per_s, Some(500.0), "once a second");
        drop(file);
        assert_eq!(published(&storage), None);
    }
}
