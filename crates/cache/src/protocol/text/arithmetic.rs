//! `incr` and `decr`: change the number that a value is.

use super::words::{Words, key, noreply, number};
use super::{Command, Row};
use crate::protocol::Refusal;

/// `incr`.
pub(super) static INCR: Row = Row {
    name: "incr",
    usage: "incr KEY DELTA [noreply]",
    doc: "Adds to the number that the value is; it wraps at 64 bits.",
    may_be_quiet: true,
    read: |words| read(words, true),
};

/// `decr`.
pub(super) static DECR: Row = Row {
    name: "decr",
    usage: "decr KEY DELTA [noreply]",
    doc: "Subtracts from the number that the value is, down to 0; the value keeps its length.",
    may_be_quiet: true,
    read: |words| read(words, false),
};

fn read(mut words: Words<'_>, increment: bool) -> Result<Command<'_>, Refusal> {
    let ([name, delta, last], _) = words.gather(2)?;
    let key = key(name)?;
    let delta = number(delta, u64::MAX).ok_or(Refusal::BadDelta)?;
    Ok(Command::Sum { key, increment, delta, noreply: noreply(last) })
}
