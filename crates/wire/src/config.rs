//! A server's limits and choices. Control plane.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::Waker;
use crate::send_memory::SendMemory;

/// Which of a server's threads, counted from 0.
pub type ThreadIndex = usize;

/// What happens to a connection over the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits in the listener's backlog until another is closed.
    Wait,
    /// It is sent this message, at most a few kilobytes, and closed.
    Refuse(Bytes),
}

/// How the threads make their system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// epoll for readiness, and one system call per receive and per send.
    #[default]
    Epoll,
    /// epoll for readiness, and io_uring for the calls: one submission receives for up to 64
    /// ready connections, and one sends their answers.
    Uring,
    /// io_uring on each thread to which the kernel grants a ring, else epoll alone.
    Auto,
}

/// A server's limits. Each is enforced by the loop; only the client that passes one is affected.
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads, each with a loop of its own; at least 1.
    pub threads: usize,
    /// Connections open at once, those that linger to be closed cleanly too.
    pub max_connections: usize,
    /// What happens to one more.
    pub when_full: WhenFull,
    /// The most bytes of one unfinished message in [`Input`](crate::Input); a larger one is a
    /// protocol error. Bytes read into [`Connection::place`](crate::Connection::place)
    /// don't count.
    pub input_limit_bytes: usize,
    /// Unsent output at which a protocol is asked to pause
    /// ([`Output::is_full`](crate::Output::is_full)).
    pub output_limit_bytes: usize,
    /// The memory of the unsent bytes of all connections together. The closer it is to its limit,
    /// the less than `output_limit_bytes` one connection may have; beyond it, the connections whose
    /// peers have taken nothing for the longest time are closed ([`Closed::SlowPeer`]).
    ///
    /// [`Closed::SlowPeer`]: crate::Closed::SlowPeer
    pub send_memory: Arc<SendMemory>,
    /// The most bytes received by one read, at least 4 KiB: the size of each thread's read buffer.
    pub read_bytes: usize,
    /// The most bytes sent for one connection before other connections get their turn.
    pub turn_bytes: usize,
    /// A connection without traffic for this long is closed, unless answers are pending.
    pub idle_timeout: Option<Duration>,
    /// A TLS handshake that takes longer is ended.
    pub handshake_timeout: Duration,
    /// Outgoing connections of each thread at once; one more is refused by
    /// [`Loop::connect`](crate::Loop::connect).
    pub max_outgoing: usize,
    /// How the threads make their system calls.
    pub backend: Backend,
    /// Called by each thread at the end of every pass of its loop, for what is worth doing once
    /// for all connections that had a turn in it. It must not wait.
    pub after_pass: Option<Waker>,
    /// The threads' name, followed by their number; the kernel keeps 15 bytes of it.
    pub thread_name: &'static str,
}

/// The default limit of the unsent bytes of all connections.
const SEND_MEMORY_BYTES: usize = 64 << 20;

impl Config {
    /// Returns the unsent bytes at which a protocol is asked to pause now.
    #[inline]
    pub(crate) fn output_limit(&self) -> usize {
        self.send_memory.output_limit(self.output_limit_bytes)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: 1,
            max_connections: 1024,
            when_full: WhenFull::Wait,
            input_limit_bytes: 1 << 20,
            output_limit_bytes: 256 << 10,
            send_memory: SendMemory::new(SEND_MEMORY_BYTES),
            read_bytes: 256 << 10,
            turn_bytes: 1 << 20,
            idle_timeout: None,
            handshake_timeout: Duration::from_secs(10),
            max_outgoing: 64,
            backend: Backend::Epoll,
            after_pass: None,
            thread_name: "serve",
        }
    }
}
