//! `mg`, `me` and `mn`: reading, looking, and the end of a batch.

use super::super::words::{Words, key};
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
    read: |words| read(words).map(Command::MetaGet),
};

/// `me`.
pub(in super::super) static ME: Row = Row {
    name: "me",
    usage: "me KEY [b]",
    doc: "All that is known of one key, for people.",
    may_be_quiet: false,
    read: |words| read_debug(words).map(Command::MetaDebug),
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
fn read(mut words: Words<'_>) -> Result<Meta<'_>, Refusal> {
    let name = key(words.next().ok_or(Refusal::Unknown)?)?;
    Meta::read(name, words, 2)?.with_short_opaque()
}

fn read_debug(mut words: Words<'_>) -> Result<Meta<'_>, Refusal> {
    let name = key(words.next().ok_or(Refusal::BadLine)?)?;
    // Its only flag has to come first; whatever else there is means nothing.
    let flags = if words.next() == Some(b"b") { &b"b"[..] } else { b"" };
    Meta::read(name, Words::new(flags), 2).map_err(|_| Refusal::BadLine)
}
