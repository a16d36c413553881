//! Answers: the server's writing of them, and the client's reading.

use super::tokens::{Tokens, number};

/// The end of a `get`.
pub const END: &[u8] = b"END\r\n";
/// The answer to a successful store.
pub const STORED: &[u8] = b"STORED\r\n";
/// The answer to a removal.
pub const DELETED: &[u8] = b"DELETED\r\n";
/// The answer to a change of an absent key.
pub const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
/// The answer to a meta get of an absent key.
pub const META_MISS: &[u8] = b"EN";
/// The answer to a meta no-op.
pub const META_NOOP: &[u8] = b"MN\r\n";
/// The answer to a store whose verb is not met.
pub const NOT_STORED: &[u8] = b"NOT_STORED\r\n";
/// The answer to a store with a unique number that is not the item's.
pub const EXISTS: &[u8] = b"EXISTS\r\n";
/// The answer to a `touch` of a present key.
pub const TOUCHED: &[u8] = b"TOUCHED\r\n";
/// The answer to a command without another result.
pub const OK: &[u8] = b"OK\r\n";
/// The answer to `stats reset`.
pub const RESET: &[u8] = b"RESET\r\n";
/// The end of a line and of a data block.
pub const LINE_END: &[u8] = b"\r\n";

/// Two decimal digits at a time, from `00` to `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends `number` in decimal.
#[inline]
pub fn put_number(mut number: u64, into: &mut Vec<u8>) {
    // Nearly all are lengths of small values. Pieces of a known length need no call to be copied.
    match number {
        0..10 => return into.push(b'0' + number as u8),
        10..100 => return into.extend_from_slice(&PAIRS[number as usize]),
        100..1_000 => {
            into.push(b'0' + (number / 100) as u8);
            return into.extend_from_slice(&PAIRS[number as usize % 100]);
        }
        1_000..10_000 => {
            into.extend_from_slice(&PAIRS[number as usize / 100]);
            return into.extend_from_slice(&PAIRS[number as usize % 100]);
        }
        _ => {}
    }
    let mut digits = [0; 20];
    let mut at = digits.len();
    while number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    into.extend_from_slice(&digits[at..]);
}

/// Appends one item of a `get`, or of a `gets` when its unique number is given. Returns the
/// position of the value's first byte in `into`.
#[inline]
pub fn put_value(
    key: &[u8],
    flags: u32,
    value: &[u8],
    cas: Option<u64>,
    into: &mut Vec<u8>,
) -> usize {
    put_value_line(key, flags, value.len(), cas, value.len(), into);
    let at = into.len();
    into.extend_from_slice(value);
    into.extend_from_slice(LINE_END);
    at
}

/// Appends the line before a value, with space for `space_bytes` and the end after it.
#[inline]
pub fn put_value_line(
    key: &[u8],
    flags: u32,
    value_bytes: usize,
    cas: Option<u64>,
    space_bytes: usize,
    into: &mut Vec<u8>,
) {
    // The name, three numbers, the spaces and line ends of one item, and the end after it.
    into.reserve(6 + key.len() + 53 + space_bytes + 2 + END.len());
    into.extend_from_slice(b"VALUE ");
    into.extend_from_slice(key);
    if flags == 0 {
        into.extend_from_slice(b" 0 ");
    } else {
        into.push(b' ');
        put_number(u64::from(flags), into);
        into.push(b' ');
    }
    put_number(value_bytes as u64, into);
    if let Some(cas) = cas {
        into.push(b' ');
        put_number(cas, into);
    }
    into.extend_from_slice(LINE_END);
}

/// Appends one line of statistics.
pub fn put_stat(name: &str, value: &dyn std::fmt::Display, into: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing to a vector can't fail.
    let _ = write!(into, "STAT {name} {value}\r\n");
}

/// Appends a key with everything but letters, digits and `-._~` as `%` and two digits.
pub fn put_encoded(key: &[u8], into: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            into.push(*byte);
        } else {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            into.extend_from_slice(&[b'%', high, low]);
        }
    }
}

/// One answer's line, as a client reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// `VALUE`: a data block follows.
    Value {
        /// The key.
        key: &'a [u8],
        /// The client's own 32 bits.
        flags: u32,
        /// How long the data block is, without its end.
        value_bytes: usize,
        /// The unique number of the store, to `gets`.
        cas: Option<u64>,
    },
    /// `STAT`: name and value.
    Stat(&'a [u8], &'a [u8]),
    /// `END`.
    End,
    /// `STORED`.
    Stored,
    /// `DELETED`.
    Deleted,
    /// `NOT_FOUND`.
    NotFound,
    /// `VERSION`, with the version.
    Version(&'a [u8]),
    /// Any other line: an error, or what this reader does not know.
    Other(&'a [u8]),
}

/// Reads an answer's line, given without its end.
pub fn read_answer(line: &[u8]) -> Answer<'_> {
    let mut words = Tokens::new(line);
    match words.next() {
        Some(b"VALUE") => read_value(words).unwrap_or(Answer::Other(line)),
        Some(b"STAT") => {
            let name = words.next().unwrap_or_default();
            Answer::Stat(name, line.get("STAT  ".len() + name.len()..).unwrap_or_default())
        }
        Some(b"VERSION") => Answer::Version(line.get("VERSION ".len()..).unwrap_or_default()),
        _ => match line {
            b"END" => Answer::End,
            b"STORED" => Answer::Stored,
            b"DELETED" => Answer::Deleted,
            b"NOT_FOUND" => Answer::NotFound,
            _ => Answer::Other(line),
        },
    }
}

fn read_value(mut words: Tokens<'_>) -> Option<Answer<'_>> {
    let key = words.next()?;
    let flags = number(words.next()?, u64::from(u32::MAX))? as u32;
    let value_bytes = number(words.next()?, u64::from(u32::MAX))? as usize;
    let cas = match words.next() {
        Some(word) => Some(number(word, u64::MAX)?),
        None => None,
    };
    words.next().is_none().then_some(Answer::Value { key, flags, value_bytes, cas })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        let mut powers: Vec<u64> = (0..20).map(|power| 10_u64.pow(power)).collect();
        powers.extend([0, 7, 42, 123, 9_999, 65_536, u64::from(u32::MAX), u64::MAX]);
        for number in powers.iter().flat_map(|n| [n.wrapping_sub(1), *n, n.wrapping_add(1)]) {
            let mut text = Vec::new();
            put_number(number, &mut text);
            assert_eq!(text, number.to_string().into_bytes());
        }
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for (flags, cas) in [(0, None), (77, Some(u64::MAX))] {
            let mut text = Vec::new();
            put_value_line(b"key", flags, 5, cas, 5, &mut text);
            let line = text.strip_suffix(LINE_END).expect("an end");
            let value = Answer::Value { key: b"key", flags, value_bytes: 5, cas };
            assert_eq!(read_answer(line), value);
        }
    }

    #[test]
    fn other_lines_are_told_apart() {
        assert_eq!(read_answer(b"END"), Answer::End);
        assert_eq!(read_answer(b"STAT pid 12 a"), Answer::Stat(b"pid", b"12 a"));
        assert_eq!(read_answer(b"STAT"), Answer::Stat(b"", b""));
        assert_eq!(read_answer(b"VERSION 1.2"), Answer::Version(b"1.2"));
        assert_eq!(read_answer(b"VALUE a b c"), Answer::Other(b"VALUE a b c"));
        assert_eq!(read_answer(b"ERROR"), Answer::Other(b"ERROR"));
    }
}
