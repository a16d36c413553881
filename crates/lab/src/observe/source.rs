//! Texts of `/proc` and `/sys`, opened once and read again from their start into one buffer, and
//! parsed by hand: after the start a reading allocates nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The longest text that is looked at. What is beyond it is cut off at a line's end; the lines
/// that sensors want stand at the head of the few texts that may be longer.
const TEXT_LIMIT_BYTES: usize = 256 << 10;

/// The longest text of one line.
const LINE_LIMIT_BYTES: usize = 4 << 10;

/// The buffer that every reading goes through.
#[derive(Debug)]
pub(super) struct Scratch(Box<[u8]>);

impl Scratch {
    /// For any text.
    pub(super) fn new() -> Self {
        Self(vec![0; TEXT_LIMIT_BYTES].into_boxed_slice())
    }

    /// For a text of one line.
    pub(super) fn for_lines() -> Self {
        Self(vec![0; LINE_LIMIT_BYTES].into_boxed_slice())
    }
}

/// One file of the kernel's. One that can't be opened or read is unseen.
#[derive(Debug)]
pub(super) struct Source(Option<File>);

impl Source {
    pub(super) fn open(path: &str) -> Self {
        Self(File::open(path).ok())
    }

    /// The text as it is now.
    pub(super) fn read<'a>(&self, scratch: &'a mut Scratch) -> Option<&'a [u8]> {
        let file = self.0.as_ref()?;
        let buffer = &mut scratch.0;
        let mut length = 0;
        // The kernel hands out a longer text in pieces of whole lines.
        while length < buffer.len() {
            match file.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => return Some(&buffer[..length]),
                Ok(read) => length += read,
                Err(_) => return None,
            }
        }
        let whole = buffer.iter().rposition(|byte| *byte == b'\n')?;
        Some(&buffer[..=whole])
    }

    /// The text of a file that holds one short line: one system call.
    pub(super) fn read_line<'a>(&self, scratch: &'a mut Scratch) -> Option<&'a [u8]> {
        let length = self.0.as_ref()?.read_at(&mut scratch.0, 0).ok()?;
        (length > 0).then(|| &scratch.0[..length])
    }
}

/// The lines of a text.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

/// A whole word as a decimal number.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| {
        let value = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(value)
    };
    if word.is_empty() { None } else { word.iter().try_fold(0, digit) }
}

/// A whole word as a number with two decimals, in hundredths: `1.05` is 105.
pub(super) fn hundredths(word: &[u8]) -> Option<u64> {
    let point = word.iter().position(|byte| *byte == b'.')?;
    let (whole, part) = (&word[..point], &word[point + 1..]);
    let part = if part.len() == 2 { number(part)? } else { return None };
    number(whole)?.checked_mul(100)?.checked_add(part)
}

/// The `index`th number of a line, counted from 0.
pub(super) fn nth_number(line: &[u8], index: usize) -> Option<u64> {
    words(line).nth(index).and_then(number)
}

/// The number behind `key` in the first line that begins with it.
pub(super) fn value_of(text: &[u8], key: &[u8]) -> Option<u64> {
    let line = lines(text).find_map(|line| line.strip_prefix(key))?;
    nth_number(line, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_of_digits_are_numbers() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for word in [&b""[..], b"18446744073709551616", b"-1", b"1.5", b"12kB"] {
            assert_eq!(number(word), None, "{word:?}");
        }
        assert_eq!(hundredths(b"12.05"), Some(1205));
        assert_eq!(hundredths(b"12.5"), None);
        assert_eq!(hundredths(b"12"), None);
    }

    #[test]
    fn a_value_is_found_behind_its_key_wherever_the_line_stands() {
        let text = b"pswpin 3\npswpout 4\nvoluntary:\t12\n";
        assert_eq!(value_of(text, b"pswpout "), Some(4));
        assert_eq!(value_of(text, b"voluntary:"), Some(12));
        assert_eq!(value_of(text, b"pgfault "), None);
    }

    #[test]
    fn a_file_is_read_again_from_its_start_and_what_is_not_there_is_unseen() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let source = Source::open(file.path().to_str().unwrap());
        let mut scratch = Scratch::new();
        for text in ["one\n", "another\n"] {
            file.as_file().set_len(0).unwrap();
            file.as_file().write_all_at(text.as_bytes(), 0).unwrap();
            assert_eq!(source.read(&mut scratch), Some(text.as_bytes()));
            assert_eq!(source.read_line(&mut scratch), Some(text.as_bytes()));
        }
        let long = "0123456789abcde\n".repeat(TEXT_LIMIT_BYTES / 16 + 5);
        std::io::Write::write_all(file.as_file_mut(), long.as_bytes()).unwrap();
        let read = source.read(&mut scratch).unwrap();
        assert!(read.len() <= TEXT_LIMIT_BYTES && read.ends_with(b"\n"));
        assert_eq!(Source::open("/proc/none").read(&mut scratch), None);
    }
}
