//! The simulated network: connections as pairs of byte pipes, and what each side sees of them.
//!
//! It keeps what TCP promises (bytes come in order, unchanged, or the connection breaks) and
//! nothing more: how many bytes a call moves, and when, is drawn.

use std::collections::{BTreeMap, VecDeque};

use rustix::io::Errno;

use super::faults::Faults;
use super::random::{Digest, Random};
use crate::Ns;
use crate::poll::{Event, Interest};

/// The number of a connection; none is used twice.
pub(super) type LinkId = u64;

/// Who has broken a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaker {
    Client,
    Server,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Pipe {
    /// Bytes with the time of their arrival, in order.
    chunks: VecDeque<(Ns, VecDeque<u8>)>,
    len: usize,
    /// When the end arrives behind them, if the writer has shut the direction down.
    end_at_ns: Option<Ns>,
}

impl Pipe {
    fn push(&mut self, bytes: &[u8], at_ns: Ns) {
        self.len += bytes.len();
        // Behind the others: a stream never reorders.
        let at_ns = self.chunks.back().map_or(at_ns, |(last_ns, _)| at_ns.max(*last_ns));
        match self.chunks.back_mut() {
            Some((last_ns, chunk)) if *last_ns == at_ns => chunk.extend(bytes),
            _ => self.chunks.push_back((at_ns, bytes.iter().copied().collect())),
        }
    }

    fn end(&mut self, at_ns: Ns) {
        let last_ns = self.chunks.back().map_or(0, |(last_ns, _)| *last_ns);
        self.end_at_ns.get_or_insert(at_ns.max(last_ns));
    }

    fn arrived(&self, now_ns: Ns) -> usize {
        let arrived = self.chunks.iter().take_while(|(at_ns, _)| *at_ns <= now_ns);
        arrived.map(|(_, chunk)| chunk.len()).sum()
    }

    fn has_ended(&self, now_ns: Ns) -> bool {
        self.len == 0 && self.end_at_ns.is_some_and(|at_ns| at_ns <= now_ns)
    }

    fn is_readable(&self, now_ns: Ns) -> bool {
        self.chunks.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) || self.has_ended(now_ns)
    }

    /// Moves bytes out, which have arrived.
    fn take(&mut self, mut space: &mut [u8]) {
        self.len -= space.len();
        while !space.is_empty() {
            let (_, chunk) = self.chunks.front_mut().expect("as many bytes as have arrived");
            let count = space.len().min(chunk.len());
            for (to, from) in space.iter_mut().zip(chunk.drain(..count)) {
                *to = from;
            }
            space = &mut space[count..];
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
        }
    }

    /// Drops the bytes that haven't arrived.
    fn lose(&mut self, now_ns: Ns) {
        self.chunks.retain(|(at_ns, _)| *at_ns <= now_ns);
        self.len = self.chunks.iter().map(|(_, chunk)| chunk.len()).sum();
    }

    /// When something arrives next.
    fn next_ns(&self) -> Option<Ns> {
        self.chunks.front().map(|(at_ns, _)| *at_ns).or(self.end_at_ns)
    }
}

/// A connection.
#[derive(Debug, Default)]
struct Link {
    to_server: Pipe,
    to_client: Pipe,
    broken: Option<Breaker>,
    was_accepted: bool,
    server_is_open: bool,
    client_is_open: bool,
    /// The worker that waits for it, the token, and what for.
    registered: Option<(usize, u64, Interest)>,
}

impl Link {
    /// What epoll would report, if anything.
    fn event(&self, worker: usize, now_ns: Ns, buffer_bytes: usize) -> Option<Event> {
        let (_, token, interest) = self.registered.filter(|(index, ..)| *index == worker)?;
        let is_shut = self.to_client.end_at_ns.is_some() && self.to_server.has_ended(now_ns);
        if self.broken.is_some() || is_shut {
            return Some(Event { token, readable: true, writable: true });
        }
        let (reads, writes) = match interest {
            Interest::Read => (true, false),
            Interest::Write => (false, true),
            Interest::Both => (true, true),
            Interest::Nothing => (false, false),
        };
        let readable = reads && self.to_server.is_readable(now_ns);
        let writable = writes && self.to_client.len < buffer_bytes;
        (readable || writable).then_some(Event { token, readable, writable })
    }
}

/// A listener: what waits to be accepted, and whether a worker waits for it.
#[derive(Debug, Default)]
struct Backlog {
    waiting: Vec<LinkId>,
    registered: Option<(u64, Interest)>,
    is_closed: bool,
}

/// The result of a client's read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    Bytes,
    Nothing,
    End,
    Broken(Breaker),
}

/// The network, its clock, and its chance.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) now_ns: Ns,
    pub(super) random: Random,
    pub(super) digest: Digest,
    pub(super) faults: Faults,
    /// Bytes moved in both directions.
    pub(super) moved_bytes: u64,
    /// Calls of the server that have changed something.
    pub(super) changes: u64,
    links: BTreeMap<LinkId, Link>,
    backlog: Backlog,
    next_id: LinkId,
}

impl Network {
    pub(super) fn new(seed: u64, faults: Faults, now_ns: Ns) -> Self {
        Self {
            now_ns,
            random: Random::new(seed),
            digest: Digest::default(),
            faults,
            moved_bytes: 0,
            changes: 0,
            links: BTreeMap::new(),
            backlog: Backlog::default(),
            next_id: 0,
        }
    }

    fn link(&mut self, id: LinkId) -> &mut Link {
        self.links.get_mut(&id).expect("a connection of which one side is open")
    }

    /// When what is sent now arrives.
    fn arrival_ns(&mut self) -> Ns {
        self.now_ns + self.random.below(self.faults.delay_ns + 1)
    }

    /// How many of `most` bytes a call moves.
    fn part(&mut self, most: usize, per_1024: u32) -> usize {
        if self.random.chance(per_1024) { self.random.up_to(most) } else { most }
    }

    /// A call that would block although the socket was ready, or that a signal interrupts.
    fn interrupted(&mut self) -> Result<(), Errno> {
        if !self.random.chance(self.faults.false_readiness) {
            return Ok(());
        }
        Err(if self.random.chance(512) { Errno::AGAIN } else { Errno::INTR })
    }

    /// A new connection, which waits to be accepted; none if the server doesn't listen any more.
    pub(super) fn connect(&mut self) -> Option<LinkId> {
        if self.backlog.is_closed {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.backlog.waiting.push(id);
        self.links.insert(id, Link { client_is_open: true, ..Link::default() });
        Some(id)
    }

    /// One of the waiting connections, in any order.
    pub(super) fn accept(&mut self) -> Result<LinkId, Errno> {
        if self.backlog.waiting.is_empty() {
            return Err(Errno::AGAIN);
        }
        if self.random.chance(self.faults.failed_accepts) {
            return Err(if self.random.chance(512) { Errno::CONNABORTED } else { Errno::MFILE });
        }
        let at = self.random.index(self.backlog.waiting.len());
        let id = self.backlog.waiting.remove(at);
        let link = self.link(id);
        (link.was_accepted, link.server_is_open) = (true, true);
        self.changes += 1;
        self.digest.add(id);
        Ok(id)
    }

    /// Changes whether connections at a listener are waited for.
    pub(super) fn register_listener(&mut self, token: u64, interest: Interest) {
        self.changes += 1;
        self.backlog.registered = Some((token, interest));
    }

    /// The server listens no more: whoever waits is refused.
    pub(super) fn close_listener(&mut self) {
        self.backlog.is_closed = true;
        for id in std::mem::take(&mut self.backlog.waiting) {
            self.link(id).broken = Some(Breaker::Server);
            self.forget(id);
        }
    }

    /// Changes what a worker waits for on a connection.
    pub(super) fn register(&mut self, id: LinkId, worker: usize, token: u64, interest: Interest) {
        self.changes += 1;
        self.link(id).registered = Some((worker, token, interest));
    }

    /// What a worker's wait would report.
    pub(super) fn events(&self, worker: usize) -> impl Iterator<Item = Event> {
        // The first worker accepts.
        let accepts = worker == 0 && !self.backlog.waiting.is_empty();
        let accepts =
            self.backlog.registered.filter(|(_, interest)| accepts && *interest == Interest::Read);
        let accepts = accepts.map(|(token, _)| Event { token, readable: true, writable: false });
        let ready = move |link: &Link| link.event(worker, self.now_ns, self.faults.buffer_bytes);
        accepts.into_iter().chain(self.links.values().filter_map(ready))
    }

    /// When the next bytes arrive that the server doesn't see yet.
    pub(super) fn next_arrival_ns(&self) -> Option<Ns> {
        let open = self.links.values().filter(|link| link.server_is_open);
        let arrivals = open.filter_map(|link| link.to_server.next_ns());
        arrivals.filter(|at_ns| *at_ns > self.now_ns).min()
    }

    /// When bytes arrive that the client doesn't see yet, if any are on their way.
    pub(super) fn client_arrival_ns(&self, id: LinkId) -> Option<Ns> {
        self.links.get(&id)?.to_client.next_ns()
    }

    /// The server receives.
    pub(super) fn server_receive(&mut self, id: LinkId, space: &mut [u8]) -> Result<usize, Errno> {
        self.interrupted()?;
        let now_ns = self.now_ns;
        let link = self.link(id);
        let arrived = link.to_server.arrived(now_ns);
        if arrived == 0 {
            return match link.broken {
                Some(_) => Err(Errno::CONNRESET),
                None if link.to_server.has_ended(now_ns) => Ok(0),
                None => Err(Errno::AGAIN),
            };
        }
        let count = self.part(arrived.min(space.len()), self.faults.short_reads);
        self.link(id).to_server.take(&mut space[..count]);
        self.note(id, 1, &space[..count]);
        Ok(count)
    }

    /// The server sends.
    pub(super) fn server_send(&mut self, id: LinkId, bytes: &[u8]) -> Result<usize, Errno> {
        self.interrupted()?;
        let buffer_bytes = self.faults.buffer_bytes;
        let link = self.link(id);
        if link.broken.is_some() {
            return Err(Errno::CONNRESET);
        }
        if link.to_client.end_at_ns.is_some() {
            return Err(Errno::PIPE);
        }
        let room = buffer_bytes.saturating_sub(link.to_client.len);
        if room == 0 && !bytes.is_empty() {
            return Err(Errno::AGAIN);
        }
        if !link.client_is_open {
            // Bytes for a socket that is closed are answered with a reset.
            link.broken = Some(Breaker::Client);
            return Ok(bytes.len().min(room));
        }
        let count = self.part(bytes.len().min(room), self.faults.short_writes);
        let at_ns = self.arrival_ns();
        self.link(id).to_client.push(&bytes[..count], at_ns);
        self.note(id, 2, &bytes[..count]);
        Ok(count)
    }

    /// The server shuts its sending side down.
    pub(super) fn server_end(&mut self, id: LinkId) -> Result<(), Errno> {
        let at_ns = self.arrival_ns();
        let link = self.link(id);
        if link.broken.is_some() {
            return Err(Errno::NOTCONN);
        }
        link.to_client.end(at_ns);
        self.changes += 1;
        self.digest.add(id);
        Ok(())
    }

    /// The server closes its socket. Bytes that it hasn't read make that a reset, as in TCP.
    pub(super) fn server_close(&mut self, id: LinkId) {
        let at_ns = self.arrival_ns();
        let link = self.link(id);
        link.server_is_open = false;
        link.registered = None;
        if link.to_server.len > 0 && link.broken.is_none() {
            self.reset(id, Breaker::Server);
        } else {
            link.to_client.end(at_ns);
        }
        self.changes += 1;
        self.digest.add(id);
        self.forget(id);
    }

    /// The client reads what has arrived, or a part of it.
    pub(super) fn client_receive(&mut self, id: LinkId, into: &mut Vec<u8>) -> Arrived {
        let now_ns = self.now_ns;
        let arrived = self.link(id).to_client.arrived(now_ns);
        if arrived > 0 {
            let count = self.part(arrived, self.faults.short_reads);
            let start = into.len();
            into.resize(start + count, 0);
            self.link(id).to_client.take(&mut into[start..]);
            self.note(id, 3, &into[start..]);
            return Arrived::Bytes;
        }
        let link = self.link(id);
        match link.broken {
            Some(breaker) => Arrived::Broken(breaker),
            None if link.to_client.has_ended(now_ns) => Arrived::End,
            None => Arrived::Nothing,
        }
    }

    /// The client sends from the front of `bytes`, as much as there is room for, or less.
    pub(super) fn client_send(&mut self, id: LinkId, bytes: &[u8]) -> usize {
        let buffer_bytes = self.faults.buffer_bytes;
        let link = self.link(id);
        let room = buffer_bytes.saturating_sub(link.to_server.len).min(bytes.len());
        if room == 0 || link.broken.is_some() {
            return 0;
        }
        if link.was_accepted && !link.server_is_open {
            self.reset(id, Breaker::Server);
            return 0;
        }
        let count = self.part(room, self.faults.short_writes);
        let at_ns = self.arrival_ns();
        self.link(id).to_server.push(&bytes[..count], at_ns);
        self.note(id, 4, &bytes[..count]);
        count
    }

    /// The client shuts its sending side down.
    pub(super) fn client_end(&mut self, id: LinkId) {
        let at_ns = self.arrival_ns();
        self.link(id).to_server.end(at_ns);
        self.digest.add(id);
    }

    /// Breaks a connection: bytes on their way are lost, and those that have arrived may be.
    pub(super) fn reset(&mut self, id: LinkId, breaker: Breaker) {
        let now_ns = self.now_ns;
        let loses_all = self.random.chance(512);
        let link = self.link(id);
        link.broken.get_or_insert(breaker);
        let before_ns = if loses_all { 0 } else { now_ns };
        link.to_server.lose(before_ns);
        link.to_client.lose(before_ns);
        self.digest.add(id);
    }

    /// The client closes its socket.
    pub(super) fn client_close(&mut self, id: LinkId) {
        let at_ns = self.arrival_ns();
        let link = self.link(id);
        link.client_is_open = false;
        link.to_server.end(at_ns);
        if link.to_client.len > 0 {
            self.reset(id, Breaker::Client);
        }
        self.forget(id);
    }

    /// Whether the server has accepted a connection.
    pub(super) fn was_accepted(&self, id: LinkId) -> bool {
        self.links.get(&id).is_some_and(|link| link.was_accepted)
    }

    /// The number of connections that the server holds open.
    pub(super) fn open_at_server(&self) -> usize {
        self.links.values().filter(|link| link.server_is_open).count()
    }

    /// Forgets a connection that both sides have closed.
    fn forget(&mut self, id: LinkId) {
        let link = self.link(id);
        let is_closed = !link.client_is_open && !link.server_is_open;
        let is_waiting = self.backlog.waiting.contains(&id);
        if is_closed && !is_waiting {
            self.links.remove(&id);
        }
    }

    fn note(&mut self, id: LinkId, what: u64, bytes: &[u8]) {
        self.moved_bytes += bytes.len() as u64;
        self.changes += 1;
        self.digest.add(self.now_ns);
        self.digest.add(id << 3 | what);
        self.digest.add_bytes(bytes);
    }
}
