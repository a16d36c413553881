//! Lets the calls of a connection hand more to h2 only once what they handed over before has been
//! written to the socket: h2's queue has no limit of its own, and a client that reads slowly would
//! make it grow.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

/// What may be handed over before it waits for the socket.
const MOST_BYTES: usize = 256 << 10;

/// The gate of a connection.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    /// Something was handed over since this was asked last.
    has_more: bool,
    waiting: Vec<Waker>,
}

impl Gate {
    /// Whether there is room.
    pub(super) fn is_open(&self) -> bool {
        self.with(|state| state.bytes < MOST_BYTES)
    }

    /// Waits for room.
    pub(super) fn poll_open(&self, context: &Context<'_>) -> Poll<()> {
        self.with(|state| {
            if state.bytes < MOST_BYTES {
                return Poll::Ready(());
            }
            // At most one for each call.
            if !state.waiting.iter().any(|one| one.will_wake(context.waker())) {
                state.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
    }

    /// Notes what is handed over.
    pub(super) fn add(&self, bytes: usize) {
        self.with(|state| {
            state.bytes += bytes;
            state.has_more = true;
        });
    }

    /// Whether something is on its way to the client, or was since this was asked last.
    pub(super) fn is_sending(&self) -> bool {
        self.with(|state| std::mem::take(&mut state.has_more) || state.bytes > 0)
    }

    /// All of it is written.
    pub(super) fn clear(&self) {
        let waiting = self.with(|state| {
            state.bytes = 0;
            std::mem::take(&mut state.waiting)
        });
        waiting.into_iter().for_each(Waker::wake);
    }

    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shut_by_what_is_handed_over_and_open_once_that_is_written() {
        let gate = Gate::default();
        let context = Context::from_waker(Waker::noop());
        gate.add(MOST_BYTES - 1);
        assert!(gate.is_open() && gate.poll_open(&context).is_ready());
        gate.add(1);
        assert!(!gate.is_open() && gate.poll_open(&context).is_pending());
        gate.clear();
        assert!(gate.is_open() && gate.poll_open(&context).is_ready());
    }
}
