//! Timers of connections: a heap whose stale entries are dropped lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Ns;

/// A time that never comes.
pub(crate) const NEVER: Ns = Ns::MAX;

/// Times, each with a connection's token.
///
/// Entries are never searched for: a connection remembers the time of its one valid entry, and
/// entries with other times are ignored when they come due. A deadline that only moves back, as
/// an idle time-out does with every byte, therefore costs nothing until its first time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Ns, u64)>>,
}

impl Timers {
    /// Adds a timer for `token` at `at`.
    pub(crate) fn set(&mut self, at: Ns, token: u64) {
        self.heap.push(Reverse((at, token)));
    }

    /// The nearest time.
    #[inline]
    pub(crate) fn next(&self) -> Option<Ns> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns one entry whose time has come.
    #[inline]
    pub(crate) fn due(&mut self, now: Ns) -> Option<(Ns, u64)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Drops stale entries once they outnumber the `live` connections, so that the heap's size is
    /// bounded by the open connections.
    pub(crate) fn compact(&mut self, live: usize, is_armed: impl Fn(Ns, u64) -> bool) {
        if self.heap.len() > 64 + 4 * live {
            self.heap.retain(|Reverse((at, token))| is_armed(*at, *token));
            self.heap.shrink_to(64 + 2 * self.heap.len());
        }
    }

    /// The number of entries, stale ones included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Timers;

    #[test]
    fn times_come_in_order_and_not_early() {
        let mut timers = Timers::default();
        for (at, token) in [(30, 3), (10, 1), (20, 2)] {
            timers.set(at, token);
        }
        assert_eq!(timers.next(), Some(10));
        assert_eq!(timers.due(9), None);
        assert_eq!(timers.due(25), Some((10, 1)));
        assert_eq!(timers.due(25), Some((20, 2)));
        assert_eq!(timers.due(25), None);
    }

    #[test]
    fn entries_of_closed_connections_do_not_pile_up() {
        let mut timers = Timers::default();
        for token in 0..100_000 {
            timers.set(1_000_000 + token, token);
            timers.compact(1, |_, armed| armed == token);
            assert!(timers.len() <= 64 + 4 + 1);
        }
    }
}
