//! Datagrams in the loop: a batch in, a batch out.

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

/// At most this many datagrams are received in one turn.
const MOST_RECEIVED: usize = 64;

/// This many replies go out with one system call.
const SENT_TOGETHER: usize = 16;

/// No datagram is larger.
const LARGEST_BYTES: usize = 64 * 1024;

/// After so many turns in a row with one datagram each, one is all that is expected.
const ALONE_AT_LEAST: u8 = 4;

/// Where one is expected, every so many-th turn looks all the same whether there are more.
const LOOK_EVERY: u8 = 8;

/// One socket, its protocol, and the memory that its batches use in turn.
pub(crate) struct DatagramSocket<D> {
    pub(crate) socket: OwnedFd,
    service: D,
    batch: Batch,
    replies: Replies,
    scratch: Vec<u8>,
    /// How many turns in a row have brought one datagram, of those that have looked for more.
    alone: u8,
    turns: u8,
}

impl<D: Datagrams> DatagramSocket<D> {
    pub(crate) fn new(socket: OwnedFd, service: D) -> Self {
        let (batch, replies) = (Batch::default(), Replies::default());
        let scratch = vec![0; LARGEST_BYTES];
        Self { socket, service, batch, replies, scratch, alone: 0, turns: 0 }
    }

    /// Has the next turn receive all that has come.
    pub(crate) fn expect_many(&mut self) {
        self.alone = 0;
    }

    /// Receives what has come, has it answered, and sends the answers. What is left to receive
    /// is reported again.
    pub(crate) fn turn(&mut self, now_ns: Ns, counters: &ThreadCounters) {
        self.receive();
        if !self.batch.is_empty() {
            add(&counters.datagrams_received, self.batch.len());
            self.service.datagrams(now_ns, &self.batch, &mut self.replies);
            self.batch.clear();
            let sent = self.send();
            add(&counters.datagrams_sent, sent);
            add(&counters.datagrams_dropped, self.replies.len() - sent);
            self.replies.clear();
        }
    }

    /// Receives what has come. A client that waits for each answer sends one datagram at a time:
    /// where that is so, asking for a second would be a system call to be told that there is none.
    fn receive(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        let looks = self.alone < ALONE_AT_LEAST || self.turns.is_multiple_of(LOOK_EVERY);
        self.receive_most(if looks { MOST_RECEIVED } else { 1 });
        if looks {
            self.alone = if self.batch.len() == 1 { self.alone.saturating_add(1) } else { 0 };
        }
    }

    /// One datagram per system call. recvmmsg, 16 at once, took the same CPU time per request
    /// (0.99 to 1.00 of it, within the noise, with 16 sockets and 1 to 4 requests on each): what
    /// costs is each datagram's way through the kernel.
    fn receive_most(&mut self, most: usize) {
        for _ in 0..most {
            match recvfrom(&self.socket, self.scratch.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((count, _, Some(from))) => {
                    if let Ok(from) = SocketAddr::try_from(from) {
                        self.batch.push(Address::Internet(from), &self.scratch[..count]);
                    }
                }
                Err(Errno::AGAIN) => return,
                // Anything else is about one datagram, such as an earlier reply that an ICMP
                // message says has not arrived; a socket itself doesn't fail.
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Sends the replies and says how many were sent. What the system doesn't take is dropped, as
    /// any network may do with a datagram, and counted.
    fn send(&self) -> usize {
        let mut sent = 0;
        let mut at = 0;
        while at < self.replies.len() {
            let outcome = match self.replies.len() - at {
                1 => self.send_one(at),
                left => self.send_some(at, left.min(SENT_TOGETHER)),
            };
            match outcome {
                Ok(count) => {
                    sent += count;
                    at += count.max(1);
                }
                Err(Errno::AGAIN) => return sent,
                Err(Errno::INTR) => {}
                // This one can't be sent, being too large or to nowhere; the next may be.
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
        // Places past `count` repeat the last reply and aren't sent.
        let replies: [_; SENT_TOGETHER] = from_fn(|index| self.reply(at + index.min(count - 1)));
        let addresses = replies.map(|(to, _)| SocketAddrAny::from(to));
        let pieces = replies.map(|(_, bytes)| [IoSlice::new(bytes)]);
        let mut control: [_; SENT_TOGETHER] = from_fn(|_| SendAncillaryBuffer::default());
        let mut control = control.iter_mut();
        let mut messages: [_; SENT_TOGETHER] = from_fn(|index| {
            let control = control.next().expect("as many as messages");
            MMsgHdr::new_with_addr(&addresses[index], &pieces[index], control)
        });
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmmsg(&self.socket, &mut messages[..count], flags)
    }

    /// A reply and where it goes; to nowhere if its address is none of the internet's.
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
