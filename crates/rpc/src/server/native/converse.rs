//! A connection of own frames over a stream of the runtime: what one read brings is answered with
//! one vectored write.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{sleep_until, timeout};

use super::super::shared::{FORCED, Shared};
use super::super::work::{has_read, has_written};
use super::session::Session;

/// Pieces of one write.
const MOST_PIECES: usize = 64;

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
    let mut stage = shared.stage();
    let mut session = Session::new(Arc::clone(&shared), carrier, Instant::now());
    session.space().extend_from_slice(&early);
    session.receive(Instant::now());
    let now = *stage.borrow_and_update();
    if shared.is_stopping() {
        session.stage_is(now, Instant::now());
    }
    loop {
        if flush(&mut stream, &mut session, &shared).await.is_err() {
            return;
        }
        if session.is_over() {
            break;
        }
        if session.is_paused() {
            session.receive(Instant::now());
            continue;
        }
        let due = session.due();
        let expired = async {
            match due {
                Some(due) => sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A client that sends without end delays neither.
            biased;
            changed = stage.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = *stage.borrow_and_update();
                session.stage_is(now, Instant::now());
            }
            () = expired => session.expire(Instant::now()),
            read = stream.read_buf(session.space()) => match read {
                Ok(0) => session.closed(),
                Ok(_) => {
                    has_read();
                    session.receive(Instant::now());
                }
                Err(_) => return,
            },
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

/// Writes all that waits. A client that takes nothing for too long is an error.
async fn flush<S>(stream: &mut S, session: &mut Session, shared: &Shared) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    let limit = shared.settings.take_timeout;
    let out = session.out();
    let was_empty = out.is_empty();
    while !out.is_empty() {
        let written = timeout(limit, async {
            let mut slices = [IoSlice::new(&[]); MOST_PIECES];
            let count = out.slices(&mut slices);
            let slices = &slices[..count];
            poll_fn(|context| Pin::new(&mut *stream).poll_write_vectored(context, slices)).await
        });
        match written.await?? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                has_written();
                out.advance(count);
            }
        }
    }
    if !was_empty {
        stream.flush().await?;
        session.count_memory();
    }
    Ok(())
}
