//! What carries bytes between a thread's slots and their target: sockets, or nothing at all, which
//! is how the engine's own cost is measured. Slots are numbers here. Data plane.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use wire::stream::{self, FlushOutcome, ReadOutcome};
use wire::{Address, Input, Interest, Output, Poller};

/// Connections by number, and which of them are ready.
pub(super) trait Transport {
    /// Begins to connect slot `index`: the next one, or one that is there already, anew.
    fn connect(&mut self, index: usize) -> io::Result<()>;

    /// What has become of a connection that was begun.
    fn connected(&self, index: usize) -> io::Result<()>;

    /// Changes what is waited for.
    fn watch(&self, index: usize, interest: Interest) -> io::Result<()>;

    /// Waits for nothing on it any more.
    fn leave(&mut self, index: usize);

    /// Waits until a slot is ready or the time is over; says how many are.
    fn wait(&mut self, timeout_ns: u64) -> io::Result<usize>;

    /// Which slot an event of the last wait is about.
    fn ready(&self, event: usize) -> usize;

    /// Reads once.
    fn read(&mut self, index: usize, input: &mut Input, limit: usize) -> ReadOutcome;

    /// Sends at most `most` bytes.
    fn flush(&mut self, index: usize, output: &mut Output, most: usize) -> FlushOutcome;
}

/// Streams or datagram sockets to one address.
pub(super) struct Sockets {
    address: Address,
    datagrams: bool,
    poller: Poller,
    sockets: Vec<OwnedFd>,
}

impl Sockets {
    pub(super) fn new(address: Address, datagrams: bool) -> io::Result<Self> {
        Ok(Self { address, datagrams, poller: Poller::new()?, sockets: Vec::new() })
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
}

/// No transport: what a slot sends comes back to it at once, without a system call.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    slots: Vec<Mirrored>,
    /// Slots with something to read, for this wait and for the next one.
    now: Vec<usize>,
    next: Vec<usize>,
}

#[derive(Debug, Default)]
struct Mirrored {
    bytes: Input,
    is_queued: bool,
}

impl Mirror {
    fn queue(&mut self, index: usize) {
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
        // It is connected at once, which is said once.
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
}
