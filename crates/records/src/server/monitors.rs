//! Pushing: how the news of records reach a connection, and from there the wire. Data plane.
//!
//! A connection has an inbox with the numbers of the monitors that have news, each at most once.
//! It serves them in turn for as long as its output takes more, so that none starves. What comes
//! soon after a send waits a moment for more, so that many updates don't cost as many sends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use wire::{Ns, Output, Waker};

use super::operations::{Operations, What};
use super::service::{Service, count};
use crate::model::{Filters, Notify, Subscription, Update};
use crate::protocol::messages::Answer;
use crate::protocol::{Bits, Command, Order, Sender, Type, Value, message, unplaced};

/// The least time between two sends of news. What a client sees is older by at most that, and only
/// where news come more often.
const GATHER_NS: Ns = 50_000;

/// What other threads tell a connection.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    /// Whether a record has gone.
    gone: AtomicBool,
    /// Whether what is in the inbox may wait. Not where a monitor has news for the second time: its
    /// queue may be short.
    may_wait: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The monitors that have news.
    news: Vec<u32>,
    /// Nothing before the connection is open.
    waker: Option<Waker>,
}

impl Inbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A list is whole between any two calls: a panic elsewhere can't break it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self, waker: Waker) {
        self.lock().waker = Some(waker);
    }

    fn push(&self, request: u32) {
        let mut state = self.lock();
        state.news.push(request);
        if state.news.len() == 1
            && let Some(waker) = &state.waker
        {
            waker.wake();
        }
    }

    /// Has what is in the inbox looked at now.
    fn hurry(&self) {
        if self.may_wait.load(SeqCst)
            && self.may_wait.swap(false, SeqCst)
            && let Some(waker) = &self.lock().waker
        {
            waker.wake();
        }
    }

    /// A record has gone: the connection looks whether it was one of its own.
    pub(super) fn look_for_gone(&self) {
        self.gone.store(true, SeqCst);
        if let Some(waker) = &self.lock().waker {
            waker.wake();
        }
    }

    /// Whether a record has gone since the last time.
    pub(super) fn has_gone(&self) -> bool {
        self.gone.load(SeqCst) && self.gone.swap(false, SeqCst)
    }

    fn has_news(&self) -> bool {
        !self.lock().news.is_empty()
    }

    fn take(&self, into: &mut VecDeque<u32>) {
        into.extend(self.lock().news.drain(..));
    }
}

/// How one monitor hears of its record.
#[derive(Debug)]
pub(super) struct News {
    inbox: Arc<Inbox>,
    request: u32,
    /// Whether it is in the inbox, or in the connection's own list.
    is_listed: AtomicBool,
}

impl News {
    pub(super) fn new(inbox: &Arc<Inbox>, request: u32) -> Arc<Self> {
        Arc::new(Self { inbox: Arc::clone(inbox), request, is_listed: AtomicBool::new(false) })
    }
}

impl News {
    /// Has the monitor looked at before the connection's turn ends: nobody needs to be woken.
    pub(super) fn list(&self) {
        if !self.is_listed.swap(true, SeqCst) {
            self.inbox.lock().news.push(self.request);
        }
        self.inbox.may_wait.store(false, SeqCst);
    }
}

impl Notify for News {
    #[inline]
    fn notify(&self) {
        if !self.is_listed.swap(true, SeqCst) {
            self.inbox.push(self.request);
        } else {
            self.inbox.hurry();
        }
    }
}

/// One subscription of a client.
#[derive(Debug)]
pub(super) struct Monitor {
    pub(super) subscription: Subscription,
    pub(super) news: Arc<News>,
    pub(super) wanted: Bits,
    pub(super) filters: Filters,
    /// What is sent to who gets arrays' places: its type, and the bit of the field that may be one.
    pub(super) placed: Option<(Type, usize)>,
    pub(super) is_running: bool,
    /// How many more updates the client has room for, if it says so.
    pub(super) window: Option<u64>,
}

impl Monitor {
    /// The type of what is sent.
    pub(super) fn kind(&self) -> &Type {
        match &self.placed {
            Some((kind, _)) => kind,
            None => self.subscription.record().kind(),
        }
    }

    /// Says the next update, if there is one and it may be said.
    fn say_next(&mut self, request: u32, service: &Service, out: &mut Output) -> bool {
        if !self.is_running || self.window == Some(0) {
            return false;
        }
        let record = Arc::clone(self.subscription.record());
        let Self { subscription, wanted, filters, placed, .. } = self;
        let told = subscription.next(wanted, |update, nodes| {
            if let Some((kind, bit)) = placed {
                let mut nodes = nodes.to_vec();
                let array = nodes[*bit].as_array();
                let place = array.and_then(|array| service.segments.place(array.bytes()));
                nodes[*bit] = place.map_or_else(|| unplaced(&nodes[*bit]), |place| place.value());
                say_update(out, request, kind, update, &nodes);
                return (true, update.lost);
            }
            if filters.is_empty() {
                say_update(out, request, record.kind(), update, nodes);
                return (true, update.lost);
            }
            let mut update = update.clone();
            let nodes = filters.apply(Service::now(), nodes, &mut update.changed);
            let is_said = !update.changed.is_empty();
            if is_said {
                say_update(out, request, record.kind(), &update, &nodes);
            }
            (is_said, update.lost)
        });
        let Some((is_said, lost)) = told else { return false };
        if !is_said {
            // A filter has held it back; there may be another.
            return true;
        }
        count(&service.counts.updates, 1);
        if lost > 0 {
            count(&service.counts.lost, lost);
        }
        if let Some(window) = &mut self.window {
            *window -= 1;
        }
        true
    }
}

fn say_update(out: &mut Output, request: u32, kind: &Type, update: &Update, nodes: &[Value]) {
    message(out, Sender::Server, Order::Little, Command::Monitor, |writer| {
        Answer { request, subcommand: 0 }.write(writer);
        writer.changed(kind, &update.changed, nodes);
        update.overrun.write(writer);
    });
}

/// The monitors of a connection that have something to say.
#[derive(Debug, Default)]
pub(super) struct Turns {
    listed: VecDeque<u32>,
    /// What is listed waits until this time for more, if it may.
    gather_until: Ns,
    is_gathering: bool,
}

impl Turns {
    /// Says updates, one of each monitor in turn, for as long as the output takes them; or has them
    /// wait until the [deadline](Self::deadline).
    pub(super) fn serve(
        &mut self,
        now: Ns,
        inbox: &Inbox,
        operations: &mut Operations,
        service: &Service,
        out: &mut Output,
    ) {
        let may_wait = now < self.gather_until && inbox.may_wait.load(SeqCst);
        // What waits stays in the inbox, so that what joins it there wakes nobody.
        self.is_gathering = may_wait && inbox.has_news();
        if self.is_gathering {
            return;
        }
        inbox.take(&mut self.listed);
        let before = out.len();
        while !out.is_full() {
            let Some(request) = self.listed.pop_front() else {
                if out.len() > before {
                    self.gather_until = now + GATHER_NS;
                    inbox.may_wait.store(true, SeqCst);
                }
                return;
            };
            let Some(operation) = operations.get_mut(&request) else { continue };
            let What::Monitor(monitor) = &mut operation.what else { continue };
            // Before it looks, so that what comes while it does isn't lost.
            monitor.news.is_listed.store(false, SeqCst);
            if monitor.say_next(request, service, out) && !monitor.news.is_listed.swap(true, SeqCst)
            {
                self.listed.push_back(request);
            }
        }
    }

    /// When those that wait for more are to be served.
    pub(super) fn deadline(&self) -> Option<Ns> {
        self.is_gathering.then_some(self.gather_until)
    }
}
