//! One place for outstanding requests: a connection with its dialect, its operations, and the
//! requests that are under way.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use wire::{Address, Input, Ns, Output};
use workload::{Dialect, DialectRow, Events, Op, Stream, Tag, Truth};

use super::record::Recorder;

/// A connection that takes longer than this to be made has failed.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Requests that wait in one connection's buffer; a dialect's single request may exceed it.
const OUTPUT_LIMIT: usize = 1 << 20;

/// Requests are at least this many deep while preparing, whatever the workload's depth.
const PREPARE_DEPTH: usize = 64;

/// A request under way. A sending time of zero marks a free place.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    scheduled: Ns,
    operation: usize,
}

/// A connection and what is under way on it.
pub(super) struct Slot {
    pub(super) socket: OwnedFd,
    pub(super) dialect: Box<dyn Dialect>,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) ready: bool,
    /// Whether the socket took less than was offered, so that it must be watched for writing.
    pub(super) blocked: bool,
    stream: Stream,
    pending: Vec<Option<Pending>>,
    free: Vec<Tag>,
    depth: usize,
}

impl Slot {
    /// Connects, and asks the dialect to open.
    pub(super) fn open(
        address: &Address,
        dialect: &DialectRow,
        truth: &Arc<Truth>,
        stream: Stream,
        depth: usize,
    ) -> std::io::Result<Self> {
        let places = depth.max(PREPARE_DEPTH);
        Ok(Self {
            socket: connect(address)?,
            dialect: (dialect.make)(truth),
            input: Input::new(),
            output: Output::new(OUTPUT_LIMIT),
            ready: false,
            blocked: false,
            stream,
            pending: vec![None; places],
            free: (0..places as Tag).rev().collect(),
            depth,
        })
    }

    /// How many requests are under way.
    pub(super) fn outstanding(&self) -> usize {
        self.pending.len() - self.free.len()
    }

    /// Says new operations until the pipeline is full.
    #[inline]
    pub(super) fn fill(&mut self, now: Ns) {
        while self.outstanding() < self.depth && !self.output.is_full() {
            let Some(tag) = self.free.pop() else { return };
            let op: Op<'_> = self.stream.draw();
            self.pending[tag as usize] = Some(Pending { scheduled: now, operation: op.operation });
            self.dialect.request(now, tag, &op, &mut self.output);
        }
    }

    /// Says writes that prepare `keys` until there are enough under way.
    pub(super) fn fill_prepare(&mut self, now: Ns, keys: &mut std::ops::Range<u64>) {
        while !self.output.is_full() && !keys.is_empty() {
            let Some(tag) = self.free.pop() else { return };
            let Some(key) = keys.next() else { return };
            self.pending[tag as usize] = Some(Pending { scheduled: now, operation: 0 });
            self.dialect.prepare(now, tag, key, &mut self.output);
        }
    }

    /// Records the answered requests of `events` and frees their places.
    #[inline]
    pub(super) fn settle(&mut self, now: Ns, events: &Events, recorder: &mut Recorder) {
        for done in &events.done {
            let place = self.pending.get_mut(done.tag as usize).and_then(Option::take);
            // An answer to nothing can only be a mistake of the dialect; it must not be counted.
            debug_assert!(place.is_some(), "tag {} was not under way", done.tag);
            if let Some(pending) = place {
                recorder.done(pending.operation, now - pending.scheduled, done);
                self.free.push(done.tag);
            }
        }
    }

    /// Gives up the requests that are older than `timeout_ns`.
    pub(super) fn expire(&mut self, now: Ns, timeout_ns: u64, recorder: &mut Recorder) {
        for (tag, place) in self.pending.iter_mut().enumerate() {
            if let Some(pending) = *place
                && now.saturating_sub(pending.scheduled) >= timeout_ns
            {
                *place = None;
                self.dialect.expire(tag as Tag);
                recorder.missing(pending.operation, now - pending.scheduled);
                self.free.push(tag as Tag);
            }
        }
    }

    /// Counts everything under way as missing: the connection is gone.
    pub(super) fn lose(&mut self, now: Ns, recorder: &mut Recorder) {
        self.expire(now, 0, recorder);
        self.ready = false;
    }

    /// Makes the connection again after the server closed it, as its protocol says it may.
    pub(super) fn reopen(
        &mut self,
        address: &Address,
        dialect: &DialectRow,
        truth: &Arc<Truth>,
    ) -> std::io::Result<()> {
        self.socket = connect(address)?;
        self.dialect = (dialect.make)(truth);
        self.input = Input::new();
        self.output = Output::new(OUTPUT_LIMIT);
        self.ready = false;
        self.blocked = false;
        Ok(())
    }
}

/// A non-blocking connection that sends at once.
fn connect(address: &Address) -> std::io::Result<OwnedFd> {
    match address {
        Address::Internet(address) => {
            let stream = TcpStream::connect_timeout(address, CONNECT_WITHIN)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream.into())
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_nonblocking(true)?;
            Ok(stream.into())
        }
    }
}
