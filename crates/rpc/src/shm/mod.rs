//! Shared memory between two processes: two rings ([`ring`]), in sealed memory (`memory`) that
//! the server passes over a Unix socket. The socket stays open: its end is that of the other side.
//!
//! A side that waits spins for as long as that has brought something lately, 20 μs at most.
//! Then it parks (`park`), and the other side wakes it: two busy sides make no system call.
//! It doesn't spin where both run on one core, which each writes for the other to see. A
//! parked side looks every 50 ms whether the other is still there. [`Wait`] can have a side spin
//! always, or never.

mod memory;
mod park;
pub mod ring;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use rustix::thread::futex;

use crate::duplex::{Duplex, For};
use crate::waiting::Wait;
use memory::Memory;
use park::{announce, is_parked};
use ring::{Reader, Writer};

/// Connections that a server takes at once: each is a thread, and half a megabyte.
pub(crate) const MOST_LINKS: usize = 64;

/// What the server sends with the memory: the name and version of what is in it.
const HELLO: [u8; 8] = *b"lrshm\0\x01\0";

/// A server of shared memory that has no room closes a connection sooner than this. One of another
/// protocol waits for what the client sends first.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What is wrong where no memory comes.
const NO_MEMORY: &str = "nothing has come from the server, which offers memory first: name the \
                         socket of its --shm, and one of its --unix by unix:PATH";

/// The longest that a side spins.
const MOST_SPIN: Duration = Duration::from_micros(20);

/// A wait that was no longer than this, its wake-up included, would have been spared by spinning.
const SHORT_WAIT: Duration = Duration::from_micros(30);

/// A parked side looks so often whether the other one is there.
const LOOK: Duration = Duration::from_millis(50);

/// Looks of a spinning side between two of its clock.
const LOOKS: u32 = 32;

/// For this time there is no pause between two looks, which would take longer than a look: most
/// answers come meanwhile.
const EAGER: Duration = Duration::from_micros(1);

/// Lines of the head, the server's behind the client's: whether a side is parked, the core that it
/// waited on last, and its position as a reader.
const PARKED: usize = 0;
const CORE: usize = 2;
const TAKEN: usize = 4;

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Link {
    memory: Memory,
    socket: UnixStream,
    /// 0 is the client, 1 the server; each writes the ring of its number.
    side: usize,
    writer: Writer,
    reader: Reader,
    how: Wait,
    budget: Duration,
    core: u32,
    /// System calls, to park and to wake.
    system_calls: u64,
}

impl Link {
    /// The server's side: makes the memory, and passes it.
    pub(crate) fn offer(socket: UnixStream, how: Wait) -> io::Result<Self> {
        let memory = Memory::create()?;
        let files = [memory.file()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut passed = SendAncillaryBuffer::new(&mut space);
        passed.push(SendAncillaryMessage::ScmRights(&files));
        let hello = [IoSlice::new(&HELLO)];
        sendmsg(&socket, &hello, &mut passed, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        Ok(Self::new(memory, socket, 1, how))
    }

    /// The client's side: takes the memory, which has to come in time.
    pub(crate) fn take(socket: UnixStream, how: Wait, limit: Duration) -> io::Result<Self> {
        socket.set_read_timeout(Some(limit.max(Duration::from_millis(1))))?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut passed = RecvAncillaryBuffer::new(&mut space);
        let mut hello = [0; HELLO.len()];
        let mut pieces = [IoSliceMut::new(&mut hello)];
        let begun = Instant::now();
        let came = recvmsg(&socket, &mut pieces, &mut passed, RecvFlags::CMSG_CLOEXEC);
        let came = came.map_err(|error| match error {
            rustix::io::Errno::AGAIN => io::Error::new(io::ErrorKind::TimedOut, NO_MEMORY),
            error => error.into(),
        })?;
        let mut files = passed.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let file: Option<OwnedFd> = files.next();
        match file {
            Some(file) if came.bytes == HELLO.len() && hello == HELLO => {
                Ok(Self::new(Memory::of(file)?, socket, 0, how))
            }
            None if came.bytes == 0 && begun.elapsed() > AT_ONCE => {
                Err(io::Error::other(NO_MEMORY))
            }
            None if came.bytes == 0 => Err(io::Error::other(format!(
                "the server has closed the connection before it offered memory: it stops, or has \
                 as many connections over shared memory as it takes ({MOST_LINKS}, and \
                 --max-connections of all); each has its place until its client ends: end one, or \
                 call by unix: or tcp:"
            ))),
            _ => Err(io::Error::other("the other side offers no shared memory of this version")),
        }
    }

    fn new(memory: Memory, socket: UnixStream, side: usize, how: Wait) -> Self {
        Self {
            memory,
            socket,
            side,
            writer: Writer::default(),
            reader: Reader::default(),
            how,
            budget: MOST_SPIN,
            core: 0,
            system_calls: 0,
        }
    }

    fn other(&self) -> usize {
        1 - self.side
    }

    /// The socket by which the other side's end is seen.
    pub(crate) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Wakes the other side where it is parked.
    fn wake_other(&mut self) {
        let flag = self.memory.half(PARKED + self.other());
        if is_parked(flag) {
            // One that isn't there any more needs none.
            let _ = futex::wake(flag, futex::Flags::empty(), 1);
            self.system_calls += 1;
        }
    }

    /// Whether something has come.
    fn has_some(&self) -> bool {
        self.reader.has_some(self.memory.ring(self.other()))
    }

    /// Whether there is what is waited for.
    fn is_ready(&mut self, what: For) -> io::Result<bool> {
        if what != For::Room && self.has_some() {
            return Ok(true);
        }
        let taken = self.memory.word(TAKEN + self.other());
        Ok(what != For::Bytes && self.writer.has_room(self.memory.ring(self.side), taken)?)
    }

    fn spin(&mut self, what: For, begun: Instant, until: Option<Instant>) -> io::Result<bool> {
        if self.how == Wait::Park {
            return Ok(false);
        }
        // One more than its number, so that zero is none.
        let core = rustix::thread::sched_getcpu() as u32 + 1;
        if core != self.core {
            self.core = core;
            self.memory.half(CORE + self.side).store(core, Relaxed);
        }
        let is_shared = self.memory.half(CORE + self.other()).load(Relaxed) == core;
        if is_shared && self.how != Wait::Spin {
            return Ok(false);
        }
        let (budget, mut looked) = (self.how.budget(self.budget), begun);
        loop {
            let now = Instant::now();
            if now - begun >= budget || until.is_some_and(|until| until <= now) {
                return Ok(false);
            }
            if now - looked >= LOOK {
                looked = now;
                if self.is_alone() {
                    return Ok(false);
                }
            }
            let pauses = now - begun >= EAGER;
            for _ in 0..LOOKS {
                if pauses {
                    std::hint::spin_loop();
                }
                if self.is_ready(what)? {
                    return Ok(true);
                }
            }
        }
    }

    fn park(&mut self, what: For, until: Option<Instant>) -> io::Result<bool> {
        loop {
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return Ok(false);
            }
            let left = until.map_or(LOOK, |until| (until - now).min(LOOK));
            announce(self.memory.half(PARKED + self.side));
            let ready = self.is_ready(what);
            if let Ok(false) = ready {
                self.system_calls += 1;
                let left = futex::Timespec { tv_sec: 0, tv_nsec: left.as_nanos() as i64 };
                let flag = self.memory.half(PARKED + self.side);
                // Whatever it ends with, it is looked at again.
                let _ = futex::wait(flag, futex::Flags::empty(), 1, Some(&left));
            }
            self.memory.half(PARKED + self.side).store(0, Relaxed);
            if ready? || self.is_ready(what)? {
                return Ok(true);
            }
            if self.is_alone() {
                // What it has left is still to be taken.
                return match what != For::Room && self.has_some() {
                    true => Ok(true),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Whether the other side has closed its socket, or has ended. It sends nothing there: a byte
    /// would hide its end.
    fn is_alone(&self) -> bool {
        let mut byte = [0];
        let came = recv(self.socket.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(came, Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
    }
}

impl Duplex for Link {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut sent = 0;
        let (memory, taken) = (&self.memory, self.memory.word(TAKEN + self.other()));
        'all: for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                match self.writer.write(memory.ring(self.side), taken, rest)? {
                    0 => break 'all,
                    count => {
                        sent += count;
                        rest = &rest[count..];
                    }
                }
            }
        }
        if sent > 0 {
            self.wake_other();
        }
        Ok(sent)
    }

    /// Up to the end of a record.
    fn receive(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let taken = self.memory.word(TAKEN + self.side);
        let ring = self.memory.ring(self.other());
        let (count, publishes) = self.reader.read(ring, taken, space)?;
        if publishes {
            self.wake_other();
        }
        Ok(count)
    }

    fn has_bytes(&mut self) -> io::Result<bool> {
        Ok(self.has_some())
    }

    fn wait(&mut self, what: For, until: Option<Instant>) -> io::Result<bool> {
        if self.is_ready(what)? {
            return Ok(true);
        }
        let begun = Instant::now();
        if self.spin(what, begun, until)? {
            // It has paid, and no more than the budget: no clock is read before an answer is taken.
            self.budget = MOST_SPIN;
            return Ok(true);
        }
        let ready = self.park(what, until)?;
        // What spinning would have brought it may bring the next time; else it ends by halves.
        self.budget = match begun.elapsed() <= SHORT_WAIT {
            true => MOST_SPIN,
            false => self.budget / 2,
        };
        Ok(ready)
    }

    fn system_calls(&self) -> u64 {
        self.system_calls
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The other side looks at the socket once it is woken. One that is closed needs no more.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        self.wake_other();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn pair() -> (Link, Link) {
        let (one, two) = UnixStream::pair().expect("a pair");
        let server = Link::offer(one, Wait::Hybrid).expect("memory");
        (Link::take(two, Wait::Hybrid, Duration::from_secs(5)).expect("it came"), server)
    }

    fn send_all(link: &mut Link, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match link.send(&[IoSlice::new(bytes)])? {
                0 => drop(link.wait(For::BytesOrRoom, None)?),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    #[test]
    fn more_than_a_ring_passes_and_the_end_of_a_side_is_an_end() {
        let (mut client, mut server) = pair();
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|at| (at % 251) as u8).collect();
        let right = bytes.clone();
        let sender = thread::spawn(move || send_all(&mut client, &bytes));
        let (mut came, mut space) = (Vec::<u8>::new(), vec![0; 10_000]);
        let end = loop {
            match server.wait(For::Bytes, None) {
                Ok(_) => {}
                Err(error) => break error,
            }
            let count = server.receive(&mut space).expect("bytes");
            came.extend(&space[..count]);
        };
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        assert!(came == right, "{} bytes", came.len());
        sender.join().expect("it ends").expect("sent");
    }

    #[test]
    fn sides_that_park_are_woken_each_time() {
        let (mut client, mut server) = pair();
        (client.budget, server.budget) = (Duration::ZERO, Duration::ZERO);
        let echo = thread::spawn(move || {
            let mut space = [0; 64];
            while server.wait(For::Bytes, None).is_ok() {
                server.budget = Duration::ZERO;
                let count = server.receive(&mut space).expect("bytes");
                send_all(&mut server, &space[..count]).expect("sent");
            }
        });
        let mut space = [0; 64];
        for round in 0..5_000_u64 {
            send_all(&mut client, &round.to_le_bytes()).expect("sent");
            let until = Some(Instant::now() + Duration::from_secs(20));
            assert_eq!(client.wait(For::Bytes, until).ok(), Some(true), "round {round}");
            client.budget = Duration::ZERO;
            assert_eq!(client.receive(&mut space).expect("bytes"), 8);
            assert_eq!(space[..8], round.to_le_bytes());
        }
        drop(client);
        echo.join().expect("it ends");
    }

    #[test]
    fn the_end_of_a_side_that_wakes_no_one_is_seen_at_the_next_look_within_100_ms() {
        const { assert!(LOOK.as_millis() <= 100) };
        let (one, two) = UnixStream::pair().expect("a pair");
        let mut server = Link::offer(one, Wait::Park).expect("memory");
        let client = Link::take(two, Wait::Park, Duration::from_secs(5)).expect("it came");
        // As the system does for a process that is killed.
        client.socket.shutdown(std::net::Shutdown::Both).expect("shut");
        let end = server.wait(For::Bytes, None).expect_err("an end");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(server.system_calls(), 1, "looks");
    }

    #[test]
    fn spinning_that_brings_nothing_ends_by_halves() {
        let (mut client, _server) = pair();
        for halves in 1..=15 {
            let until = Some(Instant::now() + Duration::from_millis(1));
            assert!(!client.wait(For::Bytes, until).expect("the other side is there"));
            assert_eq!(client.budget, MOST_SPIN / 2_u32.pow(halves));
        }
        assert!(client.budget.is_zero());
    }

    #[test]
    fn a_side_does_not_spin_where_both_run_on_one_core() {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

        let (mut client, _server) = pair();
        client.budget = Duration::from_secs(3_600);
        // A core of its own, so that the system moves it to no other one.
        let ours = sched_getaffinity(None).expect("cores");
        let core = (0..CpuSet::MAX_CPU).find(|core| ours.is_set(*core)).expect("a core");
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one).expect("it may run there");
        assert_eq!(sched_getcpu(), core);
        client.memory.half(CORE + client.other()).store(core as u32 + 1, Relaxed);
        let (begun, until) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        assert!(!client.spin(For::Bytes, begun, Some(until)).expect("no fault"));
        assert!(Instant::now() < until, "it spins");
        // This may be the thread of other tests, too.
        sched_setaffinity(None, &ours).expect("it ran there");
    }

    #[test]
    fn a_byte_on_the_socket_does_not_hide_the_end_of_a_side() {
        use std::io::Write as _;

        let (mut client, mut server) = pair();
        client.socket.write_all(b"x").expect("sent");
        drop(client);
        let until = Some(Instant::now() + Duration::from_secs(20));
        let end = server.wait(For::Bytes, until).expect_err("an end");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_socket_on_which_no_memory_comes_is_another_one() {
        let take = |socket| {
            let took = Link::take(socket, Wait::Park, Duration::from_millis(20));
            took.expect_err("refused").to_string()
        };
        let (server, client) = UnixStream::pair().expect("a pair");
        assert_eq!(take(client), NO_MEMORY);
        let (full, client) = UnixStream::pair().expect("a pair");
        drop((server, full));
        assert!(take(client).contains("as many connections over shared memory as it takes"));
    }

    #[test]
    fn memory_that_could_be_cut_or_is_none_is_refused() {
        use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

        let offers = |file: Option<OwnedFd>| {
            let (one, two) = UnixStream::pair().expect("a pair");
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut passed = SendAncillaryBuffer::new(&mut space);
            let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
            if !files.is_empty() {
                passed.push(SendAncillaryMessage::ScmRights(&files));
            }
            let hello = [IoSlice::new(&HELLO)];
            sendmsg(&one, &hello, &mut passed, SendFlags::empty()).expect("sent");
            Link::take(two, Wait::Park, Duration::from_secs(5)).expect_err("refused").to_string()
        };
        assert!(offers(None).contains("no shared memory"));
        let file = memfd_create("open", MemfdFlags::ALLOW_SEALING).expect("memory");
        ftruncate(&file, 1 << 20).expect("set");
        assert!(offers(Some(file)).contains("isn't sealed"));
    }
}
