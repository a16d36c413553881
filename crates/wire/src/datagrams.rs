//! Datagram sockets in the loop: a batch in, a batch out. Data plane.

use std::array::from_fn;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, recvfrom, sendmmsg, sendto,
};

use crate::counters::{ThreadCounters, add};
use crate::slots::SPECIAL;
use crate::{Address, Batch, Datagrams, Ns, Replies};

/// The first datagram socket's token; the others follow.
pub(crate) const DATAGRAM_TOKEN: u64 = SPECIAL | 2 << 32;

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

/// One socket, its protocol, and the reused memory of its batches.
pub(crate) struct DatagramSocket<D> {
    pub(crate) socket: OwnedFd,
    protocol: D,
    batch: Batch,
    replies: Replies,
    scratch: Vec<u8>,
    /// Turns in a row that checked for more and found one datagram.
    singles: u8,
    turns: u8,
}

impl<D: Datagrams> DatagramSocket<D> {
    pub(crate) fn new(socket: OwnedFd, protocol: D) -> Self {
        let (batch, replies) = (Batch::default(), Replies::default());
        let scratch = vec![0; LARGEST_BYTES];
        Self { socket, protocol, batch, replies, scratch, singles: 0, turns: 0 }
    }

    /// Makes the next turn receive all datagrams that have arrived.
    pub(crate) fn expect_many(&mut self) {
        self.singles = 0;
    }

    /// Receives a batch, has it answered, and sends the replies. Datagrams left in the socket are
    /// reported again.
    pub(crate) fn turn(&mut self, now_ns: Ns, counters: &ThreadCounters) {
        self.receive();
        if !self.batch.is_empty() {
            add(&counters.datagrams_received, self.batch.len());
            self.protocol.datagrams(now_ns, &self.batch, &mut self.replies);
            self.batch.clear();
            let sent = self.send();
            add(&counters.datagrams_sent, sent);
            add(&counters.datagrams_dropped, self.replies.len() - sent);
            self.replies.clear();
        }
    }

    /// Receives a batch. A client that waits for each answer sends one datagram at a time: then a
    /// second receive would only be a system call that returns EAGAIN.
    fn receive(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        let checks =
            self.singles < SINGLES_EXPECTED_AFTER || self.turns.is_multiple_of(CHECK_EVERY);
        self.receive_up_to(if checks { MAX_RECEIVES_PER_TURN } else { 1 });
        if checks {
            self.singles = if self.batch.len() == 1 { self.singles.saturating_add(1) } else { 0 };
        }
    }

    /// One datagram per system call. recvmmsg, 16 at once, took the same CPU time per request
    /// (0.99 to 1.00 of it, within the noise, with 16 sockets and 1 to 4 requests on each): the
    /// cost is each datagram's path through the kernel.
    fn receive_up_to(&mut self, most: usize) {
        for _ in 0..most {
            match recvfrom(&self.socket, self.scratch.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((count, _, Some(from))) => {
                    if let Ok(from) = SocketAddr::try_from(from) {
                        self.batch.push(Address::Internet(from), &self.scratch[..count]);
                    }
                }
                Err(Errno::AGAIN) => return,
                // Other errors concern one datagram, such as an ICMP error for an earlier reply;
                // the socket itself doesn't fail.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Sends the replies and returns how many were sent. Those that the system doesn't take are
    /// dropped, as any network may drop a datagram, and counted.
    fn send(&self) -> usize {
        let mut sent = 0;
        let mut at = 0;
        while at < self.replies.len() {
            let outcome = match self.replies.len() - at {
                1 => self.send_one(at),
                left => self.send_some(at, left.min(MAX_SEND_BATCH)),
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

    fn send_one(&self, at: usize) -> rustix::io::Result<usize> {
        let (to, bytes) = self.reply(at);
        sendto(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT, &to).map(|_| 1)
    }

    fn send_some(&self, at: usize, count: usize) -> rustix::io::Result<usize> {
        // Entries past `count` repeat the last reply and aren't sent.
        let replies: [_; MAX_SEND_BATCH] = from_fn(|index| self.reply(at + index.min(count - 1)));
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

    /// A reply and its destination; the unspecified address if it isn't an internet address.
    fn reply(&self, at: usize) -> (SocketAddr, &[u8]) {
        let nowhere = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        match self.replies.get(at) {
            Some((Address::Internet(to), bytes)) => (*to, bytes),
            _ => (nowhere, &[]),
        }
    }
}

/// The datagram side of a server that has none.
#[derive(Debug)]
pub(crate) struct NoDatagrams;

impl Datagrams for NoDatagrams {
    fn datagrams(&mut self, _now: Ns, _batch: &Batch, _replies: &mut Replies) {}
}
