//! A connection whose client is sent what changes, in this program's own protocol: what it has, and
//! when it may be sent more. Data plane.

use std::sync::Arc;

use wire::Ns;
use wire::clock::MILLISECOND_NS;

use super::followers::Follower;
use super::message::Message;
use super::slot::{Held, Numbers, Slot};
use crate::protocol::{Header, Request, write_own};

/// The client of a connection.
pub(super) struct Following {
    request: Arc<Request>,
    /// What it follows, and has of it.
    header: Header,
    /// When the next answer may be sent, if the last one is taken by then.
    due: Ns,
    /// When a sign of life is sent, where nothing else is.
    silent_until: Ns,
    _place: Held,
}

impl Following {
    /// A client that has a place among those that follow.
    pub(super) fn new(request: Request, header: Header, silent_until: Ns, place: Held) -> Self {
        let request = Arc::new(request);
        Self { request, header, due: 0, silent_until, _place: place }
    }

    /// The message by which the owner answers once there is something that the client lacks.
    pub(super) fn asked(&self, slot: Slot, is_new: bool) -> Message {
        let follower = Follower { request: Arc::clone(&self.request), slot };
        Message::Follow { header: self.header.clone(), follower, is_new }
    }

    /// The client has what has changed up to these numbers.
    pub(super) fn has(&mut self, numbers: Numbers, now: Ns) {
        self.header.portions.iter_mut().for_each(|one| one.known = Some(numbers));
        let every = Ns::from(self.header.follow.unwrap_or_default()) * MILLISECOND_NS;
        self.due = now.saturating_add(every);
    }

    /// When the next answer may be sent.
    pub(super) const fn due(&self) -> Ns {
        self.due
    }

    /// The last answer is not taken yet when the next one may be sent: that follows it at once.
    pub(super) const fn wait_for_room(&mut self) {
        self.due = Ns::MAX;
    }

    /// Whether the next answer may be sent, now that there is room for it.
    pub(super) const fn is_due(&self, now: Ns) -> bool {
        self.due == Ns::MAX || self.due <= now
    }

    /// When a sign of life is due.
    pub(super) const fn silent_until(&self) -> Ns {
        self.silent_until
    }

    /// Something has been sent.
    pub(super) const fn spoken(&mut self, silent_until: Ns) {
        self.silent_until = silent_until;
    }

    /// Appends a sign of life: an answer of no bytes.
    pub(super) fn sign(&self, out: &mut Vec<u8>) {
        write_own(out, self.header.encoding, |_| {});
    }
}
