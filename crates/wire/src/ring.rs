//! Many system calls as one, by io_uring: what several sockets are to receive or send at this
//! moment is handed to the kernel together, and taken back before anything else is done.
//!
//! Nothing is ever under way between two calls: every request says that it must not wait
//! (`MSG_DONTWAIT`), and a call returns only with the outcome of each of its requests. So a buffer
//! is the kernel's no longer than it is borrowed.

use std::io;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fd::{AsFd as _, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};

/// At most so many requests are made together.
pub(crate) const MOST_TOGETHER: usize = 64;

/// So many times in a row the kernel may refuse to take requests before it is asked no more.
const MOST_REFUSALS: usize = 100;

/// What has become of a request: how many bytes have moved. `CANCELED` is one that the kernel has
/// never taken.
pub(crate) type Outcome = Result<usize, Errno>;

/// One thread's way to the kernel.
pub(crate) struct Ring {
    /// None once the kernel has refused to go on.
    ring: Option<IoUring>,
    entries: Vec<squeue::Entry>,
    outcomes: Vec<Outcome>,
}

impl Ring {
    /// A ring of its own, which has shown that it does what is wanted.
    ///
    /// # Errors
    /// When the kernel has none to give, forbids it, or knows one without such calls, as before
    /// Linux 5.6 and in some sandboxes.
    pub(crate) fn new() -> io::Result<Self> {
        let mut ring = Self::of(IoUring::new(MOST_TOGETHER as u32)?);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let ((near, far), (_open, silent)) = (pair()?, pair()?);
        let mut space = [[0; 2]; 2];
        let sent = ring.send([(near.as_fd(), &[7][..])].into_iter()) == [Ok(1)];
        let spaces = space.iter_mut().map(|space| &mut space[..]);
        let received = ring.receive([far.as_fd(), silent.as_fd()].into_iter().zip(spaces));
        if sent && received == [Ok(1), Err(Errno::AGAIN)] && space[0][0] == 7 {
            return Ok(ring);
        }
        Err(io::Error::other("it neither sends nor receives"))
    }

    fn of(ring: IoUring) -> Self {
        Self { ring: Some(ring), entries: Vec::new(), outcomes: Vec::new() }
    }

    /// Whether the kernel has refused to go on: then it is to be done without.
    pub(crate) fn is_lost(&self) -> bool {
        self.ring.is_none()
    }

    /// Receives once from each of at most [`MOST_TOGETHER`] sockets, none of which waits. Gives
    /// their outcomes in the same order.
    pub(crate) fn receive<'a>(
        &mut self,
        jobs: impl Iterator<Item = (BorrowedFd<'a>, &'a mut [u8])>,
    ) -> &[Outcome] {
        let flags = RecvFlags::DONTWAIT.bits() as i32;
        self.entries.clear();
        self.entries.extend(jobs.take(MOST_TOGETHER).map(|(socket, space)| {
            let length = u32::try_from(space.len()).unwrap_or(u32::MAX);
            opcode::Recv::new(types::Fd(socket.as_raw_fd()), space.as_mut_ptr(), length)
                .flags(flags)
                .build()
        }));
        self.carry_out()
    }

    /// Sends once over each of at most [`MOST_TOGETHER`] sockets, none of which waits. Gives their
    /// outcomes in the same order.
    pub(crate) fn send<'a>(
        &mut self,
        jobs: impl Iterator<Item = (BorrowedFd<'a>, &'a [u8])>,
    ) -> &[Outcome] {
        let flags = (SendFlags::DONTWAIT | SendFlags::NOSIGNAL).bits() as i32;
        self.entries.clear();
        self.entries.extend(jobs.take(MOST_TOGETHER).map(|(socket, bytes)| {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            opcode::Send::new(types::Fd(socket.as_raw_fd()), bytes.as_ptr(), length)
                .flags(flags)
                .build()
        }));
        self.carry_out()
    }

    /// Hands the entries to the kernel and waits until each that it takes has its outcome.
    #[allow(unsafe_code)]
    fn carry_out(&mut self) -> &[Outcome] {
        let Self { ring: owned, entries, outcomes } = self;
        outcomes.clear();
        outcomes.resize(entries.len(), Err(Errno::CANCELED));
        let Some(ring) = owned else {
            entries.clear();
            return outcomes;
        };
        for (number, entry) in entries.drain(..).enumerate() {
            let entry = entry.user_data(number as u64);
            // SAFETY: the sockets and buffers of all entries are borrowed for the `'a` of the
            // caller's jobs, which lasts until this function has returned, buffers to be written
            // to exclusively. It returns only once each entry that the kernel has taken has its
            // outcome, after which the kernel touches them no more, and nothing on the way there
            // panics. Entries that it has not taken then go with the ring, so that the queue is
            // empty at the start of each call and no entry is ever handed over later.
            let pushed = unsafe { ring.submission().push(&entry) };
            debug_assert!(pushed.is_ok(), "a ring has room for all that is done together");
        }
        let mut left = ring.submission().len();
        let mut refusals = 0;
        while left > 0 {
            let before = left;
            let handed_over = ring.submit_and_wait(left);
            for done in ring.completion() {
                let result = done.result();
                if let Some(outcome) = outcomes.get_mut(done.user_data() as usize) {
                    let error = || Errno::from_raw_os_error(result.saturating_neg());
                    *outcome = usize::try_from(result).map_err(|_| error());
                }
                left = left.saturating_sub(1);
            }
            // A signal, or want of memory: it is begun again, because what the kernel has taken may
            // not be left behind. What it has not taken may.
            if handed_over.is_err() && left == before {
                refusals += 1;
                if refusals > MOST_REFUSALS && ring.submission().len() == left {
                    *owned = None;
                    break;
                }
                std::thread::yield_now();
            }
        }
        outcomes
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use rustix::fd::AsFd;
    use rustix::io::Errno;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_several_sockets_send_and_receive_is_theirs_and_none_waits() {
        let Ok(mut ring) = Ring::new() else {
            return println!("skipped: this kernel gives no io_uring");
        };
        let mut pairs: Vec<_> = (0..5).map(|_| UnixStream::pair().expect("a pair")).collect();
        for (number, (near, _)) in pairs.iter_mut().enumerate().skip(1) {
            near.write_all(&vec![number as u8; number]).expect("written");
        }
        drop(pairs.pop().expect("five").0);
        let mut space = [0; 4 * 8];
        let sockets = pairs.iter().map(|(_, far)| far.as_fd());
        let outcomes = ring.receive(sockets.zip(space.chunks_mut(8)));
        assert_eq!(outcomes, [Err(Errno::AGAIN), Ok(1), Ok(2), Ok(3)]);
        assert_eq!((space[8], &space[16..18], &space[24..27]), (1, &[2; 2][..], &[3; 3][..]));

        let messages: Vec<Vec<u8>> = (0..4).map(|number| vec![number; 3]).collect();
        let sockets = pairs.iter().map(|(_, far)| far.as_fd());
        let outcomes = ring.send(sockets.zip(messages.iter().map(Vec::as_slice)));
        assert_eq!(outcomes, [Ok(3); 4]);
        for (number, (near, _)) in pairs.iter_mut().enumerate() {
            let mut got = [9; 3];
            near.read_exact(&mut got).expect("received");
            assert_eq!(got, [number as u8; 3]);
        }
        assert_eq!(ring.send(std::iter::empty()), []);
    }

    #[test]
    fn a_kernel_that_takes_no_more_is_not_asked_for_ever_and_has_touched_nothing() {
        // It takes nothing before it is enabled, which this one never is.
        let Ok(disabled) = io_uring::IoUring::builder().setup_r_disabled().build(64) else {
            return println!("skipped: this kernel gives no io_uring");
        };
        let mut ring = Ring::of(disabled);
        let (mut near, far) = UnixStream::pair().expect("a pair");
        near.write_all(b"here").expect("written");
        let mut space = [0; 8];
        assert_eq!(
            ring.receive(std::iter::once((far.as_fd(), &mut space[..]))),
            [Err(Errno::CANCELED)]
        );
        assert!(ring.is_lost() && space == [0; 8]);
        assert_eq!(ring.send(std::iter::once((far.as_fd(), &b"no"[..]))), [Err(Errno::CANCELED)]);
        let mut got = [0; 4];
        (&far).read_exact(&mut got).expect("it is still there");
        assert_eq!(&got, b"here");
    }
}
