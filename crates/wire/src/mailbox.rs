//! A loop thread's mailbox: messages from other threads, and an eventfd that wakes it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, mem};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::transport::Transport;
use crate::{Address, Ns};

/// An accepted connection on its way to its thread.
#[derive(Debug)]
pub(crate) struct Accepted<K> {
    pub(crate) socket: K,
    pub(crate) address: Address,
    pub(crate) transport: Transport,
    /// The index of its listener, whose protocol it speaks.
    pub(crate) listener: usize,
}

/// A message to a loop's thread.
#[derive(Debug)]
pub(crate) enum Message<K> {
    /// Serve this accepted connection.
    Socket(Accepted<K>),
    /// Resume the connection with this token.
    Wake(u64),
    /// Accept again: a connection was closed.
    Accept,
    /// Drain until this time, then end.
    Stop(Ns),
}

/// One thread's messages.
///
/// The reader sets a flag before it sleeps; only then does a message cost a system call. The list
/// is bounded by the open connections: each has at most one `Wake` in it.
#[derive(Debug)]
pub(crate) struct Mailbox<K> {
    messages: Mutex<Vec<Message<K>>>,
    closed: AtomicBool,
    pending: AtomicBool,
    asleep: AtomicBool,
    event: OwnedFd,
}

impl<K> Mailbox<K> {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            messages: Mutex::default(),
            closed: AtomicBool::new(false),
            pending: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            event,
        })
    }

    /// Posts a message, or returns it when the reader has ended.
    pub(crate) fn post(&self, message: Message<K>) -> Result<(), Message<K>> {
        if self.leave(message)? {
            self.ring();
        }
        Ok(())
    }

    /// Leaves a message; returns whether the reader sleeps and has to be woken with
    /// [`Mailbox::ring`], which no other poster does from here on.
    pub(crate) fn leave(&self, message: Message<K>) -> Result<bool, Message<K>> {
        {
            let mut messages = self.lock();
            if self.closed.load(SeqCst) {
                return Err(message);
            }
            messages.push(message);
            self.pending.store(true, SeqCst);
        }
        // The reader stores `asleep` and then loads `pending`; here the order is reversed, so at
        // least one of the two sees the other's store.
        Ok(self.asleep.swap(false, SeqCst))
    }

    /// Wakes the reader.
    pub(crate) fn ring(&self) {
        // The only error is a full counter, and that wakes the reader as well.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Whether a message waits. Cheap enough for every turn.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(SeqCst)
    }

    /// Announces that the reader is about to sleep; returns whether it may.
    pub(crate) fn may_sleep(&self) -> bool {
        self.asleep.store(true, SeqCst);
        if self.is_pending() {
            self.awake();
            return false;
        }
        true
    }

    /// Announces that the reader is awake.
    #[inline]
    pub(crate) fn awake(&self) {
        self.asleep.store(false, SeqCst);
    }

    /// Swaps the messages with `into`, an empty list whose memory is reused.
    pub(crate) fn take(&self, into: &mut Vec<Message<K>>) {
        debug_assert!(into.is_empty(), "the messages taken before have been read");
        let mut messages = self.lock();
        self.pending.store(false, SeqCst);
        mem::swap(&mut *messages, into);
    }

    /// Closes the mailbox: posting fails from now on. Returns the unread messages.
    pub(crate) fn close(&self) -> Vec<Message<K>> {
        let mut messages = self.lock();
        self.closed.store(true, SeqCst);
        self.pending.store(false, SeqCst);
        mem::take(&mut *messages)
    }

    /// Resets the eventfd after it has become readable.
    pub(crate) fn clear_event(&self) {
        // It fails only when the counter is zero, and then there is nothing to reset.
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message<K>>> {
        // The list is consistent between any two calls, so a poisoned lock is safe to use.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> AsFd for Mailbox<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Mailbox, Message};
    use crate::poll::{Interest, Poller};
    use rustix::fd::OwnedFd;
    use std::sync::Arc;

    #[test]
    fn no_message_is_missed_by_a_reader_that_goes_to_sleep() {
        const SENDERS: u64 = 4;
        const EACH: u64 = 20_000;
        let mailbox = Arc::new(Mailbox::<OwnedFd>::new().expect("a mailbox"));
        let mut poller = Poller::new().expect("a poller");
        poller.add(&*mailbox, 0, Interest::Read).expect("add");
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let mailbox = Arc::clone(&mailbox);
                std::thread::spawn(move || {
                    for count in 0..EACH {
                        mailbox.post(Message::Wake(sender * EACH + count)).expect("open");
                    }
                })
            })
            .collect();
        let mut seen = 0;
        let mut messages = Vec::new();
        while seen < SENDERS * EACH {
            let timeout = if mailbox.may_sleep() { Some(20_000_000_000) } else { Some(0) };
            let events = poller.wait(timeout).expect("wait");
            mailbox.awake();
            if events > 0 {
                mailbox.clear_event();
            }
            mailbox.take(&mut messages);
            assert!(timeout == Some(0) || events > 0, "a message was missed");
            seen += messages.drain(..).count() as u64;
        }
        senders.into_iter().for_each(|sender| sender.join().expect("sender"));
        assert!(mailbox.close().is_empty());
        assert!(mailbox.post(Message::Accept).is_err(), "a closed mailbox has no reader");
    }
}
