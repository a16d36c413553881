//! `ms`: stores one key.

use super::super::set::MAX_VALUE_BYTES;
use super::super::tokens::{Tokens, key, number};
use super::super::{Command, Row, StoreVerb};
use super::Meta;
use crate::protocol::Refusal;

/// `ms`.
pub(in super::super) static MS: Row = Row {
    name: "ms",
    usage: "ms KEY BYTES FLAG…",
    doc: "Stores the data block that follows: F… flags, T… expiry, M… mode (S set, E add, R \
          replace, A append, P prepend), C… only if the cas is this, I with an older cas too, but \
          as stale, E… gives it this cas, N… with M A or P makes it where there is none; back \
          come c, k, O…, b; q leaves HD out.",
    may_be_quiet: false,
    read,
};

/// A meta store's mode and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaMode {
    /// What it demands of the item that is there.
    pub verb: StoreVerb,
    /// How long the data block is, without its end.
    pub value_bytes: usize,
    /// The error in the flags; the data's length is known all the same.
    pub refused: Option<Refusal>,
}

fn read(mut tokens: Tokens<'_>) -> Result<Command<'_>, Refusal> {
    let name = tokens.next().ok_or(Refusal::Unknown)?;
    let bytes = tokens.next().ok_or(Refusal::BadLine)?;
    let value_bytes = number(bytes, MAX_VALUE_BYTES).ok_or(Refusal::BadLine)? as usize;
    let refused = |refusal| {
        let mode = MetaMode { verb: StoreVerb::Set, value_bytes, refused: Some(refusal) };
        // Its tokens are not parsed any more.
        Meta::read(b"", Tokens::new(b""), 0).map(|meta| Command::MetaSet(meta, mode))
    };
    let checked = key(name).and_then(|name| Meta::read(name, tokens, 3)).and_then(|meta| {
        let verb = verb(meta.mode)?;
        Ok((meta.with_short_opaque()?, verb))
    });
    match checked {
        // This error precedes those of the flags, and no data follow.
        Err(Refusal::ManyFlags) => Err(Refusal::ManyChangeFlags),
        Err(refusal) => refused(refusal),
        Ok((meta, verb)) => {
            Ok(Command::MetaSet(meta, MetaMode { verb, value_bytes, refused: None }))
        }
    }
}

fn verb(mode: Option<u8>) -> Result<StoreVerb, Refusal> {
    Ok(match mode {
        None | Some(b'S' | b's') => StoreVerb::Set,
        Some(b'E' | b'e') => StoreVerb::Add,
        Some(b'R' | b'r') => StoreVerb::Replace,
        Some(b'A' | b'a') => StoreVerb::Append,
        Some(b'P' | b'p') => StoreVerb::Prepend,
        Some(_) => return Err(Refusal::StoreMode),
    })
}
