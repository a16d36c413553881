//! Waiting for many sockets: a thin, level-triggered wrapper over epoll.
//!
//! The server loop and the load generator share it. It knows tokens, not what they stand for.

use std::io;
use std::mem::MaybeUninit;

use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};

use crate::Ns;
use crate::clock::SECOND_NS;

/// What is waited for on a socket. Errors and hang-ups are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to read, or the end.
    Read,
    /// Room to write.
    Write,
    /// Either.
    Both,
    /// Only errors and hang-ups.
    Nothing,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Self::Read => epoll::EventFlags::IN,
            Self::Write => epoll::EventFlags::OUT,
            Self::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
            Self::Nothing => epoll::EventFlags::empty(),
        }
    }
}

/// One socket is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What the socket was added with.
    pub token: u64,
    /// A read will say something: bytes, the end, or an error.
    pub readable: bool,
    /// A write will say something: room, or an error.
    pub writable: bool,
}

/// A set of sockets to wait for, and the events of the last wait.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// At most so many events are taken by one wait; the kernel hands out the others by the next.
const MOST_EVENTS: usize = 256;

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// When the system has no descriptor to spare.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(MOST_EVENTS) })
    }

    /// Starts waiting for `socket`.
    ///
    /// # Errors
    /// When the socket is in the set already, or the system is out of memory.
    pub fn add(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, socket, data, interest.flags())?)
    }

    /// Changes what is waited for on `socket`.
    ///
    /// # Errors
    /// When the socket isn't in the set, or the system is out of memory.
    pub fn modify(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, socket, data, interest.flags())?)
    }

    /// Stops waiting for `socket`. Closing the only descriptor of a socket does so too.
    ///
    /// # Errors
    /// When the socket isn't in the set.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Waits until a socket is ready or `timeout_ns` have passed (`None`: for ever), and says how
    /// many events there are. A signal ends the wait early with none.
    ///
    /// # Errors
    /// Only for mistakes in the program.
    pub fn wait(&mut self, timeout_ns: Option<Ns>) -> io::Result<usize> {
        self.events.clear();
        let timeout = timeout_ns.map(timespec);
        let mut raw = [const { MaybeUninit::uninit() }; MOST_EVENTS];
        match epoll::wait(&self.epoll, &mut raw, timeout.as_ref()) {
            Ok((ready, _)) => self.events.extend(ready.iter().map(event)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.len())
    }

    /// One event of the last wait.
    ///
    /// # Panics
    /// When `index` isn't below what [`Poller::wait`] returned.
    #[inline]
    pub fn event(&self, index: usize) -> Event {
        self.events[index]
    }

    /// The events of the last wait.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.events.iter().copied()
    }
}

#[inline]
fn event(raw: &epoll::Event) -> Event {
    let flags = raw.flags;
    let over = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
    Event {
        token: raw.data.u64(),
        readable: over || flags.intersects(epoll::EventFlags::IN),
        writable: over || flags.intersects(epoll::EventFlags::OUT),
    }
}

fn timespec(ns: Ns) -> Timespec {
    // Both parts are below what an i64 holds: u64::MAX nanoseconds are 18 billion seconds.
    Timespec { tv_sec: (ns / SECOND_NS).cast_signed(), tv_nsec: (ns % SECOND_NS).cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::{Interest, Poller};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_reported_with_its_token_until_it_is_read_or_removed() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        let mut poller = Poller::new().expect("a poller");
        poller.add(&far, 7, Interest::Read).expect("add");
        assert_eq!(poller.wait(Some(0)).expect("wait"), 0);
        near.write_all(b"x").expect("write");
        for _ in 0..2 {
            assert_eq!(poller.wait(None).expect("wait"), 1, "level-triggered: said again");
            let event = poller.events().next().expect("an event");
            assert!(event.token == 7 && event.readable && !event.writable);
        }
        poller.modify(&far, 8, Interest::Write).expect("modify");
        assert_eq!(poller.wait(None).expect("wait"), 1);
        assert!(poller.event(0).writable && poller.event(0).token == 8);
        poller.remove(&far).expect("remove");
        assert_eq!(poller.wait(Some(0)).expect("wait"), 0);
    }

    #[test]
    fn a_wait_ends_at_its_time_and_not_at_the_next_millisecond() {
        let mut poller = Poller::new().expect("a poller");
        // Any one wait may be late on a busy machine; only if all of ten thousand were, would
        // they have been rounded up.
        let shortest_ns = |_| {
            let started_ns = crate::clock::now();
            poller.wait(Some(20_000)).expect("wait");
            crate::clock::now() - started_ns
        };
        let short_ns = (0..10_000).map(shortest_ns).find(|&ns| ns < 1_000_000);
        assert!(short_ns.expect("a wait of less than a millisecond") >= 20_000);
    }
}
