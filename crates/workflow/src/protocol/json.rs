//! Reading JSON piece by piece, in the order in which it comes: what is not asked for is passed
//! over, and nothing is allocated but the texts that are taken.

use std::borrow::Cow;

use memchr::memchr2;

/// The most objects and lists within each other. Requests have at most nine.
const MAX_DEPTH: u32 = 32;

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {why}")]
pub struct BadJson {
    /// The offset in the document.
    pub at: usize,
    /// What is wrong.
    pub why: Cow<'static, str>,
}

/// A place in a document.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

type Result<T> = std::result::Result<T, BadJson>;

impl<'a> Reader<'a> {
    /// Begins a document.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|error| BadJson {
            at: error.valid_up_to(),
            why: "this is not UTF-8: convert the definition or text with iconv".into(),
        })?;
        Ok(Self { text, at: 0, depth: 0 })
    }

    /// An error here.
    pub(super) fn bad<T>(&self, why: impl Into<Cow<'static, str>>) -> Result<T> {
        Err(BadJson { at: self.at, why: why.into() })
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// The first byte of what comes next, behind blanks.
    pub(super) fn peek(&mut self) -> Result<u8> {
        let rest = &self.bytes()[self.at..];
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        self.at += blanks.count();
        match self.bytes().get(self.at) {
            Some(byte) => Ok(*byte),
            None => self.bad("the document ends too soon"),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek()? != byte {
            return self.bad(format!("{:?} belongs here", char::from(byte)));
        }
        self.at += 1;
        Ok(())
    }

    /// Passes each member's name to `take`, which takes the value or skips it.
    pub(super) fn object(
        &mut self,
        mut take: impl FnMut(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
        self.items(b'{', b'}', |reader| {
            let name = reader.string()?;
            reader.expect(b':')?;
            take(reader, &name)
        })
    }

    /// Has `take` take each element.
    pub(super) fn list(&mut self, take: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.items(b'[', b']', take)
    }

    fn items(
        &mut self,
        open: u8,
        close: u8,
        mut take: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.expect(open)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.bad(format!("more than {MAX_DEPTH} objects and lists within each other"));
        }
        if self.peek()? == close {
            self.at += 1;
        } else {
            loop {
                take(self)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    byte if byte == close => break self.at += 1,
                    _ => return self.bad("a comma belongs here, or the end of what was begun"),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// A text; borrowed where nothing in it is escaped.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>> {
        self.expect(b'"')?;
        let mut whole = String::new();
        loop {
            let rest = &self.bytes()[self.at..];
            let Some(length) = memchr2(b'"', b'\\', rest) else {
                return self.bad("a text without its end");
            };
            let piece = &self.text[self.at..self.at + length];
            self.at += length + 1;
            if rest[length] == b'"' {
                if whole.is_empty() {
                    return Ok(Cow::Borrowed(piece));
                }
                whole.push_str(piece);
                return Ok(Cow::Owned(whole));
            }
            if whole.is_empty() {
                // A definition is one text of many short lines.
                whole.reserve(length + (rest.len() - length).min(64 << 10));
            }
            whole.push_str(piece);
            self.escaped(&mut whole)?;
        }
    }

    /// What follows a backslash.
    fn escaped(&mut self, whole: &mut String) -> Result<()> {
        let Some(byte) = self.bytes().get(self.at).copied() else {
            return self.bad("a text without its end");
        };
        let character = match byte {
            b'n' => '\n',
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                self.at += 1;
                let character = self.unicode()?;
                whole.push(character);
                return Ok(());
            }
            _ => return self.bad("no such escape in JSON"),
        };
        self.at += 1;
        whole.push(character);
        Ok(())
    }

    fn unicode(&mut self) -> Result<char> {
        let high = self.four_digits()?;
        let is_pair =
            (0xd800..0xdc00).contains(&high) && self.bytes()[self.at..].starts_with(b"\\u");
        let code = if is_pair {
            self.at += 2;
            let low = self.four_digits()?;
            0x1_0000 + ((high - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff)
        } else {
            high
        };
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => self.bad("half of a pair of \\u escapes"),
        }
    }

    fn four_digits(&mut self) -> Result<u32> {
        let digits = self.bytes().get(self.at..self.at + 4).unwrap_or_default();
        let mut code = 0;
        for digit in digits {
            match char::from(*digit).to_digit(16) {
                Some(digit) => code = code << 4 | digit,
                None => return self.bad("\\u has four hexadecimal digits"),
            }
        }
        if digits.len() < 4 {
            return self.bad("\\u has four hexadecimal digits");
        }
        self.at += 4;
        Ok(code)
    }

    /// A whole number.
    pub(super) fn integer(&mut self) -> Result<i64> {
        self.peek()?;
        let start = self.at;
        let rest = &self.bytes()[start..];
        let length = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let length = length.count();
        match self.text[start..start + length].parse() {
            Ok(number) => {
                self.at += length;
                Ok(number)
            }
            Err(_) => self.bad("a whole number belongs here"),
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self) -> Result<bool> {
        self.peek()?;
        let rest = &self.text[self.at..];
        let (value, length) = match rest {
            _ if rest.starts_with("true") => (true, 4),
            _ if rest.starts_with("false") => (false, 5),
            _ => return self.bad("true or false belongs here"),
        };
        self.at += length;
        Ok(value)
    }

    /// Passes over a value.
    pub(super) fn skip(&mut self) -> Result<()> {
        match self.peek()? {
            b'{' => self.object(|reader, _| reader.skip()),
            b'[' => self.list(Self::skip),
            b'"' => self.string().map(drop),
            b't' | b'f' => self.boolean().map(drop),
            b'n' if self.text[self.at..].starts_with("null") => {
                self.at += 4;
                Ok(())
            }
            _ => self.integer().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    fn text(json: &str) -> Result<String, String> {
        let mut reader = Reader::new(json.as_bytes()).map_err(|error| error.to_string())?;
        reader.string().map(std::borrow::Cow::into_owned).map_err(|error| error.to_string())
    }

    #[test]
    fn texts_are_read_with_their_escapes() {
        assert_eq!(text(r#""a\n\"b\"\\ \b\t\/""#), Ok("a\n\"b\"\\ \u{8}\t/".to_owned()));
        assert_eq!(text(r#""\u00e9\ud83d\ude00é""#), Ok("é😀é".to_owned()));
        for wrong in [r#""\q""#, r#""\u12""#, r#""\ud83d""#, r#""open"#, "\"\\", "7", ""] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_or_ends_too_soon_is_an_error_and_no_overflow() {
        let deep = "[".repeat(100_000);
        let mut reader = Reader::new(deep.as_bytes()).expect("UTF-8");
        assert!(reader.skip().expect_err("deep").to_string().contains("more than 32"));
        for wrong in ["{", "{\"a\"", "{\"a\":", "[1", "[1,", "[1 2]", "{\"a\" 1}", "1.5", "nul"] {
            let mut reader = Reader::new(wrong.as_bytes()).expect("UTF-8");
            reader.skip().expect_err(wrong);
        }
        assert!(Reader::new(b"\"\xff\"").is_err());
    }

    #[test]
    fn members_are_passed_in_order_and_unknown_ones_skipped() {
        let json = "{\"a\": {\"x\": [1, {}, []]}, \"b\":\n-7, \"c\": false, \"d\": null}";
        let mut reader = Reader::new(json.as_bytes()).expect("UTF-8");
        let mut seen = Vec::new();
        let read = reader.object(|reader, name| {
            match name {
                "b" => seen.push(reader.integer()?),
                "c" => seen.push(reader.boolean()?.into()),
                _ => reader.skip()?,
            }
            Ok(())
        });
        read.expect("whole");
        assert_eq!(seen, [-7, 0]);
    }
}
