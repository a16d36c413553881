//! `md`: removes one key, or marks it as stale.

use super::super::tokens::{Tokens, key};
use super::super::{Command, Row};
use super::Meta;
use crate::protocol::Refusal;

/// `md`.
pub(in super::super) static MD: Row = Row {
    name: "md",
    usage: "md KEY FLAG…",
    doc: "Removes a key: C… only if the cas is this, I marks it as stale instead (T… with this \
          expiry, E… with this cas), x takes only its value away; back come k, O…, b; q leaves \
          HD out.",
    may_be_quiet: false,
    read: |tokens| read(tokens).map(Command::MetaDelete),
};

fn read(mut tokens: Tokens<'_>) -> Result<Meta<'_>, Refusal> {
    let name = key(tokens.next().ok_or(Refusal::Unknown)?)?;
    let meta = Meta::read(name, tokens, 2).map_err(|refusal| match refusal {
        Refusal::ManyFlags => Refusal::ManyChangeFlags,
        _ => Refusal::WrongFlag,
    })?;
    meta.with_short_opaque()
}
