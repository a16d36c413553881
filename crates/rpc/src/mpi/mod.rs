//! MPI between two ranks of one job: rank 0 asks, the others serve. Messages of bytes in order, of
//! 32 KiB at most; one without bytes is the end. The library ([`library`]) is opened when an
//! address asks for it.
//!
//! MPI has no way to wait but on the CPU. So [`Wait::Hybrid`] and [`Wait::Park`] look in steps and
//! sleep between them: no CPU time while nothing happens, at the price of a step, 1 ms at most.

mod library;
mod started;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use service::out;

use crate::duplex::{Duplex, For};
use crate::waiting::Wait;
use library::{Buffer, Library};
use started::Started;

/// The most bytes of a message.
const MESSAGE_BYTES: usize = 32 << 10;

/// Messages that may be under way in each direction.
const MESSAGES: usize = 8;

/// The longest that a hybrid wait stays on the CPU.
const MOST_SPIN: Duration = Duration::from_micros(50);

/// A wait of more than this gives its CPU to others between two looks: the other rank may be one of
/// them.
const ALONE: Duration = Duration::from_micros(5);

/// Looks of a wait that is shorter between two of its clock.
const LOOKS: u32 = 16;

/// How long a wait sleeps between two looks: twice as long each time.
const LEAST_STEP: Duration = Duration::from_micros(20);
const MOST_STEP: Duration = Duration::from_millis(1);

/// How long the end of a connection may take.
const END_TIME: Duration = Duration::from_secs(2);

/// What starts ranks says so in the environment: Open MPI, others of its kind, and Slurm.
const STARTED: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_PROCID"];

/// How ranks are started.
const START: &str = "start it by `mpirun -np 2 loadline rpc ping mpi:`";

/// The job, as this process sees it: it is in one at most, and only once.
#[derive(Debug)]
pub(crate) struct World {
    library: Library,
    rank: usize,
    size: usize,
    /// A connection has been made: there is one at most.
    is_used: AtomicBool,
}

impl World {
    /// Joins the job that this process was started in.
    ///
    /// # Errors
    /// When Open MPI isn't there, or this process was started without it.
    pub(crate) fn join() -> io::Result<&'static Self> {
        static WORLD: OnceLock<Result<World, String>> = OnceLock::new();
        let world = WORLD.get_or_init(Self::begin);
        world.as_ref().map_err(|words| io::Error::other(words.clone()))
    }

    fn begin() -> Result<Self, String> {
        let library = Library::open()?;
        if STARTED.iter().all(|name| std::env::var_os(name).is_none()) {
            return Err(format!("mpi: this process is no rank of a job: {START}"));
        }
        let (rank, size) = library.begin().map_err(|error| error.to_string())?;
        let world = Self { library, rank, size, is_used: AtomicBool::new(false) };
        if size < 2 {
            world.leave();
            return Err(format!("mpi: there is no other rank: {START}"));
        }
        Ok(world)
    }

    /// This process's number.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Leaves the job, with all other ranks.
    fn leave(&self) {
        // All that there was to do is done: there is nothing to do about an error.
        let _ = self.library.end();
    }

    /// The connection by which rank 0 asks `server`, which leaves the job when it ends: the only
    /// one. Of another rank it is that to rank 0.
    ///
    /// # Errors
    /// On rank 0, for all: when no rank can be asked by this number, or that rank was started
    /// otherwise or doesn't answer within `limit`; on each, when there was a connection.
    pub(crate) fn link(
        &'static self,
        server: usize,
        how: Wait,
        limit: Duration,
    ) -> io::Result<Link> {
        if self.is_used.swap(true, Relaxed) {
            return Err(io::Error::other("mpi: this process has had its connection"));
        }
        let is_there = self.rank > 0 || server < self.size;
        let asked = if is_there { server } else { 1 };
        let mut link = Link::new(self, if self.rank == 0 { asked } else { 0 }, how)?;
        if !is_there {
            // The others learn of the end as they do of any other.
            let last = self.size - 1;
            let words = format!("mpi: there is no rank {server} to ask, but 1 to {last}");
            return Err(io::Error::other(words));
        }
        link.meet(&Started::now(), limit)?;
        Ok(link)
    }
}

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Link {
    world: &'static World,
    peer: usize,
    how: Wait,
    /// The one that is sent, or was, longest ago is the first.
    sends: VecDeque<Buffer>,
    /// The one that receives the next message is the first.
    receives: VecDeque<Buffer>,
    /// The last of those that receive, which don't yet: they begin to once there is nothing to do.
    spent: usize,
    /// Of the first that receives: bytes that have come, and those of them that were taken.
    came: Option<(usize, usize)>,
    waits: u64,
}

impl Link {
    fn new(world: &'static World, peer: usize, how: Wait) -> io::Result<Self> {
        let buffers = || (0..MESSAGES).map(|_| Buffer::new(&world.library, MESSAGE_BYTES));
        let mut link = Self {
            world,
            peer,
            how,
            sends: buffers().collect(),
            receives: buffers().collect(),
            spent: 0,
            came: None,
            waits: 0,
        };
        link.receives.iter_mut().try_for_each(|buffer| buffer.receive(peer))?;
        Ok(link)
    }

    /// Says how this rank was started, and hears how the other one was: rank 0 begins, compares,
    /// and says what is wrong.
    fn meet(&mut self, own: &Started, limit: Duration) -> io::Result<()> {
        let message = own.message();
        let (asks, words) = (self.world.rank == 0, [IoSlice::new(message.as_bytes())]);
        if asks {
            self.send_one(&mut Pieces::of(&words))?;
        }
        // A rank that isn't asked waits for the end of the job.
        if !self.look(For::Bytes, asks.then(|| Instant::now() + limit))? {
            let words = format!(
                "mpi: rank {} doesn't answer (--connect-timeout): it hangs, or isn't started as \
                 this one is, {}",
                self.peer,
                own.words()
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
        if self.is_over() {
            return Ok(());
        }
        let mut came = vec![0; MESSAGE_BYTES];
        let count = self.receive(&mut came)?;
        match asks {
            true => own.compare(&came[..count], self.peer).map_err(io::Error::other),
            false => self.send_one(&mut Pieces::of(&words)).map(drop),
        }
    }

    /// Whether the other side has sent its end.
    fn is_over(&self) -> bool {
        matches!(self.came, Some((0, _)))
    }

    /// Whether a message has come, or the end.
    fn has_message(&mut self) -> io::Result<bool> {
        if self.came.is_none()
            && let Some(first) = self.receives.front_mut()
        {
            self.came = first.take()?.map(|count| (count, 0));
        }
        Ok(self.came.is_some())
    }

    fn has_room(&mut self) -> io::Result<bool> {
        self.sends.front_mut().map_or(Ok(false), |first| Ok(first.take()?.is_some()))
    }

    fn is_ready(&mut self, what: For) -> io::Result<bool> {
        let is_ready = what != For::Room && self.has_message()?;
        Ok(is_ready || what != For::Bytes && self.has_room()?)
    }

    /// Has the buffers receive whose messages were taken, and takes back those that were sent: the
    /// other side does its part meanwhile.
    fn prepare(&mut self) -> io::Result<()> {
        let first = self.receives.len() - self.spent;
        for buffer in self.receives.iter_mut().skip(first) {
            buffer.receive(self.peer)?;
            self.spent -= 1;
        }
        self.has_room().map(drop)
    }

    /// Looks until there is something, or the time has come.
    fn look(&mut self, what: For, until: Option<Instant>) -> io::Result<bool> {
        if self.is_ready(what)? {
            return Ok(true);
        }
        self.prepare()?;
        let (begun, budget) = (Instant::now(), self.how.budget(MOST_SPIN));
        let mut looks = if budget.is_zero() { 1 } else { LOOKS };
        let mut step = LEAST_STEP;
        loop {
            for _ in 0..looks {
                if self.is_ready(what)? {
                    return Ok(true);
                }
            }
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return Ok(false);
            }
            let waited = now - begun;
            if waited >= budget {
                let left = until.map_or(step, |until| until - now);
                thread::sleep(left.min(step));
                step = (step * 2).min(MOST_STEP);
                self.waits += 1;
            } else if waited >= ALONE {
                thread::yield_now();
                self.waits += 1;
            }
            if waited >= ALONE {
                looks = 1;
            }
        }
    }

    /// Sends one message of these bytes, which is none where they are none; returns how many.
    fn send_one(&mut self, pieces: &mut Pieces<'_>) -> io::Result<usize> {
        let Some(first) = self.sends.front_mut() else { return Ok(0) };
        let count = pieces.take(first.bytes());
        first.send(count, self.peer)?;
        self.sends.rotate_left(1);
        Ok(count)
    }

    /// Says that this is the end to the other side, or to all that rank 0 hasn't asked, too; takes
    /// what still comes until the other side has said so, and leaves.
    fn end(&mut self) -> io::Result<()> {
        let until = Some(Instant::now() + END_TIME);
        self.prepare()?;
        let own = self.peer;
        let others = if self.world.rank == 0 { 1..self.world.size } else { 0..1 };
        for rank in others {
            if !self.look(For::Room, until)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.peer = rank;
            self.send_one(&mut Pieces::of(&[]))?;
        }
        self.peer = own;
        let mut space = vec![0; MESSAGE_BYTES];
        while self.look(For::Bytes, until)? && !self.is_over() {
            self.receive(&mut space)?;
        }
        if !self.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.receives.iter_mut().for_each(Buffer::cancel);
        for buffer in self.receives.iter_mut().chain(&mut self.sends) {
            while buffer.take()?.is_none() && until.is_some_and(|until| Instant::now() < until) {
                thread::yield_now();
            }
        }
        Ok(())
    }
}

impl Duplex for Link {
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let (mut pieces, mut sent) = (Pieces::of(pieces), 0);
        while !pieces.is_empty() && self.has_room()? {
            sent += self.send_one(&mut pieces)?;
        }
        Ok(sent)
    }

    fn receive(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if !self.has_message()? {
            return Ok(0);
        }
        let (Some((count, taken)), Some(first)) = (self.came, self.receives.front_mut()) else {
            return Ok(0);
        };
        let rest = first.bytes().get(taken..count).unwrap_or_default();
        let copied = rest.len().min(space.len());
        space[..copied].copy_from_slice(&rest[..copied]);
        self.came = Some((count, taken + copied));
        // The end stays.
        if count > 0 && taken + copied == count {
            self.came = None;
            self.receives.rotate_left(1);
            self.spent += 1;
            // One that sends without end finds buffers, too.
            if self.spent > MESSAGES / 2 {
                self.prepare()?;
            }
        }
        Ok(copied)
    }

    fn has_bytes(&mut self) -> io::Result<bool> {
        self.has_message()
    }

    fn wait(&mut self, what: For, until: Option<Instant>) -> io::Result<bool> {
        let is_ready = self.look(what, until)?;
        match is_ready && what != For::Room && self.is_over() {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(is_ready),
        }
    }

    fn system_calls(&self) -> u64 {
        self.waits
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Leaving waits for the other side. Where that is silent, this process ends without it, and
        // with it the job.
        match self.end() {
            Ok(()) => self.world.leave(),
            Err(error) => out::note(format_args!(
                "mpi: rank {} doesn't end with this one within {} s ({error}): mpirun ends the job \
                 as one that failed",
                self.peer,
                END_TIME.as_secs()
            )),
        }
    }
}

/// Bytes in several pieces.
struct Pieces<'a> {
    pieces: &'a [IoSlice<'a>],
    /// Those of the first that were taken.
    taken: usize,
}

impl<'a> Pieces<'a> {
    fn of(pieces: &'a [IoSlice<'a>]) -> Self {
        let mut all = Self { pieces, taken: 0 };
        all.skip();
        all
    }

    /// Leaves pieces behind of which all is taken.
    fn skip(&mut self) {
        while self.pieces.first().is_some_and(|first| first.len() == self.taken) {
            (self.pieces, self.taken) = (&self.pieces[1..], 0);
        }
    }

    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Takes as many as find room; returns how many.
    fn take(&mut self, mut space: &mut [u8]) -> usize {
        let mut count = 0;
        while let Some(first) = self.pieces.first()
            && !space.is_empty()
        {
            let part = first.get(self.taken..).unwrap_or_default();
            let part = &part[..part.len().min(space.len())];
            let (to, rest) = std::mem::take(&mut space).split_at_mut(part.len());
            to.copy_from_slice(part);
            (space, count) = (rest, count + part.len());
            self.taken += part.len();
            self.skip();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_in_order_whatever_room_there_is() {
        let parts: [&[u8]; 5] = [b"", b"abc", b"", b"defgh", b""];
        let slices = parts.map(IoSlice::new);
        for room in 1..10 {
            let (mut pieces, mut came) = (Pieces::of(&slices), Vec::new());
            while !pieces.is_empty() {
                let mut space = vec![0; room];
                let count = pieces.take(&mut space);
                came.extend_from_slice(&space[..count]);
            }
            assert_eq!(came, b"abcdefgh", "{room}");
        }
        assert!(Pieces::of(&[]).is_empty());
    }

    #[test]
    fn a_message_that_fails_is_no_end_of_the_other_side_for_which_mpi_would_wait() {
        let library = library::failing::library();
        let world = World { library, rank: 0, size: 2, is_used: AtomicBool::new(true) };
        let mut link = Link::new(Box::leak(Box::new(world)), 1, Wait::Park).expect("it begins");
        assert!(link.has_bytes().is_err());
        assert!(link.end().is_err(), "nothing has said that it ends");
        drop(link);
        assert_eq!(library::failing::ENDS.load(SeqCst), 0);
    }
}
