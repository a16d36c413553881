//! Whose turn it is to work off what waits for an owner: that of whoever finds it free, and of
//! whoever has it before letting go of it, so that no thread waits for another.
//!
//! `tests/workflow/turns.rs` carries this file out under loom, which tries the orders in which
//! threads may take their steps: `super::locks` are the standard library's here, and loom's there.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{PoisonError, TryLockError};

use super::locks::{AtomicBool, Mutex, MutexGuard};

/// What one thread at a time has.
pub(super) trait Owned {
    /// What is sent to it.
    type Message;

    /// Takes what is short, from a connection's thread too.
    fn take(&mut self, message: Self::Message);

    /// Keeps what was taken.
    fn finish(&mut self);

    /// A panic has left it as it must not be used.
    fn give_up(self);
}

/// An owner, and what waits for it.
pub(super) struct Turns<O: Owned> {
    /// `None` before the start and after the end.
    owner: Mutex<Option<O>>,
    /// What is short, and has found the owner busy.
    waiting: Mutex<VecDeque<O::Message>>,
    /// Whether connections' threads have had requests carried out that are not kept yet.
    is_unfinished: AtomicBool,
    /// Takes what comes before the start and after the end.
    late: Box<dyn Fn(O::Message) + Send + Sync>,
}

impl<O: Owned> Turns<O> {
    /// Turns of an owner that is still to come.
    pub(super) fn new(late: impl Fn(O::Message) + Send + Sync + 'static) -> Self {
        Self {
            owner: Mutex::new(None),
            waiting: Mutex::new(VecDeque::new()),
            is_unfinished: AtomicBool::new(false),
            late: Box::new(late),
        }
    }

    /// The owner begins.
    pub(super) fn begin(&self, owner: O) {
        *self.lock() = Some(owner);
    }

    /// The owner, once it is free. One in whose hands a change broke off by a panic is given up.
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<O>> {
        self.owner.lock().unwrap_or_else(|poisoned| {
            let mut place = poisoned.into_inner();
            if let Some(owner) = place.take() {
                owner.give_up();
            }
            self.waiting().clear();
            place
        })
    }

    /// The owner, where it is free.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<O>>> {
        match self.owner.try_lock() {
            Ok(place) => Some(place),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => Some(self.lock()),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<O::Message>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what waits, to be worked off next; returns it where as many wait as may.
    pub(super) fn add(&self, message: O::Message, most: usize) -> Result<(), O::Message> {
        let mut waiting = self.waiting();
        if waiting.len() >= most {
            return Err(message);
        }
        waiting.push_back(message);
        Ok(())
    }

    /// Works off what waits. Where the owner is busy, whoever has it does. The calling thread calls
    /// [`Self::finish`] later.
    pub(super) fn work_off(&self) {
        while !self.waiting().is_empty() {
            let Some(mut owner) = self.try_lock() else { return };
            self.take_waiting(&mut owner);
            // With the owner in hand, so that whoever settles has it kept or comes before it: then
            // this thread settles at the end of its pass.
            self.is_unfinished.store(true, SeqCst);
        }
    }

    /// Has the owner keep what connections' threads have had done.
    pub(super) fn finish(&self) {
        if self.is_unfinished.load(SeqCst) {
            self.settle();
        }
    }

    /// Works off what waits, and has the owner keep it.
    pub(super) fn settle(&self) {
        loop {
            let Some(mut owner) = self.try_lock() else { return };
            self.take_waiting(&mut owner);
            self.is_unfinished.store(false, SeqCst);
            if let Some(owner) = owner.as_mut() {
                owner.finish();
            }
            drop(owner);
            // What has come since has found the owner busy.
            if self.waiting().is_empty() && !self.is_unfinished.load(SeqCst) {
                return;
            }
        }
    }

    /// Has the owner take a message, once it is free, and what waits by then. The calling thread
    /// settles later.
    pub(super) fn take(&self, message: O::Message) {
        let mut owner = self.lock();
        if let Some(owner) = owner.as_mut() {
            owner.take(message);
        }
        self.take_waiting(&mut owner);
    }

    fn take_waiting(&self, owner: &mut Option<O>) {
        loop {
            let Some(message) = self.waiting().pop_front() else { return };
            match owner {
                Some(owner) => owner.take(message),
                None => (self.late)(message),
            }
        }
    }
}
