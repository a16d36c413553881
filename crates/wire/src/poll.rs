//! Waiting for many sockets: a thin, level-triggered wrapper over epoll.
//!
//! The server loop and the load generator share it. It knows tokens, not what they stand for.
//!
//! Time-outs have nanosecond resolution. `epoll_pwait2` does that in one call, since Linux 5.11;
//! where the kernel or a sandbox lacks it, the epoll descriptor itself is polled (`ppoll`, which
//! takes nanoseconds) and the events are then taken without waiting. `epoll_wait` alone counts in
//! milliseconds: it would wake up to 1 ms late, or spin until the time has come.

use std::io;
use std::mem::MaybeUninit;

use nix::sys::epoll::{Epoll, EpollEvent, EpollTimeout};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;

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
    /// A read won't block: there are bytes, the end, or an error.
    pub readable: bool,
    /// A write won't block: there is room, or an error.
    pub writable: bool,
}

/// A set of sockets to wait for, and the events of the last wait.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    events: Vec<Event>,
    /// Whether a wait takes two calls, for want of `epoll_pwait2`.
    in_two: bool,
}

/// The most events of one wait; the next wait returns the others.
const MAX_EVENTS: usize = 256;

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// When the system has no free descriptor.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll: Epoll(epoll), events: Vec::with_capacity(MAX_EVENTS), in_two: false })
    }

    /// Starts waiting for `socket`.
    ///
    /// # Errors
    /// When the socket is in the set already, or the system is out of memory.
    pub fn add(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(&self.epoll.0, socket, data, interest.flags())?)
    }

    /// Changes what is waited for on `socket`.
    ///
    /// # Errors
    /// When the socket isn't in the set, or the system is out of memory.
    pub fn modify(&self, socket: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll.0, socket, data, interest.flags())?)
    }

    /// Stops waiting for `socket`. Closing the only descriptor of a socket does so too.
    ///
    /// # Errors
    /// When the socket isn't in the set.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll.0, socket)?)
    }

    /// Waits until a socket is ready or `timeout_ns` have passed (`None`: for ever), and returns
    /// the number of events. A signal ends the wait early with none.
    ///
    /// # Errors
    /// Only for bugs in the program.
    pub fn wait(&mut self, timeout_ns: Option<Ns>) -> io::Result<usize> {
        self.events.clear();
        let timeout = timeout_ns.map(timespec);
        if self.in_two {
            return self.wait_in_two(timeout.as_ref());
        }
        let mut raw = [const { MaybeUninit::uninit() }; MAX_EVENTS];
        match epoll::wait(&self.epoll.0, &mut raw, timeout.as_ref()) {
            Ok((ready, _)) => {
                self.events.extend(ready.iter().map(|raw| event(raw.data.u64(), raw.flags)));
            }
            Err(Errno::INTR) => {}
            // The error of a kernel, and that of a sandbox, for an unknown call.
            Err(Errno::NOSYS | Errno::PERM) => {
                self.in_two = true;
                return self.wait_in_two(timeout.as_ref());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.len())
    }

    #[cold]
    fn wait_in_two(&mut self, timeout: Option<&Timespec>) -> io::Result<usize> {
        match poll(&mut [PollFd::new(&self.epoll.0, PollFlags::IN)], timeout) {
            Ok(0) | Err(Errno::INTR) => return Ok(0),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut raw = [EpollEvent::empty(); MAX_EVENTS];
        let count = match self.epoll.wait(&mut raw, EpollTimeout::ZERO) {
            Ok(count) => count,
            Err(nix::Error::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let flags = |raw: &EpollEvent| {
            epoll::EventFlags::from_bits_retain(raw.events().bits().cast_unsigned())
        };
        self.events.extend(raw[..count].iter().map(|raw| event(raw.data(), flags(raw))));
        Ok(count)
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
fn event(token: u64, flags: epoll::EventFlags) -> Event {
    let over = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
    Event {
        token,
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

    /// One that waits in one call where the kernel can, and one in two as on an old kernel.
    fn pollers() -> [Poller; 2] {
        let poller = |in_two| Poller { in_two, ..Poller::new().expect("a poller") };
        [poller(false), poller(true)]
    }

    #[test]
    fn a_socket_is_reported_with_its_token_until_it_is_read_or_removed() {
        pollers().into_iter().for_each(report);
    }

    fn report(mut poller: Poller) {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        poller.add(&far, 7, Interest::Read).expect("add");
        assert_eq!(poller.wait(Some(0)).expect("wait"), 0);
        near.write_all(b"x").expect("write");
        for _ in 0..2 {
            assert_eq!(poller.wait(None).expect("wait"), 1, "level-triggered: reported again");
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
        for mut poller in pollers() {
            // Any one wait may be late on a busy machine; only if all of ten thousand were, would
            // they have been rounded up.
            let length_ns = |_| {
                let started_ns = crate::clock::now();
                poller.wait(Some(20_000)).expect("wait");
                crate::clock::now() - started_ns
            };
            let short_ns = (0..10_000).map(length_ns).find(|&ns| ns < 1_000_000);
            assert!(short_ns.expect("a wait of less than a millisecond") >= 20_000);
        }
    }
}
