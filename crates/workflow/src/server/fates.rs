//! What is known, beside the tree, of jobs' commands: what has become of those that kill jobs or
//! ask for their status, and which jobs an earlier server process has started. `why` says it. It is
//! this process's own, and gone with it; the flags of the tasks stay.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::core::CommandKind;
use super::message::{CommandEnd, CommandWhat, how};
use super::spawn::Spawner;
use crate::model::{Flag, Snapshot, State};

/// The tries and passwords of jobs, by the paths of their tasks.
pub(super) type Jobs = HashMap<String, (i32, String)>;

/// From how many on those of jobs that have ended are dropped.
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
    /// The last kill and status command of each task, with the job that it was for; and from how
    /// many on they are looked through.
    signals: Mutex<(All, usize)>,
    /// Jobs that an earlier server process has started.
    earlier: OnceLock<Jobs>,
    /// Tasks whose jobs are made, or wait for that, since when.
    making: Mutex<HashMap<String, Instant>>,
}

/// A kind of command, and the path and job that it is for.
pub(super) type Of<'a> = (CommandKind, &'a str, (i32, &'a str));

impl Fates {
    /// These jobs were started by an earlier server process. Called once.
    pub(super) fn set_earlier(&self, jobs: Jobs) {
        let _ = self.earlier.set(jobs);
    }

    /// A task's job is given to the threads that make them.
    pub(super) fn makes(&self, path: &str) {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        making.insert(path.to_owned(), Instant::now());
    }

    /// It is made, or can't be.
    pub(super) fn has_made(&self, path: &str) {
        self.making.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }

    /// That the job of a task that is submitted is made.
    fn why_made(&self, path: &str, is_killed: bool) -> Option<String> {
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = making.get(path)?.elapsed().as_secs();
        let end = if is_killed { "; it was killed, and is not started then" } else { "" };
        Some(format!(
            "its job is being made for {seconds} s: its script is read, or what ECF_SCRIPT_CMD or \
             ECF_FETCH print is waited for{end}"
        ))
    }

    fn lock(&self) -> MutexGuard<'_, (All, usize)> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A kill or status command is over.
    pub(super) fn ended(&self, end: &CommandEnd) {
        let of = (end.kind, &*end.path, (end.try_no, &*end.password));
        let (what, more) = match &end.what {
            CommandWhat::NotStarted(why) => return self.not_started(of, why),
            CommandWhat::Ended { status, command, .. } if status.success() => {
                let more =
                    if end.kind == CommandKind::Kill { ", and the job has not ended" } else { "" };
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
        let job = node.job();
        let starts = match node.state {
            State::Submitted => spawner
                .why(path, (job.try_no, &job.password))
                .or_else(|| self.why_made(path, node.flags.has(Flag::Killed))),
            State::Active => None,
            _ => return None,
        };
        let mut lines: Vec<String> = starts.into_iter().collect();
        let earlier = self.earlier.get().and_then(|jobs| jobs.get(path));
        if earlier.is_some_and(|(try_no, password)| {
            (*try_no, &**password) == (job.try_no, &*job.password)
        }) {
            let state = node.state.word();
            lines.push(format!(
                "it was submitted, or made active, under an earlier server process: this one \
                 doesn't see how its ECF_JOB_CMD ends, and it stays {state} until its job reports"
            ));
        }
        for kind in [CommandKind::Kill, CommandKind::Status] {
            let said = self.of_signal(spawner, (kind, path, (job.try_no, &job.password)));
            lines.extend(said);
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// What becomes of the last command of a kind for a job.
    fn of_signal(&self, spawner: &Spawner, (kind, path, job): Of<'_>) -> Option<String> {
        let locked = self.lock();
        let known = locked.0.get(&(kind, path.to_owned()))?;
        if (known.job.0, &*known.job.1) != job {
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

/// A text in one line: a further line would be another reason.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
