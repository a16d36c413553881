//! `incr` and `decr`: change the number that a value is.

use super::tokens::{Tokens, key, noreply, number};
use super::{Command, Row};
use crate::protocol::Refusal;

/// `incr`.
pub(super) static INCR: Row = Row {
    name: "incr",
    usage: "incr KEY DELTA [noreply]",
    doc: "Adds to the number that the value is; it wraps at 64 bits.",
    may_be_quiet: true,
    read: |tokens| read(tokens, true),
};

/// `decr`.
pub(super) static DECR: Row = Row {
    name: "decr",
    usage: "decr KEY DELTA [noreply]",
    doc: "Subtracts from the number that the value is, down to 0; the value keeps its length.",
    may_be_quiet: true,
    read: |tokens| read(tokens, false),
};

fn read(mut tokens: Tokens<'_>, increment: bool) -> Result<Command<'_>, Refusal> {
    let ([name, delta, last], _) = tokens.gather(2)?;
    let key = key(name)?;
    let delta = number(delta, u64::MAX).ok_or(Refusal::BadDelta)?;
    Ok(Command::Sum { key, increment, delta, noreply: noreply(last) })
}
