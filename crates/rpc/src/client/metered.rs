//! Counts what passes over the socket of a client of gRPC, below TLS.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::native::Meter;

/// A count that the one who calls sees, too.
pub(super) type Shared = Arc<Mutex<Meter>>;

/// A stream whose writes and reads are counted. A read or write that finds nothing, or no room,
/// isn't.
pub(super) struct Metered<S> {
    stream: S,
    meter: Shared,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, meter: Shared) -> Self {
        Self { stream, meter }
    }

    fn wrote(&self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        if let Ok(bytes @ 1..) = written {
            locked(&self.meter).has_written(bytes);
        }
        Poll::Ready(written)
    }
}

/// A count, for whoever looks at it or adds to it.
pub(super) fn locked(meter: &Mutex<Meter>) -> MutexGuard<'_, Meter> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().len() - before;
        if bytes > 0 {
            locked(&self.meter).has_read(bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces));
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_write_that_finds_no_room_is_not_counted() {
        let meter = Shared::default();
        let room = io::Cursor::new(vec![0; 2].into_boxed_slice());
        let mut stream = Metered::new(room, Arc::clone(&meter));
        let mut write = |bytes: &[u8]| {
            let written = Pin::new(&mut stream)
                .poll_write(&mut Context::from_waker(Waker::noop()), bytes)
                .map(Result::ok);
            (written, locked(&meter).traffic.writes)
        };
        assert_eq!(write(b"ab"), (Poll::Ready(Some(2)), 1));
        assert_eq!(write(b"c"), (Poll::Ready(Some(0)), 1));
    }
}
