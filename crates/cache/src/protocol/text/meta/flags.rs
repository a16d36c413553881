//! The flags, which all meta commands read alike; each uses those that mean something to it.

use super::super::tokens::{Tokens, number, signed};
use crate::protocol::{MAX_KEY_BYTES, Refusal, base64};

/// A meta command has at most this many tokens, with its name and key.
const MAX_WORDS: usize = 19;

/// An opaque token is at most this long, with its letter.
const MAX_OPAQUE_BYTES: usize = 32;

/// A key that is written in base64 has at most this many bytes.
const MAX_BINARY_KEY_BYTES: usize = MAX_KEY_BYTES / 4 * 3;

/// A unique number that a client chooses is at most this: a store keeps 48 bits of it.
const MAX_CHOSEN_CAS: u64 = (1 << 48) - 1;

/// One flag of a meta command that shows in the answer, or changes what others show.
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
    /// `O…`: this token, given back as it is.
    Opaque(&'a [u8]),
    /// `s`: the length of the value.
    Size,
    /// `t`: seconds until the item expires, or -1.
    TimeLeft,
    /// `T…` or `N…`: what comes after this is about the new expiry.
    Expiry,
}

impl<'a> MetaFlag<'a> {
    #[inline]
    fn read(token: &'a [u8]) -> Option<Self> {
        Some(match token.first()? {
            b'c' => Self::Cas,
            b'f' => Self::Flags,
            b'h' => Self::Hit,
            b'k' => Self::Key,
            b'l' => Self::LastAccess,
            b'N' | b'T' => Self::Expiry,
            b'O' => Self::Opaque(token),
            b's' => Self::Size,
            b't' => Self::TimeLeft,
            _ => return None,
        })
    }
}

/// A meta command's key and flags, which have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a> {
    name: &'a [u8],
    tokens: Tokens<'a>,
    /// `b`: whether the key is written in base64.
    pub binary_key: bool,
    /// `v`: whether the value is returned.
    pub value: bool,
    /// `q`: whether the common answer is suppressed.
    pub quiet: bool,
    /// `u`: whether the read does not count as an access.
    pub unnoticed: bool,
    /// `I`: whether an item is marked as stale.
    pub invalidate: bool,
    /// `x`: whether only the value is removed.
    pub value_only: bool,
    /// `C…`: the unique number that the item has to have.
    pub compare: Option<u64>,
    /// `E…`: the unique number that the item gets.
    pub cas: Option<u64>,
    /// `F…`: the client's own 32 bits.
    pub flags: u32,
    /// `T…`: the expiry.
    pub exptime: Option<i64>,
    /// `N…`: the expiry of an item that is made where there is none.
    pub vivify: Option<i64>,
    /// `R…`: the first client that reads with less time left than this is to recache the value.
    pub recache: Option<i64>,
    /// Whether `R` stands behind `T`.
    pub recache_last: bool,
    /// `M…`: the letter of the mode.
    pub mode: Option<u8>,
    /// `J…`: the number that an item is made with.
    pub initial: u64,
    /// `D…`: by how much a number changes.
    pub delta: u64,
    has_long_opaque: bool,
}

impl<'a> Meta<'a> {
    /// Reads what follows the key `name`. `before` tokens are in front of the flags.
    #[inline]
    pub(super) fn read(name: &'a [u8], tokens: Tokens<'a>, before: usize) -> Result<Self, Refusal> {
        let mut meta = Self {
            name,
            tokens,
            binary_key: false,
            value: false,
            quiet: false,
            unnoticed: false,
            invalidate: false,
            value_only: false,
            compare: None,
            cas: None,
            flags: 0,
            exptime: None,
            vivify: None,
            recache: None,
            recache_last: false,
            mode: None,
            initial: 0,
            delta: 1,
            has_long_opaque: false,
        };
        let (mut seen, mut count) = (0_u128, before);
        let mut refused = None;
        for token in tokens {
            count += 1;
            let letter = token[0];
            let bit = 1 << (letter & 127);
            let noted = if letter >= 127 || seen & bit != 0 {
                Err(Refusal::DuplicateFlag)
            } else {
                seen |= bit;
                meta.note(letter, token)
            };
            // Of several errors, memcached reports the last, up to
            // a flag that isn't understood at all; the client's own bits only when they are alone.
            refused = match (refused, noted) {
                (told @ Some(Refusal::DuplicateFlag | Refusal::InvalidFlag), _) => told,
                (told, Ok(())) | (told @ Some(_), Err(Refusal::BadLine)) => told,
                (_, Err(refusal)) => Some(refusal),
            };
        }
        match refused {
            _ if count > MAX_WORDS => Err(Refusal::ManyFlags),
            Some(refusal) => Err(refusal),
            None => Ok(meta),
        }
    }

    /// Notes one flag.
    #[inline]
    fn note(&mut self, letter: u8, token: &'a [u8]) -> Result<(), Refusal> {
        match letter {
            b'v' => self.value = true,
            b'q' => self.quiet = true,
            b'O' => self.has_long_opaque = token.len() > MAX_OPAQUE_BYTES,
            // The last two are routing hints for proxies, which a server lets pass.
            b'c' | b'f' | b'h' | b'k' | b'l' | b's' | b't' | b'P' | b'L' => {}
            _ => return self.note_rare(letter, &token[1..]),
        }
        Ok(())
    }

    fn note_rare(&mut self, letter: u8, token: &'a [u8]) -> Result<(), Refusal> {
        let signed = || signed(token).ok_or(Refusal::BadToken);
        let number = |most, refusal| number(token, most).ok_or(refusal);
        match letter {
            b'b' => {
                self.binary_key = true;
                let mut bytes = [0; MAX_BINARY_KEY_BYTES];
                base64::decode(self.name, &mut bytes).ok_or(Refusal::BadBase64)?;
            }
            b'u' => self.unnoticed = true,
            b'I' => self.invalidate = true,
            b'x' => self.value_only = true,
            b'C' => self.compare = Some(number(u64::MAX, Refusal::BadToken)?),
            b'E' => self.cas = Some(number(MAX_CHOSEN_CAS, Refusal::BadToken)?),
            b'F' => self.flags = number(u64::from(u32::MAX), Refusal::BadLine)? as u32,
            b'T' => self.exptime = Some(signed()?),
            b'N' => self.vivify = Some(signed()?),
            b'R' => {
                self.recache = Some(signed()?);
                self.recache_last = self.exptime.is_some();
            }
            b'M' => match token {
                [mode] => self.mode = Some(*mode),
                _ => return Err(Refusal::LongMode),
            },
            b'J' => self.initial = number(u64::MAX, Refusal::BadInitial)?,
            b'D' => self.delta = number(u64::MAX, Refusal::BadMetaDelta)?,
            _ => return Err(Refusal::InvalidFlag),
        }
        Ok(())
    }

    /// Refuses an opaque token that is too long, after all other errors.
    #[inline]
    pub(super) fn with_short_opaque(self) -> Result<Self, Refusal> {
        if self.has_long_opaque { Err(Refusal::LongOpaque) } else { Ok(self) }
    }

    /// The key; one written in base64 is put into `buffer`.
    #[inline]
    pub fn key<'b>(&self, buffer: &'b mut [u8; MAX_KEY_BYTES]) -> &'b [u8]
    where
        'a: 'b,
    {
        if !self.binary_key {
            return self.name;
        }
        let count = base64::decode(self.name, buffer).unwrap_or_default();
        &buffer[..count]
    }

    /// The flags that show in the answer, in order.
    #[inline]
    pub fn answered(&self) -> impl Iterator<Item = MetaFlag<'a>> + use<'a> {
        self.tokens.filter_map(MetaFlag::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[u8]) -> Result<Meta<'_>, Refusal> {
        Meta::read(b"key", Tokens::new(line), 2).and_then(Meta::with_short_opaque)
    }

    #[test]
    fn flags_keep_their_order() {
        let meta = read(b"s v t q T30 Oabc k").unwrap();
        let flags: Vec<_> = meta.answered().collect();
        let opaque = MetaFlag::Opaque(b"Oabc");
        let expected =
            [MetaFlag::Size, MetaFlag::TimeLeft, MetaFlag::Expiry, opaque, MetaFlag::Key];
        assert_eq!(flags, expected);
        assert!(meta.value && meta.quiet);
        assert_eq!(meta.exptime, Some(30));
    }

    #[test]
    fn unknown_repeated_and_overlong_flags_are_refused() {
        for (line, refusal) in [
            (&b"v v"[..], Refusal::DuplicateFlag),
            (b"!", Refusal::InvalidFlag),
            (b"\xff", Refusal::DuplicateFlag),
            (b"O0123456789012345678901234567890123", Refusal::LongOpaque),
            (b"Tx", Refusal::BadToken),
            (b"C", Refusal::BadToken),
            (b"E281474976710656", Refusal::BadToken),
            (b"MAB", Refusal::LongMode),
            (b"J-1", Refusal::BadInitial),
            (b"Dx", Refusal::BadMetaDelta),
            (b"b", Refusal::BadBase64),
            (b"c f h k l s t v q u I b T1 N1 R1 C1 F1 M1", Refusal::ManyFlags),
        ] {
            assert_eq!(read(line).unwrap_err(), refusal, "{line:?}");
        }
    }

    #[test]
    fn a_key_in_base64_is_decoded() {
        let meta = Meta::read(b"a2V5", Tokens::new(b"b"), 2).unwrap();
        assert_eq!(meta.key(&mut [0; MAX_KEY_BYTES]), b"key");
    }
}
