//! The connections that are open, and those of them that wait for the rest of a request: where such
//! ones take up all places, the log says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use wire::clock::SECOND_NS;
use wire::{Address, Ns};

use super::log::{Category, unix_us};
use super::shared::Shared;

/// The time within which a request has to be whole.
pub(super) const REQUEST_WITHIN: Ns = 60 * SECOND_NS;

/// After this time without a whole request a connection is slow.
pub(super) const SLOW_AFTER: Ns = 5 * SECOND_NS;

/// How many are open.
pub(super) struct Opened {
    most: usize,
    all: AtomicUsize,
    slow: AtomicUsize,
    /// Whether it was said that slow ones take up all places, and is so still.
    is_said: AtomicBool,
}

/// What the log is to say.
#[derive(Debug, PartialEq, Eq)]
enum Say {
    Full { slow: usize },
    Over { open: usize },
}

impl Opened {
    pub(super) fn new(most: usize) -> Self {
        let (all, slow) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { most, all, slow, is_said: AtomicBool::new(false) }
    }

    /// Looks whether slow ones take up the places, where it was not said yet.
    fn look(&self) -> Option<Say> {
        let (all, slow) = (self.all.load(Ordering::Relaxed), self.slow.load(Ordering::Relaxed));
        let is_full = all >= self.most && 2 * slow >= self.most;
        let is_new = is_full && !self.is_said.swap(true, Ordering::Relaxed);
        is_new.then_some(Say::Full { slow })
    }

    /// Looks whether there is room again, where it was said that there is none.
    fn look_again(&self) -> Option<Say> {
        let open = self.all.load(Ordering::Relaxed);
        let has_room = open <= self.most - self.most.div_ceil(4);
        let is_over = has_room
            && self.is_said.load(Ordering::Relaxed)
            && self.is_said.swap(false, Ordering::Relaxed);
        is_over.then_some(Say::Over { open })
    }
}

/// The place of a connection, given back when it is dropped.
pub(super) struct Place {
    shared: Arc<Shared>,
    from: Option<Address>,
    is_slow: bool,
}

impl Place {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        shared.opened.all.fetch_add(1, Ordering::Relaxed);
        Self { shared, from: None, is_slow: false }
    }

    /// Its client is there.
    pub(super) fn taken(&mut self, from: Address) {
        self.from = Some(from);
        self.say(self.shared.opened.look());
    }

    pub(super) fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// It has waited for long for the rest of its request.
    pub(super) fn slow(&mut self) {
        if !std::mem::replace(&mut self.is_slow, true) {
            self.shared.opened.slow.fetch_add(1, Ordering::Relaxed);
            self.say(self.shared.opened.look());
        }
    }

    /// Its request is whole, or refused.
    pub(super) fn whole(&mut self) {
        if std::mem::take(&mut self.is_slow) {
            self.shared.opened.slow.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn say(&self, what: Option<Say>) {
        let Some(what) = what else { return };
        let most = self.shared.opened.most;
        let (category, text) = match what {
            Say::Full { slow } => {
                let (after, within) = (SLOW_AFTER / SECOND_NS, REQUEST_WITHIN / SECOND_NS);
                let from = self.from.as_ref().map(|from| format!(", one by {from}"));
                let from = from.unwrap_or_default();
                let text = format!(
                    "all connections (--max-connections {most}) are taken{from}: {slow} of them \
                     have waited for more than {after} s for the rest of a request, and each of \
                     those is closed {within} s after it was opened. Further clients wait until \
                     then"
                );
                (Category::Warning, text)
            }
            Say::Over { open } => {
                let text =
                    format!("of the connections (--max-connections {most}) {open} are taken");
                (Category::Message, text + ", and there is room for others again")
            }
        };
        self.shared.log.add(category, unix_us(), &text);
        self.shared.log.write();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.whole();
        self.shared.opened.all.fetch_sub(1, Ordering::Relaxed);
        self.say(self.shared.opened.look_again());
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
