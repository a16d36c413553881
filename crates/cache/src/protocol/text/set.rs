//! The storage commands: a key, flags, an expiry, and a data block of a stated length.

use super::tokens::{Tokens, key, noreply, number, signed};
use super::{Command, Row};
use crate::protocol::Refusal;

/// What a storage command demands of the item that its key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    /// `set`: stores in any case.
    Set,
    /// `add`: stores if the key is absent.
    Add,
    /// `replace`: stores if the key is present.
    Replace,
    /// `append`: continues the value of a key that is present.
    Append,
    /// `prepend`: puts the data before the value of a key that is present.
    Prepend,
}

/// A storage command's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<'a> {
    /// The key; an error when it is too long, which does not hide how much data follows.
    pub key: Result<&'a [u8], Refusal>,
    /// What it demands.
    pub verb: StoreVerb,
    /// The client's own 32 bits.
    pub flags: u32,
    /// The expiry as it is written: 0 never, negative at once, small relative, else Unix time.
    pub exptime: i64,
    /// How long the data block is, without its end.
    pub value_bytes: usize,
    /// `cas`: the unique number that the item has to have.
    pub compare: Option<u64>,
    /// Whether `noreply` is given.
    pub noreply: bool,
}

/// A data block may not claim to be longer than this.
pub(super) const MAX_VALUE_BYTES: u64 = i32::MAX as u64 - 2;

/// `set`.
pub(super) static SET: Row = Row {
    name: "set",
    usage: "set KEY FLAGS EXPTIME BYTES [noreply]",
    doc: "Stores the data block that follows.",
    may_be_quiet: true,
    read: |tokens| read(tokens, StoreVerb::Set).map(Command::Set),
};

/// `add`.
pub(super) static ADD: Row = Row {
    name: "add",
    usage: "add KEY FLAGS EXPTIME BYTES [noreply]",
    doc: "Stores the data block that follows, unless the key is there.",
    may_be_quiet: true,
    read: |tokens| read(tokens, StoreVerb::Add).map(Command::Set),
};

/// `replace`.
pub(super) static REPLACE: Row = Row {
    name: "replace",
    usage: "replace KEY FLAGS EXPTIME BYTES [noreply]",
    doc: "Stores the data block that follows, if the key is there.",
    may_be_quiet: true,
    read: |tokens| read(tokens, StoreVerb::Replace).map(Command::Set),
};

/// `append`.
pub(super) static APPEND: Row = Row {
    name: "append",
    usage: "append KEY FLAGS EXPTIME BYTES [noreply]",
    doc: "Puts the data block that follows behind the key's value; flags and expiry stay.",
    may_be_quiet: true,
    read: |tokens| read(tokens, StoreVerb::Append).map(Command::Set),
};

/// `prepend`.
pub(super) static PREPEND: Row = Row {
    name: "prepend",
    usage: "prepend KEY FLAGS EXPTIME BYTES [noreply]",
    doc: "Puts the data block that follows before the key's value; flags and expiry stay.",
    may_be_quiet: true,
    read: |tokens| read(tokens, StoreVerb::Prepend).map(Command::Set),
};

/// `cas`.
pub(super) static CAS: Row = Row {
    name: "cas",
    usage: "cas KEY FLAGS EXPTIME BYTES UNIQUE [noreply]",
    doc: "Stores the data that follow, if the item is unchanged since `gets` gave UNIQUE.",
    may_be_quiet: true,
    read: |tokens| read_cas(tokens).map(Command::Set),
};

#[inline]
fn read(mut tokens: Tokens<'_>, verb: StoreVerb) -> Result<Set<'_>, Refusal> {
    let ([key, flags, exptime, bytes, last], _) = tokens.gather(4)?;
    line(verb, [key, flags, exptime, bytes], noreply(last))
}

fn read_cas(mut tokens: Tokens<'_>) -> Result<Set<'_>, Refusal> {
    let ([key, flags, exptime, bytes, unique, last], _) = tokens.gather(5)?;
    let set = line(StoreVerb::Set, [key, flags, exptime, bytes], noreply(last))?;
    let unique = number(unique, u64::MAX).ok_or(Refusal::BadLine)?;
    Ok(Set { compare: Some(unique), ..set })
}

#[inline]
fn line(
    verb: StoreVerb,
    [name, flags, exptime, bytes]: [&[u8]; 4],
    noreply: bool,
) -> Result<Set<'_>, Refusal> {
    let flags = number(flags, u64::from(u32::MAX)).ok_or(Refusal::BadLine)? as u32;
    let exptime = signed(exptime).ok_or(Refusal::BadLine)?;
    let value_bytes = number(bytes, MAX_VALUE_BYTES).ok_or(Refusal::BadLine)? as usize;
    Ok(Set { key: key(name), verb, flags, exptime, value_bytes, compare: None, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Result<Set<'_>, Refusal> {
        super::read(Tokens::new(line), StoreVerb::Set)
    }

    #[test]
    fn a_line_is_read_with_all_its_words() {
        let set = read(b"key 4294967295 -1 5 noreply").unwrap();
        assert_eq!(set.key, Ok(&b"key"[..]));
        assert_eq!((set.flags, set.exptime, set.value_bytes), (u32::MAX, -1, 5));
        assert!(set.noreply);
        assert!(!read(b"key 0 0 0").unwrap().noreply);
        let cas = read_cas(Tokens::new(b"key 0 0 0 7")).unwrap();
        assert_eq!((cas.compare, cas.noreply), (Some(7), false));
    }

    #[test]
    fn what_is_missing_is_another_error_than_what_is_wrong() {
        for line in [&b""[..], b"key", b"key 0 0", b"key 0 0 1 noreply more"] {
            assert_eq!(read(line), Err(Refusal::Unknown), "{line:?}");
        }
        for line in [&b"key x 0 1"[..], b"key 0 x 1", b"key 0 0 x", b"key 0 0 -1", b"key -1 0 1"] {
            assert_eq!(read(line), Err(Refusal::BadLine), "{line:?}");
        }
        assert_eq!(read_cas(Tokens::new(b"key 0 0 0")), Err(Refusal::Unknown));
        assert_eq!(read_cas(Tokens::new(b"key 0 0 0 -7")), Err(Refusal::BadLine));
    }

    #[test]
    fn a_long_key_does_not_hide_how_much_data_follows() {
        let line = [&[b'k'; 251][..], b" 0 0 5"].concat();
        let set = read(&line).unwrap();
        assert_eq!((set.key, set.value_bytes), (Err(Refusal::BadLine), 5));
    }
}
