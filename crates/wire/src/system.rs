//! The loop's backend: what a thread asks of the operating system, as a trait. The kernel is one
//! (`kernel.rs`: epoll, with or without io_uring), the simulation another (`simulation/`).
//!
//! A worker is compiled for each, so that a call of the kernel costs what it would without the
//! trait. Sockets are below it: [`Socket`] moves bytes. Data plane.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use crate::poll::{Event, Interest};
use crate::stream::Socket;
use crate::transport::Transport;
use crate::{Address, Ns};

/// One thread's backend.
pub(crate) trait System {
    /// A connection's socket. Dropping it closes it.
    type Socket: Socket + Debug + Send + 'static;
    /// A listening socket.
    type Listener;
    /// Batches of receives and sends.
    type Ring: Ring<Self::Socket>;

    /// The time on the clock that deadlines are measured by.
    fn now(&self) -> Ns;

    /// Waits until a socket is ready or `timeout_ns` have passed (`None`: for ever), and returns
    /// the number of events.
    fn wait(&mut self, timeout_ns: Option<Ns>) -> io::Result<usize>;

    /// One event of the last wait.
    fn event(&self, index: usize) -> Event;

    /// Starts waiting for a socket.
    fn add(&self, socket: &Self::Socket, token: u64, interest: Interest) -> io::Result<()>;

    /// Changes what is waited for on a socket.
    fn modify(&self, socket: &Self::Socket, token: u64, interest: Interest) -> io::Result<()>;

    /// Starts waiting for connections at a listener.
    fn add_listener(&self, listener: &Self::Listener, token: u64) -> io::Result<()>;

    /// Changes whether connections are waited for.
    fn modify_listener(
        &self,
        listener: &Self::Listener,
        token: u64,
        interest: Interest,
    ) -> io::Result<()>;

    /// Accepts a connection.
    fn accept(&self, listener: &Self::Listener) -> Result<(Self::Socket, Address), Errno>;

    /// The least time between two accepted connections.
    fn accept_interval(listener: &Self::Listener) -> Duration {
        let _ = listener;
        Duration::ZERO
    }

    /// The transport of a new connection of a listener.
    fn transport(listener: &Self::Listener) -> io::Result<Transport>;

    /// Starts to connect without blocking: once the socket is writable, [`Socket::connected`]
    /// returns the outcome.
    fn connect(&self, address: &Address) -> io::Result<Self::Socket>;

    /// Starts waiting until a foreign descriptor is readable.
    fn watch(&self, descriptor: BorrowedFd<'_>, token: u64) -> io::Result<()>;

    /// Stops waiting for a foreign descriptor.
    fn unwatch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()>;
}

/// The most requests of one batch.
pub const MAX_BATCH: usize = 64;

/// A request's completion: the bytes moved. `CANCELED` marks one that was never made.
pub type Outcome = Result<usize, Errno>;

/// The receives, or the sends, of several sockets in one call, which ends with the completion of
/// all of them.
pub(crate) trait Ring<K> {
    /// Receives once, without blocking, from each of at most [`MAX_BATCH`] sockets. Returns their
    /// outcomes in the same order.
    fn receive<'a>(&mut self, jobs: impl Iterator<Item = (&'a K, &'a mut [u8])>) -> &[Outcome]
    where
        K: 'a;

    /// Sends once, without blocking, over each of at most [`MAX_BATCH`] sockets. Returns their
    /// outcomes in the same order.
    fn send<'a>(&mut self, jobs: impl Iterator<Item = (&'a K, &'a [u8])>) -> &[Outcome]
    where
        K: 'a;

    /// Whether no more batches are possible: the loop then continues with single calls.
    fn is_lost(&self) -> bool;
}
