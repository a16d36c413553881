//! io_uring as a way to batch system calls: the receives, or the sends, of several sockets are
//! submitted together, and all completions are reaped before the call returns. Data plane.
//!
//! No request is in flight between two calls: each carries `MSG_DONTWAIT`, and a call returns only
//! with the completion of every request. The kernel therefore never holds a buffer for longer
//! than it is borrowed.

use std::io;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fd::{AsFd as _, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};

use crate::Backend;
use crate::system::{MAX_BATCH, Outcome};

/// After this many refused submissions in a row the ring is given up.
const MAX_REFUSALS: usize = 100;

/// One thread's ring: the receives, or the sends, of up to [`MAX_BATCH`] sockets in one system
/// call. The server loop and the load generator share it.
pub struct Uring {
    /// None once the ring is given up.
    ring: Option<IoUring>,
    entries: Vec<squeue::Entry>,
    outcomes: Vec<Outcome>,
}

impl Uring {
    /// The ring that `backend` asks for: none for epoll, nor for auto where the kernel grants none.
    ///
    /// # Errors
    /// When [`Backend::Uring`] insists on a ring, as in [`Uring::new`].
    pub fn for_backend(backend: Backend) -> io::Result<Option<Self>> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("this kernel gives no io_uring: {error}"))
        };
        match backend {
            Backend::Epoll => Ok(None),
            Backend::Uring => Self::new().map(Some).map_err(named),
            Backend::Auto => Ok(Self::new().ok()),
        }
    }

    /// A new ring, after one send and one receive over it have succeeded.
    ///
    /// # Errors
    /// When the kernel has no io_uring, forbids it, or lacks these operations: before Linux 5.6,
    /// and in some sandboxes.
    pub fn new() -> io::Result<Self> {
        let mut ring = Self::of(IoUring::new(MAX_BATCH as u32)?);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let ((near, far), (_open, silent)) = (pair()?, pair()?);
        let mut space = [[0; 2]; 2];
        let sent = ring.send_over([(near.as_fd(), &[7][..])].into_iter()) == [Ok(1)];
        let spaces = space.iter_mut().map(|space| &mut space[..]);
        let received = ring.receive_from([far.as_fd(), silent.as_fd()].into_iter().zip(spaces));
        if sent && received == [Ok(1), Err(Errno::AGAIN)] && space[0][0] == 7 {
            return Ok(ring);
        }
        Err(io::Error::other("a send and a receive over it have failed"))
    }

    fn of(ring: IoUring) -> Self {
        Self { ring: Some(ring), entries: Vec::new(), outcomes: Vec::new() }
    }

    /// Whether the ring was given up: the loop then continues with plain system calls.
    pub fn has_no_ring(&self) -> bool {
        self.ring.is_none()
    }

    /// Receives once, without blocking, from each of at most [`MAX_BATCH`] sockets. Returns their
    /// outcomes in the same order.
    pub fn receive_from<'a>(
        &mut self,
        jobs: impl Iterator<Item = (BorrowedFd<'a>, &'a mut [u8])>,
    ) -> &[Outcome] {
        let flags = RecvFlags::DONTWAIT.bits() as i32;
        self.entries.clear();
        self.entries.extend(jobs.take(MAX_BATCH).map(|(socket, space)| {
            let length = u32::try_from(space.len()).unwrap_or(u32::MAX);
            opcode::Recv::new(types::Fd(socket.as_raw_fd()), space.as_mut_ptr(), length)
                .flags(flags)
                .build()
        }));
        self.submit()
    }

    /// Sends once, without blocking, over each of at most [`MAX_BATCH`] sockets. Returns their
    /// outcomes in the same order.
    pub fn send_over<'a>(
        &mut self,
        jobs: impl Iterator<Item = (BorrowedFd<'a>, &'a [u8])>,
    ) -> &[Outcome] {
        let flags = (SendFlags::DONTWAIT | SendFlags::NOSIGNAL).bits() as i32;
        self.entries.clear();
        self.entries.extend(jobs.take(MAX_BATCH).map(|(socket, bytes)| {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            opcode::Send::new(types::Fd(socket.as_raw_fd()), bytes.as_ptr(), length)
                .flags(flags)
                .build()
        }));
        self.submit()
    }

    /// Submits the entries and waits until each one that the kernel takes has completed.
    #[allow(unsafe_code)]
    fn submit(&mut self) -> &[Outcome] {
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
            // caller's jobs, which outlives this call; buffers to be written to are borrowed
            // exclusively. The call returns only once each entry that the kernel has taken is
            // completed, after which the kernel no longer touches them, and nothing before that
            // panics. Entries that were not taken are dropped with the ring, so the queue is
            // empty at the start of each call and no entry is ever submitted later.
            let pushed = unsafe { ring.submission().push(&entry) };
            debug_assert!(pushed.is_ok(), "the submission queue holds MAX_BATCH entries");
        }
        let mut left = ring.submission().len();
        debug_assert_eq!(left, outcomes.len(), "entries of an earlier call are in the queue");
        let mut refusals = 0;
        while left > 0 {
            let before = left;
            let submitted = ring.submit_and_wait(left);
            for done in ring.completion() {
                let result = done.result();
                debug_assert!(left > 0, "a completion of no entry");
                if let Some(outcome) = outcomes.get_mut(done.user_data() as usize) {
                    let error = || Errno::from_raw_os_error(result.saturating_neg());
                    *outcome = usize::try_from(result).map_err(|_| error());
                }
                left = left.saturating_sub(1);
            }
            // A signal, or lack of memory: submitted again, because entries that the kernel has
            // taken must complete first. Entries that it has not taken may be dropped.
            if submitted.is_err() && left == before {
                refusals += 1;
                if refusals > MAX_REFUSALS && ring.submission().len() == left {
                    *owned = None;
                    break;
                }
                std::thread::yield_now();
            }
        }
        outcomes
    }
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Uring")
    }
}

#[cfg(test)]
mod tests {
    use super::Uring;
    use rustix::fd::AsFd;
    use rustix::io::Errno;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_batch_gives_each_socket_its_own_bytes_and_never_blocks() {
        let Ok(mut ring) = Uring::new() else {
            return testing::skip("this kernel has no io_uring");
        };
        let mut pairs: Vec<_> = (0..5).map(|_| UnixStream::pair().expect("a pair")).collect();
        for (number, (near, _)) in pairs.iter_mut().enumerate().skip(1) {
            near.write_all(&vec![number as u8; number]).expect("written");
        }
        drop(pairs.pop().expect("five").0);
        let mut space = [0; 4 * 8];
        let sockets = pairs.iter().map(|(_, far)| far.as_fd());
        let outcomes = ring.receive_from(sockets.zip(space.chunks_mut(8)));
        assert_eq!(outcomes, [Err(Errno::AGAIN), Ok(1), Ok(2), Ok(3)]);
        assert_eq!((space[8], &space[16..18], &space[24..27]), (1, &[2; 2][..], &[3; 3][..]));

        let messages: Vec<Vec<u8>> = (0..4).map(|number| vec![number; 3]).collect();
        let sockets = pairs.iter().map(|(_, far)| far.as_fd());
        let outcomes = ring.send_over(sockets.zip(messages.iter().map(Vec::as_slice)));
        assert_eq!(outcomes, [Ok(3); 4]);
        for (number, (near, _)) in pairs.iter_mut().enumerate() {
            let mut got = [9; 3];
            near.read_exact(&mut got).expect("received");
            assert_eq!(got, [number as u8; 3]);
        }
        assert_eq!(ring.send_over(std::iter::empty()), []);
    }

    #[test]
    fn a_ring_that_refuses_submissions_is_given_up_and_has_touched_no_buffer() {
        // A ring takes no submissions before it is enabled, which this one never is.
        let Ok(disabled) = io_uring::IoUring::builder().setup_r_disabled().build(64) else {
            return testing::skip("this kernel has no io_uring");
        };
        let mut ring = Uring::of(disabled);
        let (mut near, far) = UnixStream::pair().expect("a pair");
        near.write_all(b"here").expect("written");
        let mut space = [0; 8];
        assert_eq!(
            ring.receive_from(std::iter::once((far.as_fd(), &mut space[..]))),
            [Err(Errno::CANCELED)]
        );
        assert!(ring.has_no_ring() && space == [0; 8]);
        assert_eq!(
            ring.send_over(std::iter::once((far.as_fd(), &b"no"[..]))),
            [Err(Errno::CANCELED)]
        );
        let mut got = [0; 4];
        (&far).read_exact(&mut got).expect("it is still there");
        assert_eq!(&got, b"here");
    }
}
