//! What the owner of a journal, its thread, and those who wait share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::disk::Disk;
use crate::error::Error;
use crate::frame::{GROUP_HEAD_BYTES, Group};
use crate::log::Written;

/// Buffers of emptied groups that are kept for the next ones, if they are no larger.
const SPARE_GROUPS: usize = 8;
const SPARE_BYTES: usize = 1 << 20;

/// What a journal's thread reports, in a call that must not wait.
#[derive(Clone, Debug)]
pub enum Progress {
    /// All records up to one are acknowledged.
    Acknowledged {
        /// The number of the record.
        through: u64,
        /// Whether others wait to be written, so that the disk is idle for as long as the call
        /// takes.
        others_wait: bool,
    },
    /// The disk is full, or a file can't be created. What was committed waits and is tried again,
    /// and new records are refused with this error.
    Stalled(Error),
    /// What waited was written.
    Resumed,
    /// The disk is full, and the journal refuses then ([`crate::Options::refuses_when_full`]): what
    /// comes after this record is not written, and never will be, until [`crate::Journal::accept`].
    Refused(u64, Error),
    /// The journal has failed, and does nothing more: what isn't acknowledged never will be.
    Failed(Error),
}

/// What the thread has to do, in order.
pub(crate) enum Task {
    Write(Group),
    /// Goes on in a new file.
    Rotate,
    /// Writes again what comes from here on.
    Accept,
}

#[derive(Default)]
pub(crate) struct State {
    tasks: VecDeque<Task>,
    spare: Vec<Group>,
    pub(crate) acknowledged: u64,
    pub(crate) written: Written,
    /// Why nothing is taken: for as long as the disk is full, or for good.
    pub(crate) unavailable: Option<Error>,
    /// The thread has ended.
    pub(crate) has_ended: bool,
    is_closing: bool,
    /// The thread waits for tasks.
    is_idle: bool,
    /// Until when it does so at most.
    deadline: Option<Instant>,
    /// It has to look anew for how long it waits.
    looks_anew: bool,
    /// How many wait for progress: without any there is no call to wake them.
    awaited: usize,
}

/// How the thread waits for tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// Until when at most.
    pub(crate) deadline: Option<Instant>,
    /// It waits until then whatever comes.
    pub(crate) is_stalled: bool,
    /// There are tasks that it has not done yet.
    pub(crate) has_tasks: bool,
}

pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    state: Mutex<State>,
    /// The thread waits for tasks.
    work: Condvar,
    /// Others wait for progress.
    progress: Condvar,
    /// What was appended and isn't written yet.
    pub(crate) waiting_bytes: AtomicUsize,
    /// Whether [`State::unavailable`] is there, to be looked up without the lock.
    pub(crate) is_unavailable: AtomicBool,
    /// Whether a snapshot is being made.
    is_excluding: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("acknowledged", &self.lock().acknowledged).finish()
    }
}

impl Shared {
    pub(crate) fn new(disk: Arc<dyn Disk>, written: Written) -> Self {
        let state = State { written, acknowledged: written.last, ..State::default() };
        Self {
            disk,
            state: Mutex::new(state),
            work: Condvar::default(),
            progress: Condvar::default(),
            waiting_bytes: AtomicUsize::default(),
            is_unavailable: AtomicBool::default(),
            is_excluding: AtomicBool::default(),
        }
    }

    /// A thread that panics while it holds the lock leaves the state whole: it only assigns.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the thread tasks, and returns an empty group. It isn't woken by what the caller does
    /// itself then.
    pub(crate) fn submit(&self, mut task: Task, wakes: bool) -> Group {
        let mut state = self.lock();
        if state.has_ended {
            self.waiting_bytes.store(0, Ordering::Relaxed);
            return Group::default();
        }
        // What waits for the thread is written with one call.
        if let (Some(Task::Write(last)), Task::Write(group)) = (state.tasks.back_mut(), &mut task)
            && last.take_from(group)
        {
            self.waiting_bytes.fetch_sub(GROUP_HEAD_BYTES, Ordering::Relaxed);
            return std::mem::take(group);
        }
        state.tasks.push_back(task);
        if wakes && std::mem::take(&mut state.is_idle) {
            self.work.notify_one();
        }
        state.spare.pop().unwrap_or_default()
    }

    /// Whether there are tasks that the thread has not taken.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.lock().tasks.is_empty()
    }

    /// Has the thread wait as it should after what was done without it.
    pub(crate) fn look_anew(&self, pause: Pause) {
        let mut state = self.lock();
        let is_earlier = match (pause.deadline, state.deadline) {
            (Some(new), Some(old)) => new < old,
            (new, _) => new.is_some(),
        };
        if pause.is_stalled || pause.has_tasks || is_earlier {
            state.looks_anew = true;
            self.work.notify_one();
        }
    }

    /// Waits for tasks; returns whether the thread has to look anew for how long, before anything
    /// else.
    pub(crate) fn await_tasks(&self, pause: Pause) -> bool {
        let Pause { deadline, is_stalled, has_tasks } = pause;
        let mut state = self.lock();
        state.deadline = deadline;
        let is_over = |state: &State| state.is_closing || state.has_ended || state.looks_anew;
        while !is_over(&state) && (is_stalled || (state.tasks.is_empty() && !has_tasks)) {
            state.is_idle = !is_stalled;
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or(Duration::MAX);
            if left.is_zero() {
                break;
            }
            let woken = self.work.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        // Until it waits again it may have taken another deadline, or none, already.
        (state.is_idle, state.deadline) = (false, None);
        let looks_anew = std::mem::take(&mut state.looks_anew);
        if !state.is_closing && !state.tasks.is_empty() {
            drop(state);
            // Threads that wait for this CPU may be about to append more: one fsync is enough then.
            std::thread::yield_now();
            return false;
        }
        looks_anew && !state.is_closing && !state.has_ended
    }

    /// Why the journal has ended, where it has.
    pub(crate) fn ended(&self) -> Option<Error> {
        let state = self.lock();
        state.has_ended.then(|| state.unavailable.clone().unwrap_or(Error::Closed))
    }

    /// Takes all tasks that have come, and gives back the groups that are written; returns whether
    /// the journal is being closed.
    pub(crate) fn take(&self, tasks: &mut VecDeque<Task>, written: &mut Vec<Group>) -> bool {
        let mut state = self.lock();
        for mut group in written.drain(..) {
            if state.spare.len() < SPARE_GROUPS && group.capacity() <= SPARE_BYTES {
                group.clear();
                state.spare.push(group);
            }
        }
        tasks.append(&mut state.tasks);
        state.is_closing
    }

    /// Changes the state and wakes all who wait for that.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.is_unavailable.store(state.unavailable.is_some(), Ordering::Release);
        let is_awaited = state.awaited > 0;
        drop(state);
        if is_awaited {
            self.progress.notify_all();
        }
    }

    /// Lets the thread end when it has done what there is.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.work.notify_one();
    }

    /// The thread ends with this error, or without one when it was closed.
    pub(crate) fn end(&self, error: Option<Error>) {
        self.publish(|state| {
            state.unavailable = error.or(state.unavailable.take()).or(Some(Error::Closed));
            state.has_ended = true;
            state.tasks.clear();
            self.waiting_bytes.store(0, Ordering::Relaxed);
        });
        // Whoever did the thread's work has ended it.
        self.work.notify_one();
    }

    /// Waits until `is_done`; until then, a journal that takes nothing is an error.
    pub(crate) fn wait(&self, is_done: impl Fn(&State) -> bool) -> Result<(), Error> {
        let mut state = self.lock();
        loop {
            match &state.unavailable {
                _ if is_done(&state) => return Ok(()),
                Some(error) => return Err(error.clone()),
                None => {
                    state.awaited += 1;
                    state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.awaited -= 1;
                }
            }
        }
    }

    /// Begins a snapshot.
    pub(crate) fn exclude(self: &Arc<Self>) -> Result<Exclusive, Error> {
        match self.is_excluding.swap(true, Ordering::AcqRel) {
            true => Err(Error::Exclusive),
            false => Ok(Exclusive(self.clone())),
        }
    }
}

/// A snapshot is being made as long as this is there.
#[derive(Debug)]
pub(crate) struct Exclusive(Arc<Shared>);

impl Drop for Exclusive {
    fn drop(&mut self) {
        self.0.is_excluding.store(false, Ordering::Release);
    }
}

/// How far a journal is, for any thread.
#[derive(Clone, Debug)]
pub struct Watch(pub(crate) Arc<Shared>);

impl Watch {
    /// The last record that is acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.0.lock().acknowledged
    }

    /// Waits until a record is acknowledged, which has to be committed.
    ///
    /// # Errors
    /// When the journal has failed: then the record may be there or not when it is opened again.
    /// Also when the disk is full: then the record is still written once there is room. Either way
    /// the record's fate is unknown, and whoever waits for it has to be answered so.
    pub fn wait(&self, seq: u64) -> Result<(), Error> {
        self.0.wait(|state| state.acknowledged >= seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Directory;

    #[test]
    fn a_deadline_that_comes_after_a_timed_wait_is_kept_in_the_next_one_without_end() {
        let shared = Shared::new(Arc::new(Directory::new("unused")), Written::default());
        let pause = |deadline| Pause { deadline, is_stalled: false, has_tasks: false };
        let now = Some(Instant::now());
        assert!(!shared.await_tasks(pause(now)), "a timed wait that has ended");
        // Before the thread waits without a deadline, the owner writes itself, and needs one.
        shared.look_anew(pause(now));
        assert!(shared.lock().looks_anew);
        assert!(shared.await_tasks(pause(None)), "it looks anew, instead of waiting");
    }
}
