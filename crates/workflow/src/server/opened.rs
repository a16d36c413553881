//! The connections that are open, and those of them that wait for the rest of a request: where such
//! ones take up all places, the log says so.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use wire::clock::SECOND_NS;
use wire::{Address, Ns};

use super::log::Category;

/// The time within which a request has to be whole.
pub(super) const REQUEST_WITHIN: Ns = 60 * SECOND_NS;

/// After this time without a whole request a connection is slow.
pub(super) const SLOW_AFTER: Ns = 5 * SECOND_NS;

/// How many are open.
pub(super) struct Opened {
    most: usize,
    pub(super) all: AtomicUsize,
    pub(super) slow: AtomicUsize,
    /// Whether it was said that slow ones take up all places, and is so still.
    is_said: AtomicBool,
}

/// What the log is to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Say {
    Full { slow: usize },
    Over { open: usize },
}

impl Opened {
    pub(super) fn new(most: usize) -> Self {
        let (all, slow) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { most, all, slow, is_said: AtomicBool::new(false) }
    }

    /// Looks whether slow ones take up the places, where it was not said yet.
    pub(super) fn look(&self) -> Option<Say> {
        let (all, slow) = (self.all.load(Ordering::Relaxed), self.slow.load(Ordering::Relaxed));
        let is_full = all >= self.most && 2 * slow >= self.most;
        let is_new = is_full && !self.is_said.swap(true, Ordering::Relaxed);
        is_new.then_some(Say::Full { slow })
    }

    /// Looks whether there is room again, where it was said that there is none.
    pub(super) fn look_again(&self) -> Option<Say> {
        let open = self.all.load(Ordering::Relaxed);
        let has_room = open <= self.most - self.most.div_ceil(4);
        let is_over = has_room
            && self.is_said.load(Ordering::Relaxed)
            && self.is_said.swap(false, Ordering::Relaxed);
        is_over.then_some(Say::Over { open })
    }

    /// What the log says of it; and where one of them is from.
    pub(super) fn text(&self, what: &Say, from: Option<&Address>) -> (Category, String) {
        let most = self.most;
        match what {
            Say::Full { slow } => {
                let (after, within) = (SLOW_AFTER / SECOND_NS, REQUEST_WITHIN / SECOND_NS);
                let from = from.map_or_else(String::new, |from| format!(", one by {from}"));
                let text = format!(
                    "all connections (--max-connections {most}) are taken{from}: {slow} of them \
                     have waited for more than {after} s for the rest of a request, and each of \
                     those is closed {within} s after it was opened. Further clients wait until \
                     then"
                );
                (Category::Warning, text)
            }
            Say::Over { open } => {
                let text = format!(
                    "of the connections (--max-connections {most}) {open} are taken, and there is \
                     room for others again"
                );
                (Category::Message, text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_slow_connections_take_all_places_is_said_once_until_there_is_room() {
        let opened = Opened::new(8);
        let set = |all: usize, slow: usize| {
            opened.all.store(all, Ordering::Relaxed);
            opened.slow.store(slow, Ordering::Relaxed);
        };
        for (all, slow) in [(7, 7), (8, 3)] {
            set(all, slow);
            assert_eq!(opened.look(), None, "{all} {slow}");
        }
        for _ in 0..2 {
            set(8, 4);
            assert_eq!(opened.look(), Some(Say::Full { slow: 4 }));
            assert_eq!(opened.look(), None, "it was said");
            set(7, 4);
            assert_eq!(opened.look_again(), None, "it may be so again at once");
            set(6, 4);
            assert_eq!(opened.look_again(), Some(Say::Over { open: 6 }));
            assert_eq!(opened.look_again(), None, "it was said");
        }
    }
}
