//! `get` and its kin: any number of keys. Their keys are read one by one as they come, so a line of
//! them has no greatest length and its answers can be paused between two keys.

use super::tokens::{Tokens, signed};
use super::{Command, Row};
use crate::protocol::{MAX_KEY_BYTES, Refusal};

/// `get`.
pub(super) static GET: Row = Row {
    name: "get",
    usage: "get KEY…",
    doc: "The values of the keys that are there.",
    may_be_quiet: false,
    read: |keys| Ok(Command::Get { with_cas: false, exptime: None, keys }),
};

/// `gets`.
pub(super) static GETS: Row = Row {
    name: "gets",
    usage: "gets KEY…",
    doc: "The values of the keys that are there, each with the unique number of its store.",
    may_be_quiet: false,
    read: |keys| Ok(Command::Get { with_cas: true, exptime: None, keys }),
};

/// `gat`.
pub(super) static GAT: Row = Row {
    name: "gat",
    usage: "gat EXPTIME KEY…",
    doc: "The values of the keys that are there, which get another expiry.",
    may_be_quiet: false,
    read: |tokens| read_touching(tokens, false),
};

/// `gats`.
pub(super) static GATS: Row = Row {
    name: "gats",
    usage: "gats EXPTIME KEY…",
    doc: "Like `gat`, each with the unique number of its store.",
    may_be_quiet: false,
    read: |tokens| read_touching(tokens, true),
};

fn read_touching(mut tokens: Tokens<'_>, with_cas: bool) -> Result<Command<'_>, Refusal> {
    let exptime = tokens.next().ok_or(Refusal::Unknown)?;
    let exptime = signed(exptime).ok_or(Refusal::BadExpiry)?;
    Ok(Command::Get { with_cas, exptime: Some(exptime), keys: tokens })
}

/// What stands next in the keys of a `get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// A key, and how many bytes it takes with the space before it.
    One(&'a [u8], usize),
    /// The end of the line, and how many bytes it takes.
    End(usize),
    /// A key that is too long.
    TooLong,
    /// More bytes are needed to say.
    Unfinished,
}

/// Eight times the byte 1.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The position of the first byte in `bytes` that is a space or a control character, from `from`
/// on. Eight bytes are tested together: a byte below 0x21 borrows from its own top bit.
#[inline]
fn find_blank(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(token) = bytes.get(at..at + 8) {
        let token = u64::from_le_bytes(token.try_into().unwrap_or_default());
        // Bytes of 0x80 and above are no blanks: `!token` rules them out.
        let blanks = token.wrapping_sub(ONES * 0x21) & !token & (ONES * 0x80);
        if blanks != 0 {
            return Some(at + blanks.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes[at..].iter().position(|byte| *byte <= b' ').map(|offset| at + offset)
}

/// A read of one key in its plainest form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainRead<'a> {
    /// The key.
    pub key: &'a [u8],
    /// How long the line is, with its end.
    pub line_bytes: usize,
    /// Whether it is a meta get.
    pub is_meta: bool,
}

/// The first line of `bytes`, when that is `get KEY` or `mg KEY v` with an ordinary key: by far the
/// most frequent commands. Everything else is `None` and takes the general path.
#[inline]
pub fn plain_read(bytes: &[u8]) -> Option<PlainRead<'_>> {
    let is_meta = bytes.first() == Some(&b'm');
    let line =
        if is_meta { plain_line(bytes, b"mg ", b" v") } else { plain_line(bytes, b"get ", b"") };
    line.map(|(key, line_bytes)| PlainRead { key, line_bytes, is_meta })
}

/// The key and the length of a line that is just `name`, a key and `tail`.
#[inline]
fn plain_line<'a>(bytes: &'a [u8], name: &[u8], tail: &[u8]) -> Option<(&'a [u8], usize)> {
    if !bytes.starts_with(name) {
        return None;
    }
    let end = find_blank(bytes, name.len())?;
    let line = match bytes[end..].strip_prefix(tail)? {
        [b'\r', b'\n', ..] => end + tail.len() + 2,
        [b'\n', ..] => end + tail.len() + 1,
        _ => return None,
    };
    let key = &bytes[name.len()..end];
    (!key.is_empty() && key.len() <= MAX_KEY_BYTES).then_some((key, line))
}

/// What stands next in `bytes`, which continue the line of a `get` after its name or a key.
#[inline]
pub fn next_key(bytes: &[u8]) -> Key<'_> {
    let Some(start) = bytes.iter().position(|byte| *byte != b' ') else {
        return Key::Unfinished;
    };
    let mut at = start;
    while let Some(end) = find_blank(bytes, at) {
        match (bytes[end], bytes.get(end + 1)) {
            (b'\n', _) if end == start => return Key::End(end + 1),
            (b'\r', Some(b'\n')) if end == start => return Key::End(end + 2),
            (b'\r', None) => break,
            (b' ' | b'\n', _) | (b'\r', Some(b'\n')) if end - start > MAX_KEY_BYTES => {
                return Key::TooLong;
            }
            (b' ' | b'\n', _) | (b'\r', Some(b'\n')) => return Key::One(&bytes[start..end], end),
            // Any other control character is part of the key, as in memcached.
            _ => at = end + 1,
        }
    }
    // One byte more may be the return before the line's end.
    if bytes.len() - start > MAX_KEY_BYTES + 1 { Key::TooLong } else { Key::Unfinished }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_and_length(bytes: &[u8], is_meta: bool) -> Option<(&[u8], usize)> {
        let read = plain_read(bytes).filter(|read| read.is_meta == is_meta)?;
        Some((read.key, read.line_bytes))
    }

    #[test]
    fn a_plain_meta_get_is_recognised_and_nothing_else() {
        assert_eq!(key_and_length(b"mg abc v\r\nmg", true), Some((&b"abc"[..], 10)));
        assert_eq!(key_and_length(b"mg abc v\n", true), Some((&b"abc"[..], 9)));
        for other in
            ["mg abc v k\r\n", "mg abc\r\n", "mg  v\r\n", "mg abc v\r", "mn\r\n", "mg abc  v\n"]
        {
            assert_eq!(plain_read(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn a_plain_get_is_recognised_with_either_line_end() {
        assert_eq!(key_and_length(b"get abc\r\nget", false), Some((&b"abc"[..], 9)));
        assert_eq!(key_and_length(b"get a-longer-key-than-eight\n", false), {
            Some((&b"a-longer-key-than-eight"[..], 28))
        });
        for other in [&b"get a b\r\n"[..], b"get a\r", b"get \r\n", b"gets a\r\n", b"get a", b"ge"]
        {
            assert_eq!(plain_read(other), None, "{other:?}");
        }
        let read = plain_read("get \u{e9}t\u{e9}\r\n".as_bytes());
        assert_eq!(read.map(|read| read.key.len()), Some(5));
    }

    #[test]
    fn keys_come_one_by_one() {
        assert_eq!(next_key(b"  a b\r\n"), Key::One(b"a", 3));
        assert_eq!(next_key(b" b\r\n"), Key::One(b"b", 2));
        assert_eq!(next_key(b"\r\nget"), Key::End(2));
        assert_eq!(next_key(b" \n"), Key::End(2));
        assert_eq!(next_key(b" a\x01\rb\n"), Key::One(b"a\x01\rb", 5));
    }

    #[test]
    fn an_unfinished_key_waits_and_a_long_one_does_not() {
        for unfinished in [&b""[..], b" ", b"abc", b"abc\r", b"\r", &[b'k'; 251]] {
            assert_eq!(next_key(unfinished), Key::Unfinished, "{unfinished:?}");
        }
        assert_eq!(next_key(&[b'k'; 252]), Key::TooLong);
        let mut line = [b'k'; 252];
        line[251] = b'\n';
        assert_eq!(next_key(&line), Key::TooLong);
        line[250] = b'\n';
        assert_eq!(next_key(&line), Key::One(&[b'k'; 250], 250));
    }

    #[test]
    fn a_blank_is_found_wherever_it_is() {
        for length in 0..40 {
            let mut bytes = vec![b'!'; length];
            assert_eq!(find_blank(&bytes, 0), None);
            bytes.iter_mut().for_each(|byte| *byte = 0xff);
            assert_eq!(find_blank(&bytes, 0), None);
            for at in 0..length {
                let mut bytes = bytes.clone();
                bytes[at] = b' ';
                assert_eq!(find_blank(&bytes, 0), Some(at));
                bytes[at] = 0;
                assert_eq!(find_blank(&bytes, 0), Some(at));
            }
        }
    }
}
