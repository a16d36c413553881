//! `set`: a key, flags, an expiry, and a data block of a stated length.

use super::words::{Words, number, signed};
use super::{Command, Row};
use crate::protocol::Refusal;

/// A storage command's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<'a> {
    /// The key; an error when it is too long, which does not hide how much data follows.
    pub key: Result<&'a [u8], Refusal>,
    /// The client's own 32 bits.
    pub flags: u32,
    /// The expiry as it is written: 0 never, negative at once, small relative, else Unix time.
    pub exptime: i64,
    /// How long the data block is, without its end.
    pub value_bytes: usize,
    /// Whether no answer is wanted.
    pub noreply: bool,
}

/// A data block may not claim to be longer than this.
const MOST_VALUE_BYTES: u64 = i32::MAX as u64 - 2;

/// `set`.
pub(super) static SET: Row = Row {
    name: "set",
    usage: "set KEY FLAGS EXPTIME BYTES [noreply]",
    doc: "Stores the data block that follows.",
    read: |words| read(words).map(Command::Set),
};

#[inline]
fn read(mut words: Words<'_>) -> Result<Set<'_>, Refusal> {
    let key = match words.key() {
        Err(Refusal::Unknown) => return Err(Refusal::Unknown),
        key => key,
    };
    let mut word = || words.next().ok_or(Refusal::Unknown);
    let (flags, exptime, value_bytes) = (word()?, word()?, word()?);
    let noreply = words.noreply()?;
    let flags = number(flags, u64::from(u32::MAX)).ok_or(Refusal::BadLine)? as u32;
    let exptime = signed(exptime).ok_or(Refusal::BadLine)?;
    let value_bytes = number(value_bytes, MOST_VALUE_BYTES).ok_or(Refusal::BadLine)? as usize;
    Ok(Set { key, flags, exptime, value_bytes, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Result<Set<'_>, Refusal> {
        super::read(Words::new(line))
    }

    #[test]
    fn a_line_is_read_with_all_its_words() {
        let set = read(b"key 4294967295 -1 5 noreply").unwrap();
        assert_eq!(set.key, Ok(&b"key"[..]));
        assert_eq!((set.flags, set.exptime, set.value_bytes), (u32::MAX, -1, 5));
        assert!(set.noreply);
        assert!(!read(b"key 0 0 0").unwrap().noreply);
    }

    #[test]
    fn what_is_missing_is_another_error_than_what_is_wrong() {
        for line in [&b""[..], b"key", b"key 0 0", b"key 0 0 1 noreply more"] {
            assert_eq!(read(line), Err(Refusal::Unknown), "{line:?}");
        }
        for line in [&b"key x 0 1"[..], b"key 0 x 1", b"key 0 0 x", b"key 0 0 -1", b"key -1 0 1"] {
            assert_eq!(read(line), Err(Refusal::BadLine), "{line:?}");
        }
    }

    #[test]
    fn a_long_key_does_not_hide_how_much_data_follows() {
        let line = [&[b'k'; 251][..], b" 0 0 5"].concat();
        let set = read(&line).unwrap();
        assert_eq!((set.key, set.value_bytes), (Err(Refusal::BadLine), 5));
    }
}
