//! What the owner of a journal, its thread, and those who wait share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::disk::Disk;
use crate::error::Error;
use crate::frame::Group;

/// Buffers of emptied groups that are kept for the next ones, if they are no larger.
const SPARE_GROUPS: usize = 8;
const SPARE_BYTES: usize = 1 << 20;

/// What a journal's thread reports, in a call that must not wait.
#[derive(Clone, Debug)]
pub enum Progress {
    /// All records up to this one are acknowledged.
    Acknowledged(u64),
    /// The disk is full. What was committed waits and is tried again, and new records are refused
    /// with this error.
    Stalled(Error),
    /// There was room on the disk again.
    Resumed,
    /// The journal has failed, and does nothing more: what isn't acknowledged never will be.
    Failed(Error),
}

/// What the thread has to do, in order.
pub(crate) enum Task {
    Write(Group),
    /// Goes on in a new file.
    Rotate,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) tasks: VecDeque<Task>,
    spare: Vec<Group>,
    pub(crate) acknowledged: u64,
    /// The last file's first record and its size, as far as it is written.
    pub(crate) last_file: (u64, u64),
    /// Why nothing is taken: of a full disk, or for good.
    pub(crate) refusal: Option<Error>,
    pub(crate) has_failed: bool,
    pub(crate) is_closing: bool,
    is_idle: bool,
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
    /// Whether [`State::refusal`] is there, to be looked up without the lock.
    pub(crate) is_refusing: AtomicBool,
    /// Whether a snapshot or a backup is being made.
    occupied: AtomicBool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("acknowledged", &self.lock().acknowledged).finish()
    }
}

impl Shared {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            state: Mutex::default(),
            work: Condvar::default(),
            progress: Condvar::default(),
            waiting_bytes: AtomicUsize::default(),
            is_refusing: AtomicBool::default(),
            occupied: AtomicBool::default(),
        }
    }

    /// A thread that panics while it holds the lock leaves the state whole: it only assigns.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands tasks over, and returns an empty group.
    pub(crate) fn submit(&self, tasks: impl IntoIterator<Item = Task>) -> Group {
        let mut state = self.lock();
        state.tasks.extend(tasks);
        if std::mem::take(&mut state.is_idle) {
            self.work.notify_one();
        }
        state.spare.pop().unwrap_or_default()
    }

    /// Takes all tasks that have come, and waits for some until `deadline`; returns whether the
    /// journal is being closed.
    pub(crate) fn take(&self, tasks: &mut VecDeque<Task>, deadline: Option<Instant>) -> bool {
        let mut state = self.lock();
        while state.tasks.is_empty() && tasks.is_empty() && !state.is_closing {
            state.is_idle = true;
            state = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => break,
                Some(left) => {
                    self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.is_idle = false;
        tasks.append(&mut state.tasks);
        state.is_closing
    }

    /// Waits until `deadline`, or until the journal is being closed.
    pub(crate) fn pause(&self, deadline: Instant) {
        let mut state = self.lock();
        while !state.is_closing {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.is_idle = true;
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_idle = false;
    }

    /// A group has been written: its memory can be used again.
    pub(crate) fn written(&self, mut group: Group) {
        self.waiting_bytes.fetch_sub(group.size(), Ordering::Relaxed);
        group.clear();
        let mut state = self.lock();
        if state.spare.len() < SPARE_GROUPS && group.capacity() <= SPARE_BYTES {
            state.spare.push(group);
        }
    }

    /// Changes the state and wakes all who wait for that.
    pub(crate) fn publish(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        self.is_refusing.store(state.refusal.is_some(), Ordering::Release);
        drop(state);
        self.progress.notify_all();
        self.work.notify_one();
    }

    /// Waits until `done` returns something of the state, or the journal has failed.
    pub(crate) fn wait<T>(
        &self,
        mut done: impl FnMut(&State) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut state = self.lock();
        loop {
            if let Some(result) = done(&state) {
                return result;
            }
            if let (true, Some(error)) = (state.has_failed, &state.refusal) {
                return Err(error.clone());
            }
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Begins a snapshot or a backup.
    pub(crate) fn occupy(self: &Arc<Self>) -> Result<Occupied, Error> {
        match self.occupied.swap(true, Ordering::AcqRel) {
            true => Err(Error::Occupied),
            false => Ok(Occupied(self.clone())),
        }
    }
}

/// A snapshot or a backup is being made as long as this is there.
#[derive(Debug)]
pub(crate) struct Occupied(Arc<Shared>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.occupied.store(false, Ordering::Release);
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
    /// When the journal has failed, or the disk is full: then it may still be acknowledged later.
    pub fn wait(&self, seq: u64) -> Result<(), Error> {
        self.0.wait(|state| match &state.refusal {
            _ if state.acknowledged >= seq => Some(Ok(())),
            Some(error) => Some(Err(error.clone())),
            None => None,
        })
    }
}
