//! `ms`: stores one key.

use super::super::set::MOST_VALUE_BYTES;
use super::super::words::{Words, key, number};
use super::super::{Command, Demand, Row};
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
    pub demand: Demand,
    /// How long the data block is, without its end.
    pub value_bytes: usize,
    /// What is wrong with the flags, which does not hide how much data follows.
    pub refused: Option<Refusal>,
}

fn read(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let name = words.next().ok_or(Refusal::Unknown)?;
    let bytes = words.next().ok_or(Refusal::BadLine)?;
    let value_bytes = number(bytes, MOST_VALUE_BYTES).ok_or(Refusal::BadLine)? as usize;
    let refused = |refusal| {
        let mode = MetaMode { demand: Demand::Nothing, value_bytes, refused: Some(refusal) };
        // Its words are not looked at any more.
        Meta::read(b"", Words::new(b""), 0).map(|meta| Command::MetaSet(meta, mode))
    };
    let checked = key(name).and_then(|name| Meta::read(name, words, 3)).and_then(|meta| {
        let demand = demand(meta.mode)?;
        Ok((meta.with_short_opaque()?, demand))
    });
    match checked {
        // This one is told before the flags are looked at, and nothing is said to follow.
        Err(Refusal::ManyFlags) => Err(Refusal::ManyChangeFlags),
        Err(refusal) => refused(refusal),
        Ok((meta, demand)) => {
            Ok(Command::MetaSet(meta, MetaMode { demand, value_bytes, refused: None }))
        }
    }
}

fn demand(mode: Option<u8>) -> Result<Demand, Refusal> {
    Ok(match mode {
        None | Some(b'S' | b's') => Demand::Nothing,
        Some(b'E' | b'e') => Demand::Absent,
        Some(b'R' | b'r') => Demand::Present,
        Some(b'A' | b'a') => Demand::Before,
        Some(b'P' | b'p') => Demand::Behind,
        Some(_) => return Err(Refusal::StoreMode),
    })
}
