//! `touch`: a new expiry for a present key.

use super::tokens::{Tokens, key, noreply, signed};
use super::{Command, Row};
use crate::protocol::Refusal;

/// `touch`.
pub(super) static TOUCH: Row = Row {
    name: "touch",
    usage: "touch KEY EXPTIME [noreply]",
    doc: "Gives a key another expiry.",
    may_be_quiet: true,
    read,
};

fn read(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let ([name, exptime, last], _) = tokens.gather(2)?;
    let key = key(name)?;
    let exptime = signed(exptime).ok_or(Refusal::BadExpiry)?;
    Ok(Command::Touch { key, exptime, noreply: noreply(last) })
}
