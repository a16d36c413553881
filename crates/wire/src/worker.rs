//! One thread's part of a server: its connections, endpoints, timers and buffers. Data plane.
//!
//! This file has the state and the few methods that the others share. [`Worker`]'s other methods
//! lie by what they are for: the loop in `event_loop`, turns in `serving` and, under io_uring, in
//! `uring_turn`; how connections begin in `opening` and end in `closing`; unsent bytes in `unsent`;
//! datagrams and foreign descriptors in `watching`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use crate::accept::Acceptor;
use crate::buffers::ThreadBuffers;
use crate::clock::duration_ns;
use crate::config::ThreadIndex;
use crate::counters::ThreadCounters;
use crate::datagrams::DatagramEndpoint;
use crate::handle::{Loop, Watched};
use crate::mailbox::{Accepted, Mailbox, Message};
use crate::poll::Interest;
use crate::round_budget::RoundBudget;
use crate::shared::Shared;
use crate::slots::{Slot, Slots};
use crate::stream::FAIR_BYTES;
use crate::system::System;
use crate::timers::Timers;
use crate::uring_batch::UringBatch;
use crate::{Connection, Ns};

/// Makes the protocol of a listener's connections, on the thread that serves them.
pub(crate) type Factory<C> = Box<dyn Fn(Loop<C>) -> C + Send + Sync>;

/// One thread's part of a server.
pub(crate) struct Worker<C, S: System> {
    pub(crate) index: ThreadIndex,
    pub(crate) shared: Arc<Shared<S::Socket>>,
    /// One for each listener.
    pub(crate) factories: Arc<[Factory<C>]>,
    pub(crate) handle: Loop<C>,
    pub(crate) system: S,
    /// Present while this thread makes its calls in batches.
    pub(crate) uring: Option<Box<UringBatch<S::Ring>>>,
    pub(crate) slots: Slots<C, S::Socket>,
    pub(crate) timers: Timers,
    pub(crate) buffers: ThreadBuffers,
    pub(crate) acceptor: Option<Acceptor<S>>,
    pub(crate) endpoints: Vec<DatagramEndpoint>,
    pub(crate) watched: HashMap<u32, Watched>,
    pub(crate) idle_ns: Option<Ns>,
    pub(crate) queues: Queues<S::Socket>,
    pub(crate) now_ns: Ns,
    /// Bytes moved since the clock was read.
    pub(crate) moved_bytes: usize,
    /// Bytes that this round may still send.
    pub(crate) round: RoundBudget,
    /// When a stopping server closes the connections that are still open.
    pub(crate) stop_at_ns: Option<Ns>,
    /// The thread that serves the next accepted connection.
    pub(crate) next_thread: ThreadIndex,
}

/// Lists whose memory is reused from turn to turn.
pub(crate) struct Queues<K> {
    /// The tokens of connections that have yielded.
    pub(crate) yielded: Vec<u64>,
    pub(crate) yielded_spare: Vec<u64>,
    /// The tokens of accepted connections that have not been read from.
    pub(crate) fresh: Vec<u64>,
    pub(crate) messages: Vec<Message<K>>,
    pub(crate) accepted: Vec<Accepted<K>>,
}

impl<K> Queues<K> {
    fn new() -> Self {
        Self {
            yielded: Vec::new(),
            yielded_spare: Vec::new(),
            fresh: Vec::new(),
            messages: Vec::new(),
            accepted: Vec::new(),
        }
    }
}

impl<C: Connection, S: System> Worker<C, S> {
    /// A worker that has no listeners and endpoints yet.
    pub(crate) fn new(
        index: ThreadIndex,
        shared: Arc<Shared<S::Socket>>,
        factories: Arc<[Factory<C>]>,
        system: S,
        ring: Option<S::Ring>,
    ) -> Self {
        let config = &shared.config;
        // One read never exceeds the input's limit.
        let read_bytes = config.read_bytes.max(FAIR_BYTES).min(config.input_limit_bytes).max(1);
        if ring.is_some() {
            shared.uring_threads.fetch_add(1, SeqCst);
        }
        Self {
            index,
            factories,
            handle: Loop::new(index, config.max_outgoing),
            uring: ring.map(|ring| Box::new(UringBatch::new(ring))),
            slots: Slots::new(),
            timers: Timers::default(),
            buffers: ThreadBuffers::new(read_bytes, config.output_limit_bytes),
            acceptor: None,
            endpoints: Vec::new(),
            watched: HashMap::new(),
            idle_ns: config.idle_timeout.map(duration_ns),
            queues: Queues::new(),
            now_ns: system.now(),
            moved_bytes: 0,
            round: RoundBudget::new(config.turn_bytes),
            stop_at_ns: None,
            next_thread: 0,
            system,
            shared,
        }
    }

    pub(crate) fn mailbox(&self) -> &Mailbox<S::Socket> {
        &self.shared.mailboxes[self.index]
    }

    pub(crate) fn counters(&self) -> &ThreadCounters {
        &self.shared.counters[self.index]
    }

    pub(crate) fn read_clock(&mut self) {
        self.now_ns = self.system.now();
        self.moved_bytes = 0;
    }

    pub(crate) fn slot(&mut self, token: u64) -> &mut Slot<C, S::Socket> {
        self.slots.get_mut(token).expect("the token of a connection that is open")
    }

    /// Puts a connection into the queue of those that have yielded.
    pub(crate) fn queue(&mut self, token: u64) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        if !std::mem::replace(&mut slot.queued, true) {
            self.queues.yielded.push(token);
        }
    }

    /// Whether requests of protocols to the loop, or connections that yielded, wait.
    pub(crate) fn has_work(&self) -> bool {
        let has_turns = !self.queues.yielded.is_empty() || !self.queues.fresh.is_empty();
        has_turns || self.handle.has_requests()
    }

    /// Waits for `interest` on a connection's socket from now on. Returns whether that succeeded.
    #[inline]
    pub(crate) fn set_interest(&mut self, token: u64, interest: Interest) -> std::io::Result<()> {
        let Self { slots, system, .. } = self;
        let Some(slot) = slots.get_mut(token) else { return Ok(()) };
        if !slot.is_polled {
            (slot.interest, slot.is_polled) = (interest, true);
            return system.add(&slot.socket, token, interest);
        }
        if slot.interest != interest {
            slot.interest = interest;
            system.modify(&slot.socket, token, interest)?;
        }
        Ok(())
    }
}
