//! The kernel as the loop's backend: epoll for readiness, a system call for each receive and send,
//! and io_uring for batches of them. Data plane.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketAddrUnix, SocketFlags, acceptfrom_with, sockopt};

use crate::listen::Listener;
use crate::poll::{Event, Interest, Poller};
use crate::system::{Outcome, Ring, System};
use crate::transport::Transport;
use crate::uring::Uring;
use crate::{Address, Ns, clock, stream};

/// One thread's epoll.
pub(crate) struct Kernel {
    poller: Poller,
}

impl Kernel {
    /// Creates an empty set of sockets.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { poller: Poller::new()? })
    }

    /// Starts waiting until something else than a connection is readable.
    pub(crate) fn add_special(&self, descriptor: impl AsFd, token: u64) -> io::Result<()> {
        self.poller.add(descriptor, token, Interest::Read)
    }
}

impl System for Kernel {
    type Socket = OwnedFd;
    type Listener = Listener;
    type Ring = Uring;

    #[inline]
    fn now(&self) -> Ns {
        clock::now()
    }

    #[inline]
    fn wait(&mut self, timeout_ns: Option<Ns>) -> io::Result<usize> {
        self.poller.wait(timeout_ns)
    }

    #[inline]
    fn event(&self, index: usize) -> Event {
        self.poller.event(index)
    }

    fn add(&self, socket: &OwnedFd, token: u64, interest: Interest) -> io::Result<()> {
        self.poller.add(socket, token, interest)
    }

    #[inline]
    fn modify(&self, socket: &OwnedFd, token: u64, interest: Interest) -> io::Result<()> {
        self.poller.modify(socket, token, interest)
    }

    fn add_listener(&self, listener: &Listener, token: u64) -> io::Result<()> {
        self.poller.add(&listener.socket, token, Interest::Read)
    }

    fn modify_listener(
        &self,
        listener: &Listener,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.poller.modify(&listener.socket, token, interest)
    }

    fn accept(&self, listener: &Listener) -> Result<(OwnedFd, Address), Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (socket, peer) = acceptfrom_with(&listener.socket, flags)?;
        let address = peer_address(peer);
        if listener.options().no_delay && matches!(address, Address::Internet(_)) {
            // It fails only on a connection that has ended already.
            let _ = sockopt::set_tcp_nodelay(&socket, true);
        }
        Ok((socket, address))
    }

    fn accept_interval(listener: &Listener) -> Duration {
        listener.options().accept_interval
    }

    fn transport(listener: &Listener) -> io::Result<Transport> {
        listener.transport()
    }

    fn connect(&self, address: &Address) -> io::Result<OwnedFd> {
        stream::connect(address)
    }

    fn watch(&self, descriptor: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.add_special(descriptor, token)
    }

    fn unwatch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.poller.remove(descriptor)
    }
}

impl Ring<OwnedFd> for Uring {
    fn receive<'a>(
        &mut self,
        jobs: impl Iterator<Item = (&'a OwnedFd, &'a mut [u8])>,
    ) -> &[Outcome] {
        self.receive_from(jobs.map(|(socket, space)| (socket.as_fd(), space)))
    }

    fn send<'a>(&mut self, jobs: impl Iterator<Item = (&'a OwnedFd, &'a [u8])>) -> &[Outcome] {
        self.send_over(jobs.map(|(socket, bytes)| (socket.as_fd(), bytes)))
    }

    fn is_lost(&self) -> bool {
        self.has_no_ring()
    }
}

fn peer_address(address: Option<SocketAddrAny>) -> Address {
    let unnamed = || Address::Unix(PathBuf::new());
    let Some(address) = address else { return unnamed() };
    if let Ok(internet) = SocketAddr::try_from(address.clone()) {
        return Address::Internet(internet);
    }
    let Ok(unix) = SocketAddrUnix::try_from(address) else { return unnamed() };
    match unix.path_bytes() {
        Some(path) => Address::Unix(OsStr::from_bytes(path).into()),
        None => unnamed(),
    }
}
