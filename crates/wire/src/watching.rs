//! Datagram endpoints and foreign descriptors in the loop, and the requests of protocols to it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use rustix::fd::AsFd;

use crate::datagrams::{datagram_token, endpoint_and_socket};
use crate::handle::WatchRequest;
use crate::slots::SPECIAL;
use crate::system::System;
use crate::timers::NEVER;
use crate::worker::Worker;
use crate::{Connection, Ns, Wake};

/// The token of the first watched descriptor; a watch's number is added to it.
pub(crate) const WATCH_TOKEN: u64 = SPECIAL | 3 << 32;

impl<C: Connection, S: System> Worker<C, S> {
    /// Carries out what protocols have asked of the loop. What they ask meanwhile waits for the
    /// next time, so that a protocol that connects again and again doesn't starve the others.
    pub(crate) fn serve_requests(&mut self) {
        for request in self.handle.take_watches() {
            self.change_watch(request);
        }
        for request in self.handle.take_connects() {
            self.connect(request);
        }
    }

    fn change_watch(&mut self, request: WatchRequest) {
        let number = match request {
            WatchRequest::Remove(number) => {
                if let Some(watched) = self.watched.remove(&number) {
                    // It fails where the descriptor isn't polled because it was readable.
                    let _ = self.system.unwatch(watched.descriptor.as_fd());
                }
                return;
            }
            WatchRequest::Add(number, watched) => {
                self.watched.insert(number, watched);
                number
            }
            WatchRequest::Rearm(number) => number,
        };
        let Some(watched) = self.watched.get(&number) else { return };
        let token = WATCH_TOKEN + u64::from(number);
        match self.system.watch(watched.descriptor.as_fd(), token) {
            Ok(()) => {}
            // Rearmed although it is armed.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            // It can't be polled: a read doesn't block, or names what is wrong.
            Err(_) => watched.waker.wake(),
        }
    }

    /// A watched descriptor is readable: it is no longer polled until it is rearmed.
    pub(crate) fn wake_watcher(&mut self, token: u64) {
        if let Some(watched) = self.watched.get(&((token - WATCH_TOKEN) as u32)) {
            let _ = self.system.unwatch(watched.descriptor.as_fd());
            watched.waker.wake();
        }
    }

    /// Tells the datagram protocols that their sockets are bound.
    pub(crate) fn open_endpoints(&mut self) {
        for index in 0..self.endpoints.len() {
            let posted = Arc::<AtomicBool>::default();
            self.endpoints[index].posted = Arc::clone(&posted);
            let waker = self.waker(datagram_token(index, 0), posted);
            self.endpoints[index].open(self.now_ns, &waker, &self.shared.counters[self.index]);
            self.arm_endpoint(index);
        }
    }

    pub(crate) fn resume_endpoint(&mut self, token: u64, why: Wake) {
        let (index, _) = endpoint_and_socket(token);
        let Some(endpoint) = self.endpoints.get_mut(index) else { return };
        if why == Wake::Posted {
            // Cleared before the protocol is called, so that a wake during the call isn't lost.
            endpoint.posted.store(false, SeqCst);
        }
        endpoint.resume(self.now_ns, why, &self.shared.counters[self.index]);
        self.arm_endpoint(index);
    }

    pub(crate) fn call_endpoint_timer(&mut self, at_ns: Ns, token: u64) {
        let (index, _) = endpoint_and_socket(token);
        let Some(endpoint) = self.endpoints.get_mut(index) else { return };
        if endpoint.armed_ns != at_ns {
            return;
        }
        endpoint.armed_ns = NEVER;
        if endpoint.deadline().is_some_and(|deadline_ns| deadline_ns <= self.now_ns) {
            self.resume_endpoint(token, Wake::Timer);
        } else {
            self.arm_endpoint(index);
        }
    }

    /// Sets a timer for the endpoint's deadline, unless an earlier one is set.
    pub(crate) fn arm_endpoint(&mut self, index: usize) {
        let Some(endpoint) = self.endpoints.get_mut(index) else { return };
        let deadline_ns = endpoint.deadline().unwrap_or(NEVER);
        if deadline_ns < endpoint.armed_ns {
            // At least 1 ns ahead: a deadline that stays in the past must not starve the loop.
            endpoint.armed_ns = deadline_ns.max(self.now_ns + 1);
            self.timers.set(endpoint.armed_ns, datagram_token(index, 0));
        }
    }
}
