//! Monitors: subscriptions of clients, and their updates. Data plane.

use std::sync::Arc;

use wire::Output;

use super::in_flight::Sending;
use super::inbox::Notifier;
use super::service::{Service, count};
use crate::model::{Filters, Offer, Subscription, Update};
use crate::protocol::messages::ResponseHead;
use crate::protocol::{Bits, Command, Order, Sender, Type, Value, message, unlocated};

/// One subscription of a client.
#[derive(Debug)]
pub(super) struct Monitor {
    pub(super) subscription: Subscription,
    pub(super) notifier: Arc<Notifier>,
    pub(super) wanted: Bits,
    pub(super) filters: Filters,
    /// For a client that gets the locations of arrays: the type that is sent, and the bit of the
    /// field that may be one.
    pub(super) placed: Option<(Type, usize)>,
    pub(super) is_running: bool,
    /// How many more updates the client has room for, with flow control.
    pub(super) window: Option<u64>,
}

/// What has become of a monitor's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// There is no update, or no room for one at the client.
    Nothing,
    /// There may be another update.
    MaybeMore,
    /// There is no memory for the update yet.
    Deferred,
}

impl Monitor {
    /// The type of its updates.
    pub(super) fn kind(&self) -> &Type {
        match &self.placed {
            Some((kind, _)) => kind,
            None => self.subscription.record().kind(),
        }
    }

    /// Writes the next update, if there is one, and the client has room for it and the service
    /// memory.
    pub(super) fn send_next(
        &mut self,
        request: u32,
        service: &Service,
        sending: &mut Sending,
        out: &mut Output,
    ) -> Sent {
        if !self.is_running || self.window == Some(0) {
            return Sent::Nothing;
        }
        let record = Arc::clone(self.subscription.record());
        let Self { subscription, wanted, filters, placed, .. } = self;
        let offer = subscription.offer(wanted, |update, nodes| {
            if placed.is_none() && !sending.admit(&update.changed, nodes) {
                return None;
            }
            if let Some((kind, bit)) = placed {
                let mut nodes = nodes.to_vec();
                let array = nodes[*bit].as_array();
                let place = array.and_then(|array| service.shared_arrays.place(array.bytes()));
                nodes[*bit] = place.map_or_else(|| unlocated(&nodes[*bit]), |place| place.value());
                write_update(out, request, kind, update, &nodes);
                return Some((true, update.lost));
            }
            if filters.is_empty() {
                write_update(out, request, record.kind(), update, nodes);
                return Some((true, update.lost));
            }
            let mut update = update.clone();
            let nodes = filters.apply(Service::now(), nodes, &mut update.changed);
            let is_sent = !update.changed.is_empty();
            if is_sent {
                write_update(out, request, record.kind(), &update, &nodes);
            }
            Some((is_sent, update.lost))
        });
        let (is_sent, lost) = match offer {
            Offer::Nothing => return Sent::Nothing,
            Offer::Declined => return Sent::Deferred,
            Offer::Taken(sent) => sent,
        };
        if !is_sent {
            // A filter has held it back; there may be another.
            return Sent::MaybeMore;
        }
        count(&service.counts.updates, 1);
        if lost > 0 {
            count(&service.counts.lost, lost);
        }
        if let Some(window) = &mut self.window {
            *window -= 1;
        }
        Sent::MaybeMore
    }
}

fn write_update(out: &mut Output, request: u32, kind: &Type, update: &Update, nodes: &[Value]) {
    message(out, Sender::Server, Order::Little, Command::Monitor, |writer| {
        ResponseHead { request, subcommand: 0 }.write(writer);
        writer.changed(kind, &update.changed, nodes);
        update.overrun.write(writer);
    });
}
