//! A connection's bytes between the socket and h2. What h2 writes is gathered until its task has
//! done all that there is to do, so that the answers to all requests of one read leave with one
//! call. What it reads passes by [`Watch`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::work::{has_read, has_written};
use super::watch::Watch;

/// What is gathered at most before it is written.
const MOST_OUT_BYTES: usize = 128 << 10;

/// What is read after the end, so that the client reads what was written before.
const MOST_DROPPED_BYTES: usize = 4 << 20;

/// What is read before the connection's calls have their turn, and the most frames of it: h2 takes
/// all that there is to read, and ends a connection for some thousand small frames that no call has
/// taken yet. These bytes are a little more than the third of a stream's window, from which on it
/// is granted again: a turn of a large message has one grant.
const TURN_BYTES: usize = 192 << 10;
const TURN_FRAMES: usize = 512;

/// What an idle connection may keep of its buffer.
const KEPT_BYTES: usize = 16 << 10;

/// A larger buffer is kept until there was nothing to write this many times in a row.
const MOST_IDLE: u8 = 3;

/// Both ends of it: h2 has one, the task of the connection the other.
#[derive(Debug)]
pub(super) struct Pipe<S>(Arc<Mutex<Inner<S>>>);

#[derive(Debug)]
struct Inner<S> {
    stream: S,
    /// What was read before h2 began.
    early: Bytes,
    watch: Watch,
    is_too_much: bool,
    /// What was read in this turn, and the frames of it.
    turn: usize,
    turn_frames: usize,
    out: BytesMut,
    /// The most that it has held, which is what it still takes.
    most: usize,
    /// How often there was nothing to write.
    idle: u8,
    /// h2 had more to write than there was room for.
    is_full: bool,
    written: u64,
    /// What came after the end.
    dropped: usize,
}

impl<S> Clone for Pipe<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Pipe<S> {
    pub(super) fn new(stream: S, early: Bytes, watch: Watch) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            stream,
            early,
            watch,
            is_too_much: false,
            turn: 0,
            turn_frames: 0,
            out: BytesMut::new(),
            most: 0,
            idle: 0,
            is_full: false,
            written: 0,
            dropped: 0,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client asks for too much.
    pub(super) fn is_too_much(&self) -> bool {
        self.inner().is_too_much
    }

    /// Something is sent to the client: it may ping.
    pub(super) fn sent(&self) {
        self.inner().watch.sent();
    }

    /// How many bytes have been written.
    pub(super) fn written(&self) -> u64 {
        self.inner().written
    }

    /// Whether h2 waited for room, since this was asked last.
    pub(super) fn was_full(&self) -> bool {
        std::mem::take(&mut self.inner().is_full)
    }
}

impl<S: AsyncRead + Unpin> Pipe<S> {
    /// Reads until the client has closed, or has sent more than it may have had on its way.
    pub(super) fn poll_drop_input(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner();
        let mut buffer = [0; 8 << 10];
        while inner.dropped < MOST_DROPPED_BYTES {
            let mut space = ReadBuf::new(&mut buffer);
            let read = ready!(Pin::new(&mut inner.stream).poll_read(context, &mut space));
            if read.is_err() || space.filled().is_empty() {
                break;
            }
            inner.dropped += space.filled().len();
        }
        Poll::Ready(())
    }
}

impl<S: AsyncWrite + Unpin> Pipe<S> {
    /// Writes what is gathered.
    pub(super) fn poll_out(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_out(context)
    }
}

impl<S: AsyncWrite + Unpin> Inner<S> {
    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.out.is_empty() {
            self.idle = self.idle.saturating_add(1);
            if self.idle == MOST_IDLE && self.most > KEPT_BYTES {
                (self.out, self.most) = (BytesMut::new(), 0);
            }
            // h2 itself waits for the socket: what it has written last was too much for a buffer.
            return if self.is_full { Poll::Pending } else { Poll::Ready(Ok(())) };
        }
        while !self.out.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, &self.out))?;
            self.note(count)?;
            self.out.advance(count);
        }
        self.idle = 0;
        self.out.clear();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn note(&mut self, count: usize) -> io::Result<()> {
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += count as u64;
        has_written();
        Ok(())
    }

    /// Takes all of `pieces`, or writes what is gathered and as many of their bytes as there is
    /// room for.
    fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let total = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        self.is_full = false;
        if self.out.len() + total <= MOST_OUT_BYTES {
            return self.gather(pieces, total);
        }
        loop {
            let before = self.out.len();
            let stream = Pin::new(&mut self.stream);
            let written = if before == 0 {
                stream.poll_write_vectored(context, pieces)
            } else {
                stream.poll_write(context, &self.out)
            };
            let Poll::Ready(written) = written else {
                self.is_full = true;
                return Poll::Pending;
            };
            let count = written?;
            if total > 0 {
                self.note(count)?;
            }
            if before == 0 {
                return Poll::Ready(Ok(count));
            }
            self.out.advance(count);
            if self.out.len() + total <= MOST_OUT_BYTES {
                return self.gather(pieces, total);
            }
        }
    }

    fn gather(&mut self, pieces: &[IoSlice<'_>], total: usize) -> Poll<io::Result<usize>> {
        let length = self.out.len() + total;
        if length > KEPT_BYTES && self.most <= KEPT_BYTES {
            // More will follow: it grows once.
            self.out.reserve(MOST_OUT_BYTES - self.out.len());
        }
        self.most = self.most.max(length);
        pieces.iter().for_each(|piece| self.out.extend_from_slice(piece));
        Poll::Ready(Ok(total))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Pipe<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        let before = buffer.filled().len();
        if inner.is_too_much {
            return Poll::Pending;
        }
        if inner.turn >= TURN_BYTES || inner.turn_frames >= TURN_FRAMES {
            (inner.turn, inner.turn_frames) = (0, 0);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if inner.early.is_empty() {
            ready!(Pin::new(&mut inner.stream).poll_read(context, buffer))?;
            has_read();
        } else {
            let count = buffer.remaining().min(inner.early.len());
            buffer.put_slice(&inner.early.split_to(count));
            if inner.early.is_empty() {
                // What it was a part of is kept as long as it is.
                inner.early = Bytes::new();
            }
        }
        inner.turn += buffer.filled().len() - before;
        if inner.watch.see(&mut buffer.filled_mut()[before..]) {
            // What asks for too much is not handed on: h2 would answer, or log, each frame of it.
            inner.is_too_much = true;
            buffer.set_filled(before);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        inner.turn_frames += inner.watch.take_frames();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Pipe<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_take(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_take(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing yet: the task of the connection calls [`Pipe::poll_out`].
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        ready!(inner.poll_out(context))?;
        Pin::new(&mut inner.stream).poll_shutdown(context)
    }
}
