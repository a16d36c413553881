//! A connection's place among those that are open.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wire::Address;

use super::log::unix_us;
use super::opened::Say;
use super::shared::Shared;

/// The place of a connection, given back when it is dropped.
pub(super) struct Admitted {
    shared: Arc<Shared>,
    from: Option<Address>,
    is_slow: bool,
}

impl Admitted {
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
        let (category, text) = self.shared.opened.text(&what, self.from.as_ref());
        self.shared.log.add(category, unix_us(), &text);
        self.shared.log.write();
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.whole();
        self.shared.opened.all.fetch_sub(1, Ordering::Relaxed);
        self.say(self.shared.opened.look_again());
    }
}
