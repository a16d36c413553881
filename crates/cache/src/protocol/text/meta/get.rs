//! `mg`, `me` and `mn`: reading, metadata, and the end of a batch.

use super::super::tokens::{Tokens, key};
use super::super::{Command, Row};
use super::Meta;
use crate::protocol::Refusal;

/// `mg`.
pub(in super::super) static MG: Row = Row {
    name: "mg",
    usage: "mg KEY FLAG…",
    doc: "What is asked for about one key: v value, c cas, f flags, h hit before, k key, l last \
          access, O… opaque, s size, t time left, q quiet misses, u unnoticed, b key in base64; \
          T… gives it another expiry, N… makes it where there is none, R… has one client store \
          it anew before it expires. W says that this is you, Z that it is another, X that the \
          value is stale.",
    may_be_quiet: false,
    read: |tokens| read(tokens).map(Command::MetaGet),
};

/// `me`.
pub(in super::super) static ME: Row = Row {
    name: "me",
    usage: "me KEY [b]",
    doc: "All that is known of one key, for people.",
    may_be_quiet: false,
    read: |tokens| read_debug(tokens).map(Command::MetaDebug),
};

/// `mn`.
pub(in super::super) static MN: Row = Row {
    name: "mn",
    usage: "mn",
    doc: "Answers `MN`, in its turn: the end of a batch of quiet commands.",
    may_be_quiet: false,
    read: |_| Ok(Command::MetaNoop),
};

#[inline]
fn read(mut tokens: Tokens<'_>) -> Result<Meta<'_>, Refusal> {
    let name = key(tokens.next().ok_or(Refusal::Unknown)?)?;
    Meta::read(name, tokens, 2)?.with_short_opaque()
}

fn read_debug(mut tokens: Tokens<'_>) -> Result<Meta<'_>, Refusal> {
    let name = key(tokens.next().ok_or(Refusal::BadLine)?)?;
    // Its only flag has to come first; whatever else there is means nothing.
    let flags = if tokens.next() == Some(b"b") { &b"b"[..] } else { b"" };
    Meta::read(name, Tokens::new(flags), 2).map_err(|_| Refusal::BadLine)
}
