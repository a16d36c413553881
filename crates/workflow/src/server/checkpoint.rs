//! ecFlow's checkpoint file: the tree in MIGRATE text, by which a server can be moved in and out.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::core::Core;
use super::environment::{CheckMode, Environment};

/// The seconds beyond which a checkpoint is named in the log.
const ALARM_S: i64 = 20;

/// When checkpoints are written, and whether one is being written.
pub(super) struct Checkpoint {
    mode: CheckMode,
    interval_s: i64,
    alarm_s: i64,
    is_running: bool,
    /// How long commands waited for the one that is being written.
    waited: Duration,
    /// The change number of the last one that was begun.
    at: Option<u64>,
}

/// A checkpoint that is to be written.
pub(super) struct Work {
    render: Box<dyn FnOnce() -> String + Send>,
    path: PathBuf,
    old: PathBuf,
}

impl Checkpoint {
    pub(super) fn new(environment: &Environment) -> Self {
        let interval_s = environment.check_interval_s.into();
        let (mode, alarm_s) = (environment.check_mode, ALARM_S);
        Self { mode, interval_s, alarm_s, is_running: false, waited: Duration::ZERO, at: None }
    }

    /// Changes what is not zero, and returns the interval.
    pub(super) fn set(&mut self, mode: Option<CheckMode>, interval: i64, alarm: i64) -> Duration {
        self.mode = mode.unwrap_or(self.mode);
        if interval > 0 {
            self.interval_s = interval;
        }
        if alarm > 0 {
            self.alarm_s = alarm;
        }
        self.interval()
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(self.interval_s.unsigned_abs().max(1))
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether there is anything new to write.
    pub(super) fn is_due(&self, core: &Core) -> bool {
        self.mode != CheckMode::Never && self.at != Some(core.change_no())
    }

    pub(super) fn begin(&mut self, core: &Core, environment: &Environment) -> Work {
        let begun = Instant::now();
        self.is_running = true;
        self.at = Some(core.change_no());
        let (_, render) = core.stored();
        self.waited = begun.elapsed();
        Work { render, path: environment.check.clone(), old: environment.check_old.clone() }
    }

    pub(super) fn give_up(&mut self) {
        (self.is_running, self.at) = (false, None);
    }

    /// Takes what came of one, and returns what the log says.
    pub(super) fn done(&mut self, done: Result<f64, String>) -> Result<String, String> {
        self.is_running = false;
        match done {
            Ok(seconds) if seconds >= self.alarm_s as f64 => {
                let alarm = self.alarm_s;
                Err(format!(
                    "svr:check_pt in {seconds:.0} seconds, more than the {alarm} of its alarm"
                ))
            }
            Ok(seconds) => Ok(format!(
                "svr:check_pt in {seconds:.0} seconds ({:.0} ms; commands waited {} us)",
                seconds * 1e3,
                self.waited.as_micros()
            )),
            Err(why) => {
                self.at = None;
                Err(format!("svr:check_pt failed: {why}"))
            }
        }
    }
}

impl Work {
    /// Renders and writes it, and returns the seconds that this took.
    pub(super) fn write(self) -> Result<f64, String> {
        let begun = Instant::now();
        let text = (self.render)();
        let failed = |why: io::Error| format!("{}: {why}", self.path.display());
        replace(&self.path, &self.old, text.as_bytes()).map_err(failed)?;
        Ok(begun.elapsed().as_secs_f64())
    }
}

/// Writes a file beside the others, makes it durable, and gives it its name; the one before it has
/// the name `old` then.
fn replace(path: &Path, old: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    match fs::rename(path, old) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => fs::rename(&new, path)?,
    }
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
