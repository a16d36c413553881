//! A connection of gRPC at a server that was built without it: the reason, said in HTTP/2.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::shared::Shared;
use crate::left_out::WORDS;

/// The answer to what speaks HTTP/1.1.
pub(super) const HTTP1: &str = WORDS;

/// What is read and dropped, so that the client reads why it was refused.
const MOST_DROPPED_BYTES: u64 = 64 << 10;

/// Empty settings.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The kind of the last frame, and what its payload begins with: no stream was begun; the error is
/// INTERNAL_ERROR.
const GOAWAY: u8 = 7;
const END: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 2];

/// Says what is missing, in place of a conversation.
pub(super) async fn converse<S>(mut stream: S, _: Bytes, _: &'static str, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let refuse = async {
        stream.write_all(&refusal()).await?;
        stream.shutdown().await?;
        // A close while bytes are unread is a reset, with which the client loses the reason.
        let mut rest = (&mut stream).take(MOST_DROPPED_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        Ok::<_, io::Error>(())
    };
    // A client that doesn't take it can't be helped.
    let _ = timeout(shared.settings.handshake_timeout, refuse).await;
}

fn refusal() -> Vec<u8> {
    let mut out = SETTINGS.to_vec();
    // The length of a frame has three bytes; the words are much shorter.
    let [_, length @ ..] = ((END.len() + WORDS.len()) as u32).to_be_bytes();
    out.extend(length);
    out.extend([GOAWAY, 0, 0, 0, 0, 0]);
    out.extend(END);
    out.extend(WORDS.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_settings_and_a_goaway_with_the_reason() {
        let refusal = refusal();
        let goaway = refusal.strip_prefix(&SETTINGS).expect("settings");
        let length = u32::from_be_bytes([0, goaway[0], goaway[1], goaway[2]]) as usize;
        assert_eq!(length + 9, goaway.len());
        assert_eq!(goaway[3], GOAWAY);
        assert_eq!(&goaway[9 + END.len()..], WORDS.as_bytes());
    }
}
