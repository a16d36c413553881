//! `ma`: changes the number that a value is.

use super::super::tokens::{Tokens, key};
use super::super::{Command, Row};
use super::Meta;
use crate::protocol::Refusal;

/// `ma`.
pub(in super::super) static MA: Row = Row {
    name: "ma",
    usage: "ma KEY FLAG…",
    doc: "Adds 1, or D…, to the number that the value is: M D subtracts, N… makes it where there \
          is none with J… as its number, T… another expiry, C… only if the cas is this, E… gives \
          it this cas; back come v, t, c, k, O…, b; q leaves HD out.",
    may_be_quiet: false,
    read,
};

fn read(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let name = key(tokens.next().ok_or(Refusal::Unknown)?)?;
    let meta = Meta::read(name, tokens, 2).map_err(|refusal| match refusal {
        Refusal::ManyFlags => Refusal::ManyChangeFlags,
        _ => Refusal::WrongFlag,
    })?;
    let increment = match meta.mode {
        None | Some(b'I' | b'i' | b'+') => true,
        Some(b'D' | b'd' | b'-') => false,
        Some(_) => return Err(Refusal::SumMode),
    };
    Ok(Command::MetaSum(meta.with_short_opaque()?, increment))
}
