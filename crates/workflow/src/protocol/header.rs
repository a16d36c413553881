//! What is this program's own, in a line in front of ecFlow's frame: it begins with a letter that
//! no length in hexadecimal digits begins with, so that the first byte tells which of both it is.
//!
//! ```text
//! loadline/1 encoding=binary part=/,2,1207,3 part=/s/f,all
//! ```
//!
//! Behind it comes a `--sync` of ecFlow's, which says who asks. Each `part` is a node, how many
//! levels below it are meant, and, where the client has it already, its numbers of the last changes
//! of states and of structure. The answer has a line, too, and then that many bytes; a refusal is
//! ecFlow's `ErrorCmd` in its frame.
//!
//! With `follow=100` the connection stays, and further answers come as the parts change, at most
//! one in as many milliseconds: each brings what has changed since the one before. One of no bytes
//! is a sign of life. With `states=each` the states that nodes have come to since come before each
//! tree ([`super::write_passed`]).

use std::ops::RangeInclusive;
use std::time::Duration;

use super::request::{Body, Command, Request, SyncKind};
use crate::model::{ALL_LEVELS, Portion};

/// The first byte of such a line.
pub const FIRST: u8 = b'l';
/// The longest line, in bytes.
pub const LINE_LIMIT: usize = 64 << 10;
/// The most portions that one request names.
pub const PORTIONS_LIMIT: usize = 1000;

/// The milliseconds that a client that follows may name: the least between two answers.
pub const FOLLOW_MS: RangeInclusive<u32> = 10..=60_000;
/// How long a server sends nothing to a client that follows, at most.
pub const SILENCE: Duration = Duration::from_secs(15);

const NAME: &str = "loadline/1 ";

/// How a tree is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Encoding {
    /// As ecFlow's text of a definition with its state.
    Text,
    /// As [`crate::binary`].
    Binary,
}

impl Encoding {
    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Binary => "binary",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        [Self::Text, Self::Binary].into_iter().find(|one| one.word() == word)
    }
}

/// What the line of a request says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Header {
    /// How the answer is to be written.
    pub encoding: Encoding,
    /// Where further answers are to come as the parts change: the least milliseconds between two,
    /// of [`FOLLOW_MS`].
    pub follow: Option<u32>,
    /// Whether all states are to come that nodes have come to since the oldest number of the parts,
    /// not only their last ones.
    pub wants_states: bool,
    /// What is asked for, one at least.
    pub portions: Vec<Portion>,
}

/// Why a line is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0}: a request in this program's own protocol begins with a line such as \
     \"loadline/1 encoding=binary part=/,1\""
)]
pub struct BadHeader(String);

/// What comes at the beginning of some bytes, and how many bytes it takes.
type Come<T> = Result<Option<(T, usize)>, BadHeader>;

/// The line at the beginning, without what ends it; none where it has not come whole.
fn line(bytes: &[u8]) -> Come<&str> {
    let end = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_LIMIT)]);
    let Some(end) = end else {
        let is_too_long = bytes.len() >= LINE_LIMIT;
        let why = || BadHeader(format!("a line of more than {LINE_LIMIT} bytes"));
        return if is_too_long { Err(why()) } else { Ok(None) };
    };
    let text = std::str::from_utf8(&bytes[..end]).ok();
    let text = text.and_then(|text| text.strip_prefix(NAME));
    let words =
        text.ok_or_else(|| BadHeader("it doesn't begin with \"loadline/1 \"".to_owned()))?;
    Ok(Some((words, end + 1)))
}

fn bad(word: &str) -> BadHeader {
    let short: String = word.chars().take(80).collect();
    BadHeader(format!("{short:?} is not understood"))
}

impl Header {
    /// Reads a request's line; none where it has not come whole.
    ///
    /// # Errors
    /// When it is none, or one of another version.
    pub fn read(bytes: &[u8]) -> Come<Self> {
        let Some((words, taken)) = line(bytes)? else { return Ok(None) };
        let (encoding, follow, wants_states) = (Encoding::Text, None, false);
        let mut header = Self { encoding, follow, wants_states, portions: Vec::new() };
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            match word.split_once('=').ok_or_else(|| bad(word))? {
                ("encoding", name) => {
                    header.encoding = Encoding::of_word(name).ok_or_else(|| bad(word))?;
                }
                ("follow", digits) => {
                    let every = digits.parse().ok().filter(|every| FOLLOW_MS.contains(every));
                    header.follow = Some(every.ok_or_else(|| bad(word))?);
                }
                ("states", "each") => header.wants_states = true,
                ("part", _) if header.portions.len() == PORTIONS_LIMIT => {
                    return Err(BadHeader(format!("more than {PORTIONS_LIMIT} parts")));
                }
                ("part", text) => header.portions.push(portion(text).ok_or_else(|| bad(word))?),
                _ => return Err(bad(word)),
            }
        }
        match header.portions.is_empty() {
            true => Err(BadHeader("there is no part".to_owned())),
            false => Ok(Some((header, taken))),
        }
    }

    /// Whether such a line may stand before this request.
    #[must_use]
    pub fn goes_with(request: &Request) -> bool {
        matches!(
            &request.body,
            Body::User(_, Command::Sync { kind, handle: 0, .. }) if *kind != SyncKind::News
        )
    }

    /// Appends the line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut text = format!("{NAME}encoding={}", self.encoding.word());
        if let Some(every) = self.follow {
            text.push_str(&format!(" follow={every}"));
        }
        if self.wants_states {
            text.push_str(" states=each");
        }
        for Portion { path, levels, known } in &self.portions {
            text.push_str(" part=");
            text.push_str(path);
            match *levels {
                ALL_LEVELS => text.push_str(",all"),
                levels => text.push_str(&format!(",{levels}")),
            }
            if let Some((state, modify)) = known {
                text.push_str(&format!(",{state},{modify}"));
            }
        }
        text.push('\n');
        out.extend_from_slice(text.as_bytes());
    }
}

fn portion(text: &str) -> Option<Portion> {
    let mut words = text.split(',');
    let path = words.next().filter(|path| path.starts_with('/'))?.to_owned();
    let levels = match words.next()? {
        "all" => ALL_LEVELS,
        levels => levels.parse().ok()?,
    };
    let known = match (words.next(), words.next()) {
        (Some(state), Some(modify)) => Some((state.parse().ok()?, modify.parse().ok()?)),
        (None, _) => None,
        (Some(_), None) => return None,
    };
    words.next().is_none().then_some(Portion { path, levels, known })
}

/// The digits of an answer's length, by which its line has the same length always.
const DIGITS: usize = 16;

/// Whether the server of these statistics (`--stats`) understands such lines: its version says so.
/// Elsewhere in them stand folders and hosts, whatever they are called.
#[must_use]
pub fn is_spoken(stats: &str) -> bool {
    let version = stats.lines().find_map(|line| line.trim_start().strip_prefix("Version"));
    version.is_some_and(|version| version.trim_end().ends_with(" loadline"))
}

/// The bytes of the shortest line of an answer.
pub const SHORTEST_ANSWER: usize = "loadline/1 encoding=text bytes=\n".len() + DIGITS;

/// Appends an answer: its line, and what `write` appends.
pub fn write_own(out: &mut Vec<u8>, encoding: Encoding, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(format!("{NAME}encoding={} bytes=", encoding.word()).as_bytes());
    let digits = out.len();
    out.extend_from_slice(&[b'0'; DIGITS]);
    out.push(b'\n');
    let head = out.len();
    write(out);
    let bytes = format!("{:0width$}", out.len() - head, width = DIGITS);
    out[digits..digits + DIGITS].copy_from_slice(bytes.as_bytes());
}

/// Reads an answer's line: how it is written, and how many bytes follow; none where it has not come
/// whole.
///
/// # Errors
/// When it is none.
pub fn read_own(bytes: &[u8]) -> Come<(Encoding, u64)> {
    let Some((words, taken)) = line(bytes)? else { return Ok(None) };
    let (mut encoding, mut length) = (None, None);
    for word in words.split(' ') {
        match word.split_once('=') {
            Some(("encoding", name)) => encoding = Encoding::of_word(name),
            Some(("bytes", digits)) => length = digits.parse().ok(),
            _ => return Err(bad(word)),
        }
    }
    let pair = encoding.zip(length).ok_or_else(|| bad(words))?;
    Ok(Some((pair, taken)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::length;

    #[test]
    fn a_line_is_read_as_it_was_written_and_is_no_length() {
        let portion = |path: &str, levels, known| Portion { path: path.to_owned(), levels, known };
        let portions = vec![portion("/", 2, Some((1207, 3))), portion("/s/f", ALL_LEVELS, None)];
        let (encoding, follow) = (Encoding::Binary, Some(100));
        let mut header = Header { encoding, follow, wants_states: true, portions };
        let mut line = Vec::new();
        header.write(&mut line);
        let whole = "loadline/1 encoding=binary follow=100 states=each part=/,2,1207,3 \
                     part=/s/f,all\n";
        assert_eq!(line, whole.as_bytes());
        assert_eq!(Header::read(&line), Ok(Some((header.clone(), line.len()))));
        (header.follow, header.wants_states, line) = (None, false, Vec::new());
        header.write(&mut line);
        assert_eq!(line, b"loadline/1 encoding=binary part=/,2,1207,3 part=/s/f,all\n");
        assert_eq!(Header::read(&line), Ok(Some((header, line.len()))));
        for end in 0..line.len() {
            assert_eq!(Header::read(&line[..end]), Ok(None), "{end}");
        }
        assert!(length(*b"loadline", 1 << 30).is_err());
        assert_eq!(line[0], FIRST);
    }

    #[test]
    fn a_server_is_known_by_its_version_and_not_by_its_folders() {
        let stats = |version: &str| {
            let home = "/home/loadline/Version x loadline";
            format!("Server statistics\n   Version   {version}\n   ECF_HOME   {home}\n")
        };
        assert!(is_spoken(&stats("Ecflow version(5.9.2) protocol(JSON cereal 1.3.0) loadline")));
        assert!(!is_spoken(&stats("Ecflow version(5.9.2) boost(1.74.0) Debian build")));
        assert!(!is_spoken(""));
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "loadline/2 part=/,1\n",
            "loadline/1 \n",
            "loadline/1 encoding=text\n",
            "loadline/1 encoding=xml part=/,1\n",
            "loadline/1 part=s,1\n",
            "loadline/1 part=/s\n",
            "loadline/1 part=/s,-1\n",
            "loadline/1 part=/s,1,2\n",
            "loadline/1 part=/s,1,2,3,4\n",
            "loadline/1 color=red part=/,1\n",
            "loadline/1 follow= part=/,1\n",
            "loadline/1 follow=9 part=/,1\n",
            "loadline/1 follow=60001 part=/,1\n",
            "loadline/1 states=all part=/,1\n",
            "l\n",
        ] {
            assert!(Header::read(line.as_bytes()).is_err(), "{line}");
        }
        assert!(Header::read(&vec![b'l'; LINE_LIMIT]).is_err());
        let many = format!("{NAME}{}\n", "part=/,1 ".repeat(PORTIONS_LIMIT + 1));
        assert!(Header::read(many.as_bytes()).is_err());
    }

    #[test]
    fn an_answer_says_how_it_is_written_and_how_long_it_is() {
        let mut out = Vec::new();
        write_own(&mut out, Encoding::Text, |out| out.extend_from_slice(b"abc"));
        let Ok(Some(((Encoding::Text, 3), taken))) = read_own(&out) else { panic!("{out:?}") };
        assert_eq!(&out[taken..], b"abc");
        assert_eq!((read_own(&out[..taken - 1]), taken), (Ok(None), SHORTEST_ANSWER));
        assert!(read_own(b"loadline/1 encoding=text\n").is_err());
    }
}
