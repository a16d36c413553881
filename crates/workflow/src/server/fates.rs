//! What is known, beside the tree, of jobs' commands: which jobs are being made, what has become of
//! commands that start jobs, kill them or ask for their status, and which jobs were submitted or
//! active under an earlier server process. `why` says it. None of it is kept over a restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::core::CommandKind;
use super::message::{CommandEnd, CommandWhat, how};
use super::spawn::Spawner;
use crate::model::{Snapshot, State};

/// The tries and passwords of jobs, by the paths of their tasks.
pub(super) type Jobs = HashMap<String, (i32, String)>;

/// From how many on those of jobs that have ended are dropped, when another one is noted.
const MANY: usize = 1024;

/// What has become of a command.
enum Fate {
    /// It waits for a place.
    Waits,
    /// It is started, or about to be.
    Begun,
    /// It is over: since when, what it did, and more of that.
    Over(Instant, &'static str, String),
}

/// The last command of a kind for a job, by its try and password.
struct Known {
    job: (i32, String),
    fate: Fate,
}

type All = HashMap<(CommandKind, String), Known>;

/// What is known of the commands of jobs.
#[derive(Default)]
pub(super) struct Fates {
    /// The last command of each kind for a task (which started its job, where it has failed, killed
    /// it or asked for its status), with the job that it was for; and from how many on they are
    /// looked through.
    commands: Mutex<(All, usize)>,
    /// Jobs that were submitted or active under an earlier server process.
    earlier: OnceLock<Jobs>,
    /// Jobs that are made, or wait for that, by the paths of their tasks.
    making: Mutex<HashMap<String, BeingMade>>,
}

/// A job that is made, or waits for that.
struct BeingMade {
    job: (i32, String),
    /// Whether a thread makes it; else it waits for one.
    is_begun: bool,
    /// Since when it is made, or waits.
    since: Instant,
    /// Whether it was killed since, and not a zombie of its task.
    is_killed: bool,
}

/// A kind of command, and the path and job that it is for.
pub(super) type Of<'a> = (CommandKind, &'a str, (i32, &'a str));

impl Fates {
    /// These jobs were submitted or active under an earlier server process. Called once.
    pub(super) fn set_earlier(&self, jobs: Jobs) {
        let _ = self.earlier.set(jobs);
    }

    fn being_made(&self) -> MutexGuard<'_, HashMap<String, BeingMade>> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job is to be made, in place of an older one of its task.
    pub(super) fn note_making(&self, path: &str, job: (i32, &str)) {
        let job = (job.0, job.1.to_owned());
        let made = BeingMade { job, is_begun: false, since: Instant::now(), is_killed: false };
        self.being_made().insert(path.to_owned(), made);
    }

    /// A thread makes a job from now on.
    pub(super) fn note_made_now(&self, path: &str, job: (i32, &str)) {
        let mut making = self.being_made();
        if let Some(made) = making.get_mut(path).filter(|made| is_same(&made.job, job)) {
            (made.is_begun, made.since) = (true, Instant::now());
        }
    }

    /// A job is killed while it is made.
    pub(super) fn note_killed(&self, path: &str, job: (i32, &str)) {
        let mut making = self.being_made();
        if let Some(made) = making.get_mut(path).filter(|made| is_same(&made.job, job)) {
            made.is_killed = true;
        }
    }

    /// It is made, and with the spawner, or never will be.
    pub(super) fn note_made(&self, path: &str, job: (i32, &str)) {
        let mut making = self.being_made();
        if making.get(path).is_some_and(|made| is_same(&made.job, job)) {
            making.remove(path);
        }
    }

    /// That the job of a task that is submitted is made.
    fn why_made(&self, path: &str, job: (i32, &str)) -> Option<String> {
        let making = self.being_made();
        let made = making.get(path).filter(|made| is_same(&made.job, job))?;
        let seconds = made.since.elapsed().as_secs();
        let end = if made.is_killed { "; it was killed, and is not started then" } else { "" };
        Some(match made.is_begun {
            true => format!(
                "its job has been in the making for {seconds} s: its script is read, or what \
                 ECF_SCRIPT_CMD or ECF_FETCH print is waited for{end}"
            ),
            false => format!(
                "its job has waited for {seconds} s to be made: threads make others, whose \
                 ECF_SCRIPT_CMD or ECF_FETCH may hang, or an earlier job of its task{end}"
            ),
        })
    }

    fn lock(&self) -> MutexGuard<'_, (All, usize)> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, (kind, path, job): Of<'_>, fate: Fate) {
        let known = Known { job: (job.0, job.1.to_owned()), fate };
        self.lock().0.insert((kind, path.to_owned()), known);
    }

    /// A command waits for a place.
    pub(super) fn waits(&self, of: Of<'_>) {
        self.note(of, Fate::Waits);
    }

    /// A command is about to be started.
    pub(super) fn begun(&self, of: Of<'_>) {
        self.note(of, Fate::Begun);
    }

    /// A command is not started.
    pub(super) fn not_started(&self, of: Of<'_>, why: &str) {
        let more = format!(": {}", one_line(why));
        self.note(of, Fate::Over(Instant::now(), "was not started", more));
    }

    /// A command that has waited isn't meant any more.
    pub(super) fn dropped(&self, kind: CommandKind, path: &str) {
        let (all, _) = &mut *self.lock();
        let key = (kind, path.to_owned());
        if all.get(&key).is_some_and(|known| matches!(known.fate, Fate::Waits)) {
            all.remove(&key);
        }
    }

    /// A kill or status command is over, or one of a job has failed.
    pub(super) fn ended(&self, end: &CommandEnd) {
        let of = (end.kind, &*end.path, (end.try_no, &*end.password));
        let (what, more) = match &end.what {
            CommandWhat::NotStarted(why) => return self.not_started(of, why),
            CommandWhat::Ended { status, command, .. } if status.success() => {
                let more =
                    if end.kind == CommandKind::Kill { ", and no end was reported" } else { "" };
                ("succeeded", format!("{more} [ {} ]", one_line(command)))
            }
            CommandWhat::Ended { status, command, .. } => {
                ("failed", format!(": it {} [ {} ]", how(*status), one_line(command)))
            }
            CommandWhat::Lost(_) => ("ended", ", and how is unknown".to_owned()),
            _ => return,
        };
        self.note(of, Fate::Over(Instant::now(), what, more));
    }

    /// Drops what is of jobs for which `runs` doesn't hold, where there is much.
    pub(super) fn prune(&self, runs: impl Fn(&str, (i32, &str)) -> bool) {
        let (all, most) = &mut *self.lock();
        if all.len() >= MANY.max(*most) {
            all.retain(|(_, path), known| runs(path, (known.job.0, &known.job.1)));
            *most = 2 * all.len();
        }
    }

    /// What becomes of the commands of a task whose job is submitted or active, a line each: of the
    /// one that starts it, and of the last that was to kill it or to ask for its status.
    pub(super) fn why(&self, spawner: &Spawner, tree: &Snapshot, path: &str) -> Option<String> {
        let node = tree.node(tree.find(path)?);
        if !node.kind.is_job() {
            return None;
        }
        let (try_no, password) = (node.job().try_no, &*node.job().password);
        let job = (try_no, password);
        let is_submitted = match node.state {
            State::Submitted => true,
            State::Active => false,
            _ => return None,
        };
        let mut lines = Vec::new();
        if is_submitted {
            lines.extend(self.why_made(path, job).or_else(|| spawner.why(path, job)));
        }
        if self.earlier.get().and_then(|jobs| jobs.get(path)).is_some_and(|of| is_same(of, job)) {
            let state = node.state.word();
            lines.push(format!(
                "it was submitted, or made active, under an earlier server process: this one \
                 doesn't see how its ECF_JOB_CMD ends, and it stays {state} until its job reports"
            ));
        } else if lines.is_empty() && spawner.why(path, job).is_none() {
            let state = node.state.word();
            lines.extend(self.of_command(spawner, (CommandKind::Job, path, job)));
            lines.push(format!(
                "its ECF_JOB_CMD is over, or was never started (a forced state, --dis_job_gen), \
                 and it stays {state} until its job reports: a queue may have it (--status), or \
                 its output says more; --force=aborted ends it here"
            ));
        }
        for kind in [CommandKind::Kill, CommandKind::Status] {
            lines.extend(self.of_command(spawner, (kind, path, job)));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// What becomes of the last command of a kind for a job.
    fn of_command(&self, spawner: &Spawner, (kind, path, job): Of<'_>) -> Option<String> {
        let locked = self.lock();
        let known = locked.0.get(&(kind, path.to_owned()))?;
        if !is_same(&known.job, job) {
            return None;
        }
        let waits = match &known.fate {
            Fate::Over(since, what, more) => {
                let (name, seconds) = (kind.variable(), since.elapsed().as_secs());
                return Some(format!("its {name} {what} {seconds} s ago{more}"));
            }
            Fate::Begun => false,
            Fate::Waits => true,
        };
        // The spawner has a lock of its own.
        drop(locked);
        spawner.why_signal(kind, path, waits)
    }
}

/// Whether a job is the one with this try and password.
fn is_same(known: &(i32, String), job: (i32, &str)) -> bool {
    (known.0, &*known.1) == job
}

/// A text in one line: a further line would be another reason.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
