//! Bytes in both directions between two processes, for which a thread waits itself, as no runtime
//! can wait for them: memory that both share, or MPI.

use std::fmt;
use std::io::{self, IoSlice};
use std::time::Instant;

/// What a side waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Bytes of the other side.
    Bytes,
    /// Room for bytes.
    Room,
    /// Either.
    BytesOrRoom,
}

/// One side of a connection.
pub(crate) trait Duplex: fmt::Debug + Send {
    /// Hands over as many of these bytes as there is room for; 0 where there is none.
    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Takes some of what has come; 0 where there is nothing.
    fn receive(&mut self, space: &mut [u8]) -> io::Result<usize>;

    /// Whether something has come, or the end.
    fn has_bytes(&mut self) -> io::Result<bool>;

    /// Waits until there is something, or the time has come: then it returns `false`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when the other side is gone.
    fn wait(&mut self, what: For, until: Option<Instant>) -> io::Result<bool>;

    /// How many system calls it has made, to wait and to wake.
    fn system_calls(&self) -> u64;
}
