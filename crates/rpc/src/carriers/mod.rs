//! What carries the bytes of own frames between a client and a server: a [`Carrier`] each, behind
//! one trait, named by an address.

mod address;
mod child;
mod here;
mod shared_memory;
mod stream;

use std::fmt;
use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use address::{BadCarrier, CarrierAddress};
pub use stream::Tuning;

/// Bytes in order to a server, and from it.
pub trait Carrier: fmt::Debug + Send {
    /// Hands over as many of these bytes as there is room for now.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is no room; others when the connection has broken.
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Waits for bytes, and takes them; 0 at the end of the connection.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing has come, `until` this time at the latest; others
    /// when the connection has broken, or nothing can come any more.
    fn receive(&mut self, space: &mut [u8], until: Option<Instant>) -> io::Result<usize>;

    /// Waits until there are bytes, there is room, or `until` has come; returns whether there are
    /// bytes, or the end of them.
    ///
    /// # Errors
    /// When the system refuses to wait.
    fn wait_for_room(&mut self, until: Option<Instant>) -> io::Result<bool>;

    /// How many system calls have been made to wait, apart from those that send and receive.
    fn waits(&self) -> u64 {
        0
    }
}

/// Waits for two descriptors: bytes of `input`, and room at `output` if it is there.
fn wait_for(
    input: &impl std::os::fd::AsFd,
    output: Option<&impl std::os::fd::AsFd>,
    until: Option<Instant>,
) -> io::Result<bool> {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map(timespec);
    let mut all = vec![PollFd::new(input, PollFlags::IN)];
    all.extend(output.map(|output| PollFd::new(output, PollFlags::OUT)));
    match poll(&mut all, left.as_ref()) {
        Ok(_) => Ok(all.first().is_some_and(|first| !first.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn timespec(time: Duration) -> Timespec {
    // A year is as good as any longer time.
    let time = time.min(Duration::from_secs(365 * 24 * 3_600));
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}
