//! Lines of a definition, and the words in them.

use std::borrow::Cow;

use super::error::{Read, fault, short};
use crate::model::{NAME_LIMIT, Slot};

/// The words of a line, with the line that they lie in.
pub(super) struct Words<'a, 'w> {
    pub(super) line: &'a str,
    pub(super) all: &'w [&'a str],
}

impl<'a> Words<'a, '_> {
    /// The word of this place, unless a comment begins there.
    pub(super) fn value(&self, place: usize) -> Option<&'a str> {
        self.all.get(place).copied().filter(|word| !word.starts_with('#'))
    }

    /// The word of this place, which has to be there.
    pub(super) fn need(&self, place: usize, what: &str) -> Read<&'a str> {
        self.value(place).ok_or_else(|| {
            fault(format!("{} has no {what}", self.all[0]), format!("write {}", form(self.all[0])))
        })
    }

    /// The words behind the first that is a lone `#`, from this place on: the state.
    pub(super) fn state(&self, from: usize) -> &[&'a str] {
        let from = from.min(self.all.len());
        match self.all[from..].iter().position(|word| *word == "#") {
            Some(place) => &self.all[from + place + 1..],
            None => &[],
        }
    }

    /// What is between the quote that the word at this place begins with and the line's last one,
    /// as this program writes what it keeps: behind that nothing is but a comment.
    pub(super) fn kept(&self, from: usize) -> Option<Cow<'a, str>> {
        let start = self.all.get(from)?.as_ptr() as usize - self.line.as_ptr() as usize;
        let (inner, rest) = self.line.get(start..)?.strip_prefix('\'')?.rsplit_once('\'')?;
        match rest.trim_ascii() {
            ESCAPED => Some(Cow::Owned(plain(inner))),
            rest => (rest.is_empty() || rest.starts_with('#')).then_some(Cow::Borrowed(inner)),
        }
    }

    /// The words from this place to a comment, with one blank between them. Where they stand so in
    /// the line, no copy is made.
    pub(super) fn join<'s>(&self, from: usize, scratch: &'s mut String) -> &'s str
    where
        'a: 's,
    {
        let rest = self.all.get(from..).unwrap_or(&[]);
        let count = rest.iter().position(|word| word.starts_with('#')).unwrap_or(rest.len());
        let words = &rest[..count];
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return "" };
        let base = self.line.as_ptr() as usize;
        let start = first.as_ptr() as usize - base;
        let end = last.as_ptr() as usize - base + last.len();
        let len = words.iter().map(|word| word.len() + 1).sum::<usize>() - 1;
        let whole = self.line.get(start..end).unwrap_or("");
        if whole.len() == len && !whole.contains('\t') {
            return whole;
        }
        scratch.clear();
        for word in words {
            if !scratch.is_empty() {
                scratch.push(' ');
            }
            scratch.push_str(word);
        }
        scratch
    }
}

/// What stands behind a value of several lines that is kept, and that ecFlow passes over: in others
/// the two characters `\n` are no line's end.
pub(super) const ESCAPED: &str = "# escaped";

/// A value on one line.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('\n', r"\n")
}

/// What [`escaped`] has made one line of.
fn plain(value: &str) -> String {
    let parts: Vec<String> = value.split(r"\\").map(|part| part.replace(r"\n", "\n")).collect();
    parts.join(r"\")
}

/// How an attribute is written.
pub(super) fn form(keyword: &str) -> &'static str {
    match keyword {
        "suite" | "family" | "task" | "alias" => "the keyword and a name",
        "edit" => "edit NAME 'value'",
        "trigger" | "complete" => "trigger task == complete",
        "event" => "event [NUMBER] [NAME] [set]",
        "meter" => "meter NAME MIN MAX [THRESHOLD]",
        "label" => "label NAME \"text\"",
        "limit" => "limit NAME NUMBER",
        "inlimit" => "inlimit [-n] [-s] [/PATH:]NAME [TOKENS]",
        "time" | "today" => "time [+]hh:mm, or time hh:mm hh:mm hh:mm (start, end, step)",
        "date" => "date DAY.MONTH.YEAR, * for any",
        "day" => "day monday",
        "cron" => "cron [-w 0,5L] [-d 1,L] [-m 1,2] hh:mm [hh:mm hh:mm]",
        "late" => "late -s +00:15 -a 20:00 -c +02:00",
        "repeat" => {
            "repeat integer NAME START END [STEP] (or date, datelist, enumerated, string, day)"
        }
        "autocancel" | "autoarchive" => "autocancel +hh:mm, hh:mm, or a number of days",
        "autorestore" => "autorestore /PATH …",
        "clock" => "clock real|hybrid [DAY.MONTH.YEAR] [GAIN]",
        "zombie" => "zombie TYPE:ACTION:COMMANDS:SECONDS",
        "verify" => "verify STATE:COUNT",
        "queue" => "queue NAME STEP …",
        "defstatus" => "defstatus complete",
        _ => "it as the grammar has it",
    }
}

/// Whether a node or attribute may have this name: a definition with another one isn't read.
pub fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.first().is_some_and(is_letter)
        && bytes.iter().all(|byte| is_letter(byte) || *byte == b'.')
        && bytes.len() <= NAME_LIMIT
}

/// Checks the name of a node or attribute.
pub(super) fn check_name<'a>(what: &str, name: &'a str) -> Read<&'a str> {
    if is_name(name) {
        return Ok(name);
    }
    let fix = match name.ends_with('\r') {
        true => "lines end with a carriage return: convert the file with dos2unix",
        false => "use letters, digits, _ and, behind the first, dots; at most 1024 of them",
    };
    Err(fault(format!("'{}' is no name of a {what}", short(name)), fix))
}

/// The whole number of a word.
pub(super) fn number(what: &str, word: &str) -> Read<i32> {
    word.parse().map_err(|_| {
        fault(format!("{what} '{}' is no whole number", short(word)), "write one, such as 10")
    })
}

/// The time of `hh:mm` or `+hh:mm`, and whether it had a plus. `checked` times are less than a day.
pub(super) fn time(word: &str, checked: bool) -> Read<(Slot, bool)> {
    let bad = || {
        let word = short(word);
        fault(format!("'{word}' is no time"), "write hh:mm between 00:00 and 23:59, or +hh:mm")
    };
    let (hours, minutes) = word.split_once(':').ok_or_else(bad)?;
    let (hours, is_relative) = match hours.strip_prefix('+') {
        Some(hours) => (hours, true),
        None => (hours, false),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) || minutes.len() != 2 || hours.len() > 6 {
        return Err(bad());
    }
    let (hour, minute): (i32, i32) =
        (hours.parse().map_err(|_| bad())?, minutes.parse().map_err(|_| bad())?);
    if checked && (hours.len() != 2 || hour > 23) || minute > 59 {
        return Err(bad());
    }
    Ok((Slot::new(hour, minute), is_relative))
}

/// The value without the quotes around it: first double, then single ones.
pub(super) fn unquote(value: &str) -> &str {
    let strip = |value, quote: char| {
        let inner = str::strip_prefix(value, quote)?;
        inner.strip_suffix(quote)
    };
    let value = strip(value, '"').unwrap_or(value);
    strip(value, '\'').unwrap_or(value)
}

/// The same, in the other order, as in lists.
pub(super) fn unquote_item(value: &str) -> &str {
    let strip = |value, quote: char| {
        let inner = str::strip_prefix(value, quote)?;
        inner.strip_suffix(quote)
    };
    let value = strip(value, '\'').unwrap_or(value);
    strip(value, '"').unwrap_or(value)
}

/// The words of a list, without quotes, up to a comment.
pub(super) fn items<'a>(of: &Words<'a, '_>, from: usize) -> impl Iterator<Item = &'a str> {
    let words = of.all.get(from..).unwrap_or(&[]).to_vec();
    words.into_iter().take_while(|word| !word.starts_with('#')).map(unquote_item)
}

/// Splits a line into its words, at blanks and tabs.
pub(super) fn split<'a>(line: &'a str, words: &mut Vec<&'a str>) {
    words.clear();
    let (mut from, mut is_blank_before) = (None, 1);
    for (number, block) in line.as_bytes().chunks(64).enumerate() {
        let blanks = blanks(block);
        // Where words begin and end, by turns.
        let mut edges = blanks ^ (blanks << 1 | is_blank_before);
        is_blank_before = blanks >> 63;
        while edges != 0 {
            let at = number * 64 + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            match from.take() {
                None => from = Some(at),
                Some(from) => words.push(&line[from..at]),
            }
        }
    }
    if let Some(from) = from {
        words.push(&line[from..]);
    }
}

/// Which of up to 64 bytes are blanks or tabs, as bits; those behind the last count as such.
fn blanks(block: &[u8]) -> u64 {
    let (words, rest) = block.as_chunks::<8>();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut bits = u64::MAX;
    for word in std::iter::once(&last).chain(words.iter().rev()) {
        bits = bits << 8 | blanks_of(u64::from_le_bytes(*word));
    }
    bits
}

/// The same of eight bytes.
fn blanks_of(bytes: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const LOW_BITS: u64 = 0x7f * ONES;
    // The highest bit of each byte that is zero.
    let zeros = |bytes: u64| !(((bytes & LOW_BITS) + LOW_BITS) | bytes | LOW_BITS);
    let found = zeros(bytes ^ (ONES * b' ' as u64)) | zeros(bytes ^ (ONES * b'\t' as u64));
    // Bit 8n goes to bit 56 + n, and no two to one.
    (found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The lines of a text, with statements that stand on one line taken apart.
pub(super) struct Lines<'a> {
    rest: &'a str,
    /// The line's number, from 1.
    pub(super) number: usize,
    /// Statements behind the first of a line.
    pending: Vec<&'a str>,
    /// Statements behind the first of a last line without its end are not read, as in ecFlow.
    pub(super) has_lost: bool,
    /// Text of a server, where ';' is no separator.
    pub(super) is_persistent: bool,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        let (has_lost, is_persistent) = (false, false);
        Self { rest: text, number: 0, pending: Vec::new(), has_lost, is_persistent }
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        if let Some(statement) = self.pending.pop() {
            return Some(statement);
        }
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let bytes = self.rest.as_bytes();
        let first = match self.is_persistent {
            true => memchr::memchr(b'\n', bytes),
            false => memchr::memchr2(b'\n', b';', bytes),
        };
        let has_separator = first.is_some_and(|at| bytes[at] == b';');
        let end = if has_separator { memchr::memchr(b'\n', bytes) } else { first };
        let (line, rest) = match end {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, ""),
        };
        self.rest = rest;
        if !has_separator {
            return Some(line);
        }
        let first = self.statements(line);
        if end.is_none() {
            self.has_lost |= self.pending.iter().any(|statement| !statement.trim().is_empty());
            self.pending.clear();
        }
        Some(first)
    }

    fn statements(&mut self, line: &'a str) -> &'a str {
        let start = line.trim_start_matches([' ', '\t']);
        let keyword = start.split([' ', '\t']).next().unwrap_or("");
        if keyword.starts_with('#') || keyword == "label" {
            return line;
        }
        let line = line.split('#').next().unwrap_or("");
        let all = || line.split(';').filter(|statement| !statement.is_empty());
        let Some(first) = all().next() else { return "" };
        // A value may have ';' in it: only statements that are all edits are several.
        let is_edit = |statement: &str| statement.trim().starts_with("edit");
        if first.contains("edit") && !all().all(is_edit) {
            return line;
        }
        self.pending = all().skip(1).collect();
        self.pending.reverse();
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        let mut lines = Lines::new(text);
        std::iter::from_fn(|| lines.next()).collect()
    }

    #[test]
    fn statements_of_a_line_are_taken_apart_but_not_values() {
        assert_eq!(lines("task a; task b # c;d\nx"), ["task a", " task b ", "x"]);
        assert_eq!(
            lines("edit A 'x;y'\nedit A 1;edit B 2\n"),
            ["edit A 'x;y'", "edit A 1", "edit B 2"]
        );
        assert_eq!(lines("task a; task b"), ["task a"], "a last line without its end");
        let has_lost = |text: &str| {
            let mut lines = Lines::new(text);
            while lines.next().is_some() {}
            lines.has_lost
        };
        assert_eq!(["task a; task b", "endsuite; "].map(has_lost), [true, false]);
        assert_eq!(lines("label a \"b;c\"\n# a;b"), ["label a \"b;c\"", "# a;b"]);
    }

    #[test]
    fn words_are_what_is_between_blanks_and_tabs_wherever_they_stand() {
        let mut state = 7_u32;
        let mut line = String::new();
        for _ in 0..20_000 {
            let mut words = Vec::new();
            split(&line, &mut words);
            let all = line.split([' ', '\t']).filter(|word| !word.is_empty());
            assert_eq!(words, all.collect::<Vec<_>>(), "{line:?}");
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let signs = [' ', ' ', '\t', '\u{b}', '!', 'a', '\u{a0}', 'é'];
            match state >> 24 {
                0 => line.clear(),
                one => line.push(signs[one as usize & 7]),
            }
        }
    }

    #[test]
    fn words_are_joined_with_one_blank_up_to_a_comment() {
        let line = "edit A  'x  y' # z";
        let mut all = Vec::new();
        split(line, &mut all);
        let words = Words { line, all: &all };
        assert_eq!(words.join(2, &mut String::new()), "'x y'");
        assert_eq!(words.state(2), ["z"]);
        assert_eq!(unquote("\"'x'\""), "x");
        assert_eq!(unquote("\""), "\"");
    }

    #[test]
    fn what_is_kept_is_read_to_the_last_quote_where_only_a_comment_follows() {
        let kept = |line: &str| {
            let mut all = Vec::new();
            split(line, &mut all);
            Words { line, all: &all }.kept(2).map(Cow::into_owned)
        };
        for (line, value) in [
            ("edit V 'a  b'", Some("a  b")),
            ("edit V 'it's' # server", Some("it's")),
            ("edit V 'a' # it's b", None),
            ("edit V 'a' # it's", None),
            ("edit V a", None),
            (r"edit V 'a\nb'", Some(r"a\nb")),
            (r"edit V 'a\nb' # escaped'", Some(r"a\nb' # escaped")),
        ] {
            assert_eq!(kept(line).as_deref(), value, "{line}");
        }
        for value in ["a\nb", "\n", r"\n", "\\\n", "\n\\n\\", r"\\n"] {
            let line = format!("edit V '{}' {ESCAPED}", escaped(value));
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(kept(&line).as_deref(), Some(value));
        }
    }

    #[test]
    fn times_are_checked() {
        assert_eq!(time("+01:30", true).ok(), Some((Slot::new(1, 30), true)));
        assert!(time("24:00", true).is_err() && time("24:00", false).is_ok());
        assert!(time("1:00", true).is_err() && time("01:60", true).is_err());
    }
}
