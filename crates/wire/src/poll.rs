//! Waiting for many sockets: a thin, level-triggered wrapper over epoll.
//!
//! The server loop and the load generator share it. It knows tokens, not what they stand for.
//!
//! Waits end to the nanosecond. `epoll_pwait2` does that in one call, since Linux 5.11; where the
//! kernel, or a sandbox, does not know it, the set itself is polled (`ppoll`, which has always
//! counted in nanoseconds) and what is ready is taken without waiting. `epoll_wait` alone counts
//! in milliseconds: it would wake either up to one too late, or too early and in a spin.

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
    /// Service to write.
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
    /// A write will say something: service, or an error.
    pub writable: bool,
}

/// A set of sockets to wait for, and the events of the last wait.
#[derive(Debug)]
pub struct Poller {
    epoll: Epoll,
    events: Vec<Event>,
    /// Whether a wait takes two calls, because the one that does it all is not there.
    in_two: bool,
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
        Ok(Self { epoll: Epoll(epoll), events: Vec::with_capacity(MOST_EVENTS), in_two: false })
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

    /// Waits until a socket is ready or `timeout_ns` have passed (`None`: for ever), and says how
    /// many events there are. A signal ends the wait early with none.
    ///
    /// # Errors
    /// Only for mistakes in the program.
    pub fn wait(&mut self, timeout_ns: Option<Ns>) -> io::Result<usize> {
        self.events.clear();
        let timeout = timeout_ns.map(timespec);
        if self.in_two {
            return self.wait_in_two(timeout.as_ref());
        }
        let mut raw = [const { MaybeUninit::uninit() }; MOST_EVENTS];
        match epoll::wait(&self.epoll.0, &mut raw, timeout.as_ref()) {
            Ok((ready, _)) => {
                self.events.extend(ready.iter().map(|raw| event(raw.data.u64(), raw.flags)));
            }
            Err(Errno::INTR) => {}
            // What a kernel, and what a sandbox says of a call that it does not know.
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
        let mut raw = [EpollEvent::empty(); MOST_EVENTS];
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

    /// One that waits in one call where it can, and one that takes two as on an old kernel.
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
