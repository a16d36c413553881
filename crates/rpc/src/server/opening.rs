//! The opening of a connection: its first bytes say what it speaks.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::grpc;
use super::native;
use super::shared::Shared;
use crate::protocol::http2::frame::PREFACE;
use crate::protocol::native::FIRST_BYTE;

/// Serves one connection.
pub(super) async fn converse<S>(mut stream: S, carrier: &'static str, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limit = shared.settings.handshake_timeout;
    // In a box, as all that follows: this future stays as long as the connection does.
    let opening = Box::pin(timeout(limit, open(&mut stream))).await;
    let Ok(Ok(Opening { early, is_http2 })) = opening else { return };
    if early.first() == Some(&FIRST_BYTE) {
        return Box::pin(native::converse(stream, early, carrier, shared)).await;
    }
    if is_http2 {
        return Box::pin(grpc::converse(stream, early, carrier, shared)).await;
    }
    if is_http1(&early) {
        // A client that doesn't take it can't be helped.
        let _ = Box::pin(timeout(limit, refuse_http1(&mut stream))).await;
    }
}

/// What has been read of a client, and whether it is the preface of HTTP/2.
struct Opening {
    early: Bytes,
    is_http2: bool,
}

/// Reads as much as shows whether the client speaks HTTP/2.
async fn open(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Opening> {
    let mut early = BytesMut::with_capacity(1 << 10);
    loop {
        let count = stream.read_buf(&mut early).await?;
        let length = early.len().min(PREFACE.len());
        let is_http2 = early[..length] == PREFACE[..length];
        if count == 0 || !is_http2 || length == PREFACE.len() {
            return Ok(Opening { early: early.freeze(), is_http2: is_http2 && count > 0 });
        }
    }
}

/// Whether it begins as a request of HTTP/1 does: with a method.
fn is_http1(early: &[u8]) -> bool {
    let method = early.split(|byte| *byte == b' ').next().unwrap_or_default();
    (1..=16).contains(&method.len()) && method.iter().all(u8::is_ascii_uppercase)
}

async fn refuse_http1(stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let length = grpc::HTTP1.len();
    let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close";
    let answer = format!("{head}\r\nContent-Length: {length}\r\n\r\n{}", grpc::HTTP1);
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
