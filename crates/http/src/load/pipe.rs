//! Two buffers in the place of a socket, for a library that reads and writes one. Data plane.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::{Input, Output};

/// The two buffers. One clone is the library's, which never waits: whoever fills the buffers calls
/// it again.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipe(Arc<Mutex<Ends>>);

#[derive(Debug, Default)]
struct Ends {
    received: Input,
    sent: Vec<u8>,
    is_closed: bool,
}

impl Pipe {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes have come.
    pub(super) fn receive(&self, bytes: &[u8]) {
        self.ends().received.append(bytes);
    }

    /// No more will come.
    pub(super) fn close(&self) {
        self.ends().is_closed = true;
    }

    /// Moves what the library has written to `out`.
    pub(super) fn send(&self, out: &mut Output) {
        let mut ends = self.ends();
        out.put(&ends.sent);
        ends.sent.clear();
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut ends = self.ends();
        let count = ends.received.len().min(into.remaining());
        if count == 0 && !ends.is_closed {
            return Poll::Pending;
        }
        into.put_slice(&ends.received.bytes()[..count]);
        ends.received.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.ends().sent.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
