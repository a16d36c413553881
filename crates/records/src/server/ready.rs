//! The order in which the monitors of a connection send their updates. Data plane.
//!
//! Each that is listed sends one update in its turn for as long as the output takes more, so that
//! none starves. What comes soon after a send waits a moment for more, so that many updates don't
//! cost as many sends.

use std::collections::VecDeque;

use wire::{Ns, Output};

use super::in_flight::{CHECK_NS, Sending};
use super::inbox::Inbox;
use super::monitor::Sent;
use super::operations::{Action, Operations};
use super::service::Service;

/// The least time between two sends of updates. A client sees a value later by at most that, and
/// only where updates come more often.
const GATHER_NS: Ns = 50_000;

/// The monitors of a connection that may have updates to send.
#[derive(Debug, Default)]
pub(super) struct ReadyMonitors {
    listed: VecDeque<u32>,
    /// Those whose update waits for memory.
    deferred: Vec<u32>,
    /// When the connections that take the memory are to be checked.
    check_at: Ns,
    /// Until this time what is listed waits for more, if it may.
    gather_until: Ns,
    is_gathering: bool,
}

impl ReadyMonitors {
    /// Sends updates, one of each monitor in turn, until the output is full; or has them wait
    /// until the [deadline](Self::deadline).
    pub(super) fn serve(
        &mut self,
        now: Ns,
        inbox: &Inbox,
        operations: &mut Operations,
        service: &Service,
        sending: &mut Sending,
        out: &mut Output,
    ) {
        if !self.deferred.is_empty() {
            if now >= self.check_at {
                self.check_at = now + CHECK_NS;
                service.in_flight.check_senders();
            }
            self.listed.extend(self.deferred.drain(..));
        }
        let may_wait = now < self.gather_until && inbox.may_wait();
        // What waits stays in the inbox: a monitor that joins it there causes no wake.
        self.is_gathering = may_wait && inbox.has_listed();
        if self.is_gathering {
            return;
        }
        inbox.take(&mut self.listed);
        let before = out.len();
        while !out.is_full() {
            let Some(request) = self.listed.pop_front() else {
                if out.len() > before {
                    self.gather_until = now + GATHER_NS;
                    inbox.let_wait();
                }
                return;
            };
            let Some(operation) = operations.get_mut(&request) else { continue };
            let Action::Monitor(monitor) = &mut operation.what else { continue };
            monitor.notifier.unlist();
            match monitor.send_next(request, service, sending, out) {
                Sent::Nothing => {}
                Sent::MaybeMore if monitor.notifier.mark_listed() => {
                    self.listed.push_back(request);
                }
                Sent::MaybeMore => {}
                Sent::Deferred => {
                    self.check_at = self.check_at.max(now + CHECK_NS);
                    self.deferred.push(request);
                }
            }
        }
    }

    /// When it is to be served again, even without a change.
    pub(super) fn deadline(&self) -> Option<Ns> {
        let gathered = self.is_gathering.then_some(self.gather_until);
        let checked = (!self.deferred.is_empty()).then_some(self.check_at);
        [gathered, checked].into_iter().flatten().min()
    }
}
