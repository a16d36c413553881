//! The transport between a thread's slots and their target: sockets, or a mirror, by which the
//! engine's own cost is measured. Slots are numbers here. Data plane.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use wire::stream::{self, FlushOutcome, ReadOutcome};
use wire::{Address, Backend, Input, Interest, MAX_BATCH, Outcome, Output, Poller, Uring};

/// Connections by number, and which of them are ready.
pub(super) trait Transport {
    /// Begins to connect slot `index`: the next one, or one that is there already, anew.
    fn connect(&mut self, index: usize) -> io::Result<()>;

    /// Returns the outcome of a connection that was begun.
    fn connected(&self, index: usize) -> io::Result<()>;

    /// Changes what is waited for.
    fn watch(&self, index: usize, interest: Interest) -> io::Result<()>;

    /// Stops waiting for it.
    fn leave(&mut self, index: usize);

    /// Waits until a slot is ready or the time is over. Returns the number of events.
    fn wait(&mut self, timeout_ns: u64) -> io::Result<usize>;

    /// Returns the slot of an event of the last wait.
    fn ready(&self, event: usize) -> usize;

    /// Reads once.
    fn read(&mut self, index: usize, input: &mut Input, limit: usize) -> ReadOutcome;

    /// Sends at most `most` bytes.
    fn flush(&mut self, index: usize, output: &mut Output, most: usize) -> FlushOutcome;

    /// The most slots that are read, or sent for, by one call; 1 where each takes its own.
    fn max_submission(&self) -> usize;

    /// Reads once for each of at most [`Transport::max_submission`] slots, into the space beside
    /// its number. Returns their outcomes in the same order; no bytes are the end.
    fn submit_reads<'a>(&mut self, jobs: impl Iterator<Item = (usize, &'a mut [u8])>)
    -> &[Outcome];

    /// Sends once for each of at most [`Transport::max_submission`] slots. Returns their outcomes
    /// in the same order.
    fn submit_sends<'a>(&mut self, jobs: impl Iterator<Item = (usize, &'a [u8])>) -> &[Outcome];
}

/// Streams or datagram sockets to one address.
pub(super) struct Sockets {
    address: Address,
    datagrams: bool,
    poller: Poller,
    /// Makes the calls of several slots together; none where each is made by itself.
    uring: Option<Uring>,
    sockets: Vec<OwnedFd>,
}

impl Sockets {
    /// Streams, or else datagram sockets, to `address`. Only streams make their calls together: a
    /// datagram socket is read until it has no more.
    pub(super) fn new(address: Address, datagrams: bool, io: Backend) -> io::Result<Self> {
        let uring = if datagrams { None } else { Uring::for_backend(io)? };
        Ok(Self { address, datagrams, poller: Poller::new()?, uring, sockets: Vec::new() })
    }
}

impl Transport for Sockets {
    fn connect(&mut self, index: usize) -> io::Result<()> {
        let socket = match self.datagrams {
            false => stream::connect(&self.address)?,
            true => stream::connect_datagrams(&self.address)?,
        };
        self.poller.add(&socket, index as u64, Interest::Both)?;
        match self.sockets.get_mut(index) {
            // Closing the old one ends the waiting for it.
            Some(old) => *old = socket,
            None => self.sockets.push(socket),
        }
        Ok(())
    }

    fn connected(&self, index: usize) -> io::Result<()> {
        if self.datagrams { Ok(()) } else { stream::connected(self.sockets[index].as_fd()) }
    }

    fn watch(&self, index: usize, interest: Interest) -> io::Result<()> {
        self.poller.modify(&self.sockets[index], index as u64, interest)
    }

    fn leave(&mut self, index: usize) {
        let _ = self.poller.remove(&self.sockets[index]);
    }

    #[inline]
    fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        self.poller.wait(Some(timeout_ns))
    }

    #[inline]
    fn ready(&self, event: usize) -> usize {
        self.poller.event(event).token as usize
    }

    #[inline]
    fn read(&mut self, index: usize, input: &mut Input, limit: usize) -> ReadOutcome {
        stream::read_into(&self.sockets[index], input, limit)
    }

    #[inline]
    fn flush(&mut self, index: usize, output: &mut Output, most: usize) -> FlushOutcome {
        stream::flush(&self.sockets[index], output, most)
    }

    #[inline]
    fn max_submission(&self) -> usize {
        match &self.uring {
            Some(uring) if !uring.has_no_ring() => MAX_BATCH,
            _ => 1,
        }
    }

    #[inline]
    fn submit_reads<'a>(
        &mut self,
        jobs: impl Iterator<Item = (usize, &'a mut [u8])>,
    ) -> &[Outcome] {
        let Self { sockets, uring, .. } = self;
        let jobs = jobs.map(|(index, space)| (sockets[index].as_fd(), space));
        uring.as_mut().map_or(&[], |uring| uring.receive_from(jobs))
    }

    #[inline]
    fn submit_sends<'a>(&mut self, jobs: impl Iterator<Item = (usize, &'a [u8])>) -> &[Outcome] {
        let Self { sockets, uring, .. } = self;
        let jobs = jobs.map(|(index, bytes)| (sockets[index].as_fd(), bytes));
        uring.as_mut().map_or(&[], |uring| uring.send_over(jobs))
    }
}

/// No transport: what a slot sends comes back to it at once, without a system call.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    slots: Vec<Mirrored>,
    /// Slots with something to read, for this wait and for the next one.
    now: Vec<usize>,
    next: Vec<usize>,
    outcomes: Vec<Outcome>,
}

#[derive(Debug, Default)]
struct Mirrored {
    bytes: Input,
    is_queued: bool,
}

impl Mirror {
    /// Reports slot `index` as ready by the next wait.
    pub(super) fn queue(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if !std::mem::replace(&mut slot.is_queued, true) {
            self.next.push(index);
        }
    }
}

impl Transport for Mirror {
    fn connect(&mut self, index: usize) -> io::Result<()> {
        match self.slots.get_mut(index) {
            Some(slot) => slot.bytes.clear(),
            None => self.slots.push(Mirrored::default()),
        }
        // It is connected at once, which is reported once.
        self.queue(index);
        Ok(())
    }

    fn connected(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn watch(&self, _: usize, _: Interest) -> io::Result<()> {
        Ok(())
    }

    fn leave(&mut self, index: usize) {
        self.slots[index].bytes.clear();
    }

    #[inline]
    fn wait(&mut self, _: u64) -> io::Result<usize> {
        self.now.clear();
        std::mem::swap(&mut self.now, &mut self.next);
        for index in &self.now {
            self.slots[*index].is_queued = false;
        }
        Ok(self.now.len())
    }

    #[inline]
    fn ready(&self, event: usize) -> usize {
        self.now[event]
    }

    #[inline]
    fn read(&mut self, index: usize, input: &mut Input, _: usize) -> ReadOutcome {
        let sent = &mut self.slots[index].bytes;
        let count = sent.len();
        match (count, input.is_empty()) {
            (0, _) => return ReadOutcome::Blocked,
            (_, true) => std::mem::swap(input, sent),
            (_, false) => input.append(sent.bytes()),
        }
        sent.clear();
        ReadOutcome::Bytes(count)
    }

    #[inline]
    fn flush(&mut self, index: usize, output: &mut Output, _: usize) -> FlushOutcome {
        if let Some(bytes) = output.plain() {
            let count = bytes.len();
            self.slots[index].bytes.append(bytes);
            output.advance(count);
        }
        self.queue(index);
        FlushOutcome::Done
    }

    #[inline]
    fn max_submission(&self) -> usize {
        MAX_BATCH
    }

    #[inline]
    fn submit_reads<'a>(
        &mut self,
        jobs: impl Iterator<Item = (usize, &'a mut [u8])>,
    ) -> &[Outcome] {
        self.outcomes.clear();
        for (index, space) in jobs {
            let sent = &mut self.slots[index].bytes;
            let count = sent.len().min(space.len());
            space[..count].copy_from_slice(&sent.bytes()[..count]);
            sent.consume(count);
            if !sent.is_empty() {
                self.queue(index);
            }
            // What sends nothing is not at its end.
            self.outcomes.push(if count > 0 { Ok(count) } else { Err(Errno::AGAIN) });
        }
        &self.outcomes
    }

    #[inline]
    fn submit_sends<'a>(&mut self, jobs: impl Iterator<Item = (usize, &'a [u8])>) -> &[Outcome] {
        self.outcomes.clear();
        for (index, bytes) in jobs {
            self.slots[index].bytes.append(bytes);
            self.queue(index);
            self.outcomes.push(Ok(bytes.len()));
        }
        &self.outcomes
    }
}
