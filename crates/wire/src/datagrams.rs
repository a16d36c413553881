//! Datagram sockets in the loop: a batch in, datagrams to any address out. Data plane.

use std::array::from_fn;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, recvfrom, sendmmsg, sendto,
};

use crate::counters::{ThreadCounters, add};
use crate::slots::SPECIAL;
use crate::timers::NEVER;
use crate::{Address, Batch, Datagrams, Ns, Replies, Wake, Waker};

/// The first endpoint's token; see [`datagram_token`].
pub(crate) const DATAGRAM_TOKEN: u64 = SPECIAL | 2 << 32;

/// The token of one socket of an endpoint. An endpoint's timers and wakes have that of its first.
pub(crate) fn datagram_token(endpoint: usize, socket: usize) -> u64 {
    debug_assert!(endpoint < 1 << 16 && socket < 1 << 16, "a token's 16 bits each");
    DATAGRAM_TOKEN | (endpoint as u64) << 16 | socket as u64
}

/// The endpoint and the socket of a [`datagram_token`].
pub(crate) fn endpoint_and_socket(token: u64) -> (usize, usize) {
    ((token >> 16 & 0xffff) as usize, (token & 0xffff) as usize)
}

/// The most datagrams received in one turn.
const MAX_RECEIVES_PER_TURN: usize = 64;

/// The most replies sent with one system call.
const MAX_SEND_BATCH: usize = 16;

/// The largest UDP datagram, rounded up.
const LARGEST_BYTES: usize = 64 * 1024;

/// After this many turns in a row with one datagram each, one is expected.
const SINGLES_EXPECTED_AFTER: u8 = 4;

/// While one is expected, every 8th turn still checks for more.
const CHECK_EVERY: u8 = 8;

/// One thread's sockets of a protocol, and the reused memory of their batches.
pub(crate) struct DatagramEndpoint {
    sockets: Vec<DatagramSocket>,
    protocol: Box<dyn Datagrams>,
    batch: Batch,
    replies: Replies,
    scratch: Vec<u8>,
    /// The time of its one valid timer entry, or [`NEVER`].
    pub(crate) armed_ns: Ns,
    /// Whether a wake message is in the mailbox already.
    pub(crate) posted: Arc<AtomicBool>,
}

struct DatagramSocket {
    socket: OwnedFd,
    /// Turns in a row that checked for more and found one datagram.
    singles: u8,
    turns: u8,
}

impl DatagramEndpoint {
    pub(crate) fn new(sockets: Vec<OwnedFd>, protocol: Box<dyn Datagrams>) -> Self {
        let socket = |socket| DatagramSocket { socket, singles: 0, turns: 0 };
        Self {
            sockets: sockets.into_iter().map(socket).collect(),
            protocol,
            batch: Batch::default(),
            replies: Replies::default(),
            scratch: vec![0; LARGEST_BYTES],
            armed_ns: NEVER,
            posted: Arc::default(),
        }
    }

    /// Tells the protocol that its sockets are bound.
    pub(crate) fn open(&mut self, now_ns: Ns, waker: &Waker, counters: &ThreadCounters) {
        self.replies.set_socket(0);
        self.protocol.opened(now_ns, waker, &mut self.replies);
        self.send(counters);
    }

    /// Wakes the protocol.
    pub(crate) fn resume(&mut self, now_ns: Ns, why: Wake, counters: &ThreadCounters) {
        self.replies.set_socket(0);
        self.protocol.resume(now_ns, why, &mut self.replies);
        self.send(counters);
    }

    pub(crate) fn deadline(&self) -> Option<Ns> {
        self.protocol.deadline()
    }

    /// Receives and answers what has arrived by all sockets, for the last time.
    pub(crate) fn drain(&mut self, now_ns: Ns, counters: &ThreadCounters) {
        for socket in 0..self.sockets.len() {
            self.sockets[socket].singles = 0;
            self.turn(socket, now_ns, counters);
        }
    }

    /// Receives a batch, has it answered, and sends the replies. Datagrams left in the socket are
    /// reported again.
    pub(crate) fn turn(&mut self, socket: usize, now_ns: Ns, counters: &ThreadCounters) {
        let Self { sockets, protocol, batch, replies, scratch, .. } = self;
        let Some(from) = sockets.get_mut(socket) else { return };
        batch.set_socket(socket);
        from.receive(batch, scratch);
        if !batch.is_empty() {
            add(&counters.datagrams_received, batch.len());
            replies.set_socket(socket);
            protocol.datagrams(now_ns, batch, replies);
            batch.clear();
            self.send(counters);
        }
    }

    /// Sends the replies. Those that the system doesn't take are dropped, as any network may drop
    /// a datagram, and counted.
    fn send(&mut self, counters: &ThreadCounters) {
        if self.replies.is_empty() {
            return;
        }
        let (mut at, mut sent) = (0, 0);
        while let Some(socket) = self.replies.socket_of(at) {
            // The replies that go by the same socket are sent together.
            let is_same = |index: &usize| self.replies.socket_of(*index) == Some(socket);
            let end = at + (at..self.replies.len()).take_while(is_same).count();
            if let Some(by) = self.sockets.get(socket) {
                sent += by.send(&self.replies, at..end);
            }
            at = end;
        }
        add(&counters.datagrams_sent, sent);
        add(&counters.datagrams_dropped, self.replies.len() - sent);
        self.replies.clear();
    }
}

impl DatagramSocket {
    /// Receives a batch. A client that waits for each answer sends one datagram at a time: then a
    /// second receive would only be a system call that returns EAGAIN.
    fn receive(&mut self, batch: &mut Batch, scratch: &mut [u8]) {
        self.turns = self.turns.wrapping_add(1);
        let checks =
            self.singles < SINGLES_EXPECTED_AFTER || self.turns.is_multiple_of(CHECK_EVERY);
        let most = if checks { MAX_RECEIVES_PER_TURN } else { 1 };
        self.receive_up_to(most, batch, scratch);
        if checks {
            self.singles = if batch.len() == 1 { self.singles.saturating_add(1) } else { 0 };
        }
    }

    /// One datagram per system call. recvmmsg, 16 at once, took the same CPU time per request
    /// (0.99 to 1.00 of it, within the noise, with 16 sockets and 1 to 4 requests on each): the
    /// cost is each datagram's path through the kernel.
    fn receive_up_to(&self, most: usize, batch: &mut Batch, scratch: &mut [u8]) {
        for _ in 0..most {
            match recvfrom(&self.socket, &mut *scratch, RecvFlags::DONTWAIT) {
                Ok((count, _, Some(from))) => {
                    if let Ok(from) = SocketAddr::try_from(from) {
                        batch.push(Address::Internet(from), &scratch[..count]);
                    }
                }
                Err(Errno::AGAIN) => return,
                // Other errors concern one datagram, such as an ICMP error for an earlier reply;
                // the socket itself doesn't fail.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Sends these replies, and returns how many were sent.
    fn send(&self, replies: &Replies, range: std::ops::Range<usize>) -> usize {
        let mut sent = 0;
        let mut at = range.start;
        while at < range.end {
            let outcome = match range.end - at {
                1 => self.send_one(replies, at),
                left => self.send_some(replies, at, left.min(MAX_SEND_BATCH)),
            };
            match outcome {
                Ok(count) => {
                    sent += count;
                    at += count.max(1);
                }
                Err(Errno::AGAIN) => return sent,
                Err(Errno::INTR) => {}
                // This one can't be sent: too large, or no route. The next may be.
                Err(_) => at += 1,
            }
        }
        sent
    }

    fn send_one(&self, replies: &Replies, at: usize) -> rustix::io::Result<usize> {
        let (to, bytes) = reply(replies, at);
        sendto(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT, &to).map(|_| 1)
    }

    fn send_some(&self, replies: &Replies, at: usize, count: usize) -> rustix::io::Result<usize> {
        // Entries past `count` repeat the last reply and aren't sent.
        let replies: [_; MAX_SEND_BATCH] =
            from_fn(|index| reply(replies, at + index.min(count - 1)));
        let addresses = replies.map(|(to, _)| SocketAddrAny::from(to));
        let pieces = replies.map(|(_, bytes)| [IoSlice::new(bytes)]);
        let mut control: [_; MAX_SEND_BATCH] = from_fn(|_| SendAncillaryBuffer::default());
        let mut control = control.iter_mut();
        let mut messages: [_; MAX_SEND_BATCH] = from_fn(|index| {
            let control = control.next().expect("as many as messages");
            MMsgHdr::new_with_addr(&addresses[index], &pieces[index], control)
        });
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmmsg(&self.socket, &mut messages[..count], flags)
    }
}

/// A reply and its destination; the unspecified address if it isn't an internet address.
fn reply(replies: &Replies, at: usize) -> (SocketAddr, &[u8]) {
    let nowhere = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    match replies.get(at) {
        Some((Address::Internet(to), bytes)) => (*to, bytes),
        _ => (nowhere, &[]),
    }
}
