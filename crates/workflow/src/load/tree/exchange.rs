//! One request over a connection of its own, by a client that waits.

use std::io::Write as _;
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
const SILENT_FOR: Duration = Duration::from_secs(590);

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
    stream.write_all(request)?;
    let encoding = receive(stream, MAX_ANSWER_BYTES, into)?;
    Ok((begun.elapsed(), encoding))
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
