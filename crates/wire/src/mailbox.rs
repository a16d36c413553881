//! How other threads reach a loop's thread: a list of letters and an event to wake it with.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, mem};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::Ns;
use crate::accept::Accepted;

/// What a loop's thread can be told.
#[derive(Debug)]
pub(crate) enum Letter {
    /// A connection that is now that thread's.
    Socket(Accepted),
    /// The connection with this token is to be resumed.
    Wake(u64),
    /// There is room for connections again.
    Accept,
    /// Finish what is in flight until this time, then end.
    Stop(Ns),
}

/// One thread's letters.
///
/// Its owner says when it is about to sleep; only then does a letter cost a system call. The list
/// is bounded by the connections that are open: each has at most one `Wake` under way.
#[derive(Debug)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    closed: AtomicBool,
    pending: AtomicBool,
    asleep: AtomicBool,
    event: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            letters: Mutex::default(),
            closed: AtomicBool::new(false),
            pending: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            event,
        })
    }

    /// Leaves a letter, or gives it back when its reader has gone.
    pub(crate) fn post(&self, letter: Letter) -> Result<(), Letter> {
        {
            let mut letters = self.lock();
            if self.closed.load(SeqCst) {
                return Err(letter);
            }
            letters.push(letter);
            self.pending.store(true, SeqCst);
        }
        // The reader sets `asleep` and then looks at `pending`; here it is the other way round.
        // In whatever order the two meet, one of them sees the other.
        if self.asleep.swap(false, SeqCst) {
            // The only error is a counter that is full, and then the reader is woken anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
        Ok(())
    }

    /// Whether a letter waits. Cheap enough for every turn.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(SeqCst)
    }

    /// The reader is about to sleep, and may if this is true.
    pub(crate) fn may_sleep(&self) -> bool {
        self.asleep.store(true, SeqCst);
        if self.is_pending() {
            self.awake();
            return false;
        }
        true
    }

    /// The reader has woken for whatever reason.
    #[inline]
    pub(crate) fn awake(&self) {
        self.asleep.store(false, SeqCst);
    }

    /// Swaps the letters for an empty list with memory to spare.
    pub(crate) fn take(&self, into: &mut Vec<Letter>) {
        debug_assert!(into.is_empty(), "letters that were taken have been read");
        let mut letters = self.lock();
        self.pending.store(false, SeqCst);
        mem::swap(&mut *letters, into);
    }

    /// No letter will be read any more; hands back those that wait.
    pub(crate) fn close(&self) -> Vec<Letter> {
        let mut letters = self.lock();
        self.closed.store(true, SeqCst);
        self.pending.store(false, SeqCst);
        mem::take(&mut *letters)
    }

    /// Takes back the signal after it has been seen.
    pub(crate) fn clear_event(&self) {
        // It fails only when there is no signal, and then there is nothing to take back.
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Letter>> {
        // A list of letters is whole between any two calls: a panic elsewhere can't break it.
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Letter, Mailbox};
    use crate::poll::{Interest, Poller};
    use std::sync::Arc;

    #[test]
    fn no_letter_is_slept_through() {
        const SENDERS: u64 = 4;
        const EACH: u64 = 20_000;
        let mailbox = Arc::new(Mailbox::new().expect("a mailbox"));
        let mut poller = Poller::new().expect("a poller");
        poller.add(&*mailbox, 0, Interest::Read).expect("add");
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let mailbox = Arc::clone(&mailbox);
                std::thread::spawn(move || {
                    for count in 0..EACH {
                        mailbox.post(Letter::Wake(sender * EACH + count)).expect("open");
                    }
                })
            })
            .collect();
        let mut seen = 0;
        let mut letters = Vec::new();
        while seen < SENDERS * EACH {
            let timeout = if mailbox.may_sleep() { Some(20_000_000_000) } else { Some(0) };
            let events = poller.wait(timeout).expect("wait");
            mailbox.awake();
            if events > 0 {
                mailbox.clear_event();
            }
            mailbox.take(&mut letters);
            assert!(timeout == Some(0) || events > 0, "slept through a letter");
            seen += letters.drain(..).count() as u64;
        }
        senders.into_iter().for_each(|sender| sender.join().expect("sender"));
        assert!(mailbox.close().is_empty());
        assert!(mailbox.post(Letter::Accept).is_err(), "nobody reads a closed mailbox");
    }
}
