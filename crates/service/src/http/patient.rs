//! A connection that is given up when its client takes nothing of an answer, sends no request, or
//! only a part of its head, for too long.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// How long a client may take nothing of what waits for it.
const TAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may send no request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// From the first byte of a request's head to its last one; of the first request, from the
    /// connection's begin on.
    pub(super) head: Duration,
    /// Between requests.
    pub(super) idle: Duration,
}

/// The requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Requests {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Requests {
    /// Counts one that begins.
    pub(super) fn begin(self: &Arc<Self>) -> Open {
        self.begun.fetch_add(1, Relaxed);
        Open(Arc::clone(self))
    }
}

/// A request whose answer is being made, until this is dropped.
#[derive(Debug)]
pub(super) struct Open(Arc<Requests>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}

impl Open {
    /// Keeps the request open until all of an answer is made that is made while it is sent.
    pub(super) fn until_sent(self, answer: Response) -> Response {
        match answer.body().size_hint().exact() {
            Some(_) => answer,
            None => answer.map(|body| Body::new(Streamed { body, _open: self })),
        }
    }
}

/// A body that is made while it is sent.
struct Streamed {
    body: Body,
    _open: Open,
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection with these limits.
pub(super) struct Patient<S> {
    inner: S,
    limit: Duration,
    /// When it is given up, while something waits.
    end: Option<Pin<Box<Sleep>>>,
    waits: Waits,
    requests: Arc<Requests>,
    /// How many requests had begun when it was read last.
    begun: u64,
    /// When the first byte of a head came that isn't whole.
    head: Option<Instant>,
    /// What was read, and is read once more.
    before: Vec<u8>,
    /// When anything came or was taken last.
    moved: Instant,
    /// When it is looked at again whether a request comes: the limit, or before it. To move it for
    /// each request would cost more than to wake once in vain.
    look: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(inner: S, waits: Waits, requests: Arc<Requests>) -> Self {
        let now = Instant::now();
        Self {
            inner,
            limit: TAKE_TIMEOUT,
            end: None,
            waits,
            requests,
            begun: 0,
            head: Some(now),
            before: Vec::new(),
            moved: now,
            look: None,
        }
    }

    /// Has what was read read once more.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>) {
        self.before = bytes;
    }

    /// Ready once no request has come for too long.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.requests.ended.load(Relaxed) < self.requests.begun.load(Relaxed) {
            // It needn't be read again when that ends, so it is looked at from time to time.
            (self.moved, self.head) = (Instant::now(), None);
        }
        let end = self.head.map_or(self.moved + self.waits.idle, |head| head + self.waits.head);
        let look = self.look.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if look.deadline() > end {
            look.as_mut().reset(end);
        }
        while look.as_mut().poll(context).is_ready() {
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            look.as_mut().reset(end);
        }
        Poll::Pending
    }

    /// What came of writing, or that it took too long.
    fn within<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let limit = self.limit;
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(limit)));
        end.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let begun = self.requests.begun.load(Relaxed);
        if begun != self.begun {
            (self.begun, self.head) = (begun, None);
        }
        if !self.before.is_empty() {
            let some = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before[..some]);
            self.before.drain(..some);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if read.is_pending() {
            ready!(self.wait(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if buffer.filled().len() > before {
            let now = Instant::now();
            self.moved = now;
            self.head.get_or_insert(now);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        if written.is_ready() {
            self.moved = Instant::now();
        }
        self.within(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        if written.is_ready() {
            self.moved = Instant::now();
        }
        self.within(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.within(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.inner).poll_shutdown(context);
        self.within(closed, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Takes some bytes, and then none.
    struct Stuck(usize);

    impl AsyncWrite for Stuck {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(std::mem::take(&mut self.0));
            if taken == 0 { Poll::Pending } else { Poll::Ready(Ok(taken)) }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_client_that_takes_nothing_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let written: Vec<_> = runtime.expect("a runtime").block_on(async {
            let waits = Waits { head: TAKE_TIMEOUT, idle: TAKE_TIMEOUT };
            let stream = Patient::new(Stuck(2), waits, Arc::default());
            let mut stream = Patient { limit: Duration::from_millis(1), ..stream };
            let mut write =
                async || poll_fn(|context| Pin::new(&mut stream).poll_write(context, b"abc")).await;
            vec![write().await, write().await]
        });
        assert_eq!(written[0].as_ref().ok(), Some(&2));
        let error = written[1].as_ref().expect_err("nothing is taken");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
