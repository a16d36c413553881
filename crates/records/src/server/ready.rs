//! The order in which the monitors of a connection send their updates. Data plane.
//!
//! Each that is listed sends one update in its turn for as long as the output takes more, so that
//! none starves. What comes soon after a send waits a moment for more, so that many updates don't
//! cost as many sends.

use std::collections::VecDeque;

use wire::{Ns, Output};

use super::inbox::Inbox;
use super::operations::{Action, Operations};
use super::service::Service;

/// The least time between two sends of updates. A client sees a value later by at most that, and
/// only where updates come more often.
const GATHER_NS: Ns = 50_000;

/// The monitors of a connection that may have updates to send.
#[derive(Debug, Default)]
pub(super) struct ReadyMonitors {
    listed: VecDeque<u32>,
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
        out: &mut Output,
    ) {
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
            if monitor.send_next(request, service, out) && monitor.notifier.mark_listed() {
                self.listed.push_back(request);
            }
        }
    }

    /// When the wait for more ends.
    pub(super) fn deadline(&self) -> Option<Ns> {
        self.is_gathering.then_some(self.gather_until)
    }
}
