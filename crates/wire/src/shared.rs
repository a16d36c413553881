//! What a server's threads share. Touched per connection, never per operation.

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use crate::config::Config;
use crate::counters::{Counters, ThreadCounters};
use crate::mailbox::{Mailbox, Message};

/// The server's settings, mailboxes and counters.
pub(crate) struct Shared<K> {
    pub(crate) config: Config,
    pub(crate) mailboxes: Vec<Mailbox<K>>,
    pub(crate) counters: Vec<ThreadCounters>,
    /// Connections that are open or on their way to their thread.
    pub(crate) current: AtomicUsize,
    /// Accepting is suspended until a connection is closed.
    pub(crate) accept_paused: AtomicBool,
    /// Threads that use io_uring.
    pub(crate) uring_threads: AtomicUsize,
}

impl<K> Shared<K> {
    /// The state of a server that has opened nothing yet.
    pub(crate) fn new(config: Config) -> io::Result<Self> {
        let count = config.threads.max(1);
        Ok(Self {
            config,
            mailboxes: (0..count).map(|_| Mailbox::new()).collect::<io::Result<_>>()?,
            counters: (0..count).map(|_| ThreadCounters::default()).collect(),
            current: AtomicUsize::new(0),
            accept_paused: AtomicBool::new(false),
            uring_threads: AtomicUsize::new(0),
        })
    }

    /// A reading of the counters of all threads.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = Counters::sum(self.counters.iter());
        counters.current_connections = self.current.load(SeqCst) as u64;
        counters.accepting = !self.accept_paused.load(SeqCst);
        counters.uring_threads = self.uring_threads.load(SeqCst) as u64;
        counters
    }

    /// Counts a closed connection, and resumes accepting if it waited for one.
    pub(crate) fn release_one(&self) {
        self.current.fetch_sub(1, SeqCst);
        if self.accept_paused.load(SeqCst) && self.accept_paused.swap(false, SeqCst) {
            // The first thread accepts. If it has ended, no more connections are accepted.
            let _ = self.mailboxes[0].post(Message::Accept);
        }
    }
}
