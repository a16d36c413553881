//! How changes of records reach a connection. Data plane.
//!
//! An inbox lists the monitors whose records have changed, each at most once, however often they
//! change before the connection's turn: so it is as long as there are monitors, and the thread
//! that changes a record wakes each connection once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use wire::Waker;

use crate::model::Notify;

/// The monitors of a connection whose records have changed, as other threads list them.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    /// Whether a record has been destroyed.
    gone: AtomicBool,
    /// Whether the connection is to check that it still sends.
    checks: AtomicBool,
    /// Whether what is listed may wait for more. Not where a monitor's record has changed for the
    /// second time: its queue may be short.
    may_wait: AtomicBool,
}

#[derive(Debug, Default)]
struct InboxState {
    /// The numbers of the monitors.
    listed: Vec<u32>,
    /// None before the connection is open.
    waker: Option<Waker>,
}

impl Inbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, InboxState> {
        // A list is whole between any two calls: a panic elsewhere can't break it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self, waker: Waker) {
        self.lock().waker = Some(waker);
    }

    fn push(&self, request: u32) {
        let mut state = self.lock();
        state.listed.push(request);
        if state.listed.len() == 1
            && let Some(waker) = &state.waker
        {
            waker.wake();
        }
    }

    /// Wakes the connection, if what is listed was to wait for more.
    fn hurry(&self) {
        if self.may_wait.load(SeqCst)
            && self.may_wait.swap(false, SeqCst)
            && let Some(waker) = &self.lock().waker
        {
            waker.wake();
        }
    }

    /// Has the connection resumed.
    pub(super) fn wake(&self) {
        if let Some(waker) = &self.lock().waker {
            waker.wake();
        }
    }

    /// Reports that a record has been destroyed: the connection closes its channels to it.
    pub(super) fn look_for_gone(&self) {
        self.gone.store(true, SeqCst);
        self.wake();
    }

    /// Has the connection check that it still sends.
    pub(super) fn check_progress(&self) {
        self.checks.store(true, SeqCst);
        self.wake();
    }

    /// Whether a check was asked for since the last call.
    pub(super) fn takes_check(&self) -> bool {
        self.checks.load(SeqCst) && self.checks.swap(false, SeqCst)
    }

    /// Whether a record has been destroyed since the last call.
    pub(super) fn has_gone(&self) -> bool {
        self.gone.load(SeqCst) && self.gone.swap(false, SeqCst)
    }

    /// Whether what is listed may wait for more.
    pub(super) fn may_wait(&self) -> bool {
        self.may_wait.load(SeqCst)
    }

    /// Lets what is listed from now on wait for more.
    pub(super) fn let_wait(&self) {
        self.may_wait.store(true, SeqCst);
    }

    pub(super) fn has_listed(&self) -> bool {
        !self.lock().listed.is_empty()
    }

    pub(super) fn take(&self, into: &mut VecDeque<u32>) {
        into.extend(self.lock().listed.drain(..));
    }
}

/// Lists one monitor when its record changes.
#[derive(Debug)]
pub(super) struct Notifier {
    inbox: Arc<Inbox>,
    request: u32,
    /// Whether it is in the inbox, or in the connection's own list.
    is_listed: AtomicBool,
}

impl Notifier {
    pub(super) fn new(inbox: &Arc<Inbox>, request: u32) -> Arc<Self> {
        Arc::new(Self { inbox: Arc::clone(inbox), request, is_listed: AtomicBool::new(false) })
    }

    /// Clears the mark before the monitor reads its record: a change meanwhile lists it again.
    pub(super) fn unlist(&self) {
        self.is_listed.store(false, SeqCst);
    }

    /// Marks it as listed by the connection itself; returns whether it was not.
    pub(super) fn mark_listed(&self) -> bool {
        !self.is_listed.swap(true, SeqCst)
    }

    /// Lists the monitor in the turn of its own connection, which needs no wake.
    pub(super) fn list(&self) {
        if !self.is_listed.swap(true, SeqCst) {
            self.inbox.lock().listed.push(self.request);
        }
        self.inbox.may_wait.store(false, SeqCst);
    }
}

impl Notify for Notifier {
    #[inline]
    fn notify(&self) {
        if !self.is_listed.swap(true, SeqCst) {
            self.inbox.push(self.request);
        } else {
            self.inbox.hurry();
        }
    }
}
