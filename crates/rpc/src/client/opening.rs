//! The first bytes that a server sends, which show what it speaks: h2 itself would wait without end
//! for a server that says nothing, and names no other protocol.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// The head of a frame, of which the fourth byte is the type.
const HEAD_BYTES: usize = 9;
const SETTINGS: u8 = 4;

/// Where nothing comes before the end.
pub(super) const CLOSED: &str = "it closed the connection without a word: it speaks TLS (call it \
                                 by grpcs://HOST:PORT with --tls-ca FILE), takes no more \
                                 connections, or is no server of gRPC";

/// Where an alert of TLS comes.
const TLS: &str = "it speaks TLS: call it by grpcs://HOST:PORT, with --tls-ca FILE for who vouches \
                   for it";

/// What a server's first bytes are, or how many came before it closed.
pub(super) type First = Result<(), String>;

/// A stream that reports its first bytes.
pub(super) struct Opening<S> {
    stream: S,
    first: Vec<u8>,
    report: Option<oneshot::Sender<First>>,
}

impl<S> Opening<S> {
    pub(super) fn new(stream: S) -> (Self, oneshot::Receiver<First>) {
        let (sender, receiver) = oneshot::channel();
        (Self { stream, first: Vec::new(), report: Some(sender) }, receiver)
    }

    /// Looks at bytes that have come; none are the end.
    fn see(&mut self, bytes: &[u8]) {
        let Some(report) = self.report.take() else { return };
        let missing = HEAD_BYTES - self.first.len();
        self.first.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        if !bytes.is_empty() && self.first.len() < HEAD_BYTES {
            self.report = Some(report);
            return;
        }
        // Where connecting has ended meanwhile, no one asks.
        let _ = report.send(judge(&self.first));
    }
}

impl<S> Drop for Opening<S> {
    /// h2 may refuse the first bytes before a whole head has come.
    fn drop(&mut self) {
        self.see(&[]);
    }
}

/// Whether HTTP/2 begins like this: with SETTINGS.
fn judge(first: &[u8]) -> First {
    match first {
        [_, _, _, SETTINGS, ..] => Ok(()),
        [b'H', b'T', b'T', b'P', b'/', ..] => {
            Err("it speaks HTTP/1, and gRPC needs HTTP/2: is this the right port?".to_owned())
        }
        // An alert of TLS, whose version is 3.x.
        [21, 3, ..] => Err(TLS.to_owned()),
        [] => Err(CLOSED.to_owned()),
        _ => {
            Err("what it says is not HTTP/2, which gRPC needs: is this the right port?".to_owned())
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        let filled = buffer.filled();
        self.see(filled.get(before..).unwrap_or_default());
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
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
    use super::*;

    #[test]
    fn what_a_server_speaks_shows_in_any_division_of_its_first_bytes() {
        for (bytes, words) in [
            (&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3][..], None),
            (b"HTTP/1.1 400 Bad Request", Some("HTTP/1")),
            (&[21, 3, 3, 0, 2, 2, 80], Some("--tls-ca")),
            (b"SSH-2.0-OpenSSH_9.2", Some("not HTTP/2")),
            (b"", Some("closed the connection")),
        ] {
            for size in 1..12 {
                let (mut opening, mut report) = Opening::new(());
                bytes.chunks(size).chain([&[][..]]).for_each(|piece| opening.see(piece));
                let first = report.try_recv().expect("reported");
                assert_eq!(first.is_err(), words.is_some(), "{first:?}");
                let why = first.err().unwrap_or_default();
                assert!(why.contains(words.unwrap_or_default()), "{why}");
            }
        }
    }
}
