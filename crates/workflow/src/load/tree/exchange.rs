//! One request over a connection of its own, by a client that waits.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::client::receive;
use crate::protocol::{Answer, Encoding, read_answer};

/// The longest answer.
const MAX_ANSWER_BYTES: u64 = 4 << 30;

/// The numbers of answers without contents that say yes.
const DONE: i64 = 0;
const ALL_DELETED: i64 = 3;

/// How long a server may be silent.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(590);

/// The most that is sent with one call. A kernel that doesn't preempt itself (PREEMPT_NONE) keeps
/// the core for as long as a call copies: of a definition of 59 MB some 20 ms, in which the pings
/// of [`super::others`] could not be sent, and which would be counted as the server's.
const PIECE_BYTES: usize = 256 << 10;

/// Sends a request, and returns how long it took until the last byte of its answer, whose document
/// is in `into`, and how its tree is written where it is in this program's own protocol.
pub(super) fn exchange(
    at: SocketAddr,
    request: &[u8],
    into: &mut Vec<u8>,
) -> std::io::Result<(Duration, Option<Encoding>)> {
    into.clear();
    let begun = Instant::now();
    let mut stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENT_FOR))?;
    stream.set_write_timeout(Some(SILENT_FOR))?;
    send(&mut stream, request)?;
    let encoding = receive(stream, MAX_ANSWER_BYTES, into)?;
    Ok((begun.elapsed(), encoding))
}

fn send(stream: &mut impl Write, request: &[u8]) -> std::io::Result<()> {
    request.chunks(PIECE_BYTES).try_for_each(|piece| stream.write_all(piece))
}

/// Whether a document is an answer without contents that says yes.
///
/// # Errors
/// What it says instead.
pub(super) fn agreed(document: &[u8]) -> Result<(), String> {
    match read_answer(document).map_err(|why| why.to_string())? {
        Answer::Standard(DONE | ALL_DELETED) => Ok(()),
        Answer::Error(why) => Err(why.into_owned()),
        other => Err(format!("an answer of another kind: {}", short(&other))),
    }
}

/// How servers refuse a checkpoint for which there is no room: by the system's words, and ecFlow's.
const NO_ROOM: [&str; 2] = ["No space left", "file system full"];

/// Whether a document is an answer that refuses for want of room.
///
/// # Errors
/// What it says instead.
pub(super) fn no_room(document: &[u8]) -> Result<(), String> {
    match read_answer(document).map_err(|why| why.to_string())? {
        Answer::Error(why) if NO_ROOM.iter().any(|words| why.contains(words)) => Ok(()),
        Answer::Error(why) => Err(format!("refused, and not for want of room: {why}")),
        other => Err(format!("not refused: {}", short(&other))),
    }
}

/// The text that a document brings.
///
/// # Errors
/// What it says instead.
pub(super) fn text(document: &[u8]) -> Result<String, String> {
    match read_answer(document).map_err(|why| why.to_string())? {
        Answer::Text(text) | Answer::Definition(text) => Ok(text.into_owned()),
        Answer::Error(why) => Err(why.into_owned()),
        other => Err(format!("an answer of another kind: {}", short(&other))),
    }
}

/// The beginning of an answer, for a message.
fn short(answer: &Answer<'_>) -> String {
    format!("{answer:?}").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Result, Write};

    use super::{PIECE_BYTES, send};

    /// What was written, by call.
    #[derive(Default)]
    struct Calls(Vec<usize>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_call_holds_the_core_for_a_whole_definition() {
        let mut calls = Calls::default();
        send(&mut calls, &vec![0; 2 * PIECE_BYTES + 1]).expect("sent");
        assert_eq!(calls.0, [PIECE_BYTES, PIECE_BYTES, 1]);
    }
}
