//! Ways to write a file in which the kernel or the C library does a part beside this thread: pages
//! of it that are mapped, POSIX AIO, io_uring. The only `unsafe` code of the ladders: bytes that
//! were given away stay where they are, untouched, until they are written.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, opcode, squeue, types};
use memmap2::{MmapMut, MmapOptions};
use nix::libc;
use rustix::fs::{FallocateFlags, fallocate};

use super::checkpoint::{MOST_PIECES, Writing};

/// How much of a file is mapped at once.
const WINDOW_BYTES: usize = 4 << 20;

/// A file whose next bytes are mapped.
pub(super) struct Mapped {
    file: File,
    window: Option<MmapMut>,
    /// Where the window begins in the file, and how much of it is written.
    begin: u64,
    at: usize,
}

impl Mapped {
    pub(super) fn new(file: File) -> Self {
        Self { file, window: None, begin: 0, at: WINDOW_BYTES }
    }

    /// Maps the next bytes.
    #[allow(unsafe_code)]
    fn advance(&mut self) -> io::Result<()> {
        if self.window.take().is_some() {
            self.begin += WINDOW_BYTES as u64;
        }
        // A page of a full disk would end the process by a signal.
        fallocate(&self.file, FallocateFlags::empty(), self.begin, WINDOW_BYTES as u64)?;
        let mut options = MmapOptions::new();
        options.offset(self.begin).len(WINDOW_BYTES);
        // SAFETY: the file is this rung's own, and is neither cut nor written in another way while
        // a part of it is mapped.
        self.window = Some(unsafe { options.map_mut(&self.file)? });
        self.at = 0;
        Ok(())
    }
}

impl Writing for Mapped {
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut left = piece;
        while !left.is_empty() {
            if self.at == WINDOW_BYTES {
                self.advance()?;
            }
            let Some(window) = &mut self.window else { return Ok(()) };
            let (now, later) = left.split_at(left.len().min(WINDOW_BYTES - self.at));
            window[self.at..self.at + now.len()].copy_from_slice(now);
            self.at += now.len();
            left = later;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let end = self.window.take().map_or(0, |_| self.begin + self.at as u64);
        self.file.set_len(end)?;
        self.file.sync_all()
    }
}

/// One operation of POSIX AIO: its control block, and the bytes that it writes.
struct Operation {
    control: Box<libc::aiocb>,
    bytes: Vec<u8>,
}

impl Operation {
    #[allow(unsafe_code)]
    fn new(file: &File, at: u64, mut bytes: Vec<u8>) -> Self {
        // SAFETY: a control block is numbers and pointers, for which zeros are defined.
        let mut control: Box<libc::aiocb> = Box::new(unsafe { std::mem::zeroed() });
        control.aio_fildes = file.as_raw_fd();
        control.aio_offset = at.cast_signed();
        control.aio_buf = bytes.as_mut_ptr().cast();
        control.aio_nbytes = bytes.len();
        control.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        Self { control, bytes }
    }

    /// Whether it is done.
    #[allow(unsafe_code)]
    fn is_done(&mut self) -> io::Result<bool> {
        // SAFETY: the block is of an operation that was begun.
        match unsafe { libc::aio_error(&raw const *self.control) } {
            libc::EINPROGRESS => Ok(false),
            0 => {
                // SAFETY: the same; it is done, and asked once, for it is then forgotten.
                let written = unsafe { libc::aio_return(&raw mut *self.control) };
                whole(written.cast_unsigned(), self.bytes.len()).map(|()| true)
            }
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Waits until it is done, however it ends.
    #[allow(unsafe_code)]
    fn wait(&self) {
        let control: *const libc::aiocb = &raw const *self.control;
        // SAFETY: the block is of an operation that was begun, and outlives both calls.
        while unsafe { libc::aio_error(control) } == libc::EINPROGRESS {
            // SAFETY: as above; the list has one block, and no time limit.
            unsafe { libc::aio_suspend(&raw const control, 1, std::ptr::null()) };
        }
    }
}

fn whole(written: usize, of: usize) -> io::Result<()> {
    match written == of {
        true => Ok(()),
        false => Err(io::Error::other(format!("{written} of {of} bytes are written"))),
    }
}

/// A file that threads of the C library write.
pub(super) struct PosixAio {
    file: File,
    /// In their order, in which those of one file are done.
    operations: VecDeque<Operation>,
    at: u64,
}

impl PosixAio {
    pub(super) fn new(file: File) -> Self {
        Self { file, operations: VecDeque::new(), at: 0 }
    }

    /// Forgets those that are done, and returns how many are not.
    fn left(&mut self) -> io::Result<usize> {
        while let Some(first) = self.operations.front_mut() {
            if !first.is_done()? {
                break;
            }
            self.operations.pop_front();
        }
        Ok(self.operations.len())
    }

    fn begun(&mut self, operation: Operation, code: i32) -> io::Result<()> {
        if code != 0 {
            return Err(io::Error::last_os_error());
        }
        self.operations.push_back(operation);
        Ok(())
    }
}

impl Writing for PosixAio {
    fn has_room(&mut self) -> io::Result<bool> {
        Ok(self.left()? < MOST_PIECES)
    }

    #[allow(unsafe_code)]
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let mut operation = Operation::new(&self.file, self.at, piece.to_vec());
        self.at += piece.len() as u64;
        // SAFETY: the block and the bytes lie on the heap, and are kept until it is done.
        let code = unsafe { libc::aio_write(&raw mut *operation.control) };
        self.begun(operation, code)
    }

    #[allow(unsafe_code)]
    fn sync(&mut self) -> io::Result<()> {
        let mut operation = Operation::new(&self.file, 0, Vec::new());
        // SAFETY: the block lies on the heap, and is kept until it is done.
        let code = unsafe { libc::aio_fsync(libc::O_SYNC, &raw mut *operation.control) };
        self.begun(operation, code)
    }

    fn is_done(&mut self) -> io::Result<bool> {
        Ok(self.left()? == 0)
    }
}

impl Drop for PosixAio {
    fn drop(&mut self) {
        self.operations.iter().for_each(Operation::wait);
    }
}

/// A file that the kernel writes, of what a ring names.
pub(super) struct Ring {
    ring: IoUring,
    file: File,
    /// The bytes that are under way, by the operation's number.
    under_way: Vec<Option<Vec<u8>>>,
    at: u64,
}

impl Ring {
    /// # Errors
    /// The kernel has none, or forbids it.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let none = |why| io::Error::other(format!("this kernel gives no io_uring: {why}"));
        let ring = IoUring::new(MOST_PIECES as u32).map_err(none)?;
        Ok(Self { ring, file, under_way: vec![None; MOST_PIECES], at: 0 })
    }

    /// Takes what is done, and returns how much is not.
    fn left(&mut self) -> io::Result<usize> {
        for done in self.ring.completion() {
            let place = usize::try_from(done.user_data()).unwrap_or(usize::MAX);
            let bytes = self.under_way.get_mut(place).and_then(Option::take);
            let bytes = bytes.ok_or_else(|| io::Error::other("the ring ends what wasn't begun"))?;
            match usize::try_from(done.result()) {
                Ok(written) => whole(written, bytes.len())?,
                Err(_) => return Err(io::Error::from_raw_os_error(-done.result())),
            }
        }
        Ok(self.under_way.iter().flatten().count())
    }

    #[allow(unsafe_code)]
    fn begin(&mut self, bytes: Vec<u8>, of: impl Fn(&[u8]) -> squeue::Entry) -> io::Result<()> {
        let free = self.under_way.iter().position(Option::is_none);
        let place = free.ok_or_else(|| io::Error::other("the ring has no room"))?;
        let bytes = self.under_way[place].insert(bytes);
        let entry = of(bytes).user_data(place as u64);
        // SAFETY: the bytes lie on the heap, and are kept until the kernel is done with them.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.under_way[place] = None;
            return Err(io::Error::other("the ring has no room"));
        }
        self.ring.submit().map(drop)
    }
}

impl Writing for Ring {
    fn has_room(&mut self) -> io::Result<bool> {
        Ok(self.left()? < MOST_PIECES)
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let (file, at) = (types::Fd(self.file.as_raw_fd()), self.at);
        self.at += piece.len() as u64;
        self.begin(piece.to_vec(), |bytes| {
            opcode::Write::new(file, bytes.as_ptr(), bytes.len() as u32).offset(at).build()
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        // Room for it, and it is begun once the others are done.
        while self.left()? == MOST_PIECES {
            self.ring.submit_and_wait(1)?;
        }
        let file = types::Fd(self.file.as_raw_fd());
        self.begin(Vec::new(), |_| opcode::Fsync::new(file).build().flags(squeue::Flags::IO_DRAIN))
    }

    fn is_done(&mut self) -> io::Result<bool> {
        Ok(self.left()? == 0)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.under_way.iter().any(Option::is_some) {
            if self.ring.submit_and_wait(1).is_err() {
                // The kernel may still read them.
                std::mem::forget(std::mem::take(&mut self.under_way));
                return;
            }
            // One that has failed is done, too.
            let _ = self.left();
        }
    }
}
