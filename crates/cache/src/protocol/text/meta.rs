//! The meta commands: one key, and flags of one letter that say what is wanted back.

use super::words::Words;
use super::{Command, Row};
use crate::protocol::Refusal;

/// A meta command has at most this many flags.
const MOST_FLAGS: usize = 16;

/// An opaque word is at most this long, with its letter.
const MOST_OPAQUE_BYTES: usize = 32;

/// One flag of a meta command that asks for something in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaFlag<'a> {
    /// `c`: the unique number of the store.
    Cas,
    /// `f`: the client's own 32 bits.
    Flags,
    /// `h`: whether the item had been read before.
    Hit,
    /// `k`: the key.
    Key,
    /// `l`: seconds since the item was last read.
    LastAccess,
    /// `O…`: this word, given back as it is.
    Opaque(&'a [u8]),
    /// `s`: the length of the value.
    Size,
    /// `t`: seconds until the item expires, or -1.
    TimeLeft,
}

impl<'a> MetaFlag<'a> {
    #[inline]
    fn read(word: &'a [u8]) -> Option<Self> {
        Some(match word.first()? {
            b'c' => Self::Cas,
            b'f' => Self::Flags,
            b'h' => Self::Hit,
            b'k' => Self::Key,
            b'l' => Self::LastAccess,
            b'O' => Self::Opaque(word),
            b's' => Self::Size,
            b't' => Self::TimeLeft,
            _ => return None,
        })
    }
}

/// A meta get, whose flags have been checked.
#[derive(Clone, Copy, Debug)]
pub struct MetaGet<'a> {
    /// The key.
    pub key: &'a [u8],
    /// `v`: whether the value is wanted.
    pub value: bool,
    /// `q`: whether a miss is answered with nothing.
    pub quiet: bool,
    words: Words<'a>,
}

impl<'a> MetaGet<'a> {
    /// What else is wanted, in order.
    #[inline]
    pub fn flags(&self) -> impl Iterator<Item = MetaFlag<'a>> + use<'a> {
        self.words.filter_map(MetaFlag::read)
    }
}

/// `mg`.
pub(super) static MG: Row = Row {
    name: "mg",
    usage: "mg KEY FLAG…",
    doc: "What is asked for about one key: v value, c cas, f flags, h hit before, k key, l last \
          access, O… opaque, s size, t time left, q quiet misses.",
    read: |words| read_get(words).map(Command::MetaGet),
};

/// `mn`.
pub(super) static MN: Row = Row {
    name: "mn",
    usage: "mn",
    doc: "Answers `MN`, in its turn: the end of a batch of quiet commands.",
    read: |_| Ok(Command::MetaNoop),
};

#[inline]
fn read_get(mut words: Words<'_>) -> Result<MetaGet<'_>, Refusal> {
    let key = words.key()?;
    let mut get = MetaGet { key, value: false, quiet: false, words };
    let (mut seen, mut count) = (0_u128, 0);
    for word in words {
        let letter = word[0];
        let bit = 1 << (letter & 127);
        if letter >= 127 || seen & bit != 0 {
            return Err(Refusal::DuplicateFlag);
        }
        seen |= bit;
        count += 1;
        match letter {
            b'v' => get.value = true,
            b'q' => get.quiet = true,
            b'O' if word.len() > MOST_OPAQUE_BYTES => return Err(Refusal::LongOpaque),
            // The last two are routing hints for proxies, which a server lets pass.
            b'c' | b'f' | b'h' | b'k' | b'l' | b'O' | b's' | b't' | b'P' | b'L' => {}
            _ => return Err(Refusal::InvalidFlag),
        }
    }
    if count > MOST_FLAGS { Err(Refusal::ManyFlags) } else { Ok(get) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_keep_their_order() {
        let get = read_get(Words::new(b"key s v t q Oabc k")).unwrap();
        let flags: Vec<_> = get.flags().collect();
        let opaque = MetaFlag::Opaque(b"Oabc");
        assert_eq!(flags, [MetaFlag::Size, MetaFlag::TimeLeft, opaque, MetaFlag::Key]);
        assert!(get.value && get.quiet);
    }

    #[test]
    fn unknown_repeated_and_overlong_flags_are_refused() {
        let error = |line| read_get(Words::new(line)).unwrap_err();
        assert_eq!(error(b"key v v"), Refusal::DuplicateFlag);
        assert_eq!(error(b"key !"), Refusal::InvalidFlag);
        assert_eq!(error(b"key \xff"), Refusal::DuplicateFlag);
        assert_eq!(error(b"key O0123456789012345678901234567890123"), Refusal::LongOpaque);
        assert_eq!(error(b""), Refusal::Unknown);
    }
}
