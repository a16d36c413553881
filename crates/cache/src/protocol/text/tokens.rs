//! The tokens of a line, separated by spaces.

use crate::protocol::{MAX_KEY_BYTES, Refusal};

/// The tokens of a line in order. Only spaces separate tokens, as in memcached.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// The tokens of `line`.
    #[inline]
    pub fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Returns the rest of the line.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns all tokens of the rest of a line, at least `least` and at most `MOST`, and their
    /// count. Absent ones are empty.
    ///
    /// # Errors
    /// When there are fewer or more.
    #[inline]
    pub(super) fn gather<const MOST: usize>(
        &mut self,
        least: usize,
    ) -> Result<([&'a [u8]; MOST], usize), Refusal> {
        let mut all: [&[u8]; MOST] = [b""; MOST];
        let mut count = 0;
        for token in self {
            *all.get_mut(count).ok_or(Refusal::Unknown)? = token;
            count += 1;
        }
        if count < least { Err(Refusal::Unknown) } else { Ok((all, count)) }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| *byte != b' ')?;
        let token = &self.rest[start..];
        let end = token.iter().position(|byte| *byte == b' ').unwrap_or(token.len());
        let (token, rest) = token.split_at(end);
        self.rest = rest;
        Some(token)
    }
}

/// Returns a token as a key.
///
/// # Errors
/// When it is too long.
#[inline]
pub(super) fn key(token: &[u8]) -> Result<&[u8], Refusal> {
    if token.len() > MAX_KEY_BYTES { Err(Refusal::BadLine) } else { Ok(token) }
}

/// Whether the last of the tokens, after the required ones, asks for no answer.
#[inline]
pub(super) fn noreply(last: &[u8]) -> bool {
    last == b"noreply"
}

/// An unsigned decimal number of at most `most`.
#[inline]
pub(super) fn number(token: &[u8], most: u64) -> Option<u64> {
    if token.is_empty() || token.len() > 20 {
        return None;
    }
    let mut sum = 0_u64;
    for byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum = sum.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (sum <= most).then_some(sum)
}

/// A decimal number that may have a sign.
#[inline]
pub(super) fn signed(token: &[u8]) -> Option<i64> {
    const MOST: u64 = i64::MAX as u64;
    match token.split_first()? {
        (b'-', digits) => Some(-(number(digits, MOST)? as i64)),
        (b'+', digits) => Some(number(digits, MOST)? as i64),
        _ => Some(number(token, MOST)? as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_lies_between_spaces() {
        let tokens: Vec<_> = Tokens::new(b"  set  a\tb 1 ").collect();
        assert_eq!(tokens, [&b"set"[..], b"a\tb", b"1"]);
        assert_eq!(Tokens::new(b"").next(), None);
    }

    #[test]
    fn numbers_are_decimal_and_whole_and_within_bounds() {
        assert_eq!(number(b"4294967295", u64::from(u32::MAX)), Some(4_294_967_295));
        assert_eq!(number(b"4294967296", u64::from(u32::MAX)), None);
        assert_eq!(number(b"18446744073709551615", u64::MAX), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616", u64::MAX), None);
        for wrong in [&b""[..], b"-1", b"1a", b"0x1", b" 1", b"000000000000000000001"] {
            assert_eq!(number(wrong, u64::MAX), None, "{wrong:?}");
        }
        assert_eq!(signed(b"-1"), Some(-1));
        assert_eq!(signed(b"+7"), Some(7));
        assert_eq!(signed(b"-"), None);
        assert_eq!(signed(b"--1"), None);
    }
}
