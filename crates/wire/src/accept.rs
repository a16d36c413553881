//! Accepting connections, and pausing while there are too many.

use std::sync::atomic::Ordering::SeqCst;

use rustix::io::Errno;

use crate::Ns;
use crate::clock::{MILLISECOND_NS, duration_ns};
use crate::config::WhenFull;
use crate::counters::add;
use crate::mailbox::Accepted;
use crate::poll::Interest;
use crate::shared::Shared;
use crate::slots::SPECIAL;
use crate::stream::Socket;
use crate::system::System;

/// The first listener's token; the others follow.
pub(crate) const LISTENER_TOKEN: u64 = SPECIAL | 1 << 32;

/// The most connections accepted before other events are dispatched.
const MAX_ACCEPTS_PER_TURN: usize = 64;

/// How long accepting pauses when the system is out of descriptors or memory.
const RETRY_NS: Ns = 100 * MILLISECOND_NS;

/// The listeners, and whether they are polled.
pub(crate) struct Acceptor<S: System> {
    listeners: Vec<S::Listener>,
    is_paused: bool,
    retry_at_ns: Option<Ns>,
}

impl<S: System> Acceptor<S> {
    pub(crate) fn new(listeners: Vec<S::Listener>, system: &S) -> std::io::Result<Self> {
        for (index, listener) in listeners.iter().enumerate() {
            system.add_listener(listener, LISTENER_TOKEN + index as u64)?;
        }
        Ok(Self { listeners, is_paused: false, retry_at_ns: None })
    }

    /// When accepting is tried again after a pause that no closed connection ends.
    pub(crate) fn retry_at_ns(&self) -> Option<Ns> {
        self.retry_at_ns
    }

    /// Accepts the connections that wait at one listener, within the limit on connections.
    pub(crate) fn accept(
        &mut self,
        token: u64,
        system: &S,
        shared: &Shared<S::Socket>,
        now_ns: Ns,
        into: &mut Vec<Accepted<S::Socket>>,
    ) {
        let index = (token - LISTENER_TOKEN) as usize;
        for accepted in 0..MAX_ACCEPTS_PER_TURN {
            // Pauses only when a connection is known to wait, which is so for the first; after
            // that, accept(2) tells whether there are more.
            if self.is_paused || !self.has_room(accepted == 0, system, shared) {
                return;
            }
            match system.accept(&self.listeners[index]) {
                Ok((socket, address)) => {
                    if shared.current.load(SeqCst) >= shared.config.max_connections {
                        refuse(&socket, shared);
                        continue;
                    }
                    shared.current.fetch_add(1, SeqCst);
                    match S::transport(&self.listeners[index]) {
                        Ok(transport) => {
                            into.push(Accepted { socket, address, transport, listener: index })
                        }
                        // No memory for it: the socket is closed.
                        Err(_) => shared.release_one(),
                    }
                    let interval = S::accept_interval(&self.listeners[index]);
                    if !interval.is_zero() {
                        self.pause(system, shared);
                        self.retry_at_ns = Some(now_ns + duration_ns(interval));
                    }
                }
                Err(Errno::AGAIN) => return,
                // Returned even when no connection waits, which is only certain for the first.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    if accepted > 0 {
                        return;
                    }
                    shared.accept_paused.store(true, SeqCst);
                    self.pause(system, shared);
                    self.retry_at_ns = Some(now_ns + RETRY_NS);
                }
                // One connection ended before it was accepted; the next may not have.
                Err(_) => {}
            }
        }
    }

    /// Accepts again after a pause.
    pub(crate) fn resume(&mut self, system: &S, shared: &Shared<S::Socket>) {
        if self.is_paused {
            self.is_paused = false;
            self.retry_at_ns = None;
            shared.accept_paused.store(false, SeqCst);
            self.poll(system, Interest::Read);
        }
    }

    /// Whether one more may be accepted, if only to be refused; if not, pauses if `may_pause`.
    fn has_room(&mut self, may_pause: bool, system: &S, shared: &Shared<S::Socket>) -> bool {
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
        self.pause(system, shared);
        false
    }

    fn pause(&mut self, system: &S, shared: &Shared<S::Socket>) {
        self.is_paused = true;
        add(&shared.counters[0].listen_disabled, 1);
        self.poll(system, Interest::Nothing);
    }

    fn poll(&self, system: &S, interest: Interest) {
        for (index, listener) in self.listeners.iter().enumerate() {
            // It can't fail: the listener is in the set, and a change takes no memory.
            let _ = system.modify_listener(listener, LISTENER_TOKEN + index as u64, interest);
        }
    }
}

/// Sends the refusal to a connection over the limit, and closes it.
fn refuse<K: Socket>(socket: &K, shared: &Shared<K>) {
    add(&shared.counters[0].rejected, 1);
    if let WhenFull::Refuse(message) = &shared.config.when_full {
        // A new socket's buffer has room for a short message; if not, its peer has gone.
        let _ = socket.send(message);
    }
    let _ = socket.end_sending();
    // Closing a socket with unread bytes resets it, which could discard the message.
    let _ = socket.receive(&mut [0_u8; 4096]);
}
