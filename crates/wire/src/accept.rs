//! Accepting connections, and pausing while there are too many.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketAddrUnix, SocketFlags, acceptfrom_with,
    recv, send, shutdown, sockopt,
};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;

use crate::clock::MILLISECOND_NS;
use crate::config::WhenFull;
use crate::counters::add;
use crate::listen::Listener;
use crate::mailbox::Accepted;
use crate::poll::{Interest, Poller};
use crate::shared::Shared;
use crate::slots::SPECIAL;
use crate::{Address, Ns};

/// The first listener's token; the others follow.
pub(crate) const LISTENER_TOKEN: u64 = SPECIAL | 1 << 32;

/// The most connections accepted before other events are dispatched.
const MAX_ACCEPTS_PER_TURN: usize = 64;

/// How long accepting pauses when the system is out of descriptors or memory.
const RETRY_NS: Ns = 100 * MILLISECOND_NS;

/// The listeners, and whether they are polled.
pub(crate) struct Acceptor {
    listeners: Vec<Listener>,
    is_paused: bool,
    retry_at_ns: Option<Ns>,
}

impl Acceptor {
    pub(crate) fn new(listeners: Vec<Listener>, poller: &Poller) -> std::io::Result<Self> {
        for (index, listener) in listeners.iter().enumerate() {
            poller.add(&listener.socket, LISTENER_TOKEN + index as u64, Interest::Read)?;
        }
        Ok(Self { listeners, is_paused: false, retry_at_ns: None })
    }

    /// When accepting is tried again after the system ran out of descriptors or memory.
    pub(crate) fn retry_at_ns(&self) -> Option<Ns> {
        self.retry_at_ns
    }

    /// Accepts the connections that wait at one listener, within the limit on connections.
    pub(crate) fn accept(
        &mut self,
        token: u64,
        poller: &Poller,
        shared: &Shared,
        now_ns: Ns,
        into: &mut Vec<Accepted>,
    ) {
        let index = (token - LISTENER_TOKEN) as usize;
        for accepted in 0..MAX_ACCEPTS_PER_TURN {
            // Pauses only when a connection is known to wait, which is so for the first; after
            // that, accept(2) tells whether there are more.
            if self.is_paused || !self.has_room(accepted == 0, poller, shared) {
                return;
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match acceptfrom_with(&self.listeners[index].socket, flags) {
                Ok((socket, peer)) => {
                    if shared.current.load(SeqCst) >= shared.config.max_connections {
                        refuse(&socket, shared);
                        continue;
                    }
                    shared.current.fetch_add(1, SeqCst);
                    let address = peer_address(peer);
                    if matches!(address, Address::Internet(_)) {
                        // It fails only on a connection that has ended already.
                        let _ = sockopt::set_tcp_nodelay(&socket, true);
                    }
                    match self.listeners[index].transport() {
                        Ok(transport) => {
                            into.push(Accepted { socket, address, transport, listener: index })
                        }
                        // No memory for it: the socket is closed.
                        Err(_) => shared.release_one(),
                    }
                }
                Err(Errno::AGAIN) => return,
                // Returned even when no connection waits, which is only certain for the first.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    if accepted > 0 {
                        return;
                    }
                    shared.accept_paused.store(true, SeqCst);
                    self.pause(poller, shared);
                    self.retry_at_ns = Some(now_ns + RETRY_NS);
                }
                // One connection ended before it was accepted; the next may not have.
                Err(_) => {}
            }
        }
    }

    /// Accepts again after a pause.
    pub(crate) fn resume(&mut self, poller: &Poller, shared: &Shared) {
        if self.is_paused {
            self.is_paused = false;
            self.retry_at_ns = None;
            shared.accept_paused.store(false, SeqCst);
            self.poll(poller, Interest::Read);
        }
    }

    /// Whether one more may be accepted, if only to be refused; if not, pauses if `may_pause`.
    fn has_room(&mut self, may_pause: bool, poller: &Poller, shared: &Shared) -> bool {
        let is_full = || shared.current.load(SeqCst) >= shared.config.max_connections;
        if !is_full() || matches!(shared.config.when_full, WhenFull::Refuse(_)) {
            return true;
        }
        if !may_pause {
            return false;
        }
        // A closing thread decrements `current` and then reads `accept_paused`; here the order is
        // reversed, so at least one of the two sees the other's store.
        shared.accept_paused.store(true, SeqCst);
        if !is_full() {
            shared.accept_paused.store(false, SeqCst);
            return true;
        }
        self.pause(poller, shared);
        false
    }

    fn pause(&mut self, poller: &Poller, shared: &Shared) {
        self.is_paused = true;
        add(&shared.counters[0].listen_disabled, 1);
        self.poll(poller, Interest::Nothing);
    }

    fn poll(&self, poller: &Poller, interest: Interest) {
        for (index, listener) in self.listeners.iter().enumerate() {
            // It can't fail: the listener is in the set, and a change takes no memory.
            let _ = poller.modify(&listener.socket, LISTENER_TOKEN + index as u64, interest);
        }
    }
}

/// Sends the refusal to a connection over the limit, and closes it.
fn refuse(socket: &OwnedFd, shared: &Shared) {
    add(&shared.counters[0].rejected, 1);
    if let WhenFull::Refuse(message) = &shared.config.when_full {
        // A new socket's buffer has room for a short message; if not, its peer has gone.
        let _ = send(socket, message, SendFlags::NOSIGNAL);
    }
    let _ = shutdown(socket, Shutdown::Write);
    // Closing a socket with unread bytes resets it, which could discard the message.
    let _ = recv(socket, &mut [0_u8; 4096], RecvFlags::empty());
}

fn peer_address(address: Option<SocketAddrAny>) -> Address {
    let unnamed = || Address::Unix(PathBuf::new());
    let Some(address) = address else { return unnamed() };
    if let Ok(internet) = SocketAddr::try_from(address.clone()) {
        return Address::Internet(internet);
    }
    let Ok(unix) = SocketAddrUnix::try_from(address) else { return unnamed() };
    match unix.path_bytes() {
        Some(path) => Address::Unix(std::ffi::OsStr::from_bytes(path).into()),
        None => unnamed(),
    }
}
