//! A connection of own frames over a stream of the runtime: what one read brings is answered with
//! one vectored write.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{sleep, sleep_until, timeout};

use super::super::shared::{FORCED, NextStage, Shared, Stage, next_stage};
use super::super::work::{has_read, has_written};
use super::session::Session;
use super::when::When;
use crate::writes::Sending;

/// What is read and dropped after the end, so that the client reads why it came.
const MOST_DROPPED_BYTES: usize = 4 << 20;

/// Serves one connection, whose first bytes are `early`.
pub(in crate::server) async fn converse<S>(
    mut stream: S,
    early: Bytes,
    carrier: &'static str,
    shared: Arc<Shared>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut session = Session::new(Arc::clone(&shared), carrier, Instant::now());
    session.append(&early);
    session.receive(&When::default());
    let mut sending = Sending::new(shared.settings.writes);
    let mut stage = Stage::Serving;
    let mut changed = next_stage(Arc::clone(&shared), stage);
    loop {
        if flush(&mut stream, &mut session, &mut sending, &shared).await.is_err() {
            return;
        }
        if session.is_over() {
            break;
        }
        // A client that sends without end delays neither this nor what is due.
        if follow(&shared, &mut stage, &mut session) {
            changed = next_stage(Arc::clone(&shared), stage);
            continue;
        }
        if session.is_paused() {
            session.receive(&When::default());
            continue;
        }
        let read = next_read(&mut stream, &mut session, &mut changed).await;
        let now = When::default();
        match read {
            Some(Ok(0)) => {
                session.closed();
                continue;
            }
            Some(Ok(_)) => {
                has_read();
                // What comes once another client knows that the server stops is refused.
                if follow(&shared, &mut stage, &mut session) {
                    changed = next_stage(Arc::clone(&shared), stage);
                }
                session.receive(&now);
            }
            Some(Err(_)) => return,
            None => {}
        }
        if session.due().is_some_and(|due| due <= now.get()) {
            session.expire(now.get());
        }
    }
    // Else the reason of the end would be lost with what the client still sends.
    let linger = async {
        stream.shutdown().await?;
        let (mut buffer, mut dropped) = (vec![0; 8 << 10], 0);
        while dropped < MOST_DROPPED_BYTES {
            match stream.read(&mut buffer).await? {
                0 => break,
                count => dropped += count,
            }
        }
        Ok::<_, io::Error>(())
    };
    // The connection has ended, whichever way it goes.
    let _ = timeout(FORCED, linger).await;
}

/// Has the session follow the server to another stage; returns whether it is at one.
fn follow(shared: &Shared, stage: &mut Stage, session: &mut Session) -> bool {
    let new = shared.stage_now();
    let is_other = new != *stage;
    if is_other {
        *stage = new;
        session.stage_is(new, Instant::now());
    }
    is_other
}

/// Reads what has come; nothing once something is due, or the server is at another stage. Where
/// there is something to read, it waits for nothing else.
async fn next_read<S>(
    stream: &mut S,
    session: &mut Session,
    changed: &mut NextStage,
) -> Option<io::Result<usize>>
where
    S: AsyncRead + Unpin,
{
    let mut due = session.due().map(|due| Box::pin(sleep_until(due.into())));
    let mut reading = pin!(stream.read_buf(session.space()));
    poll_fn(|context| {
        if let Poll::Ready(read) = reading.as_mut().poll(context) {
            return Poll::Ready(Some(read));
        }
        let is_due = due.as_mut().is_some_and(|due| due.as_mut().poll(context).is_ready());
        if is_due || changed.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}

/// Writes all that waits. A client that takes nothing for too long is an error.
async fn flush<S>(
    stream: &mut S,
    session: &mut Session,
    sending: &mut Sending,
    shared: &Shared,
) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    let (out, limit) = (session.out(), shared.settings.take_timeout);
    if out.is_empty() {
        return Ok(());
    }
    while !out.is_empty() {
        let written = in_time(limit, |context| {
            let stream = Pin::new(&mut *stream);
            let write = |slices: &[IoSlice<'_>]| stream.poll_write_vectored(context, slices);
            sending.with_slices(out, write)
        });
        match written.await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                has_written();
                sending.sent(out, count);
            }
        }
    }
    // What is encrypted may have kept it.
    in_time(limit, |context| Pin::new(&mut *stream).poll_flush(context)).await?;
    session.count_memory();
    Ok(())
}

/// Waits for no longer than the limit; what is ready at once needs no timer.
async fn in_time<R>(
    limit: Duration,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<io::Result<R>>,
) -> io::Result<R> {
    let mut late = None;
    poll_fn(|context| {
        let polled = poll(context);
        if polled.is_ready() {
            return polled;
        }
        let late = late.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(context);
        late.map(|()| Err(io::ErrorKind::TimedOut.into()))
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::io::ReadBuf;

    use super::*;
    use crate::server::Settings;

    /// Takes what is written, as encryption does, and passes nothing on.
    struct Kept;

    impl AsyncRead for Kept {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Kept {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[test]
    fn a_client_that_takes_nothing_of_what_is_encrypted_is_closed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let take_timeout = Duration::from_millis(20);
            let settings = Settings { take_timeout, ..Settings::default() };
            let early = Bytes::from_static(b"\x9blrf\x01\0\0\0\0\0\x10\0");
            let shared = Arc::new(Shared::new(settings));
            let served = converse(Kept, early, "tcp+tls", shared);
            timeout(Duration::from_secs(30), served).await.expect("it ends");
        });
    }
}
